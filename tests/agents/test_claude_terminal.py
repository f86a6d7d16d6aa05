"""Claude Code and Pi on a terminal, started by `amux run` as a person does."""

import json

import pytest

from tests.support.agents import Place
from tests.support.hub import RunningHub
from tests.support.model_server import Asked, ModelServer, say
from tests.support.people import CLAUDE, PI, Agent, Person
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.agents]

READY = {"claude": "/effort", "pi": "fake-model"}  # of what each shows when it takes keys
CLEARS = {"claude": "/clear", "pi": "/new"}
LEAVES = {"claude": "/exit", "pi": "/quit"}


def loop(model: ModelServer) -> list[Asked]:
    return [one for one in model.of("hello") if len(one.tool_names) > 2]


@pytest.mark.requirement("R1", "R8", "R16", "R18", "run-1", "run-18")
@pytest.mark.parametrize("memory", [(), ("--memory", "off")], ids=["bound", "unbound"])
@pytest.mark.parametrize("agent", [CLAUDE, PI], ids=lambda agent: agent.name)
def test_a_session_on_a_terminal_has_its_memory_also_after_a_new_beginning(
    agent: Agent, memory: tuple[str, ...], place: Place, hub: RunningHub, model: ModelServer
) -> None:
    model.scripts["hello"] = [say("HELLO-FROM-THE-SCRIPT")]
    agent.install(place)
    place.trust_claude()
    person = Person(place, hub)
    argv = [str(place.bin / "amux"), "run", agent.name, *memory, "--", *agent.native]
    home = {"AMUX_HOME": str(hub.home), "AMUX_NO_AUTOSTART": "1"}
    with Terminal(argv, place.environment(**home), place.work) as terminal:
        terminal.wait_for(READY[agent.name])
        terminal.say("please @play hello")
        model.wait(lambda asked: len(loop(asked)) == 1)
        terminal.wait_for("HELLO-FROM-THE-SCRIPT")
        terminal.say(CLEARS[agent.name])
        terminal.say("anew @play hello")
        model.wait(lambda asked: len(loop(asked)) == 2)
        terminal.settle()
        terminal.say(LEAVES[agent.name])
        assert terminal.end() == 0
    first, later = loop(model)
    assert len(later.items) <= len(first.items)
    is_bound = not memory
    for one in (first, later):
        assert one.count("# Memory (amux)") == int(is_bound)
        assert bool(one.where("mcp__amux__memory_get")) is is_bound
    assert first.body["tools"] == later.body["tools"]
    (session,) = person.sessions()
    shown = person.amux("session", "show", str(session["session"]), "--json")
    natives = json.loads(shown.stdout)["natives"]
    assert len(natives) == 2
    # `resume` goes on with the first; `--native` with the later one.
    person.resume(str(session["session"]), "again @play hello")
    assert loop(model)[-1].where("please @play hello")
    person.resume(str(session["session"]), "again @play hello", "--native", natives[1])
    assert loop(model)[-1].where("anew @play hello")
    for one in loop(model):
        assert one.count("# Memory (amux)") == int(is_bound)
