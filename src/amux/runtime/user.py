"""Another user of this machine, as whom an agent runs; and how a program is started as him (R27).

Rule 1: a value: looking a user up changes nothing, and uid 0 is nobody to become.
Rule 2: what is started, and with which environment, goes by a file in memory that only the two
        processes have: no list of processes shows it.
"""

import ctypes
import json
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from amux.disk import as_user, opened
from amux.errors import LaunchRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

CHILD_SUBREAPER = 36  # prctl(2)
KILL_ROUNDS = 50  # at what starts others while it is killed
PAUSE_SECONDS = 0.02


class User:
    """Somebody whose uid is not ours to have by itself."""

    __slots__ = ("gid", "groups", "home", "name", "script", "uid")

    def __init__(
        self, *, name: str, uid: int, gid: int, groups: Sequence[int], home: str, script: str
    ) -> None:
        self.name = name
        self.uid = uid
        self.gid = gid
        self.groups = tuple(groups)
        self.home = home
        self.script = script
        """The text of `drop.py`."""

    @classmethod
    def find(cls, name: str, script: str) -> "User | None":
        """Look a user up; None where there is no such."""
        try:
            found = pwd.getpwnam(name)
        except (KeyError, ValueError):
            return None
        return cls(
            name=found.pw_name,
            uid=found.pw_uid,
            gid=found.pw_gid,
            groups=os.getgrouplist(found.pw_name, found.pw_gid),
            home=found.pw_dir,
            script=script,
        )

    def does(self, function: "Callable[[], T]") -> "T":
        """Call a function that touches files with the rights of this user and no others."""
        return as_user.call(self.uid, self.gid, self.groups, function)

    def wrapped(
        self, argv: Sequence[str], environment: Mapping[str, str], cwd: str, *, on_terminal: bool
    ) -> tuple[list[str], int]:
        """Give what root starts so that a program is started as this user, and its descriptor.

        The descriptor is the caller's to close, after `require_started` was asked.
        """
        asked = {
            "uid": self.uid,
            "gid": self.gid,
            "groups": list(self.groups),
            "argv": list(argv),
            "environment": dict(environment),
            "cwd": cwd,
            "terminal": on_terminal,
        }
        adopt_orphans()
        fd = os.memfd_create("amux")
        os.pwrite(fd, json.dumps(asked).encode("ascii"), 0)
        # Isolated and without site-packages: nothing but the standard library is loaded as root.
        return [sys.executable, "-I", "-S", "-c", self.script, str(fd)], fd

    def require_started(self, fd: int) -> None:
        """Refuse where a program could not be started as him; names the step, `start` if it is his.

        `fd` is what `wrapped` gave, once the process has ended or is the program.
        """
        try:
            found = json.loads(os.pread(fd, os.fstat(fd).st_size, 0))
        except (OSError, ValueError):
            return
        if not isinstance(found, dict) or "step" not in found:
            return
        is_start = found["step"] == "start"
        raise LaunchRefused(
            "the agent could not be started as that user",
            hint="see that the user can run its program, and enter the directory"
            if is_start
            else "see what this system lets root give up",
            step=str(found["step"]),
            cause=str(found.get("cause")),
        )


def own_uid() -> int:
    """Name the uid that this process works with."""
    return os.geteuid()


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind, so that it can be found and ended."""
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_left(uid: int, mark: bytes) -> None:
    """Kill what is left of a run: what has its mark, and of another user what descends from us.

    A mark is a `NAME=value` of the environment; who takes it off still has his ancestors.
    """
    for _ in range(KILL_ROUNDS):
        found = _left(uid, mark)
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                # The handle is of one process, which is looked at again: numbers are given anew.
                handle = os.pidfd_open(pid)
                try:
                    if pid in _left(uid, mark):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)
        time.sleep(PAUSE_SECONDS)


def _left(uid: int, mark: bytes) -> set[int]:
    found = set(opened.marked(uid, mark)) - {os.getpid()}
    if uid != os.geteuid():
        found.update(pid for pid in opened.family(os.getpid()) if opened.is_live(pid, uid))
    return found
