"""The real Codex with memory: what it is given, what it keeps, and what it never sees."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from amux.errors import LaunchRefused
from amux.runtime import probe, protocol
from amux.runtime.agents import codex
from amux.runtime.appserver import AppServer
from amux.runtime.plan import LaunchPlan, Start
from tests.support import agents, codex_sessions
from tests.support.agents import CODEX_VERSIONS, Place, hashes
from tests.support.codex_sessions import Session, served
from tests.support.hub import RunningHub
from tests.support.model_server import REVISION, Asked, ModelServer, say, use

pytestmark = [pytest.mark.slow, pytest.mark.agents]

TEXT = protocol.text("mcp")
NAMES = (
    "mcp__amux__memory_forget", "mcp__amux__memory_get", "mcp__amux__memory_search",
    "mcp__amux__memory_upsert", "mcp__amux__result_continue",
)  # fmt: skip
ADDED_BY_CODEX = ("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource")
# 0.171.0 puts its own base prompt in front, as a developer message.
PLACES = {"0.171.0": ".input[1].content[0].text", "0.153.4": ".input[0].content[0].text"}
SAVE = [
    use("memory_get", path="MEMORY.md"),
    use("memory_upsert", path="MEMORY.md", content="# Notes\n", expected_revision=REVISION),
    say("saved"),
]
EACH_TOOL = [
    use("memory_search", query="notes"),
    use("memory_get", path="MEMORY.md"),
    use("memory_upsert", path="MEMORY.md", content="# Notes\n", expected_revision=REVISION),
    use("memory_get", path="MEMORY.md"),
    use("memory_forget", path="MEMORY.md", expected_revision=REVISION),
    say("used"),
]
NATIVE_ON = """
[features]
memories = true
[memories]
use_memories = true
generate_memories = true
"""


@pytest.fixture(params=CODEX_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def scripts(model: ModelServer, place: Place) -> None:
    place.configure_codex()
    model.scripts |= {
        "hello": [say("hello")],
        "save": SAVE,
        "get": [use("memory_get", path="MEMORY.md"), say("read")],
        "each": EACH_TOOL,
    }


def own_tools(asked: Asked) -> list[str]:
    return sorted(name for name in asked.tool_names if name.startswith("mcp__amux__"))


def spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def nameless(asked: Asked) -> list[Any]:
    """Give the conversation without the ids that Codex gives its items in each thread."""
    return [{key: inner for key, inner in item.items() if key != "id"} for item in asked.items]


def extends(longer: Asked, shorter: Asked) -> bool:
    return spelled(longer.items[: len(shorter.items)]) == spelled(shorter.items)


def given(asked: Asked) -> tuple[str, str]:
    """Give the part of a request that amux influences, as it is spelled."""
    developer = [item for item in nameless(asked) if item.get("role") == "developer"]
    return spelled(asked.body.get("tools")), spelled([asked.body.get("instructions"), developer])


def next_turn(server: AppServer, thread: str, prompt: str) -> None:
    """Make one more turn in a process that has made one."""
    asked = [{"type": "text", "text": prompt}]
    server.ask("turn/start", {"threadId": thread, "input": asked})
    await_end(server, thread)


def await_end(server: AppServer, thread: str) -> None:
    for method, told in server.notices():
        if method == "turn/completed" and told.get("threadId") == thread:
            assert told["turn"]["status"] == "completed", told
            return


@contextmanager
def talk(session: Session, *native: str) -> Iterator[tuple[AppServer, str]]:
    """Open a session's own command line and its thread, without making a turn."""
    plan = session.plan("unused", *native)
    assert plan.opening is not None
    with served(plan) as server:
        server.introduce()
        opened: dict[str, Any] = {
            "cwd": plan.cwd,
            "developerInstructions": plan.opening.developer_instructions,
            "approvalPolicy": plan.opening.approval_policy,
        }
        method = "thread/start"
        if session.thread:
            method, opened = "thread/resume", opened | {"threadId": session.thread}
        thread = str(server.ask(method, opened, 30)["thread"]["id"])  # type: ignore[index]
        session.thread = thread
        yield server, thread


def memory_modes(place: Place) -> dict[str, str]:
    with sqlite3.connect(f"file:{place.codex_home}/state_5.sqlite?mode=ro", uri=True) as state:
        return dict(state.execute("select id, memory_mode from threads"))


@pytest.mark.requirement("R14", "R15", "R20", "run-1")
def test_a_new_session_reads_and_saves(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex(version))
    ran = session.run("please @play save")
    assert ran.answer == "saved"
    assert (hub.memory_dir / "MEMORY.md").read_text() == "# Notes\n"
    assert len(model.asked) == 3
    for one in model.asked:
        assert one.where(TEXT.rstrip("\n")) == [PLACES[version]]
        assert one.count("# Memory (amux)") == 1
        assert own_tools(one) == list(NAMES)
    calls = [(one["name"], one["outcome"]) for one in ran.of("tool")]
    assert calls == [("mcp__amux__memory_get", "ok"), ("mcp__amux__memory_upsert", "ok")]
    assert "# Notes" not in json.dumps([dict(event.data) for event in ran.events])
    assert memory_modes(place) == {session.thread: "disabled"}


@pytest.mark.requirement("R22", "R23", "run-3", "run-19")
def test_tools_and_text_are_equal_over_turns_writes_and_a_resume(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex(version))
    with talk(session) as (server, thread):
        for number in range(6):
            next_turn(server, thread, f"turn {number}: @play get")
            revision = str(hub.ask("get", path="MEMORY.md")["revision"])
            hub.ask("upsert", path="MEMORY.md", content=f"# {number}\n", expected_revision=revision)
    assert session.run("please @play get").answer == "read"
    # A request for each step that was scripted: amux made none of its own.
    assert len(model.asked) == 14
    assert len({given(one) for one in model.asked}) == 1
    for before, one in pairwise(model.asked):
        assert extends(one, before)
        assert one.body["prompt_cache_key"] == before.body["prompt_cache_key"]


@pytest.mark.requirement("R14", "R22", "run-4")
def test_a_compaction_after_a_resume_keeps_the_text(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex(version))
    assert session.run("please @play hello").answer == "hello"
    with talk(session) as (server, thread):
        next_turn(server, thread, "again @play hello")
        server.ask("thread/compact/start", {"threadId": thread})
        await_end(server, thread)
        next_turn(server, thread, "and again @play hello")
    last = model.asked[-1]
    assert last.count("# Memory (amux)") == 1
    assert own_tools(last) == list(NAMES)
    assert len(last.items) < len(model.of("hello")[1].items) + 4


@pytest.mark.requirement("R6", "R14", "run-4")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_a_compaction_that_codex_makes_by_itself_changes_nothing(
    is_bound: bool, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    soon = ("-c", "model_auto_compact_token_limit=12")  # an answer of the model counts 15
    if is_bound:
        session = codex_sessions.begin(place, hub, agents.codex(version))
        for _ in range(3):
            assert session.run("please @play hello", *soon).answer == "hello"
    else:
        plain_sessions(place, agents.codex(version), "please @play hello", *soon, times=3)
    assert len(model.asked) > 3, "it did not compact"
    main = [one for one in model.asked if one.tool_names]  # a summary is made without tools
    assert {one.count("# Memory (amux)") for one in main} == {int(is_bound)}
    assert {bool(own_tools(one)) for one in main} == {is_bound}


def plain_sessions(
    place: Place, binary: Path, prompt: str, *native: str, times: int = 1
) -> list[LaunchPlan]:
    """Run one unbound session headless, as a launch composes it; each later run resumes it."""
    command = place.bin / "codex"
    if not command.exists():
        place.program("codex", binary)
    thread, plans = None, []
    for _ in range(times):
        plan = LaunchPlan(
            argv=(str(command),), environment=place.environment(), cwd=str(place.work)
        )
        start = Start(
            native=native, directory=str(place.root), version="", resume=thread, prompt=prompt
        )
        plan = codex.compose_unbound(plan, start)
        done = place.run(*plan.argv, stdin=(plan.stdin or "").encode())
        turn = codex.turn()
        events = [
            event for line in done.stdout.decode().splitlines() for event in turn.events(line)
        ]
        assert not turn.failure
        assert done.returncode == 0, done.stderr
        assert [event.kind for event in events][::-1][0] == "answer"
        thread = next(str(event.data["id"]) for event in events if event.kind == "native")
        plans.append(plan)
    return plans


@pytest.mark.requirement("R5", "R11", "run-5", "run-20")
def test_without_memory_and_after_memory_a_request_is_the_plain_one(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    command = place.program("codex", agents.codex(version))
    words = ["exec", "--skip-git-repo-check", "please @play hello"]
    assert place.run(str(command), *words).returncode == 0
    (before,) = model.asked
    config = hashes(place.codex_home / "config.toml")
    bound = codex_sessions.begin(place, hub, agents.codex(version))
    assert bound.run("please @play each").answer == "used"
    del model.asked[:]
    plain_sessions(place, agents.codex(version), "please @play hello")
    assert place.run(str(command), *words).returncode == 0
    for one in model.asked:
        assert given(one) == given(before)
        # The last item but one says when and where; all others are equal too.
        assert spelled(nameless(one)) == spelled(nameless(before))
        assert b"amux" not in one.raw
        assert "amux" not in json.dumps(dict(one.headers))
    assert hashes(place.codex_home / "config.toml") == config


def plant(place: Place) -> list[Path]:
    """Leave what Codex's own memory would have left."""
    folders = [place.codex_home / name for name in ("memories", "memories_v2")]
    for folder in folders:
        folder.mkdir()
        for name in ("memory_summary.md", "MEMORY.md"):
            (folder / name).write_text(f"# Summary\nPLANTED-NATIVE-MEMORY in {name}\n")
    return folders


@pytest.mark.requirement("R11", "R14", "run-6")
@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "unbound"])
def test_native_memory_is_kept_out_of_a_bound_session_only(
    is_bound: bool, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.configure_codex(NATIVE_ON)
    folders = plant(place)
    before = hashes(*folders, place.codex_home / "config.toml")
    if is_bound:
        session = codex_sessions.begin(place, hub, agents.codex(version))
        for _ in range(2):
            assert session.run("please @play hello").answer == "hello"
        # Neither the text nor the worker that would extract and merge.
        assert len(model.asked) == 2
        assert set(memory_modes(place).values()) == {"disabled"}
        assert hashes(*folders, place.codex_home / "config.toml") == before
    else:
        plain_sessions(place, agents.codex(version), "please @play hello")
    for one in model.of("hello"):
        assert bool(one.where("PLANTED-NATIVE-MEMORY")) is not is_bound
    assert hashes(place.codex_home / "config.toml").items() <= before.items()


@pytest.mark.requirement("R14", "run-6")
def test_the_older_name_of_the_setting_is_switched_off_too(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    # It wins over the newer name, whatever the command line says of that.
    place.configure_codex("[features]\nmemory_tool = true\n[memories]\nuse_memories = true\n")
    plant(place)
    session = codex_sessions.begin(place, hub, agents.codex(version))
    ran = session.run("please @play hello")
    assert ran.answer == "hello"
    assert "features.memory_tool=false" in ran.plan.argv
    assert not model.asked[0].where("PLANTED-NATIVE-MEMORY")


@pytest.mark.requirement("R14", "R21", "run-9", "run-22")
@pytest.mark.parametrize("by", ["file", "argument"])
def test_own_developer_instructions_come_first_and_once(
    by: str, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    own = 'Sag "ja" zu \\ und 你好,\nzwei Zeilen'
    place.configure_codex(f"developer_instructions = {json.dumps(own)}\n")
    native: tuple[str, ...] = ()
    if by == "argument":
        native = ("-c", f"developer_instructions={json.dumps('BY-ARGUMENT')}")
        own = "BY-ARGUMENT"
    session = codex_sessions.begin(place, hub, agents.codex(version))
    assert session.run("please @play hello", *native).answer == "hello"
    (asked,) = model.asked
    assert asked.where(own) == [PLACES[version]]
    assert asked.where(f"{own}\n\n{TEXT}".rstrip()) == [PLACES[version]]
    assert asked.count(own) == 1
    assert asked.count("# Memory (amux)") == 1


@pytest.mark.requirement("R31", "run-11")
def test_no_secret_is_in_the_command_line_or_the_environment(
    place: Place, hub: RunningHub, model: ModelServer
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex())
    credential = Path(session.bound.credential_file).read_text()
    plan = session.plan("please @play hello")
    with served(plan) as server:
        server.introduce()
        lines = b"".join(
            path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
        )
        assert b"mcp_servers.amux" in lines
        assert credential.encode() not in lines
    assert credential not in json.dumps(dict(plan.environment))
    ran = session.run("please @play each")
    told = json.dumps([dict(event.data) for event in ran.events])
    assert credential not in told
    assert "# Notes" not in told
    assert all(credential.encode() not in one.raw for one in model.asked)


@pytest.mark.requirement("R6", "R7", "run-14")
@pytest.mark.parametrize("missing", ["memory", "hub"])
def test_a_bound_session_resumed_without_memory_is_given_the_same(
    missing: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.configure_codex(NATIVE_ON)
    folders = plant(place)
    before = hashes(*folders)
    session = codex_sessions.begin(place, hub, agents.codex())
    assert session.run("please @play get").answer == "read"
    if missing == "memory":
        assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
    hub.stop()
    if missing == "memory":
        hub.start()
    for _ in range(2):
        ran = session.run("please @play get")
        code = "memory_disabled" if missing == "memory" else "unavailable"
        assert [one["outcome"] for one in ran.of("tool")] == [code]
    assert len({given(one) for one in model.asked}) == 1
    assert not any(one.where("PLANTED-NATIVE-MEMORY") for one in model.asked)
    assert hashes(*folders) == before
    if missing == "memory":
        assert hub.cli("system", "config", "set", "memory.enabled", "true").returncode == 0
        hub.stop()
    hub.start()
    again = session.run("please @play get")
    assert [one["outcome"] for one in again.of("tool")] == ["ok"]


USER_ENTRIES = {
    "off": 'command = "amux"\nargs = ["mcp"]\nenabled = false\n',
    "other tools": 'command = "amux"\nargs = ["mcp"]\nenabled_tools = ["memory_get"]\n'
    'disabled_tools = ["memory_search"]\n',
    "older": 'command = "/opt/old/bin/amux"\nargs = ["mcp", "--home", "/x"]\n'
    'cwd = "/"\nenv_vars = ["HOME"]\nstartup_timeout_sec = 1\ntool_timeout_sec = 1\n'
    "[mcp_servers.amux.env]\n"
    'AMUX_HUB = "http://127.0.0.1:9"\nAMUX_HOME = "/nowhere"\n'
    '[mcp_servers.amux.tools.memory_upsert]\napproval_mode = "prompt"\n',
}


@pytest.mark.requirement("R15", "run-16")
@pytest.mark.parametrize("entry", USER_ENTRIES)
def test_a_persons_own_amux_entry_is_overridden_whole(
    entry: str, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    path = place.configure_codex(f"[mcp_servers.amux]\n{USER_ENTRIES[entry]}")
    before = hashes(path)
    session = codex_sessions.begin(place, hub, agents.codex(version))
    ran = session.run("please @play each")
    assert ran.answer == "used"
    assert {str(one["outcome"]) for one in ran.of("tool")} == {"ok"}
    assert {tuple(own_tools(one)) for one in model.asked} == {NAMES}
    assert hashes(path) == before


@pytest.mark.requirement("R15", "run-16")
@pytest.mark.parametrize(
    "entry", ['url = "http://127.0.0.1:9/mcp"\n', 'command = "other"\nargs = ["mcp"]\n']
)
def test_another_server_of_that_name_is_refused_with_both_places(
    entry: str, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    path = place.configure_codex(f"[mcp_servers.amux]\n{entry}")
    session = codex_sessions.begin(place, hub, agents.codex(version))
    with pytest.raises(LaunchRefused) as caught:
        session.plan("please @play hello")
    assert caught.value.details["step"] == "mcp"
    assert str(path) in caught.value.details["places"]  # type: ignore[operator]
    assert not model.asked


@pytest.mark.requirement("R15", "run-17")
@pytest.mark.parametrize("policy", ["", 'approval_policy = "on-request"\n'])
def test_all_tools_run_by_default_and_writes_are_declined_where_they_are_asked_for(
    policy: str, version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.configure_codex(policy)
    free = codex_sessions.begin(place, hub, agents.codex(version))
    assert {str(one["outcome"]) for one in free.run("please @play each").of("tool")} == {"ok"}
    first = model.asked[0]
    asking = codex_sessions.begin(place, hub, agents.codex(version), asks_writes=True)
    ran = asking.run("please @play each")
    outcomes = {str(one["name"]): one["outcome"] for one in ran.of("tool")}
    assert outcomes["mcp__amux__memory_search"] == outcomes["mcp__amux__memory_get"] == "ok"
    assert outcomes["mcp__amux__memory_upsert"] != "ok"
    assert not (hub.memory_dir / "MEMORY.md").exists()
    # What the model is given does not depend on it.
    assert given(model.asked[-1])[0] == given(first)[0]


@pytest.mark.requirement("R8", "R14", "run-18")
def test_a_sub_agent_has_the_text_and_the_tools(
    place: Place, hub: RunningHub, model: ModelServer
) -> None:
    model.scripts["parent"] = [use("spawn_agent", message="@play get"), say("spawned")]
    session = codex_sessions.begin(place, hub, agents.codex())
    with talk(session) as (server, thread):
        next_turn(server, thread, "please @play parent")
        model.wait(lambda seen: len(seen.of("get")) == 2)
    child = model.of("get")[0]
    assert not child.where("@play parent")
    assert child.count("# Memory (amux)") == 1
    assert own_tools(child) == list(NAMES)
    assert set(memory_modes(place).values()) == {"disabled"}


@pytest.mark.requirement("R8", "R14", "run-18")
def test_a_fork_is_as_its_parent(
    version: str, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex(version))
    with talk(session) as (server, thread):
        next_turn(server, thread, "please @play hello")
        forked = server.ask("thread/fork", {"threadId": thread}, 30)["thread"]
        assert isinstance(forked, dict)
        next_turn(server, str(forked["id"]), "and @play get")
    assert forked["id"] != thread
    assert len({given(one) for one in model.asked}) == 1
    first, last = nameless(model.asked[0]), nameless(model.asked[-1])
    assert spelled(last[: len(first)]) == spelled(first)
    assert set(memory_modes(place).values()) == {"disabled"}


@pytest.mark.requirement("R10", "run-21")
def test_a_session_that_only_reads_is_refused_a_write_and_given_the_same(
    place: Place, hub: RunningHub, model: ModelServer
) -> None:
    assert codex_sessions.begin(place, hub, agents.codex()).run("@play hello").answer == "hello"
    reading = codex_sessions.begin(place, hub, agents.codex(), verbs="read")
    ran = reading.run("please @play save")
    assert [one["outcome"] for one in ran.of("tool")] == ["ok", "permission_denied"]
    assert not (hub.memory_dir / "MEMORY.md").exists()
    assert len({given(one) for one in model.asked}) == 1


@pytest.mark.requirement("R11", "R12", "run-23")
@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
def test_an_empty_directory_that_nobody_judged_stays_so(
    sandbox: str, version: str, place: Place, hub: RunningHub
) -> None:
    # Codex 0.153.4's app-server would note in config.toml that it trusts the directory.
    path = place.configure_codex(f'sandbox_mode = "{sandbox}"\n')
    trust = f'[projects."{place.work}"]\ntrust_level = "trusted"\n'
    path.write_text(path.read_text().replace(trust, ""))
    before = hashes(path)
    session = codex_sessions.begin(place, hub, agents.codex(version))
    assert session.run("please @play save").answer == "saved"
    assert hashes(path) == before
    assert not list(place.work.iterdir())


@pytest.mark.requirement("R14", "R19")
def test_a_probe_is_made_once_and_again_when_what_it_read_has_changed(
    place: Place, hub: RunningHub
) -> None:
    session = codex_sessions.begin(place, hub, agents.codex())
    first = session.plan(None)
    kept = hashes(place.root / "programs")
    assert kept
    assert session.plan(None) == first
    other = codex_sessions.begin(place, hub, agents.codex())
    other.plan(None)
    assert hashes(place.root / "programs") == kept
    place.configure_codex('developer_instructions = "NEW"\n')
    assert any("NEW" in word for word in session.plan(None).argv)
    project = place.work / ".codex" / "config.toml"
    project.parent.mkdir()
    project.write_text('developer_instructions = "OF-THE-PROJECT"\n')
    assert any("OF-THE-PROJECT" in word for word in session.plan(None).argv)


@pytest.mark.requirement("R3", "R14")
def test_the_threads_of_a_terminal_are_found_by_place_and_time(place: Place) -> None:
    place.program("codex", agents.codex())
    plan = LaunchPlan(
        argv=(str(place.bin / "codex"),), environment=place.environment(), cwd=str(place.work)
    )
    assert probe.codex_threads(plan, 0.0) == []
