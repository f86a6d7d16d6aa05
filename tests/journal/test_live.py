import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.journal.ledger.live import Live
from amux.journal.ledger.state import RuntimeState
from amux.journal.store import root
from amux.journal.store.root import Held, Place

SESSION = "a" * 64

CHILD = """
import sys
from amux.journal.store import root
from amux.journal.ledger.live import Live
from amux.journal.store.root import Place, hold
from amux.journal.ledger.state import RuntimeState
place = Place(base=sys.argv[1], steps=(".devcodex",), uid=int(sys.argv[2]))
live = Live()
hold(place, wait_ms=5000, act=lambda held: live.hold(RuntimeState.of(held), "r", sys.argv[3], "t"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(base=str(tmp_path), steps=(".devcodex",), uid=os.geteuid())


@pytest.fixture
def process(place: Place) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is live for the session."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, place.base, str(place.uid), SESSION],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        assert started.stdout.readline() == "held\n"
        yield started
        started.kill()


@pytest.fixture
def held(place: Place) -> Iterator[Held]:
    found = root._tried(place)
    assert found is not None
    yield found
    found.release()


def file(place: Place) -> Path:
    return Path(place.base) / ".devcodex/.runtime-state/live" / SESSION


@pytest.mark.requirement("T10", "TA24")
def test_a_session_is_live_as_long_as_its_process_even_if_that_is_stopped(
    place: Place, process: "subprocess.Popen[str]"
) -> None:
    def is_live() -> bool:
        return root.hold(
            place, wait_ms=2000, act=lambda held: RuntimeState.of(held).is_live(SESSION)
        )

    assert is_live()
    process.send_signal(signal.SIGSTOP)
    assert is_live()
    process.kill()
    process.wait(10)
    assert not is_live()


@pytest.mark.requirement("T10")
def test_nothing_but_the_lock_is_evidence(held: Held, place: Place) -> None:
    state = RuntimeState.of(held)
    assert not state.is_live(SESSION)
    file(place).parent.mkdir()
    file(place).write_text(str(os.getpid()))
    assert not state.is_live(SESSION)


@pytest.mark.requirement("T10", "TA50")
def test_a_deleted_live_file_is_made_and_locked_again_at_the_next_call(
    held: Held, place: Place
) -> None:
    state, live = RuntimeState.of(held), Live()
    live.hold(state, "r", SESSION, "t")
    assert state.is_live(SESSION)
    file(place).unlink()
    assert not state.is_live(SESSION)
    live.keep(state, "r", SESSION)
    assert state.is_live(SESSION)
    live.release_all()
    assert not state.is_live(SESSION)


@pytest.mark.requirement("T10")
def test_keeping_makes_no_session_live_that_was_not(held: Held, place: Place) -> None:
    state, live = RuntimeState.of(held), Live()
    live.keep(state, "r", SESSION)
    assert not live.holds("r", SESSION)
    assert not file(place).exists()


@pytest.mark.requirement("T10")
def test_the_live_file_goes_with_the_last_task_and_not_before(held: Held, place: Place) -> None:
    state, live = RuntimeState.of(held), Live()
    live.hold(state, "r", SESSION, "one")
    live.hold(state, "r", SESSION, "two")
    live.drop(state, "r", SESSION, "one")
    assert state.is_live(SESSION)
    live.drop(state, "r", SESSION, "two")
    assert not state.is_live(SESSION)
    assert not file(place).exists()


@pytest.mark.requirement("T10")
def test_two_processes_of_one_session_are_live_together(held: Held, place: Place) -> None:
    state, one, other = RuntimeState.of(held), Live(), Live()
    one.hold(state, "r", SESSION, "t")
    other.hold(state, "r", SESSION, "t")
    one.drop(state, "r", SESSION, "t")
    assert state.is_live(SESSION)
    assert file(place).exists()


@pytest.mark.requirement("T10")
def test_who_comes_to_life_buries_the_dead_and_only_them(held: Held, place: Place) -> None:
    state, one, other = RuntimeState.of(held), Live(), Live()
    one.hold(state, "r", "b" * 64, "t")
    dead = file(place).with_name("c" * 64)
    dead.touch()
    file(place).with_name("d" * 64).mkdir()  # odd, and nobody's business here
    file(place).with_name("notes").touch()
    other.hold(state, "r", SESSION, "t")
    assert not dead.exists()
    assert state.is_live("b" * 64)
    assert sorted(path.name for path in dead.parent.iterdir()) == [
        SESSION, "b" * 64, "d" * 64, "notes",
    ]  # fmt: skip
