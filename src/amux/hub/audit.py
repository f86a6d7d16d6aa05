"""The audit trail: an intent before each write, an outcome after, one line per other decision.

Rule 1: never content, never a query, never a token (M73).
Rule 2: an intent is durable before the rename that it announces; its fsync runs beside that of
        the document's temporary, so that the trail costs no second wait.
Rule 3: a line that cannot be written never stops a read, a search or a forget; the next line
        counts it. An upsert that cannot be announced is refused (M74).
Rule 4: on a full disk the reserve is for writes; lines about other decisions are counted only.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from amux.core.identity import Actor, Caller, Grant
from amux.core.text import to_json
from amux.disk.atomic import Mark
from amux.disk.trail import Trail
from amux.errors import AmuxError, NotSaved
from amux.hub import history
from amux.hub.history import Page, Wanted

T = TypeVar("T")

MAX_BYTES = 16 * 1024 * 1024  # a month of a busy team
PARTS_KEPT = 5
STRANGERS_BURST = 100  # lines at once of callers that are not let in
STRANGERS_PER_SECOND = 1.0  # at this rate they need a month to fill one part
RESERVE_BYTES = 64 * 1024  # some 200 lines on a full disk: enough to forget what fills it


class Intent:
    """A write that was announced: durable when waited for, closed by its outcome."""

    def __init__(
        self, audit: "Audit", fields: dict[str, object], announced: "_Announced | None"
    ) -> None:
        self._audit = audit
        self._fields = fields
        self._announced = announced

    def wait(self) -> None:
        """Return when the announcement is durable; refuses as `not_saved` what must be announced.

        A forget goes on without: it is what makes room on a full disk.
        """
        if self._announced is not None:
            self._announced.wait()

    def close(self, outcome: str, *, before: str, after: str) -> None:
        """Say how it ended."""
        of = 0
        if self._announced is not None:
            of = self._announced.number
            self._announced.close()
        said = {"event": "outcome", "before": before, "after": after, "outcome": outcome}
        self._audit.outcome(self._fields | said, of)


class Audit:
    """The trail of one Hub; safe for threads."""

    def __init__(
        self,
        trail: Trail,
        *,
        now: Callable[[], datetime],
        run: Callable[[Callable[[], None]], None],
    ) -> None:
        self._trail = trail
        self._now = now
        self._run = run
        self._lock = threading.Lock()
        self._number = history.last_number(trail, PARTS_KEPT)
        self._running: set[int] = set()
        self._gap = 0
        self._strangers = _Strangers()

    def intent(
        self, grant: Grant, verb: str, *, path: str, before: str, after: str, must: bool
    ) -> Intent:
        """Announce a write; one that must be announced and cannot is refused as `not_saved`."""
        fields = _who(grant.actor) | {
            "scope": grant.scope.name,
            "verb": verb,
            "path": path,
            "before": before,
            "after": after,
        }
        try:
            said = fields | {"event": "intent"}
            mark, number = self._write(said, self._trail.append_marked, is_begun=True)
        except OSError as error:
            if must:
                raise self._unannounced(fields) from error
            return Intent(self, fields, None)
        # The fsync begins now, and runs beside that of the document's temporary.
        self._run(partial(self._trail.hasten, mark))
        return Intent(self, fields, _Announced(self._trail, mark, number, must=must))

    def outcome(self, fields: dict[str, object], of: int) -> None:
        """Write how an announced write ended."""
        # A writer that has its answer may ask for the trail at once: the line comes first.
        with suppress(OSError):
            self._write(fields | {"of": of or None}, self._trail.append)
        self._running.discard(of)

    def decision(self, actor: Actor, verb: str, outcome: str, **about: str) -> None:
        """Write one line about a call that writes no document, or that was refused."""
        self._note(_who(actor) | {"verb": verb} | about | {"outcome": outcome})

    def stranger(self, caller: Caller, outcome: str) -> None:
        """Write one line about a caller that was not let in; what it claims is not believed."""
        unlisted = self._strangers.unlisted(self._now())
        if unlisted is None:
            return
        peer = None if caller.uid is None else f"unix:{caller.uid}"
        who: dict[str, object] = {"peer": peer, "surface": caller.surface}
        if unlisted:
            who["unlisted"] = unlisted  # as many before this one left no line
        self._note(who | {"verb": "authenticate", "outcome": outcome})

    def read(self, wanted: Wanted, after: int) -> Page:
        """Give the wanted lines after a place, oldest first, and the place to go on from."""
        return history.read(self._trail, PARTS_KEPT, wanted, after, self._running.copy)

    def _note(self, fields: dict[str, object]) -> None:
        with suppress(OSError):
            self._write(fields | {"event": "decision"}, partial(self._trail.append, is_spare=True))

    def _unannounced(self, fields: dict[str, object]) -> AmuxError:
        refusal = _unwritten()
        said = {"event": "decision", "after": None, "outcome": str(refusal.code)}
        with suppress(OSError):
            self._write(fields | said, self._trail.append)
        return refusal

    def _write(
        self, fields: Mapping[str, object], append: Callable[[bytes], T], *, is_begun: bool = False
    ) -> tuple[T, int]:
        with self._lock:
            number = self._number + 1
            line: dict[str, object] = {
                "n": number,
                "time": self._now().isoformat(timespec="microseconds"),
            }
            line |= {name: value for name, value in fields.items() if value not in {"", None}}
            if self._gap:
                line["audit_gap"] = self._gap
            try:
                done = append(to_json(line) + b"\n")
            except OSError:
                self._gap += 1
                raise
            self._number = number
            self._gap = 0
            if is_begun:
                self._running.add(number)
            return done, number


class _Announced:
    """An announcement on its way to the disk."""

    def __init__(self, trail: Trail, mark: Mark, number: int, *, must: bool) -> None:
        self.number = number
        self._trail = trail
        self._mark: Mark | None = mark
        self._must = must

    def wait(self) -> None:
        mark, self._mark = self._mark, None
        if mark is None:
            return  # a second attempt of the same write
        try:
            self._trail.settle(mark)
        except OSError as error:
            if self._must:
                raise _unwritten() from error

    def close(self) -> None:
        if self._mark is not None:
            self._trail.release(self._mark)


class _Strangers:
    """How many lines those get who are not let in: a flood of them must not wash out the trail."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = float(STRANGERS_BURST)
        self._seen = datetime.min.replace(tzinfo=UTC)
        self._unlisted = 0

    def unlisted(self, now: datetime) -> int | None:
        """Take one line: tell how many went without before it, or None where there is none."""
        with self._lock:
            passed = max(0.0, (now - self._seen).total_seconds())
            self._left = min(STRANGERS_BURST, self._left + passed * STRANGERS_PER_SECOND)
            self._seen = now
            if self._left < 1.0:
                self._unlisted += 1
                return None
            self._left -= 1.0
            unlisted, self._unlisted = self._unlisted, 0
            return unlisted


def _who(actor: Actor) -> dict[str, object]:
    return {
        "actor": actor.alias,
        "principal": actor.principal,
        "session": actor.session,
        "surface": actor.surface,
    }


def _unwritten() -> NotSaved:
    return NotSaved(
        "the audit trail could not be written, so nothing else was",
        hint="make room on the disk; forget works on a full one",
        cause="audit",
    )
