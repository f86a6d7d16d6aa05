"""Who holds a lock on a file, where the kernel tells (Linux): a look that takes no lock itself.

Rule 1: it proves nothing and decides nothing: a person reads it.
"""

import os
from contextlib import suppress
from typing import NamedTuple

_LOCKS = "/proc/locks"
_COMMAND_MAX_BYTES = 64


class LockHolder(NamedTuple):
    """A process that holds a lock."""

    pid: int
    command: str
    """Empty where it is another user's, or gone."""


def holders(path: str) -> list[LockHolder] | None:
    """Name the processes that hold a file's lock; None where the system does not tell."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return []
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open(_LOCKS, encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        words = line.split()
        # `1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF`; one that waits has an arrow.
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == device:
            pid = int(words[4]) if words[4].isdigit() else 0
            found.append(LockHolder(pid, _command(pid)))
    return found


def _command(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read(_COMMAND_MAX_BYTES).decode("utf-8", "replace").strip()
    return ""
