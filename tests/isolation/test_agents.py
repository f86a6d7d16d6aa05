"""Real agents in isolation: a memory read and written, and nothing left when they end."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, say
from tests.support.people import CLAUDE, CODEX, PI, Agent
from tests.support.team import Team, team
from tests.support.users import Other

pytestmark = [pytest.mark.slow, pytest.mark.agents]

AGENTS = pytest.mark.parametrize("agent", [CODEX, CLAUDE, PI], ids=lambda agent: agent.id)
ISOLATIONS = pytest.mark.parametrize("isolation", ["linux-dac", "private-home"])


@pytest.fixture
def alone(others: list[Other]) -> Iterator[Team]:
    """Give a team of its own for one test."""
    with team(others) as made:
        yield made.start()


class Case:
    """One agent in one isolation."""

    def __init__(self, alone: Team, agent: Agent, isolation: str, model: ModelServer) -> None:
        self.team, self.agent, self.model = alone, agent, model
        self.is_dac = isolation == "linux-dac"
        self.owner = alone.alice if self.is_dac else None
        self.home = self.owner.home if self.owner else alone.hub.home / "homes" / agent.name
        alone.real(agent, model.url, self.home, self.owner)
        self.words = ("--isolation", isolation) + (
            ("--user", alone.alice.name) if self.is_dac else ()
        )
        model.scripts |= {
            "save": [agent.read(), agent.write("# Notes of mine\n"), say("saved")],
            "look": [agent.read(), say("looked")],
        }

    def requests(self, script: str) -> list[object]:
        return [
            one
            for one in self.model.of(script)
            if one.body.get("tools") or one.kind == "responses"
        ]


@pytest.mark.requirement("R25", "R27", "R28", "R29", "R31", "run-10")
@ISOLATIONS
@AGENTS
def test_an_isolated_session_writes_and_reads_its_own_memory_and_leaves_nothing(
    agent: Agent, isolation: str, alone: Team, model: ModelServer
) -> None:
    case = Case(alone, agent, isolation, model)
    session = alone.run(agent.name, "please @play save", *case.words, native=agent.native)
    assert alone.memory_of(case.owner).strip() == "# Notes of mine"
    assert alone.memory_of(None if case.is_dac else alone.alice) == ""
    assert not (alone.hub.home / "memory" / "global" / "MEMORY.md").exists()
    done = alone.amux("resume", session, "--prompt", "again @play look")
    assert (done.returncode, done.stdout) == (0, b"looked\n"), done.stderr
    assert "# Notes of mine" in "".join(case.requests("look")[-1].results)
    shown = alone.show(session)
    assert shown["memory"] == "bound"
    assert shown["isolation"] == isolation
    assert [one["outcome"] for one in shown["timeline"] if one["kind"] == "tool"] == ["ok"] * 3
    assert alone.left_over() == []
    assert alone.live_credentials() == []
    if case.owner:
        assert case.owner.processes() == []
