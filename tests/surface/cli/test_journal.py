"""The verbs on sessions and tasks: what a person types and reads."""

import json
from pathlib import Path

import pytest

from amux.journal import roster, taskroster
from amux.journal.call.tools import TOOLS
from amux.surface.cli.journal_verbs import tool_of
from amux.surface.cli.verbs import VERBS
from tests.support.command import Command
from tests.support.workspaces import AT, project

NAME = "Export endpoint returns stale totals"


@pytest.fixture
def command(tmp_path: Path) -> Command:
    project(tmp_path / "billing", ".")
    made = Command(
        tmp_path / "amux",
        AMUX_WORKSPACE=str(tmp_path / "billing"),
        AMUX_AGENT="codex",
        AMUX_SESSION="s",
        AMUX_TZ="UTC",
    )
    made.wall = lambda: AT
    return made


@pytest.mark.requirement("J72", "J1")
def test_every_tool_has_its_work_and_its_verb() -> None:
    assert {*roster.WORK, *taskroster.WORK, "memory_context_plan"} == set(TOOLS)
    verbs = {tool_of(name).name for name in VERBS if name.split()[0] in ("journal", "task")}
    assert verbs == set(TOOLS)
    assert tool_of("task start") is tool_of("task admit")


@pytest.mark.requirement("J72")
def test_the_verbs_are_those_of_the_contract() -> None:
    journal = "plan status summary sessions allocate write append decide session-read summary-read"
    task = (
        "list show resolve ingress start admit own confirm operation reconcile finish children "
        "submit revoke"
    )
    for family, names in (("journal", journal), ("task", task)):
        found = {name.split()[1] for name in VERBS if name.startswith(family + " ")}
        assert found == set(names.split())


def admitted(command: Command) -> str:
    given = {
        "instruction": "fix the stale totals",
        "taskKind": "bugs",
        "displayName": NAME,
        "overview": "The totals lag one day.",
    }
    done = command.run("task", "start", "--args", "-", stdin=json.dumps(given).encode())
    return str(done.answer["owner"])


@pytest.mark.requirement("J72")
def test_a_person_reads_tasks_on_a_terminal_and_a_script_gets_json(command: Command) -> None:
    owner = admitted(command)
    assert owner.startswith("own-")
    shown = command.run("task", "list", is_terminal=True).out.decode()
    assert f"bugs: {NAME} [active]" in shown
    assert "codex owns it" in shown
    assert "{" not in shown
    assert command.run("task", "list").answer["totalMatched"] == 1
    assert command.run("task", "list", "--json", is_terminal=True).answer["totalMatched"] == 1
    one = command.run("task", "show", "--task", NAME, is_terminal=True).out.decode()
    for line in ("owner: codex", "CP1: waits", "CP3: -", "admit@"):
        assert line in one
    assert owner not in one


@pytest.mark.requirement("J72")
def test_a_person_reads_sessions_on_a_terminal(command: Command) -> None:
    words = ("--content", "first\nsecond", "--title", "T", "--intent", "fix", "--row", "did it")
    receipt = command.run("journal", "write", *words, is_terminal=True).out.decode()
    assert "opened: yes" in receipt
    status = command.run("journal", "status", is_terminal=True).out.decode()
    assert "open: 2026-03-14#01" in status
    assert "🔄 2026-03-14#01 [fix] did it" in status
    found = command.run("journal", "sessions", is_terminal=True).out.decode()
    assert "first\nsecond" in found
    assert "2026-03-14#01 [fix]" in command.run("journal", "summary", is_terminal=True).out.decode()


@pytest.mark.requirement("J8", "J72")
def test_a_refusal_is_json_on_standard_error_with_the_status_of_its_code(command: Command) -> None:
    done = command.run("journal", "sessions", "--limit", "21")
    assert (done.status, done.out) == (2, b"")
    assert done.details["reason"] == "MEMORY_QUERY_INVALID"
    done = command.run("task", "show", "--task", "nobody")
    assert (done.status, done.details["reason"]) == (3, "TASK_NOT_FOUND")
    done = command.run("journal", "write", "--args", "/nowhere/at/all")
    assert (done.status, done.details["argument"]) == (2, "args")
    done = command.run("journal", "write", "--args", "-", stdin=b'{"a":1,"a":2}')
    assert (done.status, done.details["argument"]) == (2, "a")


@pytest.mark.requirement("J72")
def test_a_truth_that_is_the_default_can_be_taken_back(command: Command) -> None:
    found = command.run("task", "resolve", "--name", "x", "--diff", "false").answer
    assert found["outcome"] == "not-found"
    done = command.run("task", "resolve", "--name", "x", "--diff", "no")
    assert done.details["argument"] == "diff"


@pytest.mark.requirement("J12", "J25")
@pytest.mark.parametrize(
    ("name", "value"),
    [("AMUX_TZ", "Mars/Olympus"), ("AMUX_LOCK_WAIT_MS", "30001"), ("AMUX_LOCK_WAIT_MS", "2s")],
)
def test_a_variable_that_cannot_be_meant_is_refused_by_name(
    tmp_path: Path, name: str, value: str
) -> None:
    project(tmp_path, ".")
    command = Command(tmp_path / "amux", AMUX_WORKSPACE=str(tmp_path), **{name: value})
    done = command.run("journal", "status")
    assert (done.status, done.details["argument"]) == (2, name)


@pytest.mark.requirement("J12")
def test_the_flag_outranks_the_variable(tmp_path: Path, command: Command) -> None:
    other = tmp_path / "web"
    project(other, ".")
    found = command.run("journal", "status", "--workspace", str(other)).answer
    assert found["project"] == "web"
    done = command.run("journal", "status", "--workspace", str(tmp_path / "nowhere"))
    assert done.details["reason"] == "MEMORY_WORKSPACE_UNRESOLVED"
