"""Claude Code with memory: what it is given, what it keeps, and what it never sees."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from amux.runtime import protocol
from tests.support import agents
from tests.support.agents import Place, hashes
from tests.support.hub import RunningHub
from tests.support.launched import Conversation, Launcher, Listener, extends, plain
from tests.support.model_server import REVISION, Asked, ModelServer, say, use

pytestmark = [pytest.mark.slow, pytest.mark.agents]

TEXT = protocol.text("mcp")
AUTO_MEMORY = "persistent file-based memory"
OFF = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
NAMES = (
    "mcp__amux__memory_forget", "mcp__amux__memory_get", "mcp__amux__memory_search",
    "mcp__amux__memory_upsert", "mcp__amux__result_continue",
)  # fmt: skip
SAVE = [
    use("memory_get", path="MEMORY.md"),
    use("memory_upsert", path="MEMORY.md", content="# Notes\n", expected_revision=REVISION),
    say("saved"),
]


@pytest.fixture
def launcher(place: Place, hub: RunningHub, model: ModelServer) -> Launcher:
    agents.claude()
    model.scripts |= {"hello": [say("hello")], "save": SAVE}
    return Launcher(place, hub)


def loop(model: ModelServer) -> list[Asked]:
    """Give the requests of the agent's own loop; titles and quotas carry no tools."""
    return [one for one in model.asked if len(one.body.get("tools") or []) > 2]


def own_tools(asked: Asked) -> list[str]:
    return sorted(name for name in asked.tool_names if name.startswith("mcp__amux__"))


def is_told(asked: Asked) -> bool:
    """Tell whether the protocol stands in the request, once and at its place."""
    places = asked.where(TEXT.rstrip("\n"))
    assert places in ([], [".system[2].text"])
    return bool(places)


@pytest.mark.requirement("R16", "R13", "run-1", "bug-44")
def test_a_new_session_reads_and_saves(
    launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    ran = launcher.claude(agents.claude()).run("please @play save")
    assert ran.answer == "saved"
    assert (hub.memory_dir / "MEMORY.md").read_text() == "# Notes\n"
    assert len(loop(model)) == 3
    for one in loop(model):
        assert is_told(one)
        assert one.count("# Memory (amux)") == 1
        assert own_tools(one) == list(NAMES)
        assert not one.where(AUTO_MEMORY)
    calls = [(one["name"], one["outcome"]) for one in ran.of("tool")]
    assert calls == [("mcp__amux__memory_get", "ok"), ("mcp__amux__memory_upsert", "ok")]
    assert "# Notes" not in json.dumps([dict(event.data) for event in ran.events])


@pytest.mark.requirement("R22", "R23", "run-3")
def test_tools_and_text_are_equal_over_turns_writes_and_a_resume(
    launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    model.scripts["get"] = [use("memory_get", path="MEMORY.md"), say("read")]
    session = launcher.claude(agents.claude())
    with Conversation(session) as talk:
        for number in range(6):
            assert talk.say(f"turn {number}: @play get")["result"] == "read"
            revision = str(hub.ask("get", path="MEMORY.md")["revision"])
            hub.ask("upsert", path="MEMORY.md", content=f"# {number}\n", expected_revision=revision)
    assert session.run("please @play get").answer == "read"
    asked = loop(model)
    assert len(asked) == 14
    first = asked[0]
    for before, one in pairwise(asked):
        assert plain(one.body["tools"]) == plain(first.body["tools"])
        # The first block is Claude's own: a line for billing that differs from turn to turn.
        assert plain(one.body["system"][1:]) == plain(first.body["system"][1:])
        assert len(one.items) > len(before.items)
        assert extends(one.items, before.items)
    assert len({one.raw[one.raw.index(b'"tools"') :][:2000] for one in asked}) == 1


@pytest.mark.requirement("R6", "R22", "run-4")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_after_a_compaction_of_a_resumed_session_the_text_is_as_before(
    is_bound: bool, launcher: Launcher, model: ModelServer
) -> None:
    session = launcher.claude(agents.claude(), is_bound=is_bound)
    assert session.run("please @play hello").answer == "hello"
    with Conversation(session) as talk:
        talk.say("again @play hello")
        talk.say("/compact")
        talk.say("and again @play hello")
    assert len(loop(model)) >= 3
    assert {is_told(one) for one in loop(model)} == {is_bound}
    assert {bool(own_tools(one)) for one in loop(model)} == {is_bound}


def plant(place: Place) -> Path:
    """Leave what an earlier session without amux would have left as its own memory."""
    own = re.sub("[^A-Za-z0-9]", "-", str(place.work))  # so Claude names a directory's folder
    folder = place.claude_home / "projects" / own / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- [Planted](planted.md) - PLANTED-NATIVE-MEMORY\n")
    (folder / "planted.md").write_text("PLANTED-NATIVE-MEMORY in full\n")
    return folder


@pytest.mark.requirement("R11", "R16", "run-6")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_native_memory_is_kept_out_of_a_bound_session_only(
    is_bound: bool, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    folder = plant(place)
    before = hashes(folder)
    session = launcher.claude(agents.claude(), is_bound=is_bound)
    assert session.run("please @play hello").answer == "hello"
    assert session.run("again @play hello").answer == "hello"
    for one in loop(model):
        assert bool(one.where("PLANTED-NATIVE-MEMORY")) is not is_bound
        assert bool(one.where(AUTO_MEMORY)) is not is_bound
    assert hashes(folder) == before


@pytest.mark.requirement("R5", "run-5")
def test_an_unbound_session_differs_from_a_plain_start_in_nothing(
    launcher: Launcher, model: ModelServer, place: Place
) -> None:
    session = launcher.claude(agents.claude(), is_bound=False)
    assert session.run("please @play hello").answer == "hello"
    done = place.run(str(session.command), "-p", "please @play hello")
    assert done.stdout.strip() == b"hello"
    ours, plain_start = (_comparable(one) for one in loop(model))
    assert ours == plain_start
    assert b"amux" not in loop(model)[0].raw


def _comparable(asked: Asked) -> object:
    body = {name: value for name, value in asked.body.items() if name != "metadata"}
    body["system"] = body["system"][1:]
    return plain(body)


@pytest.mark.requirement("R16", "R21", "run-9", "run-22")
@pytest.mark.parametrize("is_file", [False, True], ids=["text", "file"])
def test_the_callers_text_and_settings_are_merged_and_in_force(
    is_file: bool, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    settings = json.dumps({"env": {"OWN_NAME": "own-value"}, "permissions": {"allow": ["Bash"]}})
    native = ["--append-system-prompt", "OWN-APPEND-TEXT", "--settings", settings]
    if is_file:
        (place.work / "own.json").write_text(settings)
        (place.work / "own.md").write_text("OWN-APPEND-TEXT\n")
        native = ["--append-system-prompt-file", "own.md", "--settings", "own.json"]
    model.scripts["both"] = [
        use("Bash", command="echo got-$OWN_NAME-$AMUX_AGENT", description="say it"),
        use("memory_get", path="MEMORY.md"),
        say("done"),
    ]
    ran = launcher.claude(agents.claude()).run("please @play both", *native)
    assert ran.answer == "done"
    last = loop(model)[-1]
    assert last.results[0].strip() == "got-own-value-claude-code"
    assert '"exists":false' in last.results[1].replace(" ", "")
    (place_of_text,) = last.where("OWN-APPEND-TEXT")
    assert place_of_text == ".system[2].text"
    system = last.body["system"][2]["text"]
    assert system.count("OWN-APPEND-TEXT") == system.count("# Memory (amux)") == 1
    assert system.index("OWN-APPEND-TEXT") < system.index("# Memory (amux)")
    assert not last.where(AUTO_MEMORY)


@pytest.mark.requirement("R6", "R7", "run-14")
@pytest.mark.parametrize("is_down", [False, True], ids=["memory off", "hub down"])
def test_a_bound_session_is_resumed_as_bound_without_its_memory(
    is_down: bool, launcher: Launcher, model: ModelServer, hub: RunningHub, place: Place
) -> None:
    folder = plant(place)
    before = hashes(folder)
    model.scripts["get"] = [use("memory_get", path="MEMORY.md"), say("done")]
    session = launcher.claude(agents.claude())
    assert session.run("please @play get").answer == "done"
    hub.stop()
    if not is_down:
        assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
        hub.start()
    code = "unavailable" if is_down else "memory_disabled"
    for _ in range(2):
        ran = session.run("again @play get")
        assert ran.answer == "done"
        assert [one["outcome"] for one in ran.of("tool")] == [code]
    if not is_down:
        hub.stop()
    hub.enable().start()
    assert [one["outcome"] for one in session.run("again @play get").of("tool")] == ["ok"]
    first = loop(model)[0]
    for one in loop(model):
        assert is_told(one)
        assert plain(one.body["tools"]) == plain(first.body["tools"])
        assert not one.where("PLANTED-NATIVE-MEMORY")
        assert not one.where(AUTO_MEMORY)
    assert hashes(folder) == before


@pytest.mark.requirement("R16", "R20", "run-15")
@pytest.mark.parametrize("value", ["0", ""])
@pytest.mark.parametrize("whose", ["user", "project", "local"])
def test_settings_elsewhere_neither_switch_native_memory_on_nor_redirect(
    whose: str, value: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    names = {OFF: value, "AMUX_HUB": "/nowhere/else.sock", "AMUX_MEMORY_BINDING": "amux1:no:global"}
    path = {
        "user": place.claude_home / "settings.json",
        "project": place.work / ".claude" / "settings.json",
        "local": place.work / ".claude" / "settings.local.json",
    }[whose]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"env": names, "disableAllHooks": True}))
    plant(place)
    model.scripts["both"] = [
        use("memory_get", path="MEMORY.md"),
        use("Bash", command="amux memory show MEMORY.md; echo status $?", description="show it"),
        say("done"),
    ]
    session = launcher.claude(agents.claude())
    ran = session.run("please @play both", "--allowedTools", "Bash")
    assert ran.answer == "done"
    assert [one["outcome"] for one in ran.of("tool")] == ["ok", "ok"]
    # The command line under Bash asks the launch's Hub too.
    assert "status 0" in loop(model)[-1].results[1]
    assert not loop(model)[0].where("PLANTED-NATIVE-MEMORY")
    assert not loop(model)[0].where(AUTO_MEMORY)
    warnings = "\n".join(ran.plan.warnings)
    for name in (OFF, "AMUX_HUB", "AMUX_MEMORY_BINDING", "hooks"):
        assert name in warnings
    assert str(path) in warnings


EVERY = [
    use("memory_search", query="notes"),
    use("memory_get", path="MEMORY.md"),
    use("memory_upsert", path="MEMORY.md", content="# Notes\n", expected_revision="absent"),
    use("memory_forget", path="MEMORY.md", expected_revision=REVISION),
    say("done"),
]


@pytest.mark.requirement("R16", "run-17")
def test_headless_calls_run_under_the_default_approval(
    launcher: Launcher, model: ModelServer
) -> None:
    model.scripts["every"] = EVERY
    ran = launcher.claude(agents.claude()).run("please @play every")
    assert ran.answer == "done"
    assert [one["outcome"] for one in ran.of("tool")] == ["ok"] * 4


@pytest.mark.requirement("R16", "run-17")
def test_with_ask_writes_reading_runs_and_writing_is_the_users_policy(
    launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    model.scripts["every"] = EVERY
    ran = launcher.claude(agents.claude(), asks_writes=True).run("please @play every")
    assert ran.answer == "done"
    outcomes = [one["outcome"] for one in ran.of("tool")]
    assert outcomes == ["ok", "ok", "error", "error"]
    assert not (hub.memory_dir / "MEMORY.md").exists()
    own = launcher.claude(agents.claude(), asks_writes=True)
    allowed = ("--allowedTools", "mcp__amux__memory_upsert")
    ran = own.run("please @play every", *allowed)
    assert [one["outcome"] for one in ran.of("tool")] == ["ok", "ok", "ok", "error"]
    assert (hub.memory_dir / "MEMORY.md").exists()


@pytest.mark.requirement("R16", "run-18")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_a_sub_agent_is_told_what_its_session_was_told(
    is_bound: bool, launcher: Launcher, model: ModelServer
) -> None:
    child = {"description": "child", "prompt": "@play child", "subagent_type": "general-purpose"}
    model.scripts["parent"] = [use("Agent", **child), say("done")]
    model.scripts["child"] = (
        [use("memory_search", query="notes"), say("found")] if is_bound else [say("nothing")]
    )
    session = launcher.claude(agents.claude(), is_bound=is_bound)
    # The child runs in the background; its end is one more turn, which the script leaves open.
    assert session.run("please @play parent", "--allowedTools", "Agent").answer in ("done", "ok")
    asked = model.of("child")
    assert asked
    for one in asked:
        assert one.count("# Memory (amux)") == int(is_bound)
        assert bool(own_tools(one)) is is_bound
        if is_bound:
            assert one.count(json.dumps(TEXT)[1:-1]) or one.where("Do not search for ordinary")
    if is_bound:
        assert '"hits":[]' in asked[-1].results[-1].replace(" ", "")


@pytest.mark.requirement("R8", "run-18")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_clear_stays_in_the_session_and_a_fork_has_the_state_of_its_parent(
    is_bound: bool, launcher: Launcher, model: ModelServer
) -> None:
    session = launcher.claude(agents.claude(), is_bound=is_bound)
    with Conversation(session) as talk:
        first = talk.say("please @play hello")["session_id"]
        talk.say("/clear")
        later = talk.say("please @play hello")["session_id"]
    assert first == session.native_id != later
    session.native_id = later
    assert session.run("again @play hello").answer == "hello"
    # What a person may do without amux: the fork of a session.
    fork = [str(session.command), "-p", "--resume", first, "--fork-session"]
    words = list(session.run("once more @play hello").plan.argv[1:]) if is_bound else []
    if is_bound:
        at = words.index("--resume")
        words = [*words[:at], *words[at + 2 :]]
    done = session.place.run(*fork, *words, stdin=b"forked @play hello")
    assert done.returncode == 0, done.stderr
    assert len(loop(model)) >= 4
    for one in loop(model):
        assert is_told(one) is is_bound
        assert bool(own_tools(one)) is is_bound


@pytest.mark.requirement("R23", "run-19")
def test_a_turn_that_needs_no_history_asks_the_hub_nothing(
    launcher: Launcher, model: ModelServer, place: Place
) -> None:
    session = launcher.claude(agents.claude())
    assert session.bound is not None
    with Listener(place.root / "silent.sock") as silent:
        session.bound = session.bound.replace(hub=silent.path)
        assert session.run("please @play hello").answer == "hello"
        assert session.run("again @play hello").answer == "hello"
        assert silent.count == 0
    # One request a turn: nothing is added before it, after it, or beside it.
    assert [(one.script, one.step) for one in loop(model)] == [("hello", 0)] * 2
    assert [len(one.items) for one in loop(model)] == sorted(len(one.items) for one in loop(model))


@pytest.mark.requirement("R11", "run-20", "bug-39")
def test_after_bound_runs_a_plain_start_is_what_it_was_before(
    launcher: Launcher, model: ModelServer, place: Place
) -> None:
    plant(place)
    (place.claude_home / "CLAUDE.md").write_text("OWN-CLAUDE-MD\n")
    (place.claude_home / "settings.json").write_text('{"env": {"OWN": "1"}}\n')
    (place.work / "CLAUDE.md").write_text("PROJECT-CLAUDE-MD\n")
    command = str(place.program("claude", agents.claude()))

    def plainly() -> object:
        assert place.run(command, "-p", "please @play hello").returncode == 0
        return _comparable(loop(model)[-1])

    plainly()  # what Claude itself writes at its first start is there
    before, files = plainly(), kept_files(place)
    session = launcher.claude(agents.claude())
    assert session.run("please @play save").answer == "saved"
    assert session.run("again @play hello").answer == "hello"
    assert loop(model)[-1].where("OWN-CLAUDE-MD")
    assert loop(model)[-1].where("PROJECT-CLAUDE-MD")
    assert kept_files(place) == files
    assert plainly() == before
    assert "amux" not in json.dumps(loop(model)[-1].body)


def kept_files(place: Place) -> dict[str, str]:
    """Name the user's own files by what they hold; what Claude itself writes is left out."""
    found = hashes(place.claude_home, place.work)
    known = json.loads((place.home / ".claude.json").read_text())
    projects = known.get("projects", {})
    servers = [known.get("mcpServers"), projects.get(str(place.work), {}).get("mcpServers")]
    own = ("CLAUDE.md", "settings.json", "/memory/")
    return {path: name for path, name in found.items() if any(part in path for part in own)} | {
        "servers": json.dumps(servers)
    }


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("kib", [101, 1024])
def test_a_text_that_is_too_long_for_an_argument_goes_by_file(
    kib: int, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    own = ("OWN-START " + "lorem ipsum " * (kib * 1024 // 12))[: kib * 1024]
    (place.work / "own.md").write_text(own)
    session = launcher.claude(agents.claude())
    for prompt in ("please @play hello", "again @play hello"):
        assert session.run(prompt, "--append-system-prompt-file", "own.md").answer == "hello"
    for one in loop(model):
        assert is_told(one)
        assert own in one.body["system"][2]["text"]
    assert plain(loop(model)[0].body["system"][1:]) == plain(loop(model)[1].body["system"][1:])


@pytest.mark.requirement("R31", "run-11")
def test_no_secret_is_in_a_command_line_or_an_event(launcher: Launcher, model: ModelServer) -> None:
    model.scripts["hold"] = [use("memory_get", path="MEMORY.md"), say("done")]
    session = launcher.claude(agents.claude())
    assert session.bound is not None
    secret = Path(session.bound.credential_file).read_text()
    seen: list[bytes] = []
    with Conversation(session) as talk:
        talk.say("please @play hold")
        seen += [path.read_bytes() for path in command_lines(talk.pid)]
    assert len(seen) >= 2  # Claude and its server
    assert not [line for line in seen if secret.encode() in line]
    ran = session.run("again @play hold")
    assert secret not in json.dumps([dict(event.data) for event in ran.events])
    assert secret not in json.dumps(ran.plan.shown())


def command_lines(pid: int) -> list[Path]:
    """Name the command lines of a process and of what it has started."""
    found = [Path(f"/proc/{pid}/cmdline")]
    children = Path(f"/proc/{pid}/task").glob("*/children")
    for child in {int(one) for path in children for one in path.read_text().split()}:
        found += command_lines(child)
    return found


@pytest.mark.requirement("R11", "R16", "R20")
@pytest.mark.parametrize("whose", ["user", "project"])
def test_a_persons_own_entry_of_the_name_is_overridden_for_this_session(
    whose: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    marker = place.root / "started"
    entry = {"amux": {"command": "/bin/sh", "args": ["-c", f"touch {marker}; exit 1"]}}
    other = {"other": {"command": "/bin/sh", "args": ["-c", f"touch {marker}-other; exit 1"]}}
    path = place.trust_claude() if whose == "user" else place.work / ".mcp.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | {"mcpServers": entry | other}))
    (place.work / ".claude").mkdir()
    enabled = {"enableAllProjectMcpServers": True}
    (place.work / ".claude" / "settings.local.json").write_text(json.dumps(enabled))
    model.scripts["get"] = [use("memory_get", path="MEMORY.md"), say("done")]
    ran = launcher.claude(agents.claude()).run("please @play get")
    assert [one["outcome"] for one in ran.of("tool")] == ["ok"]
    assert not marker.exists()
    # The user's other servers stay.
    assert Path(f"{marker}-other").exists()
