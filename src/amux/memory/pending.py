"""Writes between their rename and the fsync that makes them durable (M24).

Rule 1: a write is noted before its rename, so whoever reads first and asks then misses none.
Rule 2: several writes of one path may be pending; each is settled by itself.
"""

import threading
from collections.abc import Callable

from amux.errors import Busy, Unavailable


class Pending:
    """One write whose outcome is not known yet."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known = threading.Event()
        self._failed = False

    @property
    def is_settled(self) -> bool:
        """Tell whether the outcome is known; raises `Unavailable` where it never will be."""
        if not self._known.is_set():
            return False
        if self._failed:
            raise Unavailable(
                "a write failed after its rename", hint="the Hub restarts; read again then"
            )
        return True

    def settle(self, *, failed: bool = False) -> None:
        """Say the outcome."""
        self._failed = failed
        self._known.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the outcome is known, at most so long."""
        return self._known.wait(max(0.0, seconds))


class Together:
    """Several writes as one ticket."""

    def __init__(self, parts: tuple[Pending, ...]) -> None:
        self._parts = parts

    @property
    def is_settled(self) -> bool:
        """Tell whether every outcome is known; raises `Unavailable` where one never will be."""
        return all(part.is_settled for part in self._parts)

    def wait(self, deadline: float, clock: Callable[[], float]) -> None:
        """Return when every outcome is known; `busy` at the deadline."""
        for part in self._parts:
            if not part.wait(deadline - clock()):
                raise Busy("a write is not yet durable", hint="retry in a moment")
        _ = self.is_settled  # raises where one failed


class Register:
    """The pending writes of one scope; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: list[Pending] = []

    def begin(self, path: str) -> Pending:
        """Note a write that is about to rename."""
        part = Pending(path)
        with self._lock:
            self._parts.append(part)
        return part

    def end(self, part: Pending, *, failed: bool = False) -> None:
        """Settle a write; one that failed stays, as its path is never known again."""
        part.settle(failed=failed)
        if not failed:
            with self._lock:
                self._parts.remove(part)

    def ticket(self, path: str | None = None) -> Together | None:
        """Give what is pending at a path, or anywhere; None where nothing is."""
        if not self._parts:
            return None
        with self._lock:
            parts = tuple(part for part in self._parts if path in {None, part.path})
        return Together(parts) if parts else None
