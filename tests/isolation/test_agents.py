"""Real agents in isolation: a memory read and written, and nothing left when they end."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Step, say
from tests.support.people import CLAUDE, CODEX, PI, Agent
from tests.support.team import Team, team
from tests.support.terminal import Terminal
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
            one for one in self.model.of(script) if one.body.get("tools") or one.kind == "responses"
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


@contextlib.contextmanager
def running(case: Case, prompt: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a headless turn, and kill its launcher at the end if it lives."""
    words = ("run", case.agent.name, "--prompt", prompt, *case.words, "--", *case.agent.native)
    process = subprocess.Popen(
        case.team.argv(*words),
        env=case.team.environment,
        cwd=case.team.work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(happened, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def marked(session: str) -> list[int]:
    """Name the processes of a session, whoever they are of."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"AMUX_SESSION={session}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


@pytest.mark.requirement("R27", "run-12", "run-10")
@ISOLATIONS
@AGENTS
def test_what_a_killed_launcher_left_is_gone_after_the_next_launch(
    agent: Agent, isolation: str, alone: Team, model: ModelServer
) -> None:
    case = Case(alone, agent, isolation, model)
    held = threading.Event()
    model.scripts["wait"] = [agent.read(), Step(text="late", held=held)]
    try:
        with running(case, "please @play wait") as process:
            model.wait(lambda _: len(case.requests("wait")) == 2)
            (session,) = [one["session"] for one in alone.sessions()]
            assert alone.live_credentials() == [session]
            assert alone.left_over() != []
            assert marked(session)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if case.is_dac:  # an agent of another user dies with its launcher
                until(lambda: not agents_of(case))
        held.set()
        alone.run(agent.name, "please @play look", *case.words, native=agent.native)
        until(lambda: not marked(session))
    finally:
        held.set()
    assert alone.left_over() == []
    assert alone.live_credentials() == []
    if case.owner:
        assert case.owner.processes() == []
    done = alone.amux("resume", session, "--prompt", "again @play look")
    assert done.stdout == b"looked\n", done.stderr


def agents_of(case: Case) -> list[int]:
    """Name the processes of a case's user that are the agent itself."""
    found = []
    for pid in case.owner.processes() if case.owner else []:
        with contextlib.suppress(OSError):
            if case.agent.name in Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[0]:
                found.append(pid)
    return found


READY = {"claude": "/effort", "pi": "fake-model", "codex": "model"}
LEAVES = {"claude": "/exit", "pi": "/quit", "codex": "/quit"}


@pytest.mark.requirement("R27", "run-25")
@AGENTS
def test_a_terminal_interface_works_through_a_pty_of_the_users(
    agent: Agent, alone: Team, model: ModelServer
) -> None:
    case = Case(alone, agent, "linux-dac", model)
    argv = alone.argv("run", agent.name, *case.words, "--", *agent.native)
    with Terminal(argv, alone.environment, alone.work) as terminal:
        terminal.wait_for(READY[agent.name])
        terminal.say("please @play save")
        terminal.wait_for("saved")
        (pid,) = agents_of(case)[:1]
        device = os.readlink(f"/proc/{pid}/fd/0")
        assert os.stat(device).st_uid == alone.alice.uid
        assert os.stat(device).st_mode & 0o777 == 0o600
        assert device != terminal.name
        terminal.settle()
        terminal.say(LEAVES[agent.name])
        assert terminal.end() == 0
    assert alone.memory_of(alone.alice).strip() == "# Notes of mine"
    assert alone.left_over() == []
    assert alone.live_credentials() == []
    assert alone.alice.processes() == []
