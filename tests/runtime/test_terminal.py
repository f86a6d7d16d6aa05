"""An agent that has the terminal: keys, stops, endings, and the terminal given back."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.conftest import Person
from tests.support.fake_agent import is_alive
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow


@contextmanager
def shell(person: Person, **environment: str) -> Iterator[Terminal]:
    """Sit at an interactive shell, which controls jobs."""
    told = person.environment(FAKE_RUN="terminal", PS1="prompt> ", **environment)
    with Terminal(["/bin/bash", "--norc", "--noediting", "-i"], told, person.work) as terminal:
        terminal.wait(lambda: "prompt>" in terminal.text)
        yield terminal
        if terminal.process.poll() is None:
            terminal.process.kill()  # an interactive shell does not end when it is asked to


def run(person: Person, terminal: Terminal, *words: str) -> None:
    """Type `amux run claude`, and wait until the fake agent reads."""
    ready = terminal.text.count("ready")
    terminal.type(" ".join([*person.argv("run", "claude", *words), "; echo ended $?\n"]))
    terminal.wait(lambda: terminal.text.count("ready") == ready + 1)


@pytest.mark.requirement("R1")
def test_the_agent_has_the_terminal_in_the_foreground_and_its_status_is_ours(
    person: Person,
) -> None:
    with shell(person) as terminal:
        run(person, terminal)
        assert person.seen[0]["is_foreground"]
        assert person.seen[0]["stdin"] is None
        terminal.type("quit\n")
        terminal.wait(lambda: "ended 3" in terminal.text)
    timeline = person.show(person.sessions()[0]["session"])["timeline"]
    assert [one["kind"] for one in timeline] == ["start", "binding", "exit"]
    assert timeline[-1]["status"] == 3
    assert not person.live_credentials()
    assert not person.left_over()


@pytest.mark.requirement("R5", "run-5")
def test_a_session_without_memory_is_told_so_at_its_start_and_at_its_end(
    person: Person, tmp_path: Path
) -> None:
    with shell(person, AMUX_HUB=str(tmp_path / "none.sock")) as terminal:
        run(person, terminal)
        assert terminal.text.count("no memory") == 1
        terminal.type("quit\n")
        terminal.wait(lambda: "ended 3" in terminal.text)
        assert terminal.text.count("no memory") == 2
        assert terminal.text.rindex("no memory") < terminal.text.rindex("ended 3")


@pytest.mark.requirement("R1")
def test_a_stopped_session_is_a_stopped_job_and_goes_on(person: Person) -> None:
    with shell(person) as terminal:
        run(person, terminal)
        terminal.type("\x1a")
        terminal.wait(lambda: "Stopped" in terminal.text)
        terminal.type("fg\n")
        # Until it goes on, the shell may take what is typed for itself.
        terminal.wait(lambda: _state(person.seen[0]["pid"]) != "T")
        terminal.type("quit\n")
        terminal.wait(lambda: not is_alive(person.seen[0]["pid"]))


def _state(pid: int) -> str:
    """Tell the kernel's letter for what a process does; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.requirement("R1")
def test_an_agent_that_stops_itself_stops_the_job(person: Person) -> None:
    with shell(person) as terminal:
        run(person, terminal)
        terminal.type("stop\n")
        terminal.wait(lambda: "Stopped" in terminal.text)
        terminal.type("fg\n")
        terminal.wait(lambda: "continued" in terminal.text)
        terminal.type("quit\n")
        terminal.wait(lambda: not is_alive(person.seen[0]["pid"]))


@pytest.mark.requirement("R1")
def test_ctrl_c_is_the_agents(person: Person) -> None:
    with shell(person) as terminal:
        run(person, terminal)
        terminal.type("\x03")
        # The fake agent dies of it, as Python does; amux tells its status and no trace of its own.
        terminal.wait(lambda: "ended 1" in terminal.text)
        assert "amux: interrupted" not in terminal.text
    assert not person.live_credentials()
    assert not person.left_over()


@pytest.mark.requirement("R1")
def test_a_terminal_that_an_agent_left_raw_is_given_back_as_it_was(person: Person) -> None:
    with shell(person) as terminal:
        terminal.type("stty -g > before\n")
        run(person, terminal)
        terminal.type("raw\n")
        terminal.wait(lambda: "ended 137" in terminal.text)
        terminal.type("stty -g > after; echo told\n")
        terminal.wait(lambda: terminal.text.count("told") >= 2)
    assert (person.work / "after").read_text() == (person.work / "before").read_text()


@pytest.mark.requirement("R3", "M67")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_reaches_the_agent_and_then_amux_ends(number: int, person: Person) -> None:
    told = person.environment(FAKE_RUN="terminal")
    with Terminal(person.argv("run", "claude"), told, person.work) as terminal:
        terminal.wait(lambda: "ready" in terminal.text)
        os.kill(terminal.process.pid, number)
        assert terminal.process.wait(20) == 128 + number
    assert not is_alive(person.seen[0]["pid"])
    assert not person.live_credentials()
    assert not person.left_over()


@pytest.mark.requirement("R3", "M67")
def test_a_terminal_that_goes_away_ends_agent_and_credential(person: Person) -> None:
    with shell(person) as terminal:
        run(person, terminal)
        terminal.process.kill()
        terminal.process.wait()
        # The kernel hangs up on the group that had the terminal.
        terminal.wait(lambda: not is_alive(person.seen[0]["pid"]))
        terminal.wait(lambda: not person.live_credentials())


@pytest.mark.requirement("R1")
def test_without_any_terminal_the_agent_is_started_all_the_same(person: Person) -> None:
    done = subprocess.run(
        person.argv("run", "claude"),
        env=person.environment(FAKE_RUN="terminal"),
        cwd=person.work,
        input=b"quit\n",
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, b"ready\n")


@pytest.mark.requirement("R1", "R5", "run-28")
def test_the_first_line_of_show_says_whether_there_is_memory_and_why_not(
    person: Person, tmp_path: Path
) -> None:
    person.ask()
    person.ask("--memory", "off")
    person.ask(AMUX_HUB=str(tmp_path / "none.sock"))
    (person.bin / "gemini").symlink_to(person.bin / "fake-agent")
    person.amux("run", "gemini")
    firsts = []
    for one in reversed(person.sessions()):
        argv = person.argv("session", "show", one["session"])
        with Terminal(argv, person.environment(), person.work) as terminal:
            terminal.process.wait(20)
            terminal.wait(lambda terminal=terminal: "exit" in terminal.text)  # type: ignore[misc]
            firsts.append(terminal.text.splitlines()[0])
    assert firsts[0] == "bound"
    assert firsts[1].startswith("off: ")
    assert firsts[1].endswith("(asked)")
    assert firsts[2].startswith("failed: ")
    assert firsts[2].endswith("(unavailable)")
    assert firsts[3].endswith("(unsupported_agent)")
