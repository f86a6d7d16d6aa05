"""Handing this terminal to an agent, and taking it back.

Rule 1: the agent stays in this process's group, so that the terminal's Ctrl-C and Ctrl-Z reach it
        as they would without amux; what amux does at them is wait.
Rule 2: where the agent alone was stopped, amux stops too: a shell must not wait for a job that
        nobody can continue.
Rule 3: a request to end, and a terminal that goes away, are passed on; amux ends after the agent.
        It is interrupted once at most: what it then undoes ends by itself.
Rule 4: the terminal's settings are put back: an agent that died leaves them as it liked them.
"""

import signal
import sys
import termios
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from amux.runtime import process
from amux.runtime.process import Child

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
_SENT_BY_KEYS = (signal.SIGINT, signal.SIGQUIT)
_ALL = (*_PASSED_ON, signal.SIGINT)
Handler = Callable[[int, FrameType | None], None]


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    started: Callable[[int], None],
) -> int:
    """Run an agent on this terminal until it ends, and give its exit status.

    `started` is told its process.
    """
    children: list[Child] = []
    asked: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        for child in children:
            child.send(number)

    with settings_kept():
        # Handlers, not SIG_IGN: the agent would inherit that one.
        _handle(_PASSED_ON, pass_on)
        _handle(_SENT_BY_KEYS, _ignore)
        try:
            child = process.spawn(argv, environment, cwd, has_pipes=False)
            children.append(child)
            for number in asked[:1]:
                child.send(number)
            started(child.pid)
            while (status := child.wait_or_stop()) is None:
                if sys.stdin.isatty():
                    process.stop_self()
                child.send(signal.SIGCONT)
            return status
        finally:
            # What follows is tidying up; a terminal that went away says so more than once.
            _handle(_PASSED_ON, _ignore)


@contextmanager
def interruptible() -> Iterator[None]:
    """Have a request to end act as Ctrl-C does while the block runs: what was begun is undone."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        _handle(_ALL, _ignore)
        raise KeyboardInterrupt

    with _handled(_ALL, interrupt):
        yield


@contextmanager
def passing_on(child: Child) -> Iterator[None]:
    """Pass requests to end on to an agent while the block runs; what follows is tidying up."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send(number)

    _handle(_PASSED_ON, pass_on)
    _handle(_SENT_BY_KEYS, _ignore)
    try:
        yield
    finally:
        _handle(_PASSED_ON, _ignore)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let nothing interrupt the block, which must end by itself: half a tidying up is none."""
    with _handled(_ALL, _ignore):
        yield


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return


def _handle(numbers: Iterable[signal.Signals], handler: Handler) -> None:
    for number in numbers:
        signal.signal(number, handler)


@contextmanager
def _handled(numbers: Iterable[signal.Signals], handler: Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)


@contextmanager
def settings_kept() -> Iterator[None]:
    """Put the terminal's settings back when the block ends."""
    if not sys.stdin.isatty():
        yield
        return
    fd = sys.stdin.fileno()
    settings = termios.tcgetattr(fd)
    try:
        yield
    finally:
        # Setting a terminal from the background stops a process, unless it is deaf to that.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            termios.tcsetattr(fd, termios.TCSADRAIN, settings)
        except termios.error:
            pass  # the terminal is gone
        finally:
            signal.signal(signal.SIGTTOU, before)
