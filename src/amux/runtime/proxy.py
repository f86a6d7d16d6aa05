"""A terminal of another user's own, and this one handed through to it (R27).

Rule 1: the agent has a pty that is its user's; no descriptor of this terminal reaches it, so that
        it can type nothing here and read nothing that it was not given.
Rule 2: keys go there as they are pressed, Ctrl-C among them: that terminal makes them signals.
Rule 3: it has the size of this terminal, always.
Rule 4: however it ends, this terminal is as it was.
"""

import fcntl
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from amux.runtime import process, terminal
from amux.runtime.plan import LaunchPlan
from amux.runtime.process import Child
from amux.runtime.user import User

OWNERS_ONLY = 0o600
LOOK_SECONDS = 0.2  # how late an end is seen that says nothing
BLOCK_BYTES = 64 * 1024
END_OF_FILE = b"\x04"


def run(plan: LaunchPlan, user: User, started: Callable[[int], None]) -> int:
    """Run an agent on a terminal of its user's until it ends, and give its exit status.

    Raises `OSError` where it cannot be started, or the refusal that says why it was not.
    """
    ours, theirs = os.openpty()
    try:
        try:
            os.fchown(theirs, user.uid, user.gid)
            os.fchmod(theirs, OWNERS_ONLY)
            _copy_size(ours)
            child = process.spawn(
                plan.argv,
                plan.environment,
                plan.cwd,
                has_pipes=False,
                runs_as=user,
                terminal=theirs,
            )
        finally:
            os.close(theirs)
        try:
            started(child.pid)
            with terminal.passing_on(child), _raw(), _sized(ours):
                _hand_through(ours, child)
        finally:
            try:
                child.require_started()
            finally:
                status = child.end()
        return status
    finally:
        os.close(ours)


def _hand_through(ours: int, child: Child) -> None:
    """Copy keys there and what is shown here, until the agent has ended and all was shown."""
    sources = [ours, sys.stdin.fileno()]
    while True:
        ready = select.select(sources, [], [], LOOK_SECONDS)[0]
        if ours in ready:
            try:
                shown = os.read(ours, BLOCK_BYTES)
            except OSError:  # nobody has the other end any more
                shown = b""
            if not shown:
                return
            _write(sys.stdout.fileno(), shown)
        elif child.wait(0.0) is not None:
            return
        if len(sources) > 1 and sources[1] in ready:
            keys = b""
            with suppress(OSError):
                keys = os.read(sources[1], BLOCK_BYTES)
            with suppress(OSError):
                _write(ours, keys or END_OF_FILE)
            if not keys:
                del sources[1]


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def _raw() -> Iterator[None]:
    """Have this terminal make nothing of keys while the block runs."""
    if not sys.stdin.isatty():
        yield
        return
    with terminal.settings_kept():
        tty.setraw(sys.stdin.fileno(), termios.TCSADRAIN)
        yield


@contextmanager
def _sized(ours: int) -> Iterator[None]:
    """Have the other terminal follow the size of this one."""

    def resized(_number: int, _frame: FrameType | None) -> None:
        _copy_size(ours)

    before = signal.signal(signal.SIGWINCH, resized)
    try:
        _copy_size(ours)  # it may have changed since
        yield
    finally:
        signal.signal(signal.SIGWINCH, before if before is not None else signal.SIG_DFL)


def _copy_size(ours: int) -> None:
    for fd in (0, 1, 2):
        with suppress(OSError):
            size = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
            return
