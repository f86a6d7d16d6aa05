"""Two agents and a person over a day: rows 1, 14 and 19, bugs 27 aside; and what is left behind."""

import json
import os
from pathlib import Path

import pytest

from tests.support.faces import ABSENT, Faces, Mcp, faces_of
from tests.support.hub import RunningHub

OLD, NEW = "prefers-tabs-marker", "prefers-spaces-marker"
TEXTS = {
    "MEMORY.md": "- {0}; see style/python.md and style/web.md\n",
    "style/python.md": "# Python\n\nIndentation: {0}.\n",
    "style/web.md": "# Web\n\nAs in Python, {0}.\n",
}


def copies(top: Path, marker: str) -> list[str]:
    """Find every file, name or bytes, that holds a text."""
    found = []
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = Path(folder, name)
            is_file = path.is_file() and not path.is_symlink()
            if marker in name or (is_file and marker.encode() in path.read_bytes()):
                found.append(str(path.relative_to(top)))
    return sorted(found)


@pytest.mark.slow
@pytest.mark.requirement("row-14", "M22", "M26", "M27", "bug-30", "bug-4")
def test_a_preference_is_corrected_and_forgotten_everywhere_by_two_agents(faces: Faces) -> None:
    home = faces.hub.home
    with faces.mcp_process() as one, faces.mcp_process() as two:
        first, second = Mcp(one), Mcp(two)
        for path, text in TEXTS.items():
            first.upsert(path, text.format(OLD)).answer  # noqa: B018
        assert second.get("MEMORY.md").answer["content"] == TEXTS["MEMORY.md"].format(OLD)
        read = {path: first.get(path).revision for path in TEXTS}

        # Correct: while the first agent works, the second one changes one of the parts.
        interfering = second.upsert(
            "style/web.md", TEXTS["style/web.md"].format(OLD) + "\nMore.\n", read["style/web.md"]
        )
        outcomes = {
            path: first.upsert(path, text.format(NEW), read[path]) for path, text in TEXTS.items()
        }
        failed = {path: said for path, said in outcomes.items() if said.is_refusal}
        assert list(failed) == ["style/web.md"]
        assert failed["style/web.md"].code == "revision_conflict"
        assert failed["style/web.md"].details == {"observed": interfering.revision}
        hits = first.search(OLD).answer["hits"]
        assert [hit["path"] for hit in hits] == ["style/web.md"]
        merged = first.get("style/web.md")
        text = merged.answer["content"].replace(OLD, NEW)
        first.upsert("style/web.md", text, merged.revision).answer  # noqa: B018
        assert first.search(OLD).answer["hits"] == second.search(OLD).answer["hits"] == []
        assert copies(home, OLD) == []
        for path in TEXTS:
            assert NEW in second.get(path).answer["content"]

        # Forget: the second session sees it at its next read.
        for path in TEXTS:
            found = second.get(path)
            gone = second.forget(path, found.revision)
            assert "what sessions have already read" in gone.answer["kept"]
        for path in TEXTS:
            assert first.get(path).answer["exists"] is False
        assert first.search(NEW).answer["hits"] == []
    assert copies(home, NEW) == copies(home, OLD) == []
    faces.hub.stop()
    assert copies(home, NEW) == copies(home, OLD) == []


@pytest.mark.slow
@pytest.mark.requirement("M43", "M15", "M22", "bug-30")
def test_a_document_is_in_one_file_alone_and_after_forget_in_none(faces: Faces) -> None:
    marker = "marker-of-one-text"
    for face in faces.all:
        path = f"{face}/note.md"
        first = face.upsert(path, f"---\ntags: [x]\n---\n{marker} first")
        second = face.upsert(path, f"---\ntags: [x]\n---\n{marker} second", first.revision)
        assert face.search(marker).answer["hits"][0]["path"] == path
        face.upsert(path, f"{marker} stale", first.revision).error  # noqa: B018
        face.upsert(f"{path}/below.md", f"{marker} no folder").error  # noqa: B018
        assert copies(faces.hub.home, marker) == [f"memory/global/{path}"]
        face.forget(path, second.revision).answer  # noqa: B018
        assert copies(faces.hub.home, marker) == []
    assert os.listdir(faces.hub.memory_dir) == []
    assert marker.encode() not in faces.hub.log


@pytest.mark.slow
@pytest.mark.requirement("row-1", "M6", "M7", "M53")
def test_on_a_fresh_home_a_search_says_how_to_switch_memory_on(tmp_path: Path) -> None:
    hub = RunningHub(tmp_path / "home", AMUX_NO_AUTOSTART="0")
    try:
        done = hub.cli("memory", "search", "x")
        assert done.returncode == 4
        assert done.stdout == b""
        notice, line = done.stderr.decode().splitlines()
        assert str(hub.home) in notice
        error = json.loads(line)["error"]
        assert error["code"] == "memory_disabled"
        assert "amux system config set memory.enabled true" in error["hint"]
        assert list((hub.home / "memory").rglob("*")) == []
        # As the hint says:
        hub.cli("system", "config", "set", "memory.enabled", "true")
        assert hub.cli("memory", "search", "x").returncode == 4
        assert hub.cli("hub", "restart").returncode == 0
        assert json.loads(hub.cli("memory", "search", "x").stdout)["hits"] == []
    finally:
        hub.cli("hub", "stop")


@pytest.mark.slow
@pytest.mark.requirement("row-19", "M2", "M23")
@pytest.mark.parametrize(
    "present",
    [(), ("memory",), ("memory", "hub"), ("memory", "hub", "run"),
     ("memory", "hub", "run", "hub/.amux-0123456789abcdef"),
     ("memory", "hub", "run", "hub/secret"), ("memory", "hub", "run", "hub/secret", "layout")],
    ids=lambda names: ",".join(names) or "nothing",
)  # fmt: skip
def test_a_root_left_at_any_step_of_its_growth_is_brought_up_to_date_at_the_next_start(
    tmp_path: Path, present: tuple[str, ...]
) -> None:
    hub = RunningHub(tmp_path / "home")
    hub.home.mkdir(mode=0o700)
    for name in present:
        if name in {"memory", "hub", "run"}:
            (hub.home / name).mkdir(mode=0o700)
        else:
            (hub.home / name).write_bytes(b"0\n" if name == "layout" else b"s" * 32)
    if present:
        (hub.memory_dir / "old").mkdir(parents=True)
        (hub.memory_dir / "old" / "note.md").write_bytes(b"older than the layout")
    hub.enable()
    try:
        for _ in range(2):
            hub.start()
            assert (hub.home / "layout").read_bytes() == b"1\n"
            secret = (hub.home / "hub" / "secret").read_bytes()
            assert len(secret) == 32
            assert (secret == b"s" * 32) == ("hub/secret" in present)
            with faces_of(hub) as faces:
                for face in faces.all:
                    found = face.get("old/note.md")
                    assert (found.revision == ABSENT) == (not present)
            assert not list(hub.home.rglob(".amux-*"))
            assert {path.stat().st_mode & 0o777 for path in hub.home.iterdir() if path.is_dir()
                    and path.name in {"hub", "run"}} == {0o700}  # fmt: skip
            assert hub.stop() == 0
    finally:
        hub.kill()
