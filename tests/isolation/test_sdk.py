"""`--via sdk` under both isolations: the script, and Claude that it starts, are the run's own."""

import pytest

from tests.isolation.test_agents import ISOLATIONS, Case
from tests.support import agents
from tests.support.model_server import Asked, ModelServer, say
from tests.support.people import CLAUDE
from tests.support.team import Team, team
from tests.support.users import Other

pytestmark = [pytest.mark.slow, pytest.mark.agents]


@pytest.fixture
def alone(others: list[Other]):
    with team(others) as made:
        yield made.start()


def sdk(alone: Team, python: str) -> None:
    """Name the interpreter; one that notes the environment that it is started with."""
    alone.agents_toml(
        claude={
            "credentials": "api-key",
            "variable": "ANTHROPIC_API_KEY",
            "sdk_python": python,
        }
    )


def with_package(alone: Team) -> str:
    """Make an interpreter with the SDK that another user can run: the venv's own may be private."""
    agents.claude()
    path = alone.bin / "sdk-python"
    path.write_text(
        '#!/bin/sh\nenv > "$HOME/seen-environment"\n'
        f'PYTHONPATH="{agents.PACKAGES}" exec /usr/bin/python3 "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def loop(model: ModelServer) -> list[Asked]:
    return [one for one in model.asked if len(one.body.get("tools") or []) > 2]


@pytest.mark.requirement("R17", "R25", "R27", "run-26")
@ISOLATIONS
def test_a_turn_by_the_sdk_is_isolated_bound_and_resumed_with_the_same_prefix(
    isolation: str, alone: Team, model: ModelServer
) -> None:
    case = Case(alone, CLAUDE, isolation, model)
    sdk(alone, with_package(alone))
    own = ("--append-system-prompt", "OWN-APPEND-TEXT")
    hostile = {"NODE_OPTIONS": "--require=/no/such", "CLAUDE_CONFIG_DIR": "/no/such"}
    hostile = hostile if case.is_dac else {"CLAUDE_CONFIG_DIR": "/no/such"}
    session = alone.run(
        "claude", "please @play save", "--via", "sdk", *case.words, native=own, **hostile
    )
    assert alone.memory_of(case.owner).strip() == "# Notes of mine"
    done = alone.amux("resume", session, "--prompt", "again @play look", **hostile)
    assert done.stdout == b"looked\n", done.stderr
    first = loop(model)[0]
    for one in loop(model):
        system = one.body["system"][-1]["text"]
        assert system.count("OWN-APPEND-TEXT") == system.count("# Memory (amux)") == 1
        assert system == first.body["system"][-1]["text"]
        assert one.body["tools"] == first.body["tools"]
    seen = dict(
        line.partition("=")[::2]
        for line in (case.home / "seen-environment").read_text().splitlines()
    )
    assert seen["HOME"] == str(case.home)
    assert "CLAUDE_CONFIG_DIR" not in seen
    if case.is_dac:
        assert seen["USER"] == alone.alice.name
        assert not {"NODE_OPTIONS", "AMUX_HOME", "FAKE_KEY", "PYTHONPATH"} & set(seen)
    assert alone.left_over() == alone.live_credentials() == []


@pytest.mark.requirement("R17", "run-26")
@ISOLATIONS
def test_without_its_package_a_turn_by_the_sdk_is_refused_by_its_step(
    isolation: str, alone: Team, model: ModelServer
) -> None:
    case = Case(alone, CLAUDE, isolation, model)
    model.scripts["hello"] = [say("hello")]
    for python in ("/usr/bin/python3", "/nowhere/python"):
        sdk(alone, python)
        words = ("run", "claude", "--via", "sdk", "--prompt", "please @play hello", *case.words)
        refusal = alone.refused(*words)
        assert (refusal["code"], refusal["details"]["step"]) == ("launch_refused", "sidecar")
    assert alone.left_over() == alone.live_credentials() == []
    assert model.asked == []
