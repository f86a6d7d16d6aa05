"""`amux run` and `amux resume` with the real agents: what a person gets, from start to end."""

import json

import pytest

from tests.support import agents
from tests.support.agents import Place, hashes
from tests.support.hub import RunningHub
from tests.support.model_server import REVISION, Asked, ModelServer, say, use
from tests.support.people import CLAUDE, CODEX, OLD_PI, PI, Agent, Person

pytestmark = [pytest.mark.slow, pytest.mark.agents]


OF_MINE = [CLAUDE, PI, OLD_PI]


@pytest.fixture
def person(place: Place, hub: RunningHub, model: ModelServer) -> Person:
    model.scripts["hello"] = [say("hello")]
    return Person(place, hub)


def protocols(asked: Asked) -> int:
    return asked.count("# Memory (amux)")


def loop(model: ModelServer, script: str) -> list[Asked]:
    """Give the requests of one script; the counts of tokens and the titles are not among them."""
    return [one for one in model.of(script) if one.body.get("tools") or one.kind == "responses"]


@pytest.mark.requirement("R1", "R4", "R13", "run-1")
@pytest.mark.parametrize("agent", [CLAUDE, PI, OLD_PI], ids=lambda agent: agent.id)
def test_run_and_resume_print_the_answer_and_keep_the_session(
    agent: Agent, person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    agent.install(place)
    model.scripts["save"] = [agent.read(), agent.write("# Notes\n"), say("saved")]
    work = hashes(place.work)
    session = person.run(agent, "please @play save")
    assert (hub.memory_dir / "MEMORY.md").read_text().strip() == "# Notes"
    done = person.resume(session, "again @play hello")
    assert done.stdout == b"hello\n"
    for one in [*loop(model, "save"), *loop(model, "hello")]:
        assert protocols(one) == 1
    assert len(loop(model, "hello")[0].items) > len(loop(model, "save")[-1].items)
    shown = person.amux("session", "show", session, "--json")
    known = json.loads(shown.stdout)
    assert known["memory"] == "bound"
    kinds = [one["kind"] for one in known["timeline"]]
    assert kinds.count("tool") == 2
    assert kinds.count("answer") == kinds.count("prompt") == kinds.count("exit") == 2
    assert b"# Notes" not in shown.stdout
    assert len(known["natives"]) == 1
    # Nothing is written where the agent works, and no credential outlives the run.
    assert hashes(place.work) == work
    left = [path.name for path in (hub.home / "sessions" / session).rglob("*") if path.is_file()]
    assert sorted(left) == ["session.json", "timeline.jsonl"]


@pytest.mark.requirement("R2", "run-2")
def test_what_one_agent_saved_every_other_finds_corrects_and_forgets(
    person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    for agent in (CLAUDE, CODEX, PI):
        agent.install(place)
    topic = "topics/tea.md"
    model.scripts |= {
        "save": [
            CLAUDE.read(),
            CLAUDE.write("# Notes\n- Tea: see topics/tea.md\n"),
            CLAUDE.read(topic),
            CLAUDE.write("Drinks OOLONG-TEA.\n", topic),
            say("saved"),
        ],
        "correct": [
            use("memory_search", query="tea"),
            CODEX.read(topic),
            CODEX.write("Drinks SENCHA-TEA.\n", topic),
            say("corrected"),
        ],
        "look": [use("memory_search", query="drinks"), PI.read(topic), say("looked")],
        "drop": [
            PI.read(topic),
            use("memory_forget", path=topic, expected_revision=REVISION),
            PI.read(),
            PI.write("# Notes\n"),
            say("forgotten"),
        ],
        "find": [use("memory_search", query="tea"), CLAUDE.read(), CLAUDE.read(topic), say("x")],
    }
    person.run(CLAUDE, "please @play save")
    person.run(CODEX, "please @play correct")
    assert [text for text in loop(model, "correct")[2].results if "OOLONG-TEA" in text]
    person.run(PI, "please @play look")
    assert "SENCHA-TEA" in "".join(loop(model, "look")[-1].results)
    assert "OOLONG-TEA" not in "".join(loop(model, "look")[-1].results)
    person.run(PI, "please @play drop")
    for agent in (CLAUDE, CODEX):
        person.run(agent, "please @play find")
    asked = [one for one in loop(model, "find") if one.step == 3]
    assert {one.kind for one in asked} == {"messages", "responses"}
    for one in asked:
        told = "".join(one.results)
        assert '"exists":false' in told.replace(" ", "").replace("\\", "")
        assert not one.where("SENCHA-TEA")
        assert not one.where("tea.md\n")
    assert [path.name for path in hub.memory_dir.rglob("*.md")] == ["MEMORY.md"]


@pytest.mark.requirement("R5", "R20", "run-5")
@pytest.mark.parametrize("agent", OF_MINE, ids=lambda agent: agent.id)
def test_without_memory_the_agent_starts_as_it_would_without_amux(
    agent: Agent, person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    agent.install(place)
    unbound = [person.run(agent, "please @play hello", "--memory", "off")]
    assert person.amux("system", "config", "set", "memory.enabled", "false").returncode == 0
    hub.stop()
    hub.start()
    unbound.append(person.run(agent, "please @play hello"))
    hub.stop()
    failed = person.amux("run", agent.name, "--prompt", "please @play hello", "--", *agent.native)
    assert failed.returncode == 0
    assert failed.stdout == b"hello\n"
    assert b"unavailable" in failed.stderr or b"memory" in failed.stderr
    hub.enable().start()
    # It never adopts what is set later.
    for session in unbound:
        person.resume(session, "again @play hello")
    plain = [str(place.bin / agent.name), "-p", *agent.native]
    assert place.run(*plain, stdin=b"please @play hello").returncode == 0
    asked = loop(model, "hello")
    assert len(asked) == 6
    for one in asked:
        assert not one.where("amux")
        assert one.body.get("tools") == asked[-1].body.get("tools")
        assert set(one.body) == set(asked[-1].body)
    causes = {one["cause"] for one in person.sessions()}
    assert len(causes) == 3


@pytest.mark.requirement("R10", "run-21")
@pytest.mark.parametrize("agent", OF_MINE, ids=lambda agent: agent.id)
def test_a_session_that_may_only_read_has_the_same_bytes_and_cannot_write(
    agent: Agent, person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    agent.install(place)
    model.scripts["save"] = [agent.read(), agent.write("# Notes\n"), say("done")]
    person.run(agent, "please @play save", "--memory-verbs", "read")
    assert "permission_denied" in loop(model, "save")[-1].results[-1]
    assert not (hub.memory_dir / "MEMORY.md").exists()
    person.run(agent, "please @play hello")
    first, other = loop(model, "save")[0], loop(model, "hello")[0]
    assert first.body.get("tools") == other.body.get("tools")
    assert protocols(first) == protocols(other) == 1


@pytest.mark.requirement("R6", "run-8")
@pytest.mark.parametrize("agent", [CLAUDE, PI], ids=lambda agent: agent.id)
def test_a_policy_that_was_switched_refuses_data_and_changes_no_record(
    agent: Agent, person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    agent.install(place)
    model.scripts["get"] = [agent.read(), say("done")]
    session = person.run(agent, "please @play get")
    record = json.loads((hub.home / "sessions" / session / "session.json").read_text())["start"]
    policy = ("system", "config", "set", "isolation.policy", "per_principal")
    assert person.amux(*policy).returncode == 0
    hub.stop()
    hub.start()
    person.resume(session, "again @play get")
    assert "binding_mismatch" in loop(model, "get")[-1].results[-1]
    kept = json.loads((hub.home / "sessions" / session / "session.json").read_text())["start"]
    assert kept == record
    assert protocols(loop(model, "get")[-1]) == 1


@pytest.mark.requirement("R17", "run-26")
def test_the_sdk_starts_resumes_and_is_refused_without_its_package(
    person: Person, place: Place, model: ModelServer, hub: RunningHub
) -> None:
    CLAUDE.install(place)
    settings = hub.home / "agents.toml"
    settings.write_text(f'[claude]\nsdk_python = "{agents.SDK_PYTHON}"\n')
    settings.chmod(0o600)
    session = person.run(CLAUDE, "please @play hello", "--via", "sdk")
    person.resume(session, "again @play hello")
    assert [protocols(one) for one in loop(model, "hello")] == [1, 1]
    first, later = loop(model, "hello")
    assert first.body["system"][-1]["text"] == later.body["system"][-1]["text"]
    assert len(later.items) > len(first.items)
    for python in ("/usr/bin/python3", "/nowhere/python"):
        settings.write_text(f'[claude]\nsdk_python = "{python}"\n')
        refused = person.amux("run", "claude", "--via", "sdk", "--prompt", "please @play hello")
        error = json.loads(refused.stderr.splitlines()[-1])["error"]
        assert (refused.returncode, error["code"]) == (7, "launch_refused")
        assert error["details"]["step"] == "sidecar"
    assert len(loop(model, "hello")) == 2


@pytest.mark.requirement("R16", "run-15")
def test_settings_that_work_against_memory_are_told_on_standard_error(
    person: Person, place: Place
) -> None:
    CLAUDE.install(place)
    path = place.work / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"env": {"AMUX_HUB": "/nowhere"}, "disableAllHooks": True}))
    done = person.amux("run", "claude", "--prompt", "please @play hello")
    assert done.returncode == 0
    assert str(path).encode() in done.stderr
    assert b"AMUX_HUB" in done.stderr
