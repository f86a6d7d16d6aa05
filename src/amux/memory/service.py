"""Search, get, upsert, forget and list in one scope, within the budgets.

Rule 1: everything about a document goes through here; all faces give the same answers (M4).
Rule 2: no answer shows what a crash could still undo: whoever would show a pending path waits
        for its fsync, at most two seconds (M24, M25).
Rule 3: reads come as steps. A step takes at most about a millisecond and yields the seconds
        to wait before the next one; the face serves other calls in between (M42).
"""

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

from amux.core import cursor, guard, revision
from amux.core.identity import Scope
from amux.core.path import DocPath, PathPrefix
from amux.core.text import to_json
from amux.errors import Busy
from amux.memory import document, limits
from amux.memory.document import Range, Slice
from amux.memory.scan import Scan
from amux.memory.search import Found, Query
from amux.memory.store import DocumentStore, Ticket, nothing

T = TypeVar("T")
Steps: TypeAlias = Generator[float, None, T]

KEPT = "session timelines and audit lines; what sessions have already read"
SCANS_KEPT = 4  # scopes whose folded text stays in memory: at most 16 MiB each
SETTLE_POLL_SECONDS = 0.0005  # an fsync takes 0.2 ms on a fast disk, 5 ms on a slow one


@dataclass(frozen=True, slots=True)
class Written:
    """What an upsert did."""

    path: str
    revision: str
    changed: bool

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {"path": self.path, "revision": self.revision, "changed": self.changed}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forget did: nothing, if the document was already gone."""

    path: str
    already_absent: bool

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire, with what a forget leaves (M22)."""
        return {
            "path": self.path,
            "already_absent": self.already_absent,
            "revision": revision.ABSENT,
            "kept": KEPT,
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """Documents in path order, and where the next page begins."""

    documents: tuple[dict[str, object], ...]
    next_cursor: str | None

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {"documents": list(self.documents), "next_cursor": self.next_cursor}


@dataclass(frozen=True, slots=True)
class Checked:
    """Files that are no documents, each with its reason, as many as one answer holds."""

    broken: tuple[dict[str, object], ...]
    truncated: bool

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {"broken": list(self.broken), "truncated": self.truncated}


class Memory:
    """The documents of all scopes, as callers may use them."""

    def __init__(
        self, store: DocumentStore, *, clock: Callable[[], float], cursor_key: bytes
    ) -> None:
        self._store = store
        self._clock = clock
        self._cursor_key = cursor_key
        self._scans: OrderedDict[Scope, Scan] = OrderedDict()

    def search(self, scope: Scope, query: Query, prefix: PathPrefix, limit: int) -> Steps[Found]:
        """Find the documents that hold any of the terms, best first."""
        found = yield from self._scan(scope).search(query, prefix, limit)
        yield from self._settled(self._store.pending(scope), self._deadline())
        return found

    def learn(self) -> Steps[None]:
        """Prepare for later searches, while nobody waits for it."""
        for scan in list(self._scans.values()):
            yield from scan.learn()

    def get(self, scope: Scope, path: DocPath, part: Range) -> Steps[Slice]:
        """Read a part of a document, with the revision of the whole."""
        found = self._store.read(scope, path)
        # The ticket is looked up after the read: a rename that we have seen registered first.
        deadline = self._deadline()
        while ticket := self._store.pending(scope, path):
            yield from self._settled(ticket, deadline)
            before, found = found, self._store.read(scope, path)
            # What was seen may have been given back to an editor meanwhile (M9): then look again.
            if found == before:
                break
        return document.cut(path, found, part)

    def upsert(
        self,
        scope: Scope,
        path: DocPath,
        data: bytes,
        expected: str,
        *,
        allow_secret_like: bool = False,
        announced: Callable[[], None] = nothing,
    ) -> Written:
        """Replace or create a document; on return it survives a power loss.

        Refuses content that is no document or holds invisible text (`invalid_argument`), one
        too large (`limit_exceeded`), a secret (`secret_detected`), a full scope
        (`quota_exceeded`), a document that is not at `expected` (`revision_conflict`), a disk
        that does not take it (`not_saved`).
        """
        if expected == revision.ABSENT:
            path.require_creatable()
        document.require_content(data)
        document.require_size(path, data)
        guard.require_clean(data.decode("utf-8"), allow_secret_like=allow_secret_like)
        put = self._store.put(scope, path, data, expected, announced)
        return Written(path.text, put.revision, put.changed)

    def forget(
        self,
        scope: Scope,
        path: DocPath,
        expected: str,
        *,
        announced: Callable[[], None] = nothing,
    ) -> Forgotten:
        """Remove a document and nothing else; on return it stays removed."""
        was = self._store.remove(scope, path, expected, announced)
        return Forgotten(path.text, already_absent=was == revision.ABSENT)

    def list(self, scope: Scope, principal: str, prefix: PathPrefix, after: str) -> Steps[Listing]:
        """List documents in path order, one answer full, from a cursor on (M34).

        The view is this call's own and watches nothing: a listing is rare, and a person's.
        """
        question = ("list", principal, scope.name, prefix.text)
        last = cursor.unseal(self._cursor_key, question, after) if after else ""
        view = self._store.view(scope, is_watching=False)
        for _ in view.refresh():
            yield 0.0
        room = limits.ANSWER_MAX_BYTES - len(
            to_json(Listing((), cursor.seal(self._cursor_key, question, "x" * 512)).plain())
        )
        rows: list[dict[str, object]] = []
        for path in sorted(path for path in view.documents if prefix.covers(path) and path > last):
            data = view.read(path)
            if data is None or not document.is_content(data):
                continue
            stamp = view.documents[path]
            row: dict[str, object] = {
                "path": path,
                "bytes": len(data),
                "revision": revision.of(data),
                "modified": datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC).isoformat(),
            }
            room -= len(to_json(row)) + 1
            if room < 0:
                next_cursor = cursor.seal(self._cursor_key, question, str(rows[-1]["path"]))
                break
            rows.append(row)
            yield 0.0
        else:
            next_cursor = None
        yield from self._settled(self._store.pending(scope), self._deadline())
        return Listing(tuple(rows), next_cursor)

    def check(self, scope: Scope) -> Checked:
        """List the files under a scope that are no documents (M8)."""
        rows: list[dict[str, object]] = []
        room = limits.ANSWER_MAX_BYTES - len(to_json(Checked((), True).plain()))
        for broken in self._store.broken(scope):
            row: dict[str, object] = {"path": broken.path, "reason": broken.reason}
            room -= len(to_json(row)) + 1
            if room < 0:
                return Checked(tuple(rows), truncated=True)
            rows.append(row)
        return Checked(tuple(rows), truncated=False)

    def discard(self, scope: Scope, path: str) -> None:
        """Remove one file that `check` lists."""
        self._store.discard(scope, path)

    def _scan(self, scope: Scope) -> Scan:
        scan = self._scans.pop(scope, None) or Scan(self._store.view(scope), clock=self._clock)
        self._scans[scope] = scan
        while len(self._scans) > SCANS_KEPT:
            self._scans.popitem(last=False)
        return scan

    def _deadline(self) -> float:
        return self._clock() + limits.WAIT_MAX_SECONDS

    def _settled(self, ticket: Ticket | None, deadline: float) -> Steps[None]:
        """Wait until what was seen is durable; `busy` at the deadline."""
        while ticket is not None and not ticket.is_settled:
            if self._clock() > deadline:
                raise Busy("a write is still on its way to the disk", hint="ask again")
            yield SETTLE_POLL_SECONDS
