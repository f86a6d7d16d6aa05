"""Handing this terminal to an agent, and taking it back.

Rule 1: the agent stays in this process's group, so that the terminal's Ctrl-C and Ctrl-Z reach it
        as they would without amux; what amux does at them is wait.
Rule 2: where the agent alone was stopped, amux stops too: a shell must not wait for a job that
        nobody can continue.
Rule 3: a request to end, and a terminal that goes away, are passed on; amux ends after the agent.
Rule 4: the terminal's settings are put back: an agent that died leaves them as it liked them.
"""

import signal
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from amux.runtime import process
from amux.runtime.process import Child

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
_SENT_BY_KEYS = (signal.SIGINT, signal.SIGQUIT)


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

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send(number)

    with _settings_kept(), _handled(dict.fromkeys(_PASSED_ON, pass_on)), _deaf_to_keys():
        child = process.spawn(argv, environment, cwd, has_pipes=False)
        children.append(child)
        started(child.pid)
        while (status := child.wait_or_stop()) is None:
            if sys.stdin.isatty():
                process.stop_self()
            child.send(signal.SIGCONT)
        return status


@contextmanager
def interruptible() -> Iterator[None]:
    """Have a request to end act as Ctrl-C does while the block runs: what was begun is undone."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(dict.fromkeys(_PASSED_ON, interrupt)):
        yield


def _deaf_to_keys() -> AbstractContextManager[None]:
    # A handler, not SIG_IGN: the agent would inherit that one.
    return _handled(dict.fromkeys(_SENT_BY_KEYS, lambda _number, _frame: None))


@contextmanager
def _handled(
    handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], None]],
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@contextmanager
def _settings_kept() -> Iterator[None]:
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
