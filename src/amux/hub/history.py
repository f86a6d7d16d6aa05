"""Reading the audit trail: which lines somebody wants, page by page, and what has no outcome.

Rule 1: a line's number is its place; it only grows, over rotations and restarts. Its time is what
        the clock said, whatever that was.
Rule 2: an announced write without an outcome is told as such: it is running, or a crash cut it
        off, and then only the document tells whether its revision came to be.
Rule 3: most of the trail is neither parsed nor read: the place is found by halving.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from amux.disk.trail import Trail
from amux.errors import InvalidArgument

LINES_MAX = 200  # of one answer
AHEAD_MAX = 20_000  # lines that are searched for the outcome of an intent: some seconds of any Hub

_NUMBER = re.compile(rb'\{"n":([0-9]{1,18}),')
_OF = re.compile(rb'"of":([0-9]{1,18})[,}]')
_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines somebody asks for; an empty field asks for all."""

    principal: str = ""
    path: str = ""
    session: str = ""
    since: datetime | None = None

    def covers(self, line: Mapping[str, object]) -> bool:
        """Tell whether a line is wanted."""
        return (
            self.principal in {"", line.get("principal")}
            and self.path in {"", line.get("path")}
            and self.session in {"", line.get("session")}
            and (self.since is None or _time(line) >= self.since)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines, where to go on from, and whether there was no room for more."""

    lines: list[dict[str, object]]
    after: int
    is_full: bool


def since(text: str, now: datetime) -> datetime | None:
    """Read a time, of UTC where it names no other zone, or how long ago: 90m, 12h, 7d."""
    if not text:
        return None
    try:
        ago = _AGO.fullmatch(text)
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(
            "since is no time",
            hint="write 2026-01-31, 2026-01-31T12:00, or how long ago: 90m, 12h, 7d",
            argument="since",
        ) from error


def read(
    trail: Trail, parts: int, wanted: Wanted, after: int, running: Callable[[], Set[int]]
) -> Page:
    """Give the wanted lines after a place, oldest first, and the place to go on from."""
    found: list[dict[str, object]] = []
    raws = _lines(trail, parts, after)
    for number, raw in raws:
        line = _parsed(raw)
        if line is not None and wanted.covers(line):
            found.append(line)
        after = number
        if len(found) == LINES_MAX:
            break
    _tell_states(trail, parts, found, running)
    return Page(found, after, is_full=len(found) == LINES_MAX)


def last_number(trail: Trail, parts: int) -> int:
    """Find the number of the last line that was ever written."""
    for part in range(parts + 1):
        last = 0
        for raw in trail.lines(part, lambda line: _NUMBER.match(line) is not None):
            last = max(last, _number(raw))
        if last:
            return last
    return 0


def _tell_states(
    trail: Trail, parts: int, found: list[dict[str, object]], running: Callable[[], Set[int]]
) -> None:
    intents = {_whole(line["n"]): line for line in found if line.get("event") == "intent"}
    closed = {_whole(line.get("of")) for line in found}
    missing = _open_ones(trail, parts, intents.keys() - closed)
    still = missing & running()
    # What ended while we looked has its outcome now: look once more before we say that it has none.
    lost = _open_ones(trail, parts, missing - still)
    for number, line in intents.items():
        state = "running" if number in still else "no outcome" if number in lost else "closed"
        line["state"] = state


def _open_ones(trail: Trail, parts: int, numbers: Set[int]) -> Set[int]:
    return numbers - _closed_later(trail, parts, min(numbers)) if numbers else numbers


def _closed_later(trail: Trail, parts: int, after: int) -> set[int]:
    found: set[int] = set()
    for count, (_, raw) in enumerate(_lines(trail, parts, after)):
        if count == AHEAD_MAX:
            break
        found |= {int(number) for number in _OF.findall(raw)}
    return found


def _lines(trail: Trail, parts: int, after: int) -> Iterator[tuple[int, bytes]]:
    """Give the lines after a place with their numbers; what a crash tore has none."""

    def is_before(line: bytes) -> bool:
        return 0 < _number(line) <= after

    for part in range(parts, -1, -1):
        for raw in trail.lines(part, is_before):
            number = _number(raw)
            if number > after:
                yield number, raw


def _number(raw: bytes) -> int:
    found = _NUMBER.match(raw)
    return int(found[1]) if found else 0


def _parsed(raw: bytes) -> dict[str, object] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None  # torn by a crash, or not ours
    return line if isinstance(line, dict) else None


def _time(line: Mapping[str, object]) -> datetime:
    try:
        found = datetime.fromisoformat(str(line.get("time")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _whole(number: object) -> int:
    return number if isinstance(number, int) else 0
