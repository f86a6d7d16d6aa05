"""Setting up a workspace: init, rules taken back, the profile's hint, and the doctor."""

import fcntl
import json
import os
import shutil
import sys
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amux.core import canonical
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.ground import layouttext
from amux.journal.setup import doctor, handout, rules, setup
from amux.journal.setup.rules import FLAGS, HANDED
from amux.journal.setup.setup import Asked
from amux.surface.cli import workspace_render
from tests.support.journal_faces import InProcess
from tests.support.workspaces import NAMESPACE, STRANGER, around, project, tree
from tests.support.workspaces import layout as write_layout

as_root = pytest.mark.usefixtures("as_root")
RECEIPT = {
    "schemaVersion", "root", "mode", "project", "created", "changed", "unchanged", "projects",
    "warnings", "nextCall",
}  # fmt: skip


def init(base: Path, *agents: str, **asked: object) -> dict[str, object]:
    return setup.init(Asked(agents=agents, **asked), around(base))  # type: ignore[arg-type]


def remove(base: Path, *agents: str, dry: bool = False) -> dict[str, object]:
    return setup.remove_rules(agents or FLAGS, around(base), is_dry=dry)


def reason(base: Path, *agents: str, **asked: object) -> tuple[str, str]:
    with pytest.raises(AmuxError) as refused:
        init(base, *agents, **asked)
    return refused.value.code, str(refused.value.details["reason"])


def files(base: Path) -> dict[str, bytes | str]:
    """Give what lies in a base but its memory."""
    return {
        path: data
        for path, data in tree(base).items()
        if not path.startswith((".devcodex/", ".git/")) and path not in (".devcodex", ".git")
    }


# --- J20 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J20", "J23", "JA37")
def test_init_makes_what_is_missing_and_a_second_time_nothing(tmp_path: Path) -> None:
    project(tmp_path, "billing")
    base = tmp_path / "billing"
    first = init(base)
    assert set(first) == RECEIPT
    assert first["root"] == str(base)
    assert (first["mode"], first["project"]) == ("project-root", "billing")
    assert first["created"] == [
        ".devcodex/", ".devcodex/layout.json", ".devcodex/.gitignore", ".devcodex/.runtime-state/",
    ]  # fmt: skip
    assert first["changed"] == first["unchanged"] == first["warnings"] == []
    made = tree(base)
    layout = {"mode": "project-root", "project": "billing"}
    layout["schemaVersion"] = "AmuxWorkspaceLayoutV1"
    assert made[".devcodex/layout.json"] == canonical.encode(layout) + b"\n"
    assert made[".devcodex/.gitignore"] == b".runtime-state/\n"
    assert made[".devcodex/.runtime-state/.gitignore"] == b"*\n"
    assert made[".devcodex/.runtime-state/memory.lock"] == b""
    root = made[".devcodex/.runtime-state/root.json"]
    assert isinstance(root, bytes)
    assert set(json.loads(root)) == {"createdAt", "rootId", "schemaVersion"}
    for folder in (".devcodex", ".devcodex/.runtime-state"):
        assert (base / folder).stat().st_mode & 0o777 == 0o700
    assert not any("profile" in path for path in made)
    stamps = {path: (base / path).stat().st_mtime_ns for path in made}
    second = init(base)
    assert second["created"] == second["changed"] == []
    assert second["unchanged"] == first["created"]
    assert tree(base) == made
    assert {path: (base / path).stat().st_mtime_ns for path in made} == stamps


@pytest.mark.requirement("J21", "J63")
def test_what_an_init_that_was_killed_left_is_gone_after_the_next(tmp_path: Path) -> None:
    project(tmp_path, "billing")
    base = tmp_path / "billing"
    left = base / "..mcp.json.amux-0123456789abcdef.tmp"
    left.write_text("{")
    others = base / ".notes.md.amux-0123456789abcdef.tmp"
    others.write_text("of another name")
    init(base, "claude")
    assert not left.exists()
    assert others.exists()


@pytest.mark.requirement("J20")
def test_a_workspace_of_projects_lists_them_and_has_its_own_state(tmp_path: Path) -> None:
    project(tmp_path, "billing", "web")
    receipt = init(tmp_path, mode="workspace")
    assert receipt["mode"] == "workspace-namespace"
    assert receipt["project"] is None
    assert receipt["projects"] == ["billing", "web"]
    assert (tmp_path / ".devcodex/workspace/.runtime-state/root.json").exists()
    text = (tmp_path / ".devcodex/layout.json").read_text()
    assert json.loads(text) == {
        "mode": "workspace-namespace", "schemaVersion": "AmuxWorkspaceLayoutV1",
    }  # fmt: skip
    assert init(tmp_path, mode="workspace")["created"] == []


@pytest.mark.requirement("J20", "JA37")
def test_a_dry_run_gives_the_same_receipt_and_writes_nothing(tmp_path: Path) -> None:
    project(tmp_path, "billing")
    base = tmp_path / "billing"
    (base / ".mcp.json").write_text('{"mcpServers": { }}')
    before = tree(tmp_path)
    dry = init(base, *FLAGS, is_dry=True)
    assert tree(tmp_path) == before
    assert init(base, *FLAGS) == dry
    before = tree(tmp_path)
    assert remove(base, dry=True)["removed"]
    assert tree(tmp_path) == before


@pytest.mark.requirement("J20", "JA37")
@pytest.mark.parametrize(("there", "asked"), [("project", "workspace"), ("workspace", "project")])
def test_another_mode_is_a_conflict_and_nothing_changes(
    tmp_path: Path, there: str, asked: str
) -> None:
    init(tmp_path, mode=there)
    before = tree(tmp_path)
    assert reason(tmp_path, *FLAGS, mode=asked) == (
        "revision_conflict", "MEMORY_LAYOUT_CONFLICT",
    )  # fmt: skip
    assert tree(tmp_path) == before


@pytest.mark.requirement("J20")
def test_a_tree_of_one_project_does_not_become_a_workspace_of_many(tmp_path: Path) -> None:
    (tmp_path / ".devcodex" / ".memory").mkdir(parents=True)
    assert reason(tmp_path, mode="workspace")[1] == "MEMORY_LAYOUT_CONFLICT"
    assert init(tmp_path)["created"] == [
        ".devcodex/layout.json", ".devcodex/.gitignore", ".devcodex/.runtime-state/",
    ]  # fmt: skip


@pytest.mark.requirement("J20", "JA37")
@pytest.mark.parametrize("mode", ["project", "workspace"])
def test_home_and_the_whole_machine_are_too_wide_unless_named(tmp_path: Path, mode: str) -> None:
    for start, home in ((tmp_path, tmp_path), (Path("/"), tmp_path)):
        with pytest.raises(AmuxError) as refused:
            setup.init(Asked(mode=mode), around(start, home=home))
        assert refused.value.code == "invalid_argument"
        assert refused.value.details["reason"] == "MEMORY_WORKSPACE_TOO_WIDE"
    assert tree(tmp_path) == {}
    setup.init(Asked(directory=str(tmp_path)), around(tmp_path, home=tmp_path, is_named=True))
    assert (tmp_path / ".devcodex").is_dir()


@pytest.mark.requirement("J20")
def test_a_directory_inside_a_devcodex_or_that_is_none_is_refused(tmp_path: Path) -> None:
    init(tmp_path)
    inside = tmp_path / ".devcodex" / "reports"
    inside.mkdir()
    assert reason(inside)[1] == "MEMORY_PATH_UNSAFE"
    assert reason(tmp_path / ".devcodex")[1] == "MEMORY_PATH_UNSAFE"
    assert reason(tmp_path / "gone")[1] == "MEMORY_WORKSPACE_UNRESOLVED"


@pytest.mark.requirement("J15", "J20", "JA46")
def test_the_projects_name_outlives_its_folders(tmp_path: Path) -> None:
    project(tmp_path, "first")
    assert init(tmp_path / "first")["project"] == "first"
    (tmp_path / "first").rename(tmp_path / "second")
    assert init(tmp_path / "second")["project"] == "first"
    shutil.copytree(tmp_path / "second", tmp_path / "third")
    assert init(tmp_path / "third")["project"] == "first"
    assert reason(tmp_path / "third", project="other")[1] == "MEMORY_LAYOUT_CONFLICT"
    assert init(tmp_path / "third", project="first")["changed"] == []


@pytest.mark.requirement("J20")
def test_a_name_is_taken_and_judged(tmp_path: Path) -> None:
    assert reason(tmp_path, project="../up")[1] == "PROJECT_NAMESPACE_INVALID"
    assert reason(tmp_path, project="a", mode="workspace")[1] == "MEMORY_WRITER_ARGUMENT_INVALID"
    assert tree(tmp_path) == {}
    assert init(tmp_path, project="team/api")["project"] == "team/api"


LAYOUTS = {
    "canonical": (
        b'{"mode":"project-root","x":1}\n',
        b'{"mode":"project-root","project":"app","x":1}\n',
    ),
    "a person's": (
        b'{\n  "x": 1,\n  "mode": "project-root"\n}',
        b'{\n  "x": 1,\n  "mode": "project-root",\n  "project": "app"\n}',
    ),
    "CRLF": (
        b'{\r\n  "mode": "project-root"\r\n}\r\n',
        b'{\r\n  "mode": "project-root",\r\n  "project": "app"\r\n}\r\n',
    ),
    "oddly spaced": (b'{ "mode":"project-root" }', b'{ "mode":"project-root" }'),
    "named": (
        b'{ "mode":"project-root", "project":"x"}',
        b'{ "mode":"project-root", "project":"x"}',
    ),
}


@pytest.mark.requirement("J15", "J20")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_without_a_name_gets_one_and_keeps_all_else(tmp_path: Path, name: str) -> None:
    base = tmp_path / "app"
    old, new = LAYOUTS[name]
    path = write_layout(base, old)
    receipt = init(base)
    assert path.read_bytes() == new
    assert (".devcodex/layout.json" in receipt["changed"]) == (old != new)  # type: ignore[operator]
    assert init(base)["changed"] == []
    is_odd = name == "oddly spaced"
    assert ("layout-not-extended" in str(receipt["warnings"])) == is_odd


@pytest.mark.requirement("J20")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"*.tmp", b"*.tmp\n.runtime-state/\n"),
        (b"*.tmp\r\n", b"*.tmp\r\n.runtime-state/\r\n"),
        (b"a\n  .runtime-state/ \nb\n", b"a\n  .runtime-state/ \nb\n"),
        (b"", b".runtime-state/\n"),
        (b"\xff\n", b"\xff\n.runtime-state/\n"),
    ],
)
def test_a_gitignore_of_a_persons_gains_one_line(tmp_path: Path, old: bytes, new: bytes) -> None:
    (tmp_path / ".devcodex").mkdir()
    path = tmp_path / ".devcodex" / ".gitignore"
    path.write_bytes(old)
    init(tmp_path)
    assert path.read_bytes() == new
    assert init(tmp_path)["changed"] == []


@pytest.mark.requirement("J15")
def test_a_name_that_is_kept_is_never_replaced() -> None:
    old = b'{"mode":"project-root","project":"first"}\n'
    assert layouttext.kept(old, "project-root", "second") == old


@pytest.mark.requirement("J20")
def test_whose_part_a_directory_was_is_said(tmp_path: Path) -> None:
    project(tmp_path, ".")
    (tmp_path / "src").mkdir()
    assert init(tmp_path / "src", is_dry=True)["warnings"] == [
        {"code": "inside-repository", "base": str(tmp_path)}
    ]
    init(tmp_path)
    assert init(tmp_path / "src")["warnings"] == [
        {"code": "inside-another-workspace", "base": str(tmp_path)}
    ]


@pytest.mark.requirement("J19", "J20")
def test_a_devcodex_that_is_a_link_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / ".devcodex").symlink_to("../elsewhere")
    before = tree(tmp_path)
    assert reason(tmp_path / "app", *FLAGS) == ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")
    assert tree(tmp_path) == before


@as_root
@pytest.mark.requirement("J19", "J20", "JA29")
def test_uid_0_gives_what_it_makes_to_the_trees_owner(tmp_path: Path) -> None:
    base = tmp_path / "app"
    base.mkdir()
    os.chown(base, STRANGER, STRANGER)
    setup.init(Asked(agents=FLAGS), around(base, uid=0))
    for path in [base, *base.rglob("*")]:
        assert path.stat().st_uid == STRANGER, path


# --- J21 -----------------------------------------------------------------------------------------


PERSONS = {
    ".mcp.json": b'{\n  "mcpServers": {\n    "a": {},\n    "b": {"x": 1}\n  }\n}\n'.replace(
        b'{"x": 1}', b'{\n      "x": 1\n    }'
    ),
    ".codex/config.toml": b'# mine\nmodel = "m"  # this one\n\n[mcp_servers.other]\ncommand = "o"',
    ".cursor/mcp.json": b'{ "mcpServers" : {  } }',
    "AGENTS.md": b"# Agents\n",
    "CLAUDE.md": b"# Claude\n",
    ".codex/hooks.json": b"{}",
    ".claude/settings.json": b"{}",
}


def write(base: Path, there: dict[str, bytes]) -> None:
    for path, data in there.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(data)


@pytest.mark.requirement("J21", "JA38")
def test_the_story_of_a_persons_files(tmp_path: Path) -> None:
    write(tmp_path, PERSONS)
    before = files(tmp_path)
    receipt = init(tmp_path, *FLAGS)
    assert set(receipt["changed"]) == {".mcp.json", ".codex/config.toml"}  # type: ignore[call-overload]
    assert [(one["code"], one["path"]) for one in receipt["warnings"]] == [  # type: ignore[attr-defined, index]
        ("rules-not-merged", ".cursor/mcp.json")
    ]
    assert '"amux"' in receipt["warnings"][0]["text"]  # type: ignore[index]
    now = files(tmp_path)
    assert {path: now[path] for path in before if path not in receipt["changed"]} == {  # type: ignore[operator]
        path: before[path]
        for path in before
        if path not in receipt["changed"]  # type: ignore[operator]
    }
    servers = json.loads(now[".mcp.json"])["mcpServers"]
    assert list(servers) == ["a", "b", "amux"]
    skill = tmp_path / ".claude/skills/memory/SKILL.md"
    skill.write_text("mine\n")
    again = init(tmp_path, *FLAGS)
    assert again["created"] == again["changed"] == []
    assert {(one["code"], one["path"]) for one in again["warnings"]} == {  # type: ignore[attr-defined, index]
        ("rules-not-merged", ".cursor/mcp.json"),
        ("rules-changed", ".claude/skills/memory/SKILL.md"),
    }
    removed = remove(tmp_path)
    assert removed["left"] == [".claude/skills/memory/SKILL.md"]
    left = files(tmp_path)
    for path in (".claude/skills", ".claude/skills/memory", ".claude/skills/memory/SKILL.md"):
        left.pop(path)
    assert left == before
    assert skill.read_text() == "mine\n"


ALL_MIXES = [mix for count in range(5) for mix in combinations(FLAGS, count)]


@pytest.mark.requirement("J21", "JA38")
@pytest.mark.parametrize("mix", ALL_MIXES, ids="+".join)
def test_every_mix_of_flags_hands_out_its_files_and_takes_them_back(
    tmp_path: Path, mix: tuple[str, ...]
) -> None:
    init(tmp_path)
    before = tree(tmp_path)
    receipt = init(tmp_path, *mix)
    wanted = {rule.path for flag in mix for rule in HANDED[flag]}
    made = {path for path, data in files(tmp_path).items() if data != "/"}
    assert made == wanted
    assert set(receipt["created"]) == wanted | ({rules.RECORD} if mix else set())  # type: ignore[call-overload]
    assert init(tmp_path, *mix)["created"] == []
    remove(tmp_path)
    assert tree(tmp_path) == before
    remove(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.requirement("J21")
def test_what_another_agent_still_uses_is_not_taken(tmp_path: Path) -> None:
    init(tmp_path, *FLAGS)
    assert remove(tmp_path, "codex")["removed"] == [".codex/config.toml"]
    assert (tmp_path / ".agents/skills/memory/SKILL.md").exists()
    assert not (tmp_path / ".codex").exists()
    remove(tmp_path, "cursor")
    assert not (tmp_path / ".agents").exists()
    assert (tmp_path / ".mcp.json").exists()


JSON_FILES = st.builds(
    lambda value, indent, end: (json.dumps(value, indent=indent) + end).encode(),
    st.dictionaries(
        st.sampled_from(["mcpServers", "a", "é"]),
        st.dictionaries(st.text(max_size=4), st.integers() | st.lists(st.booleans(), max_size=2)),
    ),
    st.sampled_from([None, 2, 4, "\t"]),
    st.sampled_from(["", "\n"]),
) | st.binary(max_size=12)
TOML_FILES = st.sampled_from(
    [b"", b"a = 1", b"a = 1\r\n", b"[mcp_servers]\n", b"# only words", b"broken =", b"\xff"]
) | st.binary(max_size=12)


@pytest.mark.slow
@settings(max_examples=150)
@pytest.mark.requirement("J21", "JA38")
@given(
    st.fixed_dictionaries(
        {},
        optional={
            ".mcp.json": JSON_FILES,
            ".cursor/mcp.json": JSON_FILES,
            ".codex/config.toml": TOML_FILES,
            ".claude/skills/memory/SKILL.md": st.binary(max_size=8),
            ".agents/skills/other/SKILL.md": st.binary(max_size=8),
        },
    ),
    st.sets(st.sampled_from(FLAGS)),
)
def test_whatever_a_persons_files_are_they_come_back_to_their_first_bytes(
    there: dict[str, bytes], mix: set[str]
) -> None:
    with TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        write(base, there)
        init(base)
        before = tree(base)
        init(base, *sorted(mix))
        for path, data in there.items():
            now = (base / path).read_bytes()
            assert now == data or len(now) > len(data)
        removed = remove(base)
        assert removed["left"] == []
        assert tree(base) == before


@pytest.mark.requirement("J21")
@pytest.mark.parametrize("path", [".mcp.json", ".codex/config.toml", ".agents/skills"])
def test_a_link_is_never_written_through(tmp_path: Path, path: str) -> None:
    base, out = tmp_path / "app", tmp_path / "out"
    base.mkdir()
    if path == ".agents/skills":
        out.mkdir()
    else:
        out.write_text("{}\n" if path.endswith("json") else "")
    (base / path).parent.mkdir(exist_ok=True)
    (base / path).symlink_to(out)
    before = tree(out) if out.is_dir() else out.read_bytes()
    receipt = init(base, *FLAGS)
    assert ("rules-not-merged", True) in {
        (one["code"], str(one["path"]).startswith(path))  # type: ignore[index]
        for one in receipt["warnings"]  # type: ignore[attr-defined]
    }
    assert (tree(out) if out.is_dir() else out.read_bytes()) == before
    assert (base / path).is_symlink()
    remove(base)
    assert (base / path).is_symlink()


@as_root
@pytest.mark.requirement("J21")
def test_a_strangers_folder_is_left(tmp_path: Path) -> None:
    base = tmp_path / "app"
    (base / ".claude").mkdir(parents=True)
    os.chown(base, STRANGER, STRANGER)
    receipt = setup.init(Asked(agents=("claude",), is_dry=True), around(base, uid=STRANGER))
    assert [one["path"] for one in receipt["warnings"]] == [  # type: ignore[attr-defined, index]
        ".claude/skills/memory/SKILL.md"
    ]


@pytest.mark.requirement("J21")
def test_a_persons_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text("{}\n")
    path.chmod(0o640)
    init(tmp_path, "claude")
    assert path.stat().st_mode & 0o777 == 0o640
    remove(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text() == "{}\n"


@pytest.mark.requirement("J21")
@pytest.mark.parametrize("there", [b"{}\n", None])
def test_a_file_that_changes_meanwhile_is_not_overwritten(
    tmp_path: Path, there: bytes | None
) -> None:
    path = tmp_path / ".mcp.json"
    if there is not None:
        path.write_bytes(there)
    ground = Ground.open(str(tmp_path), (), uid=os.geteuid())
    assert ground is not None
    with ground:
        seen = handout.read(ground, ".mcp.json")
        path.write_bytes(b"a person's\n")
        with pytest.raises(AmuxError) as refused:
            handout.put(ground, ".mcp.json", b"ours", seen)
    assert refused.value.details["reason"] == "MEMORY_FILE_CAS_MISMATCH"
    assert tree(tmp_path) == {".mcp.json": b"a person's\n"}


# --- J22 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J22")
def test_a_profile_notes_the_agent_at_work_once(tmp_path: Path) -> None:
    init(tmp_path)
    path = tmp_path / ".devcodex/profile/config.json"
    nobody = setup.profile_init(around(tmp_path))
    assert nobody["warnings"] == [
        {"code": "agent-not-detected", "path": ".devcodex/profile/config.json"}
    ]
    assert not path.exists()
    made = setup.profile_init(around(tmp_path, CODEX_SANDBOX="1"))
    assert made["created"] == [".devcodex/profile/config.json"]
    assert path.read_bytes() == b'{"agent":"codex"}\n'
    again = setup.profile_init(around(tmp_path, PI_SESSION_ID="1"))
    assert again["unchanged"] == [".devcodex/profile/config.json"]
    assert path.read_bytes() == b'{"agent":"codex"}\n'


def found_by(base: Path, **environment: str) -> tuple[dict[str, object], str]:
    before = tree(base)
    found = doctor.examine(around(base, **environment))
    assert tree(base) == before
    for finding in found["findings"]:  # type: ignore[attr-defined]
        assert set(finding) == {"what", "do"}
        assert finding["do"]
    return found, json.dumps(found, ensure_ascii=False)


@pytest.mark.requirement("J22", "J32")
def test_the_doctor_tells_where_who_and_what_was_handed_out(tmp_path: Path) -> None:
    found, _ = found_by(tmp_path)
    assert found["layout"] is None
    project(tmp_path, ".")
    found, text = found_by(tmp_path)
    assert found["layout"] == {"kind": "project", "created": False, "row": 4}
    assert "there is no .devcodex yet" in text
    init(tmp_path, "claude", "codex")
    (tmp_path / "AGENTS.md").write_text("# mine\n")
    (tmp_path / ".claude/skills/memory/SKILL.md").write_text("mine\n")
    (tmp_path / ".mcp.json").unlink()
    (tmp_path / ".devcodex/profile").mkdir()
    (tmp_path / ".devcodex/profile/config.json").write_text('{"agent":"pi"}')
    found, text = found_by(tmp_path, CODEX_SANDBOX="1", AMUX_SESSION="s")
    assert found["activeRoot"] == str(tmp_path / ".devcodex")
    assert found["agent"]["id"] == "codex"  # type: ignore[index]
    assert found["agent"]["conflict"] is True  # type: ignore[index]
    assert found["session"] == {"source": "AMUX_SESSION", "own": True}
    assert {one["path"]: one["state"] for one in found["rules"]} == {  # type: ignore[attr-defined]
        ".claude/skills/memory/SKILL.md": "changed by a person",
        ".mcp.json": "gone",
        ".agents/skills/memory/SKILL.md": "current",
        ".codex/config.toml": "current",
        ".cursor/mcp.json": "not handed out",
    }
    assert found["codex"] == {
        "AGENTS.md": True, ".agents/skills": True, ".codex/hooks.json": False,
    }  # fmt: skip
    assert "the profile names pi, and codex is at work" in text


@pytest.mark.requirement("J22")
def test_the_doctor_tells_what_is_broken_in_a_root(tmp_path: Path) -> None:
    init(tmp_path)
    state = tmp_path / ".devcodex/.runtime-state"
    (state / "ledger/task").mkdir(parents=True)
    (state / "ledger/task/t-1.json").write_text("broken")
    clients = tmp_path / ".devcodex/.memory/clients/codex"
    clients.mkdir(parents=True)
    (clients / ".SUMMARY.md.amux-0123456789abcdef.tmp").write_text("")
    found, text = found_by(tmp_path)
    (root,) = found["roots"]  # type: ignore[misc]
    assert root["ledger"]["unreadable"] == ["task/t-1.json"]
    assert root["temporaries"] == [".memory/clients/codex/.SUMMARY.md.amux-0123456789abcdef.tmp"]
    assert root["lock"] == {"known": True, "holders": []}
    (state / "root.json").write_text("{}")
    _, text = found_by(tmp_path)
    assert "root.json" in text


@pytest.mark.requirement("J22")
@pytest.mark.parametrize("text", ["broken", '{"mode":"other"}'])
def test_the_doctor_answers_where_nothing_else_does(tmp_path: Path, text: str) -> None:
    write_layout(tmp_path, text)
    found, shown = found_by(tmp_path)
    assert found["base"] is None
    assert "layout.json" in shown


@pytest.mark.requirement("J22")
def test_the_doctor_lists_the_projects_where_none_is_meant(tmp_path: Path) -> None:
    write_layout(tmp_path, NAMESPACE)
    project(tmp_path, "billing", "web")
    found, _ = found_by(tmp_path)
    assert found["candidates"] == ["billing", "web"]
    assert found["activeRoot"] is None


@pytest.mark.requirement("J22", "T49")
def test_the_doctor_tells_of_indexes_locks_and_rows_that_are_not_the_ledgers(
    tmp_path: Path,
) -> None:
    init(tmp_path)
    desk = InProcess(tmp_path, AMUX_SESSION="s")
    desk.call("memory_session_write", content="text", row="a row")
    admitted = desk.call(
        "memory_task_admit_v2", instruction="please fix the export", taskKind="bugs",
        displayName="stale export", overview="It is stale.",
    )  # fmt: skip

    def root() -> dict[str, object]:
        found, _ = found_by(tmp_path)
        (one,) = found["roots"]  # type: ignore[misc]
        return one

    assert root()["indexes"] == [{"agent": "codex", "status": "fresh", "reason": None}]
    assert root()["ledger"]["viewDrift"] == []  # type: ignore[index]
    notes = tmp_path / ".devcodex" / str(admitted["taskRootRelative"]) / ".memory/sessions.md"
    text = notes.read_text(encoding="utf-8")
    notes.write_text(text.replace("⏳", "✅", 1), encoding="utf-8")
    summary = tmp_path / ".devcodex/.memory/clients/codex/SUMMARY.md"
    summary.write_bytes(summary.read_bytes() + b"| by hand |\n")
    now = root()
    assert now["ledger"]["viewDrift"] == [str(notes.relative_to(tmp_path / ".devcodex"))]  # type: ignore[index]
    assert now["indexes"] == [
        {"agent": "codex", "status": "fallback", "reason": "source-metadata-drift"}
    ]
    # Copied elsewhere, the same records are history.
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    found, said = found_by(tmp_path.parent / "copy")
    (one,) = found["roots"]  # type: ignore[misc]
    assert len(one["ledger"]["foreign"]) == 1
    assert "bind" in said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
@pytest.mark.requirement("J22")
def test_the_doctor_names_who_holds_the_lock(tmp_path: Path) -> None:
    init(tmp_path)
    lock = tmp_path / ".devcodex/.runtime-state/memory.lock"
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found, _ = found_by(tmp_path)
    (root,) = found["roots"]  # type: ignore[misc]
    (holder,) = root["lock"]["holders"]
    assert holder["pid"] == os.getpid()
    assert holder["command"]


@pytest.mark.requirement("J20", "J22")
def test_a_person_at_a_terminal_reads_what_was_done_and_what_there_is_to_do(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{ }")
    shown = workspace_render.receipt(init(tmp_path, "claude")).splitlines()
    assert shown[0] == str(tmp_path)
    assert "created    .devcodex/layout.json" in shown
    assert "warning    rules-not-merged  .mcp.json" in shown
    assert '  "mcpServers": {' in shown
    found, _ = found_by(tmp_path)
    text = workspace_render.doctor(found)
    for finding in found["findings"]:  # type: ignore[attr-defined]
        assert f"- {finding['what']}\n  {finding['do']}" in text
    assert f"base: {tmp_path}" in text
    assert "layout: kind project, created yes, row 2" in text
