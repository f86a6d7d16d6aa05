"""Claude Code with memory: what it is given, what it keeps, and what it never sees."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from amux.runtime import protocol
from tests.support import agents
from tests.support.agents import Place, hashes
from tests.support.hub import RunningHub
from tests.support.launched import Conversation, Launcher, extends, plain
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
    folder = place.claude_home / "projects" / str(place.work).replace("/", "-") / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- [Planted](planted.md) - PLANTED-NATIVE-MEMORY\n")
    (folder / "planted.md").write_text("PLANTED-NATIVE-MEMORY in full\n")
    return folder


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
