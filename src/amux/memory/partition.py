"""One scope on disk, as the writer knows it: its directory, lock, pending writes and quota.

Rule 1: the scope's directory is derived here and nowhere else; no caller names one (M4).
Rule 2: what the quota counts is known by a watch that belongs to whoever holds the lock.
"""

from amux.core import revision
from amux.core.identity import GLOBAL, Scope
from amux.disk.lock import Exclusion
from amux.disk.watch import Watch
from amux.errors import QuotaExceeded
from amux.memory import limits
from amux.memory.document import Document, Missing, Present
from amux.memory.pending import Register
from amux.memory.store import Usage
from amux.memory.view import usage


class Partition:
    """What this process knows of one scope."""

    def __init__(self, top: str, lock: Exclusion, watch: Watch) -> None:
        self.top = top
        self.lock = lock
        self.pending = Register()
        self.watch = watch  # of whoever holds the lock

    def usage(self) -> Usage:
        """Count, with the lock held."""
        for _ in self.watch.refresh():
            pass
        self.watch.changed.clear()
        return usage(self.watch)

    def require_room(self, before: Document, data: bytes) -> None:
        """Refuse a write that makes the scope grow beyond its quota."""
        is_new = isinstance(before, Missing)
        growth = len(data) - (len(before.data) if isinstance(before, Present) else 0)
        if not is_new and growth <= 0:
            return
        used = self.usage()
        has_room = (
            self.watch.is_complete
            and not (is_new and used.documents >= limits.SCOPE_MAX_DOCUMENTS)
            and not (growth > 0 and used.bytes + growth > limits.SCOPE_MAX_BYTES)
        )
        if not has_room:
            raise QuotaExceeded(
                "the scope is full",
                hint="forget what is not needed, or join documents",
                documents=used.documents,
                bytes=used.bytes,
                max_documents=limits.SCOPE_MAX_DOCUMENTS,
                max_bytes=limits.SCOPE_MAX_BYTES,
            )


def directory(scope: Scope) -> str:
    """Name the directory of a scope, beneath the root."""
    if scope == GLOBAL:
        return "global"
    principal = scope.name.removeprefix("principal:")
    return f"users/{revision.of(principal.encode('utf-8'))}"
