"""What Claude Code's adapter makes of a start, without starting anything."""

import json
from typing import Any

import pytest

from amux.errors import InvalidArgument
from amux.runtime.agents import claude, claude_settings
from amux.runtime.agents.claude_settings import OFF
from amux.runtime.plan import Bound, LaunchPlan, Start

BOUND = Bound(
    session="s1",
    agent_id="claude-code",
    binding="amux1:hub:global",
    hub="/run/it's a hub/hub.sock",
    credential_file="/runs/1/credential",
    text="# Memory (amux)\n\nprotocol\n",
    form="mcp",
    asks_writes=False,
    command=("/opt/amux tools/amux",),
    tools=("memory_get",),
)
PLAN = LaunchPlan(
    argv=("/bin/claude",), environment={"HOME": "/home/ana", "PATH": "/bin"}, cwd="/work"
)


def start(*native: str, files: dict[str, str] | None = None, **more: Any) -> Start:
    found = files or {}
    known = {"session_id": "11111111-2222-4333-8444-555555555555", "version": "2.1.332"} | more
    return Start(native=native, directory="/runs/1's", read=found.get, **known)


def flag(plan: LaunchPlan, name: str) -> str:
    """Give the one value of a flag that must be there once."""
    assert plan.argv.count(name) == 1
    return plan.argv[plan.argv.index(name) + 1]


def settings(plan: LaunchPlan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(flag(plan, "--settings"))
    return found


@pytest.mark.requirement("R16", "R20")
def test_a_bound_start_names_its_server_its_hub_and_its_session_explicitly() -> None:
    plan = claude.compose(PLAN, BOUND, start(prompt="hello"))
    assert flag(plan, "--append-system-prompt") == BOUND.text
    assert json.loads(flag(plan, "--mcp-config")) == {
        "mcpServers": {
            "amux": {
                "type": "stdio",
                "command": "/opt/amux tools/amux",
                "args": ["mcp", "--tools", "memory"],
                "env": BOUND.environment,
                "alwaysLoad": True,
            }
        }
    }
    assert plan.environment == {**PLAN.environment, **BOUND.environment, OFF: "1"}
    assert settings(plan)["env"] == {**BOUND.environment, OFF: "1"}
    assert settings(plan)["permissions"] == {"allow": ["mcp__amux"]}
    assert flag(plan, "--session-id") == "11111111-2222-4333-8444-555555555555"
    assert "--strict-mcp-config" not in plan.argv
    assert (plan.stdin, "hello" in plan.argv) == ("hello", False)


@pytest.mark.requirement("R16")
def test_sub_agents_are_told_by_a_hook_that_prints_the_sessions_own_text() -> None:
    plan = claude.compose(PLAN, BOUND, start())
    (entry,) = settings(plan)["hooks"]["SubagentStart"]
    (hook,) = entry["hooks"]
    path = "/runs/1's/subagent.json"
    assert hook == {"type": "command", "command": """cat '/runs/1'"'"'s/subagent.json'"""}
    told = json.loads(plan.files[path])["hookSpecificOutput"]
    assert told == {"hookEventName": "SubagentStart", "additionalContext": BOUND.text}


@pytest.mark.requirement("R16")
def test_a_terminal_session_has_no_prompt_and_its_own_streams() -> None:
    plan = claude.compose(PLAN, BOUND, start())
    assert plan.stdin is None
    assert "-p" not in plan.argv


@pytest.mark.requirement("R6", "R16")
def test_a_resume_passes_the_same_again() -> None:
    first = claude.compose(PLAN, BOUND, start("--model", "m"))
    again = claude.compose(PLAN, BOUND, start("--model", "m", resume="abc", session_id=None))
    at = first.argv.index("--session-id")
    assert again.argv == (*first.argv[:at], "--resume", "abc")
    assert (again.environment, again.files) == (first.environment, first.files)


@pytest.mark.requirement("R5", "R20")
def test_an_unbound_start_passes_the_callers_words_and_nothing_of_ours() -> None:
    native = ("--append-system-prompt", "own", "--settings", "{}", "--mcp-config", "a.json")
    plan = claude.compose_unbound(PLAN, start(*native, prompt="hello"))
    at = plan.argv.index("--session-id")
    assert plan.argv[1:at] == native
    assert plan.argv[at + 2 :] == ("-p", "--output-format", "json")
    assert (plan.environment, plan.files) == (PLAN.environment, {})
    resumed = claude.compose_unbound(PLAN, start(resume="abc", session_id=None))
    assert resumed.argv == ("/bin/claude", "--resume", "abc")


@pytest.mark.requirement("R16", "R21", "run-9", "run-22")
@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (["--append-system-prompt", "one"], "one"),
        (["--append-system-prompt=one"], "one"),
        # Of two flags Claude takes the last.
        (["--append-system-prompt", "no", "--append-system-prompt", "one"], "one"),
        (["--append-system-prompt-file", "own.md"], "from file"),
        (["--append-system-prompt", "one", "--append-system-prompt-file", "own.md"],
         "one\n\nfrom file"),
        (["--append-system-prompt", "-x starts with a dash"], "-x starts with a dash"),
    ],
)  # fmt: skip
def test_the_callers_text_comes_first(native: list[str], expected: str) -> None:
    plan = claude.compose(PLAN, BOUND, start(*native, files={"own.md": "from file\n"}))
    assert flag(plan, "--append-system-prompt") == f"{expected}\n\n{BOUND.text}"
    assert "--append-system-prompt-file" not in plan.argv


@pytest.mark.requirement("R16", "R21", "run-9", "run-22")
@pytest.mark.parametrize("is_file", [False, True])
def test_the_callers_settings_are_lengthened_and_our_names_win(is_file: bool) -> None:
    own = {
        "env": {"OWN": "1", OFF: "0", "AMUX_HUB": "/elsewhere"},
        "permissions": {"allow": ["Bash"], "deny": ["Write"], "defaultMode": "plan"},
        "hooks": {"SubagentStart": [{"hooks": []}], "Stop": [{"hooks": []}]},
        "model": "m",
    }
    value = "own.json" if is_file else json.dumps(own)
    files = {"own.json": json.dumps(own)}
    plan = claude.compose(PLAN, BOUND, start("--settings", value, files=files))
    found = settings(plan)
    assert found["model"] == "m"
    assert found["env"] == {"OWN": "1", OFF: "1", **BOUND.environment}
    assert found["permissions"] == {
        "allow": ["Bash", "mcp__amux"], "deny": ["Write"], "defaultMode": "plan",
    }  # fmt: skip
    assert len(found["hooks"]["SubagentStart"]) == 2
    assert found["hooks"]["Stop"] == [{"hooks": []}]
    assert [one for one in plan.warnings if OFF in one]
    assert [one for one in plan.warnings if "AMUX_HUB" in one]


@pytest.mark.requirement("R16")
def test_with_ask_writes_only_reading_is_allowed_beforehand() -> None:
    plan = claude.compose(PLAN, BOUND.replace(asks_writes=True), start())
    allowed = settings(plan)["permissions"]["allow"]
    assert "mcp__amux__memory_get" in allowed
    assert not {"mcp__amux", "mcp__amux__memory_upsert", "mcp__amux__memory_forget"} & {*allowed}


REFUSED = [
    (["--session-id", "x"], "--session-id"),
    (["--session-id=x"], "--session-id"),
    (["--resume", "x"], "--resume"),
    (["-r"], "-r"),
    (["-rx"], "-r"),
    (["--continue"], "--continue"),
    (["-c"], "-c"),
    (["-dc"], None),
    (["-pc"], "-p"),
    (["--fork-session"], "--fork-session"),
    (["--from-pr", "1"], "--from-pr"),
    (["-p"], "-p"),
    (["--print"], "--print"),
    (["--output-format", "text"], "--output-format"),
    (["--input-format", "text"], "--input-format"),
    (["--bg"], "--bg"),
    (["hello there"], "prompt"),
    (["mcp", "list"], "prompt"),
    (["--model", "m", "hello"], "prompt"),
    (["--verbose", "hello"], "prompt"),
    (["--", "hello"], "prompt"),
    (["--"], "prompt"),
    ([""], "prompt"),
    (["-"], "prompt"),
]


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize(("native", "argument"), REFUSED)
def test_what_amux_must_say_itself_is_refused_by_name(
    native: list[str], argument: str | None, is_bound: bool
) -> None:
    def compose() -> LaunchPlan:
        if is_bound:
            return claude.compose(PLAN, BOUND, start(*native))
        return claude.compose_unbound(PLAN, start(*native))

    if argument is None:  # `-d` takes the letters after it as its filter
        assert native[0] in compose().argv
        return
    with pytest.raises(InvalidArgument) as refusal:
        compose()
    assert refusal.value.details["argument"] == argument
    assert refusal.value.details["reason"]
    assert refusal.value.hint


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize(
    "native",
    [
        ["--mcp-config", "a.json", "b.json", "--strict-mcp-config"],
        ["--allowedTools", "Bash", "Read", "--disallowedTools", "Write"],
        ["--model=m", "--add-dir", "x", "y", "--dangerously-skip-permissions"],
        ["--debug", "api", "-w", "tree", "-n", "a name with ' and \n", "--system-prompt", "-"],
        ["--of-a-later-release", "value", "--and-another"],
    ],
)
def test_everything_else_is_passed_on_as_it_is(native: list[str]) -> None:
    plan = claude.compose(PLAN, BOUND, start(*native))
    assert plan.argv[1 : 1 + len(native)] == tuple(native)
    assert not plan.warnings


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("value", ['{"mcpServers":{"amux":{"command":"x"}}}', "own.json"])
def test_a_second_server_of_the_name_is_refused(value: str) -> None:
    files = {"own.json": '{"mcpServers":{"amux":{"url":"https://x"}}}', "a.json": "{}"}
    with pytest.raises(InvalidArgument) as refusal:
        claude.compose(PLAN, BOUND, start("--mcp-config", "a.json", value, files=files))
    assert refusal.value.details["argument"] == "--mcp-config"
    # Without memory there is no server of ours to be mistaken for.
    claude.compose_unbound(PLAN, start("--mcp-config", value, files=files))


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize(
    "spec",
    ["mcp__amux", "mcp__amux__memory_get", "mcp__amux__*", "mcp__*", "Bash(ls),mcp__amux__*", "*"],
)
def test_a_denied_tool_of_amux_is_a_warning(spec: str) -> None:
    plan = claude.compose(PLAN, BOUND, start("--disallowedTools", spec))
    assert len(plan.warnings) == 1
    assert "--disallowedTools" in plan.warnings[0]
    own = json.dumps({"permissions": {"deny": spec.split(",")}})
    assert claude_settings.findings("x.json", own) == ("x.json denies tools of amux",)


@pytest.mark.requirement("R21")
@pytest.mark.parametrize("spec", ["Bash", "mcp__amuxious", "mcp__other__memory_get", "Read(*)"])
def test_other_denied_tools_are_nobodys_business(spec: str) -> None:
    assert not claude.compose(PLAN, BOUND, start("--disallowedTools", spec)).warnings


@pytest.mark.requirement("R16", "R33", "run-15")
@pytest.mark.parametrize(
    "path",
    [
        "/home/ana/.claude/settings.json",
        "/work/.claude/settings.json",
        "/work/.claude/settings.local.json",
        "/etc/claude-code/managed-settings.json",
    ],
)
@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"env": {OFF: "0"}}, OFF),
        ({"env": {OFF: ""}}, OFF),
        ({"env": {"AMUX_HUB": "x"}}, "AMUX_HUB"),
        ({"env": {"AMUX_MEMORY_BINDING": "x"}}, "AMUX_MEMORY_BINDING"),
        ({"disableAllHooks": True}, "hooks"),
        ({"permissions": {"deny": ["mcp__amux"]}}, "denies"),
    ],
)
def test_settings_that_work_against_memory_are_a_warning_that_names_the_file(
    path: str, found: dict[str, Any], word: str
) -> None:
    plan = claude.compose(PLAN, BOUND, start(files={path: json.dumps(found)}))
    (warning,) = plan.warnings
    assert path in warning
    assert word in warning


@pytest.mark.requirement("R16")
def test_settings_that_claude_is_told_not_to_load_are_no_warning() -> None:
    files = {
        "/home/ana/.claude/settings.json": '{"disableAllHooks":true}',
        "/work/.claude/settings.json": '{"disableAllHooks":true}',
    }
    plan = claude.compose(PLAN, BOUND, start("--setting-sources", "user", files=files))
    assert len(plan.warnings) == 1
    assert "/home/ana" in plan.warnings[0]


@pytest.mark.requirement("R21")
@pytest.mark.parametrize(
    ("native", "files"),
    [
        (["--settings", "gone.json"], {}),
        (["--settings", "[1]"], {}),
        (["--settings", "{broken"], {}),
        (["--settings", "{broken}"], {}),
        (["--settings", "own.json"], {"own.json": "no json"}),
        (["--settings", '{"env":1}'], {}),
        (["--settings", '{"permissions":{"allow":1}}'], {}),
        (["--settings", '{"hooks":[]}'], {}),
        (["--append-system-prompt-file", "gone.md"], {}),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(native: list[str], files: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        claude.compose(PLAN, BOUND, start(*native, files=files))
    assert refusal.value.details["argument"] == native[0]


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("kib", [101, 1024])
def test_long_values_go_by_file(kib: int) -> None:
    long = "é" * (kib * 512)
    files = {"own.md": long, "own.json": json.dumps({"env": {"LONG": long}}, ensure_ascii=False)}
    plan = claude.compose(
        PLAN,
        BOUND,
        start("--append-system-prompt-file", "own.md", "--settings", "own.json", files=files),
    )
    assert max(len(word.encode()) for word in plan.argv) < 10_000
    text = plan.files[flag(plan, "--append-system-prompt-file")]
    assert text == f"{long}\n\n{BOUND.text}"
    assert json.loads(plan.files[flag(plan, "--settings")])["env"]["LONG"] == long


@pytest.mark.requirement("R17", "R21")
@pytest.mark.parametrize(
    "native", [["-n", "x"], ["--add-dir", "a", "b"], ["--model=a", "--model=b"]]
)
def test_what_the_sdk_cannot_pass_on_is_refused(native: list[str]) -> None:
    plan = LaunchPlan(argv=("/bin/python", "/bin/claude"), environment={}, cwd="/work")
    with pytest.raises(InvalidArgument):
        claude.compose_sdk(plan, BOUND, start(*native, prompt="hello"), "script")


@pytest.mark.requirement("R17", "R31")
def test_the_sdks_start_has_everything_on_standard_input() -> None:
    plan = LaunchPlan(argv=("/bin/python", "/bin/claude"), environment={}, cwd="/work")
    found = claude.compose_sdk(
        plan, BOUND, start("--model", "m", "--verbose", prompt="hello"), "script"
    )
    assert found.argv == ("/bin/python", "/runs/1's/sidecar.py")
    assert found.files["/runs/1's/sidecar.py"] == "script"
    assert found.stdin is not None
    asked = json.loads(found.stdin)
    assert asked["prompt"] == "hello"
    options = asked["options"]
    assert options["cli_path"] == "/bin/claude"
    assert options["system_prompt"] == {
        "type": "preset", "preset": "claude_code", "append": BOUND.text,
    }  # fmt: skip
    assert options["extra_args"] == {"model": "m", "verbose": None}
    assert found.environment == {**BOUND.environment, OFF: "1"}
    assert "strict_mcp_config" not in options


@pytest.mark.requirement("R13")
def test_a_turn_is_heard_without_content() -> None:
    turn = claude.turn()
    use = {"type": "tool_use", "id": "1", "name": "mcp__amux__memory_upsert",
           "input": {"path": "a.md", "content": "SECRET-TEXT"}}  # fmt: skip
    own = {"type": "tool_use", "id": "2", "name": "Bash", "input": {"command": "SECRET-TEXT"}}
    left = {"type": "tool_use", "id": "3", "name": "Read", "input": {}}
    refusal = json.dumps({"error": {"code": "revision_conflict", "message": "m"}})
    said: list[object] = [
        {"type": "system", "subtype": "init", "session_id": "n1"},
        {"type": "assistant", "message": {"content": [use, own, left]}},
        {"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": refusal},
            {"type": "tool_result", "tool_use_id": "2",
             "content": [{"type": "text", "text": "SECRET-TEXT"}]},
            {"type": "tool_result", "tool_use_id": "never seen", "content": "x"},
        ]}},
        {"type": "of a later release"},
        ["no object"],
        {"type": "assistant", "message": "nonsense"},
        {"type": "result", "is_error": False, "result": "first", "session_id": "n1"},
        {"type": "result", "is_error": False, "result": "the answer", "session_id": "n1"},
    ]  # fmt: skip
    lines = [json.dumps(one) for one in said] + ["no json", "", "[" * 100_000]
    events = [event for line in lines for event in turn.events(line)] + turn.end()
    assert [
        (event.kind, event.data.get("name"), event.data.get("outcome")) for event in events
    ] == [
        ("native", None, None),
        ("tool", "mcp__amux__memory_upsert", "revision_conflict"),
        ("tool", "Bash", "ok"),
        ("tool", "Read", "unknown"),
        ("answer", None, None),
    ]
    assert events[-1].data["text"] == "the answer"
    assert "SECRET-TEXT" not in json.dumps([dict(event.data) for event in events])
    assert not turn.failure


@pytest.mark.requirement("R13")
def test_a_failed_turn_has_no_answer() -> None:
    turn = claude.turn()
    turn.events(json.dumps({"type": "result", "is_error": False, "result": "early"}))
    turn.events(json.dumps({"type": "result", "is_error": True, "result": "API Error: 529"}))
    assert turn.end() == []
    assert turn.failure == "API Error: 529"
