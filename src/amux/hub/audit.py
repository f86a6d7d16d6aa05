"""The audit trail: an intent before each write, an outcome after, one line per other decision.

Rule 1: never content, never a query, never a token (M73).
Rule 2: an intent is durable before the rename that it announces; its fsync runs beside that of
        the document's temporary, so that the trail costs no second wait.
Rule 3: a line that cannot be written never stops a read, a search or a forget; the next line
        counts it. An upsert that cannot be announced is refused (M74).
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from amux.core.identity import Actor, Grant
from amux.core.text import to_json
from amux.disk.trail import Trail
from amux.errors import NotSaved

T = TypeVar("T")

MAX_BYTES = 16 * 1024 * 1024  # a month of a busy team
PARTS_KEPT = 5
RESERVE_BYTES = 64 * 1024  # some 200 lines on a full disk: enough to forget what fills it
LINES_MAX = 200  # of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines somebody asks for; an empty field asks for all."""

    principal: str = ""
    path: str = ""
    session: str = ""
    since: str = ""

    def covers(self, line: Mapping[str, object]) -> bool:
        """Tell whether a line is wanted."""
        return (
            self.principal in {"", line.get("principal")}
            and self.path in {"", line.get("path")}
            and self.session in {"", line.get("session")}
            and self.since <= str(line.get("time", ""))
        )


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

    def close(self, outcome: str, *, after: str = "") -> None:
        """Say how it ended."""
        self._audit.note(self._fields | {"event": "outcome", "after": after, "outcome": outcome})


class Audit:
    """The trail of one Hub; safe for threads."""

    def __init__(self, trail: Trail, *, now: Callable[[], datetime], threads: Executor) -> None:
        self._trail = trail
        self._now = now
        self._threads = threads
        self._lock = threading.Lock()
        self._last = datetime.min.replace(tzinfo=UTC)
        self._gap = 0

    def intent(self, grant: Grant, verb: str, path: str, before: str, *, must: bool) -> Intent:
        """Announce a write; one that must be announced and cannot is refused as `not_saved`."""
        fields = _who(grant.actor) | {
            "scope": grant.scope.name,
            "verb": verb,
            "path": path,
            "before": before,
        }
        try:
            mark = self._write(fields | {"event": "intent"}, self._trail.append_marked)
        except OSError as error:
            if must:
                raise _unwritten() from error
            return Intent(self, fields, None)
        # The fsync begins now, and runs beside that of the document's temporary.
        done = self._threads.submit(self._trail.settle, mark)
        return Intent(self, fields, _Announced(done, must=must))

    def note(self, fields: dict[str, object]) -> None:
        """Write one line that nobody waits for."""
        with suppress(OSError):
            self._write(fields, self._trail.append)

    def decision(self, actor: Actor | None, verb: str, path: str, outcome: str) -> None:
        """Write one line about a call that writes no document, or that was refused."""
        who = _who(actor) if actor else {}
        self.note(who | {"event": "decision", "verb": verb, "path": path, "outcome": outcome})

    def read(self, wanted: Wanted, after: str) -> tuple[list[dict[str, object]], str]:
        """Give the wanted lines from a place on, oldest first, and the place of the next.

        The place is `<time>` of the last line that was looked at; a rotation does not move it.
        """
        found: list[dict[str, object]] = []
        for line in self._lines():
            time = str(line.get("time", ""))
            if time <= after:
                continue
            if len(found) == LINES_MAX:
                break
            after = time
            if wanted.covers(line):
                found.append(line)
        return found, after

    def _lines(self) -> Iterator[dict[str, object]]:
        for part in range(PARTS_KEPT, -1, -1):
            for raw in self._trail.lines(part):
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue  # torn by a crash, and closed since
                if isinstance(line, dict):
                    yield line

    def _write(self, fields: Mapping[str, object], append: Callable[[bytes], T]) -> T:
        with self._lock:
            # No two lines have one time, so that a time is a place in the trail.
            now = max(self._now(), self._last + timedelta(microseconds=1))
            line: dict[str, object] = {"time": now.isoformat(timespec="microseconds")}
            line |= {name: value for name, value in fields.items() if value not in {"", None}}
            if self._gap:
                line["audit_gap"] = self._gap
            try:
                done = append(to_json(line) + b"\n")
            except OSError:
                self._gap += 1
                raise
            self._last = now
            self._gap = 0
            return done


class _Announced:
    """An announcement on its way to the disk."""

    def __init__(self, done: "Future[None]", *, must: bool) -> None:
        self._done = done
        self._must = must

    def wait(self) -> None:
        try:
            self._done.result()
        except OSError as error:
            if self._must:
                raise _unwritten() from error


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
