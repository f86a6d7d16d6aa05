"""What a process and those that it started hold open, where the kernel tells (Linux).

Rule 1: a look only: what ended meanwhile, and what may not be looked at, is left out.
"""

import os
from contextlib import suppress

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
