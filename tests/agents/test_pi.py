"""Pi with memory: by tools where its release has them, by the command line where it has not."""

import json
from itertools import pairwise
from typing import Any

import pytest

from amux.runtime import protocol
from tests.support import agents
from tests.support.agents import Place, hashes
from tests.support.hub import RunningHub
from tests.support.launched import PI_NATIVE, Launcher, Listener, PiConversation, Ran, Session
from tests.support.model_server import Asked, Found, ModelServer, Step, say, use

pytestmark = [pytest.mark.slow, pytest.mark.agents]

VERSIONS = ("1.6.0", "0.73.1")
OWN_REVISION = Found(r"revision:? ?\"?([0-9a-f]{64}|absent)")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    agents.pi(request.param)
    return str(request.param)


@pytest.fixture
def launcher(place: Place, hub: RunningHub, model: ModelServer) -> Launcher:
    model.scripts["hello"] = [say("hello")]
    return Launcher(place, hub)


def begin(launcher: Launcher, version: str, *, is_bound: bool = True) -> Session:
    return launcher.pi(agents.pi(version), version, is_bound=is_bound)


def turn(session: Session, prompt: str, *native: str) -> Ran:
    return session.run(prompt, *PI_NATIVE, *native)


def form(version: str) -> str:
    return "mcp" if version == "1.6.0" else "cli"


def read(version: str) -> Step:
    if form(version) == "mcp":
        return use("memory_get", path="MEMORY.md")
    return use("bash", command="amux memory show MEMORY.md --json")


def save(version: str, text: str) -> Step:
    if form(version) == "mcp":
        return use("memory_upsert", path="MEMORY.md", content=text, expected_revision="absent")
    command = f"printf '%s' '{text}' | amux memory upsert MEMORY.md --expected-revision absent"
    return use("bash", command=command)


def system(asked: Asked) -> str:
    first = asked.items[0]
    assert first["role"] in ("system", "developer")
    content = first["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def is_told(asked: Asked, version: str) -> bool:
    text = protocol.text(form(version)).strip()
    assert asked.count("# Memory (amux)") in (0, 1)
    return text in system(asked)


def own_tools(asked: Asked) -> list[str]:
    return sorted(name for name in asked.tool_names if name.startswith("mcp__amux__"))


@pytest.mark.requirement("R18", "run-1")
def test_a_new_session_reads_and_saves(
    version: str, launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    model.scripts["save"] = [read(version), save(version, "# Notes\n"), say("saved")]
    ran = turn(begin(launcher, version), "please @play save")
    assert ran.answer == "saved"
    assert [one["outcome"] for one in ran.of("tool")] == ["ok", "ok"], model.asked[-1].results
    assert (hub.memory_dir / "MEMORY.md").read_text().strip() == "# Notes"
    assert len(model.asked) == 3
    for one in model.asked:
        assert is_told(one, version)
        assert len(own_tools(one)) == (5 if form(version) == "mcp" else 0)


@pytest.mark.requirement("R22", "R23", "run-3", "run-19")
def test_tools_and_text_are_equal_over_turns_writes_and_resumes(
    version: str, launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    model.scripts["get"] = [read(version), say("read")]
    session = begin(launcher, version)
    for number in range(6):
        assert turn(session, f"turn {number}: @play get").answer == "read"
        revision = str(hub.ask("get", path="MEMORY.md")["revision"])
        hub.ask("upsert", path="MEMORY.md", content=f"# {number}\n", expected_revision=revision)
    assert len(model.asked) == 12
    first = model.asked[0]
    for before, one in pairwise(model.asked):
        assert one.body.get("tools") == first.body.get("tools")
        assert system(one) == system(first)
        assert one.items[: len(before.items)] == before.items
        assert len(one.items) > len(before.items)


@pytest.mark.requirement("R18", "run-9")
@pytest.mark.parametrize("whose", ["person", "project", "caller"])
def test_the_persons_own_text_comes_first_and_is_kept(
    whose: str, version: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    (place.pi_home / "APPEND_SYSTEM.md").write_text("OWN-APPEND-SYSTEM\n")
    native: tuple[str, ...] = ()
    expected = "OWN-APPEND-SYSTEM"
    if whose == "project":
        (place.work / ".pi").mkdir()
        (place.work / ".pi" / "APPEND_SYSTEM.md").write_text("PROJECT-APPEND-SYSTEM\n")
        (place.pi_home / "trust.json").write_text(json.dumps({str(place.work): True}))
        expected = "PROJECT-APPEND-SYSTEM"
    if whose == "caller":
        native = ("--append-system-prompt", "CALLERS-APPEND-TEXT")
        expected = "CALLERS-APPEND-TEXT"
    session = begin(launcher, version)
    unbound = begin(launcher, version, is_bound=False)
    assert turn(session, "please @play hello", *native).answer == "hello"
    assert turn(unbound, "please @play hello", *native).answer == "hello"
    bound, plainly = model.asked
    for name in ("OWN-APPEND-SYSTEM", "PROJECT-APPEND-SYSTEM", "CALLERS-APPEND-TEXT"):
        # What a start without amux would say is said, once.
        assert system(bound).count(name) == system(plainly).count(name) == int(name == expected)
    assert system(bound).index(expected) < system(bound).index("# Memory (amux)")
    assert not plainly.where("amux")


@pytest.mark.requirement("R18")
def test_an_untrusted_projects_text_is_not_passed(
    launcher: Launcher, model: ModelServer, place: Place
) -> None:
    (place.pi_home / "APPEND_SYSTEM.md").write_text("OWN-APPEND-SYSTEM\n")
    (place.work / ".pi").mkdir()
    (place.work / ".pi" / "APPEND_SYSTEM.md").write_text("PROJECT-APPEND-SYSTEM\n")
    assert turn(begin(launcher, "1.6.0"), "please @play hello").answer == "hello"
    assert not model.asked[0].where("PROJECT-APPEND-SYSTEM")
    assert model.asked[0].where("OWN-APPEND-SYSTEM")


@pytest.mark.requirement("R6", "R7", "run-14")
@pytest.mark.parametrize("is_down", [False, True], ids=["memory off", "hub down"])
def test_a_bound_session_is_resumed_as_bound_without_its_memory(
    is_down: bool, version: str, launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    model.scripts["get"] = [read(version), say("done")]
    session = begin(launcher, version)
    assert turn(session, "please @play get").answer == "done"
    hub.stop()
    if not is_down:
        assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
        hub.start()
    for _ in range(2):
        ran = turn(session, "again @play get")
        assert ran.answer == "done"
        assert [one["outcome"] for one in ran.of("tool")] != ["ok"]
        assert ("unavailable" if is_down else "memory_disabled") in model.asked[-1].results[-1]
    if not is_down:
        hub.stop()
    hub.enable().start()
    assert [one["outcome"] for one in turn(session, "on @play get").of("tool")] == ["ok"]
    for one in model.asked:
        assert is_told(one, version)
        assert one.body.get("tools") == model.asked[0].body.get("tools")


@pytest.mark.requirement("R5", "R11", "run-20")
def test_an_unbound_session_and_a_plain_start_after_bound_ones_are_what_they_were(
    version: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    (place.pi_home / "APPEND_SYSTEM.md").write_text("OWN-APPEND-SYSTEM\n")
    (place.work / "AGENTS.md").write_text("OWN-AGENTS-MD\n")
    command = str(place.program("pi", agents.pi(version)))

    def plainly() -> dict[str, Any]:
        done = place.run(command, "-p", *PI_NATIVE, "please @play hello")
        assert done.returncode == 0, done.stderr
        return comparable(model.asked[-1])

    before = plainly()
    files = own_files(place)
    assert turn(begin(launcher, version), "please @play hello").answer == "hello"
    assert model.asked[-1].where("OWN-AGENTS-MD")
    assert turn(begin(launcher, version, is_bound=False), "please @play hello").answer == "hello"
    assert comparable(model.asked[-1]) == before
    assert plainly() == before
    assert own_files(place) == files


def comparable(asked: Asked) -> dict[str, Any]:
    """Give a request without what names its session."""
    names = ("prompt_cache_key", "user", "metadata")
    return {name: value for name, value in asked.body.items() if name not in names}


def own_files(place: Place) -> dict[str, str]:
    found = hashes(place.pi_home, place.work)
    return {path: name for path, name in found.items() if "/sessions/" not in path}


@pytest.mark.requirement("R23", "run-19")
def test_a_turn_that_needs_no_history_asks_the_hub_nothing(
    version: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    session = begin(launcher, version)
    assert session.bound is not None
    with Listener(place.root / "silent.sock") as silent:
        session.bound = session.bound.replace(hub=silent.path)
        assert turn(session, "please @play hello").answer == "hello"
        assert turn(session, "again @play hello").answer == "hello"
        assert silent.count == 0
    assert [(one.script, one.step) for one in model.asked] == [("hello", 0)] * 2


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("kib", [101, 1024])
def test_a_text_that_is_too_long_for_an_argument_goes_by_file(
    kib: int, version: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    own = ("OWN-START " + "lorem ipsum " * (kib * 1024 // 12))[: kib * 1024].rstrip()
    (place.work / "own.md").write_text(own)
    native = ("--append-system-prompt", str(place.work / "own.md"))
    assert turn(begin(launcher, version), "please @play hello", *native).answer == "hello"
    assert is_told(model.asked[0], version)
    assert own in system(model.asked[0])
    # An older text may be longer than today's.
    session = begin(launcher, version)
    assert session.bound is not None
    session.bound = session.bound.replace(text=own)
    assert turn(session, "please @play hello").answer == "hello"
    assert own in system(model.asked[1])


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("prompt", ["@play-not hello", "-p hello", "--version", "two\nlines '\" é"])
def test_a_prompt_is_a_prompt_whatever_it_looks_like(
    prompt: str, version: str, launcher: Launcher, model: ModelServer
) -> None:
    assert turn(begin(launcher, version), prompt).answer == "ok"
    (asked,) = model.asked
    assert prompt in str(asked.items[-1]["content"]).replace("\\n", "\n") or asked.where(prompt)


@pytest.mark.requirement("R18", "R20")
def test_a_persons_own_entry_of_the_name_leaves_the_command_line(
    launcher: Launcher, model: ModelServer, place: Place
) -> None:
    entry = {"mcpServers": {"amux": {"command": "/bin/false"}}}
    (place.pi_home / "mcp.json").write_text(json.dumps(entry))
    session = begin(launcher, "1.6.0")
    assert session.bound is not None
    assert session.bound.form == "cli"
    assert turn(session, "please @play hello").answer == "hello"
    assert is_told(model.asked[0], "0.73.1")


@pytest.mark.requirement("R4")
def test_a_session_is_found_again_by_its_native_id(
    version: str, launcher: Launcher, model: ModelServer, place: Place
) -> None:
    session = begin(launcher, version)
    chosen = session.native_id
    first = turn(session, "please @play hello")
    assert (session.native_id == chosen) is (version == "1.6.0")
    later = turn(session, "again @play hello")
    assert [one["id"] for one in later.of("native")] == [one["id"] for one in first.of("native")]
    assert len(model.asked[1].items) > len(model.asked[0].items)
    assert len(list((place.pi_home / "sessions").rglob("*.jsonl"))) == 1


@pytest.mark.requirement("R6", "R8", "R22", "run-4", "run-18")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_after_a_compaction_and_in_a_new_session_of_the_process_the_text_is_as_before(
    is_bound: bool, version: str, launcher: Launcher, model: ModelServer
) -> None:
    session = begin(launcher, version, is_bound=is_bound)
    assert turn(session, "please @play hello").answer == "hello"
    with PiConversation(session) as talk:
        talk.say("again @play hello")
        talk.say("long " * 30_000 + "@play hello")  # there is nothing to compact in a short one
        assert talk.command("compact")["success"]
        talk.say("once more @play hello")
        assert talk.command("new_session")["success"]
        talk.say("anew @play hello")
    asked = [one for one in model.of("hello") if one.tool_names]  # a summary is made without
    assert len(asked) == 5
    assert len(asked[-1].items) < len(asked[-2].items)
    assert asked[-3].where("please @play")
    assert not asked[-2].where("please @play")
    for one in asked:
        assert is_told(one, version) is is_bound
        assert system(one) == system(asked[0])
        assert one.body.get("tools") == asked[0].body.get("tools")
