"""A terminal of another user's: keys, signals, size, and what never reaches it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.team import Team
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

# Shown by a program on the other side: what it is told, and what it is.
PROGRAM = """
trap 'echo INTERRUPTED' INT
trap 'echo "SIZE $(stty size)"' WINCH
trap 'echo HUNG UP > "$HOME/hung"; exit 9' HUP TERM
echo "TTY $(tty)"; stat -c 'OWNER %U %a' "$(tty)"
echo "SIZE $(stty size)"
echo "FDS $(ls /proc/$$/fd | tr '\\n' ' ')"
echo "GROUP $(ps -o tpgid=,pgid= -p $$ 2>/dev/null)"
echo READY
while true; do
  if read -r line; then
    case "$line" in
      quit) exit 3;;
      die) kill -9 $$;;
      flood) head -c 3000000 /dev/zero | tr '\\0' x; echo; echo FLOODED;;
      *) echo "GOT $line";;
    esac
  elif [ $? -le 1 ]; then echo EOF; exit 4; fi
done
"""


@pytest.fixture(scope="module")
def company(company: Team) -> Team:
    program = company.bin / "claude"
    program.write_text(
        '#!/bin/bash\nif [ "$1" = --version ]; then echo 2.1.332; exit; fi\n' + PROGRAM
    )
    program.chmod(0o755)
    company.agents_toml(claude={})
    return company


@contextmanager
def terminal_of(company: Team) -> Iterator[Terminal]:
    company.alice.clear()
    argv = company.argv("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    with Terminal(argv, company.environment, company.work) as terminal:
        terminal.wait_for("READY")
        yield terminal


def left(company: Team) -> None:
    deadline = time.monotonic() + 10
    while company.left_over() or company.live_credentials():
        assert time.monotonic() < deadline, company.left_over()
        time.sleep(0.05)
    assert company.alice.processes() == []


@pytest.mark.requirement("R27", "run-25")
def test_the_terminal_is_the_users_and_another_than_this_one(company: Team) -> None:
    with terminal_of(company) as terminal:
        assert f"OWNER {company.alice.name} 600" in terminal.text
        assert f"TTY {terminal.name}\r" not in terminal.text
        assert "TTY /dev/pts/" in terminal.text
        terminal.type("hello there\r")
        terminal.wait_for("GOT hello there")
        terminal.type("quit\r")
        assert terminal.end() == 3
    left(company)


@pytest.mark.requirement("R27", "run-25")
def test_it_has_the_size_of_this_one_always(company: Team) -> None:
    with terminal_of(company) as terminal:
        terminal.wait_for("SIZE 45 150")
        terminal.resize(30, 99)
        # The shell tells of it when it has read a line.
        deadline = time.monotonic() + 10
        while "SIZE 30 99" not in terminal.text:
            assert time.monotonic() < deadline
            terminal.type("again\r")
            time.sleep(0.05)
        terminal.type("quit\r")
        terminal.end()


@pytest.mark.requirement("R27", "run-25")
def test_ctrl_c_is_the_agents_and_amux_goes_on(company: Team) -> None:
    with terminal_of(company) as terminal:
        terminal.type("\x03")
        terminal.wait_for("INTERRUPTED")
        terminal.type("still here\r")
        terminal.wait_for("GOT still here")
        terminal.type("\x04")
        terminal.wait_for("EOF")
        assert terminal.end() == 4
    left(company)


@pytest.mark.requirement("R27", "run-25")
def test_everything_is_shown_before_it_ends(company: Team) -> None:
    with terminal_of(company) as terminal:
        terminal.type("flood\r")
        terminal.wait_for("FLOODED")
        assert terminal.text.count("x") > 3_000_000 - 10
        terminal.type("quit\r")
        assert terminal.end() == 3


@pytest.mark.requirement("R27", "R3", "run-25")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_passed_on_and_everything_is_removed(
    number: signal.Signals, company: Team
) -> None:
    with terminal_of(company) as terminal:
        terminal.process.send_signal(number)
        assert terminal.end() == 9
        assert (company.alice.home / "hung").exists()
    left(company)


@pytest.mark.requirement("R27", "run-25")
def test_an_agent_that_dies_leaves_the_terminal_as_it_was(company: Team) -> None:
    with terminal_of(company) as terminal:
        terminal.type("die\r")
        assert terminal.end() == 128 + signal.SIGKILL
    left(company)


@pytest.mark.requirement("R27", "run-12", "run-25")
def test_an_agent_on_a_terminal_dies_with_its_launcher_and_the_next_one_tidies_up(
    company: Team,
) -> None:
    with terminal_of(company) as terminal:
        terminal.process.kill()
        terminal.process.wait()
    deadline = time.monotonic() + 10
    while company.alice.processes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert company.left_over() != []
    company.amux("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    left(company)


@pytest.mark.requirement("R27")
def test_it_has_no_descriptor_of_ours(company: Team) -> None:
    with terminal_of(company) as terminal:
        (line,) = [one for one in terminal.text.splitlines() if one.startswith("FDS")]
        pids = [pid for pid in company.alice.processes() if os.path.exists(f"/proc/{pid}/fd/0")]
        places = {os.readlink(f"/proc/{pids[0]}/fd/{fd}") for fd in (0, 1, 2)}
        assert places != {terminal.name}
        assert len(places) == 1
        # The shell's own: its script.
        assert set(line.split()[1:]) <= {"0", "1", "2", "255", "3"}
        terminal.type("quit\r")
        terminal.end()


@pytest.mark.requirement("R27")
def test_what_waits_where_an_agent_keeps_its_sessions_holds_nobody_up(company: Team) -> None:
    program = company.bin / "pi"
    program.write_text(
        '#!/bin/bash\nif [ "$1" = --version ]; then echo 1.6.0; exit; fi\n'
        f'cd "$PI_CODING_AGENT_DIR" && mkdir -p sessions/--{"-".join(company.work.parts[1:])}--\n'
        "cd sessions/*; mkfifo a.jsonl; ln -s /dev/zero b.jsonl; ln -s /etc/shadow c.jsonl\n"
        f"{PROGRAM}"
    )
    program.chmod(0o755)
    company.agents_toml(pi={})
    company.alice.clear()
    argv = company.argv("run", "pi", "--isolation", "linux-dac", "--user", company.alice.name)
    try:
        with Terminal(argv, company.environment, company.work) as terminal:
            terminal.wait_for("READY")
            terminal.type("quit\r")
            assert terminal.end(15) == 3
    finally:
        company.agents_toml(claude={})
    left(company)
