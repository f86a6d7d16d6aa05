"""The writer's ring of one call: the root held, a file taken through its write, its index after it.

Rule 1: one hold of the lock for all parts of a call. What was committed before the lock was lost
        is not done again: a part that has its result keeps it.
Rule 2: an index is refreshed from the bytes that were read back, and never decides anything.
Rule 3: where nothing was written, nothing is: a stale index stays what it is, and is told.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from amux.journal.call.errand import Errand
from amux.journal.store import dayranges, index, indexing, summaryranges
from amux.journal.store.files import NO_OP, Edit, Writer, Written
from amux.journal.store.index import Consulted, Scope, Source
from amux.journal.store.root import Held, Place, hold, prepare
from amux.journal.store.window import WINDOW_BYTES

T = TypeVar("T")

Receipt = dict[str, object]

# No reader would take it: an index is of a whole window (J60).
_TOO_LARGE = {"status": "failed", "reason": "source-too-large"}


def run(errand: Errand, act: Callable[["Scribe"], T]) -> T:
    """Run the writing part of a call under the lock of its root."""
    around = errand.around

    def held(root: Held) -> T:
        prepare(root, now=errand.now, random_bytes=around.random_bytes)
        return act(Scribe(errand, root))

    place = Place.of(errand.target, around.uid)
    return hold(place, wait_ms=around.lock_wait_ms, act=held)


def day_path(agent: str, date: str) -> str:
    """Give the path of a day; `date` is YYYYMMDD."""
    return f".memory/clients/{agent}/tasks/{date}.md"


def summary_path(agent: str) -> str:
    """Give the path of an agent's SUMMARY."""
    return f".memory/clients/{agent}/SUMMARY.md"


class Scribe:
    """One call that holds its root."""

    __slots__ = ("_errand", "_writer", "held")

    def __init__(self, errand: Errand, held: Held) -> None:
        self._errand = errand
        self.held = held
        self._writer = Writer(held, now=errand.now, random_bytes=errand.around.random_bytes)

    def look(self, path: str) -> bytes | None:
        """Give a file as the write route finds it; None where there is none."""
        return self._writer.look(path)

    def require_writable(self, path: str) -> None:
        """Let a file refuse that could not be written to."""
        self._writer.require_writable(path)

    def write(self, path: str, edit: Edit[T]) -> Written[T]:
        """Take a file through its write; it has no index."""
        return self._writer.write(path, edit)

    def write_day(self, date: str, edit: Edit[T]) -> tuple[Written[T], Receipt]:
        """Take a day through its write, and refresh its index."""
        errand = self._errand
        done = self._writer.write(day_path(errand.agent, date), edit)
        scope = self._scope(date)
        if done.route == NO_OP:
            return done, self._standing(scope, done)
        if len(done.data) > WINDOW_BYTES:
            return done, dict(_TOO_LARGE)
        partitions = {dayranges.key(date): dayranges.partition(done.data)}
        source = _source(done)
        return done, indexing.refresh(self.held, scope, source, partitions, now=errand.now)

    def write_summary(self, edit: Edit[T]) -> tuple[Written[T], Receipt]:
        """Take the agent's SUMMARY through its write, and refresh its index."""
        errand = self._errand
        done = self._writer.write(summary_path(errand.agent), edit)
        scope = self._scope(None)
        if done.route == NO_OP:
            return done, self._standing(scope, done)
        if len(done.data) > WINDOW_BYTES:
            return done, dict(_TOO_LARGE)
        kept = self._kept(scope, done)
        partitions = _after_row(done, kept) if kept is not None else None
        if partitions is None:
            kept = None
            partitions = summaryranges.partitions(done.data)
        return done, indexing.refresh(
            self.held, scope, _source(done), partitions, now=errand.now, kept=kept
        )

    def _scope(self, date: str | None) -> Scope:
        errand = self._errand
        return Scope(
            agent=errand.agent,
            project=errand.target.project,
            scope=errand.target.scope,
            date=date,
        )

    def _kept(self, scope: Scope, done: Written[T]) -> Consulted | None:
        """Give the index of the SUMMARY as it was, if all of it is there to be carried over."""
        before = _source_before(done)
        if before is None:
            return None
        kept = index.standing(self.held, scope, before)
        return kept if kept.is_fresh and indexing.is_whole(self.held, scope, kept) else None

    def _standing(self, scope: Scope, done: Written[T]) -> Receipt:
        if done.facts is None:
            return {"status": "reused", "reason": None}
        found = index.standing(self.held, scope, _source(done))
        return {"status": "reused" if found.is_fresh else "failed", "reason": found.reason}


class _NotThereError(Exception):
    """A partition that should be carried over cannot be read."""


def _after_row(done: Written[T], kept: Consulted) -> Mapping[str, object] | None:
    """Make the partitions that one row changes; None where that takes the whole file."""

    def old(key: str) -> object:
        if not kept.has(key):
            return None
        data = kept.partition(key)
        if not kept.is_fresh:
            raise _NotThereError
        return data

    try:
        return summaryranges.after_row(done.data, done.before.size, old)
    except (_NotThereError, summaryranges.ShapeError):
        return None


def _source(done: Written[T]) -> Source:
    mtime_ns = done.facts.mtime_ns if done.facts else 0
    return Source(path=done.path, size=len(done.data), mtime_ns=mtime_ns, sha256=done.digest)


def _source_before(done: Written[T]) -> Source | None:
    facts = done.before.facts
    if facts is None:
        return None
    return Source(
        path=done.path, size=done.before.size, mtime_ns=facts.mtime_ns, sha256=done.before.digest
    )
