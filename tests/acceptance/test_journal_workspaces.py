"""Where writes land and what they say of it: workspaces, worktrees, owners and agents."""

import os
import subprocess
from pathlib import Path

import pytest

from amux.journal.setup import setup
from tests.support.journal_faces import Cli, InProcess, Mcp
from tests.support.workspaces import STRANGER, around, project, tree
from tests.support.workspaces import layout as write_layout

as_root = pytest.mark.usefixtures("as_root")
DAY = ".memory/clients/{}/tasks/20260314.md"


def write(desk: InProcess, text: str = "what was done", **more: object) -> dict[str, object]:
    return desk.call("memory_session_write", content=text, **more)


def codes(found: dict[str, object]) -> list[str]:
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    return [str(one["code"]) for one in warnings]


def day(base: Path, agent: str) -> str:
    return (base / ".devcodex" / DAY.format(agent)).read_text(encoding="utf-8")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    project(tmp_path, "app")
    return tmp_path / "app"


# --- agents --------------------------------------------------------------------------------------


def hint(base: Path, text: str) -> None:
    path = base / ".devcodex/profile/config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.requirement("JA3", "J30", "J32", "J33")
def test_the_caller_goes_before_the_profile_and_the_conflict_is_said(base: Path) -> None:
    hint(base, '{"agent":"claude-code"}')
    desk = InProcess(base, client="codex-mcp-client")
    receipt = write(desk)
    assert receipt["agent"] == {
        "id": "codex", "source": "client", "profileAgent": "claude-code", "conflict": True,
        "reason": None,
    }  # fmt: skip
    assert "what was done" in day(base, "codex")
    status = desk.call("memory_status")
    assert status["agent"]["conflict"] is True  # type: ignore[index]
    assert "/codex/" in f"{status['reportDirectory']}/"
    hint(base, '{"agent":"cursor"}')
    write(InProcess(base, client=None))
    assert "what was done" in day(base, "cursor")


@pytest.mark.requirement("JA3", "J30", "J40")
@pytest.mark.parametrize("text", ['{"agent":"claude"}', "claude-code", ""])
def test_a_profile_that_names_nobody_leaves_the_agent_unknown(base: Path, text: str) -> None:
    hint(base, text)
    receipt = write(InProcess(base, client=None))
    agent = receipt["agent"]
    assert isinstance(agent, dict)
    assert agent["id"] == "unknown-agent"
    assert "profile-agent-illegal" in codes(receipt)
    assert f"- **宿主**：unknown-agent（{agent['reason']}）\n" in day(base, "unknown-agent")


@pytest.mark.requirement("JA4", "J27", "J29")
def test_overrides_inner_agents_and_inherited_sessions(base: Path) -> None:
    receipt = write(InProcess(base, client=None, DEVCODEX_AGENT="claude"))
    assert receipt["agent"]["id"] == "unknown-agent"  # type: ignore[index]
    assert "agent-override-illegal" in codes(receipt)
    receipt = write(InProcess(base, client="codex-x", GROK_AGENT="1"))
    assert receipt["agent"]["id"] == "grok"  # type: ignore[index]
    inner = InProcess(base, client="pi", AMUX_AGENT="claude-code", AMUX_SESSION="s")
    assert "inherited-session" in codes(write(inner))
    outer = InProcess(base, client="claude-code", AMUX_AGENT="claude-code", AMUX_SESSION="s")
    assert codes(write(outer)) == []
    marks = [
        line for agent in ("pi", "claude-code") for line in day(base, agent).splitlines()
        if line.startswith("<!-- amux:session ")
    ]  # fmt: skip
    assert len(set(marks)) == 2


@pytest.mark.requirement("JA5", "J30")
def test_an_argument_stands_against_a_terminal_only(base: Path) -> None:
    before = tree(base)
    refused = InProcess(base, client="codex-mcp-client").refused(
        "memory_session_write", content="x", agent="claude-code"
    )
    assert refused.both == ("invalid_argument", "MEMORY_AGENT_CONFLICT")
    assert tree(base) == before
    receipt = write(InProcess(base, client=None, TERM_PROGRAM="vscode"), agent="claude-code")
    assert receipt["agent"]["source"] == "argument"  # type: ignore[index]
    assert "what was done" in day(base, "claude-code")


@pytest.mark.requirement("J31")
def test_a_read_by_nobody_takes_the_only_agent_there_is(base: Path) -> None:
    write(InProcess(base, client="pi"))
    nobody = InProcess(base, client=None)
    found = nobody.call("memory_status")
    assert found["agent"]["id"] == "pi"  # type: ignore[index]
    assert "agent-inferred-from-directory" in codes(found)
    write(InProcess(base, client="codex"))
    refused = nobody.refused("memory_status")
    assert refused.both == ("ambiguous", "MEMORY_SCOPE_AMBIGUOUS")
    assert refused.details["agents"] == ["codex", "pi"]


@pytest.mark.requirement("J19", "J31")
def test_agents_are_not_looked_for_through_a_link(tmp_path: Path, base: Path) -> None:
    for agent in ("codex", "pi"):
        (tmp_path / "out" / "clients" / agent).mkdir(parents=True)
    (base / ".devcodex").mkdir()
    (base / ".devcodex" / ".memory").symlink_to(tmp_path / "out")
    refused = InProcess(base, client=None).refused("memory_status")
    assert refused.both == ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")


# --- owners --------------------------------------------------------------------------------------


@as_root
@pytest.mark.requirement("JA29", "J13", "J19")
def test_a_strangers_devcodex_above_or_in_a_repository(tmp_path: Path, base: Path) -> None:
    write_layout(tmp_path)
    os.chown(base, STRANGER, STRANGER)
    found = InProcess(base, uid=STRANGER).call("memory_status")
    assert found["activeRoot"] == str(base / ".devcodex")
    assert codes(found) == ["foreign-devcodex-skipped"]
    (base / ".devcodex").mkdir()
    for tool, more in (("memory_status", {}), ("memory_session_write", {"content": "x"})):
        refused = InProcess(base, uid=STRANGER).refused(tool, **more)
        assert refused.both == ("permission_denied", "MEMORY_WORKSPACE_FOREIGN_OWNER")


@as_root
@pytest.mark.requirement("JA29", "J19")
def test_what_uid_0_writes_belongs_to_the_trees_owner(base: Path) -> None:
    (base / ".devcodex").mkdir()
    for path in (base, base / ".devcodex"):
        os.chown(path, STRANGER, STRANGER)
    write(InProcess(base, uid=0), row="a row", status="active")
    found = list((base / ".devcodex").rglob("*"))
    assert len(found) > 8
    assert {path.stat().st_uid for path in found} == {STRANGER}


# --- moved, cloned, linked -----------------------------------------------------------------------


def git(place: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words],
        cwd=place, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("JA31", "J14", "bug-19", "bug-37")
def test_what_a_worktree_wrote_outlives_it(tmp_path: Path) -> None:
    main = tmp_path / "Lucas Costa" / "项目 é"
    main.mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    linked = main.parent / "linked"
    git(main, "worktree", "add", "-q", str(linked))
    home = tmp_path / "home"
    home.mkdir()
    with Mcp(linked, home=home) as session:
        receipt = session.call("memory_session_write", content="found it", row="found it")
        assert receipt["activeRoot"] == str(main / ".devcodex")
    git(main, "worktree", "remove", "--force", str(linked))
    assert not linked.exists()
    with Mcp(main, home=home) as session:
        status = session.call("memory_status")
        assert status["latestRows"][0]["summary"] == "found it"  # type: ignore[index]
        found = session.call("memory_session_query")
        assert "found it" in found["matches"][0]["content"]  # type: ignore[index]
    shown = Cli(main, home=home, AMUX_AGENT="codex").call("memory_status")
    assert shown["latestRows"] == status["latestRows"]


@pytest.mark.requirement("JA46", "J15")
def test_a_project_keeps_its_name_when_it_is_moved_or_cloned(tmp_path: Path, base: Path) -> None:
    setup.init(setup.Asked(), around(base))
    write(InProcess(base), row="a row")
    base.rename(tmp_path / "renamed")
    git(tmp_path / "renamed", "init", "-q")
    git(tmp_path / "renamed", "add", "-A")
    git(tmp_path / "renamed", "commit", "-q", "-m", "all")
    git(tmp_path, "clone", "-q", "renamed", "cloned")
    for place in ("renamed", "cloned"):
        found = InProcess(tmp_path / place).call("memory_status")
        assert found["project"] == "app"
        assert found["latestRows"][0]["summary"] == "a row"  # type: ignore[index]
    assert not (tmp_path / "cloned/.devcodex/.runtime-state").exists()
