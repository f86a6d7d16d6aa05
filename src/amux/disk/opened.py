"""What a process and those that it started hold open, where the kernel tells (Linux).

Rule 1: a look only: what ended meanwhile, and what may not be looked at, is left out.
"""

import os
from contextlib import suppress

ENVIRONMENT_MAX_BYTES = 4 * 1024 * 1024  # the kernel takes less than that
MAX_PROCESSES = 256  # of one family: an agent with its servers and commands has a dozen


def family(pid: int) -> list[int]:
    """Name a process and its descendants, the eldest first."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) < MAX_PROCESSES:
        one = todo.pop(0)
        found.append(one)
        todo += [child for child in _children(one) if child not in found]
    return found


def files(pid: int) -> list[str]:
    """Name the files that one process holds open."""
    folder = f"/proc/{pid}/fd"
    found: list[str] = []
    with suppress(OSError):
        found.extend(os.readlink(f"{folder}/{name}") for name in os.listdir(folder))
    return found


def marked(uid: int, mark: bytes) -> list[int]:
    """Name a user's processes that have `NAME=value` in the environment they were started with."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and is_live(int(name), uid):
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read(ENVIRONMENT_MAX_BYTES).split(b"\0"):
                        found.append(int(name))
    return found


def is_live(pid: int, uid: int) -> bool:
    """Tell whether a process is a user's, and has not ended.

    Whose it is stands inside: who owns its folder can be changed by the process itself.
    """
    told = {}
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        told = dict(line.split(b":", 1) for line in file if b":" in line)
    state, ids = told.get(b"State", b"").split()[:1], told.get(b"Uid", b"").split()[:1]
    return ids == [str(uid).encode("ascii")] and state not in ([b"Z"], [b"X"])


def _children(pid: int) -> list[int]:
    folder = f"/proc/{pid}/task"
    found: list[int] = []
    try:
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/children", "rb") as file:
                found += [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return found
    return found
