"""What Pi's adapter makes of a start, without starting anything."""

import json
from typing import Any

import pytest

from amux.errors import InvalidArgument
from amux.runtime.agents import pi
from amux.runtime.plan import Bound, LaunchPlan, Start

BOUND = Bound(
    session="s1",
    agent_id="pi",
    binding="amux1:hub:global",
    hub="/run/$HOME/hub.sock",
    credential_file="/runs/1/credential",
    text="# Memory (amux)\n",
    form="mcp",
    asks_writes=False,
    command=("/opt/amux",),
    tools=("memory_get",),
)
PLAN = LaunchPlan(argv=("/bin/pi",), environment={"HOME": "/home/ana"}, cwd="/work")
OWN = "/home/ana/.pi/agent/APPEND_SYSTEM.md"
PROJECT = "/work/.pi/APPEND_SYSTEM.md"
TRUST = "/home/ana/.pi/agent/trust.json"
ID = "11111111-2222-4333-8444-555555555555"


def start(*native: str, files: dict[str, str] | None = None, **more: Any) -> Start:
    known = {"session_id": ID, "version": "1.6.0"} | more
    return Start(native=native, directory="/runs/1", read=(files or {}).get, **known)


def texts(plan: LaunchPlan) -> list[str]:
    return [
        plan.argv[at + 1] for at, word in enumerate(plan.argv) if word == "--append-system-prompt"
    ]


@pytest.mark.requirement("R18", "R20")
def test_a_bound_start_with_tools_has_text_and_an_extension_of_the_run() -> None:
    plan = pi.compose(PLAN, BOUND, start(prompt="hello"))
    assert plan.argv == (
        "/bin/pi", "--append-system-prompt", BOUND.text, "-e", "/runs/1/amux-server.cjs",
        "--session-id", ID, "-p", "--mode", "json",
    )  # fmt: skip
    assert plan.stdin == "hello"
    assert plan.environment == {**PLAN.environment, **BOUND.environment}
    script = plan.files["/runs/1/amux-server.cjs"]
    assert script.startswith('module.exports = (pi) => pi.registerMcpServer("amux", {')
    entry = json.loads(script[script.index("{") : script.rindex("}") + 1])
    assert entry["exposure"] == "direct"
    assert [entry["command"], *entry["args"]] == ["/opt/amux", "mcp", "--tools", "memory"]
    # Pi would put the value of a variable there.
    assert entry["env"] == BOUND.environment | {"AMUX_HUB": "/run/$$HOME/hub.sock"}


@pytest.mark.requirement("R18")
def test_a_bound_start_by_the_command_line_has_its_text_alone() -> None:
    plan = pi.compose(PLAN, BOUND.replace(form="cli"), start(version="0.73.1"))
    assert plan.argv == ("/bin/pi", "--append-system-prompt", BOUND.text)
    assert plan.files == {}
    assert plan.stdin is None


@pytest.mark.requirement("R5", "R20")
def test_an_unbound_start_passes_the_callers_words_and_nothing_of_ours() -> None:
    files = {OWN: "own"}
    plan = pi.compose_unbound(PLAN, start("--model", "m", files=files, prompt="hello"))
    assert plan.argv == (
        "/bin/pi", "--model", "m", "--session-id", ID, "-p", "--mode", "json",
    )  # fmt: skip
    assert plan.environment == PLAN.environment
    assert not plan.files
    resumed = pi.compose_unbound(PLAN, start(resume="abc", session_id=None, files=files))
    assert resumed.argv == ("/bin/pi", "--session", "abc")


@pytest.mark.requirement("R4", "R19")
@pytest.mark.parametrize(
    ("version", "takes"),
    [("1.6.0", True), ("0.76.0", True), ("0.75.9", False), ("0.73.1", False), ("", False)],
)
def test_an_id_is_given_only_to_a_release_that_is_known_to_take_one(
    version: str, takes: bool
) -> None:
    for_whom = start(version=version)
    assert pi.takes_session_id(for_whom) is takes
    plan = pi.compose(PLAN, BOUND.replace(form="cli"), for_whom)
    assert ("--session-id" in plan.argv) is takes


@pytest.mark.requirement("R6", "R18")
def test_a_resume_passes_the_same_again() -> None:
    files = {OWN: "own"}
    first = pi.compose(PLAN, BOUND, start("--model", "m", files=files))
    again = pi.compose(
        PLAN, BOUND, start("--model", "m", files=files, resume="abc", session_id=None)
    )
    assert again.argv == (*first.argv[:-2], "--session", "abc")
    assert (again.environment, again.files) == (first.environment, first.files)


@pytest.mark.requirement("R18", "run-9")
@pytest.mark.parametrize(
    ("files", "native", "version", "expected"),
    [
        ({}, [], "1.6.0", []),
        ({OWN: "x"}, [], "1.6.0", [OWN]),
        # The project's is read where Pi trusts it, and then in place of the person's.
        ({OWN: "x", PROJECT: "y"}, [], "1.6.0", [OWN]),
        ({OWN: "x", PROJECT: "y", TRUST: '{"/work":true}'}, [], "1.6.0", [PROJECT]),
        ({OWN: "x", PROJECT: "y", TRUST: '{"/":true}'}, [], "1.6.0", [PROJECT]),
        ({OWN: "x", PROJECT: "y", TRUST: '{"/":true,"/work":false}'}, [], "1.6.0", [OWN]),
        ({OWN: "x", PROJECT: "y", TRUST: "broken"}, [], "1.6.0", [OWN]),
        ({OWN: "x", PROJECT: "y", TRUST: '{"/work":true}'}, ["-na"], "1.6.0", [OWN]),
        ({OWN: "x", PROJECT: "y"}, ["--approve"], "1.6.0", [PROJECT]),
        ({PROJECT: "y"}, [], "1.6.0", []),
        ({OWN: "x", PROJECT: "y"}, [], "0.73.1", [PROJECT]),
        # A text of the caller's own has replaced the file already.
        ({OWN: "x"}, ["--append-system-prompt", "mine"], "1.6.0", ["mine"]),
        ({OWN: "x"}, ["--append-system-prompt", "a", "--append-system-prompt", "b"], "1.6.0",
         ["a", "b"]),
    ],
)  # fmt: skip
def test_the_persons_own_text_comes_first(
    files: dict[str, str], native: list[str], version: str, expected: list[str]
) -> None:
    plan = pi.compose(PLAN, BOUND, start(*native, files=files, version=version, prompt="x"))
    assert texts(plan) == [*expected, BOUND.text]


@pytest.mark.requirement("R18")
def test_a_text_that_pi_may_yet_be_told_to_trust_is_a_warning_in_a_terminal() -> None:
    files = {PROJECT: "y"}
    (warning,) = pi.compose(PLAN, BOUND, start(files=files)).warnings
    assert PROJECT in warning
    settings = {"/home/ana/.pi/agent/settings.json": '{"defaultProjectTrust":"always"}'}
    plan = pi.compose(PLAN, BOUND, start(files=files | settings))
    assert texts(plan) == [PROJECT, BOUND.text]


@pytest.mark.requirement("R18")
@pytest.mark.parametrize(
    ("version", "native", "files", "expected"),
    [
        ("1.6.0", [], {}, "mcp"),
        ("0.99.0", [], {}, "mcp"),
        ("2.0.0", [], {}, "mcp"),
        ("0.98.9", [], {}, "cli"),
        ("0.73.1", [], {}, "cli"),
        ("", [], {}, "cli"),
        ("1.6.0", ["--no-mcp"], {}, "cli"),
        ("1.6.0", ["-nt"], {}, "cli"),
        ("1.6.0", ["-ne"], {}, "mcp"),
        ("1.6.0", [], {"/home/ana/.pi/agent/mcp.json": '{"mcpServers":{"amux":{}}}'}, "cli"),
        ("1.6.0", [], {"/work/.pi/mcp.json": '{"mcpServers":{"amux":{}}}'}, "cli"),
        ("1.6.0", [], {"/work/.pi/mcp.json": '{"mcpServers":{"other":{}}}'}, "mcp"),
        ("1.6.0", [], {"/work/.pi/mcp.json": "broken"}, "mcp"),
    ],
)
def test_the_form_is_what_the_release_and_the_persons_files_leave(
    version: str, native: list[str], files: dict[str, str], expected: str
) -> None:
    assert pi.form(PLAN, start(*native, version=version, files=files)) == expected


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize(
    ("native", "argument"),
    [
        (["-c"], "-c"),
        (["--continue"], "--continue"),
        (["-r"], "-r"),
        (["--resume"], "--resume"),
        (["--session", "x"], "--session"),
        (["--session-id", "x"], "--session-id"),
        (["--fork", "x"], "--fork"),
        (["-p", "hello"], "-p"),
        (["--print"], "--print"),
        (["--mode", "rpc"], "--mode"),
        (["hello"], "prompt"),
        (["@notes.md"], "prompt"),
        (["--model", "m", "hello"], "prompt"),
        (["--offline", "@notes.md"], "prompt"),
        (["--", "hello"], "prompt"),
        (["install", "x"], "prompt"),
    ],
)
def test_what_amux_must_say_itself_is_refused_by_name(
    native: list[str], argument: str, is_bound: bool
) -> None:
    def compose() -> LaunchPlan:
        given = start(*native)
        return pi.compose(PLAN, BOUND, given) if is_bound else pi.compose_unbound(PLAN, given)

    with pytest.raises(InvalidArgument) as refusal:
        compose()
    assert refusal.value.details["argument"] == argument
    assert refusal.value.details["reason"]


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize(
    "native",
    [
        ["-e", "own.js", "--extension", "other.js"],
        ["--provider", "p", "--model", "m", "-nc", "--offline", "-n", "-name with a dash"],
        ["--of-a-later-release", "value", "--and=another"],
    ],
)
def test_everything_else_is_passed_on_before_ours(native: list[str]) -> None:
    plan = pi.compose(PLAN, BOUND, start(*native))
    assert plan.argv[1 : 1 + len(native)] == tuple(native)
    assert not plan.warnings


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("kib", [101, 1024])
def test_a_long_text_goes_by_file(kib: int) -> None:
    long = BOUND.replace(text="é" * (kib * 512))
    plan = pi.compose(PLAN, long, start())
    assert texts(plan) == ["/runs/1/append.md"]
    assert plan.files["/runs/1/append.md"] == long.text


@pytest.mark.requirement("R13")
def test_a_turn_is_heard_without_content() -> None:
    turn = pi.turn()
    called = {"toolCallId": "1", "toolName": "mcp__amux__memory_upsert"}
    ended = {"content": [{"type": "text", "text": '{"error":{"code":"secret_detected"}}'}]}
    said: list[object] = [
        {"type": "session", "id": "n1"},
        {"type": "tool_execution_start", **called, "args": {"path": "a.md", "content": "HIDDEN"}},
        {"type": "tool_execution_end", **called, "result": ended, "isError": True},
        {"type": "tool_execution_start", "toolCallId": "2", "toolName": "bash",
         "args": {"command": "HIDDEN"}},
        {"type": "agent_end", "willRetry": True, "messages": []},
        {"type": "agent_end", "messages": "nonsense"},
        {"type": "agent_end", "messages": [
            {"role": "assistant", "content": [{"type": "text", "text": "the answer"}]}]},
    ]  # fmt: skip
    events = [event for one in said for event in turn.events(json.dumps(one))] + turn.end()
    assert [(event.kind, event.data.get("outcome")) for event in events] == [
        ("native", None), ("tool", "secret_detected"), ("tool", "unknown"), ("answer", None),
    ]  # fmt: skip
    assert events[-1].data["text"] == "the answer"
    assert "HIDDEN" not in json.dumps([dict(event.data) for event in events])


@pytest.mark.requirement("R13")
def test_a_failed_turn_has_no_answer() -> None:
    turn = pi.turn()
    last = {"role": "assistant", "stopReason": "error", "errorMessage": "no such model"}
    turn.events(json.dumps({"type": "agent_end", "messages": [last]}))
    assert turn.end() == []
    assert turn.failure == "no such model"
