"""The agent SUMMARY: an append-only table of events; the last of a section is its state (J43-J47).

Rule 1: earlier rows are history: never edited, never dropped.
Rule 2: a row is taken as it stands. One with too many cells is read by joining them, one with
        too few is passed over; both are told.
Rule 3: a row whose date or id is none stands for itself and folds with nothing.
"""

import re
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple

from amux.core.value import Value
from amux.journal.remark import Remark
from amux.journal.text import table
from amux.journal.text.day import canonical_id
from amux.journal.text.insertion import BOM, is_closed
from amux.journal.text.status import State, state_of

COLUMNS = ("日期", "会话", "类型", "摘要", "关联报告", "关联记忆", "状态")
MAX_STATES = 20  # of one conflict: enough to see what happened

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_OURS = re.compile(r"> ?项目[：:]")
_WIDTH = len(COLUMNS)
_TEXT = COLUMNS.index("摘要")
_FIRST_COLUMN = COLUMNS[0].encode()


class Row(NamedTuple):
    """One event of a SUMMARY: where it stands and what it counts for; `cells_of` has its text.

    A tuple, and without text, because years of them are read within one call.
    """

    line: int | None
    start: int
    end: int
    date: str  # the first ten characters of the first cell
    section: str  # canonical, or as it stands
    key: str  # `YYYY-MM-DD#id`; unlike any other for a row that folds with nothing
    is_canonical: bool
    state: State


class Conflict(Value, kw_only=False):
    """A section was unfinished after it had been finished."""

    key: str
    states: tuple[State, ...]  # what followed what, repeats left out


class Summary(Value):
    """What a SUMMARY holds; rows in file order."""

    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...]
    reaches_end: bool  # a table does: a row may follow without a header

    def current(self) -> tuple[Row, ...]:
        """Give the last row of each key, in file order."""
        last: dict[str, Row] = {}
        for row in self.rows:
            last.pop(row.key, None)
            last[row.key] = row
        return tuple(last.values())

    def conflicts(self) -> tuple[Conflict, ...]:
        """Find sections that were reopened, the newest event first."""
        finished: set[str] = set()
        reopened: set[str] = set()
        for row in self.rows:
            if row.state is State.COMPLETED:
                finished.add(row.key)
            elif row.key in finished:
                reopened.add(row.key)
        states: dict[str, list[State]] = {}
        for row in self.rows if reopened else ():
            if row.key in reopened:
                states[row.key] = [*states.pop(row.key, []), row.state]
        found = (conflict_of(key, its) for key, its in reversed(states.items()))
        return tuple(conflict for conflict in found if conflict is not None)


def conflict_of(key: str, states: Sequence[State]) -> Conflict | None:
    """Tell whether a section was unfinished after it had been finished."""
    done = states.index(State.COMPLETED) if State.COMPLETED in states else len(states)
    if all(state is State.COMPLETED for state in states[done:]):
        return None
    return Conflict(key, tuple(state for state, _ in groupby(states))[-MAX_STATES:])


def parse(data: bytes, *, is_cut: bool = False) -> Summary:
    """Find the rows of a SUMMARY's bytes; of a window that lacks the start, the whole ones."""
    first = data.find(b"\n") + 1 if is_cut else len(BOM) * data.startswith(BOM)
    # A window that lacks the start almost always begins inside the one long table.
    return _parse(data, first, _Reader(is_cut=is_cut, in_table=is_cut))


def parse_end(data: bytes, start: int, *, in_table: bool, lines: int) -> Summary:
    """Parse what follows `start`, the start of a line; `lines` stand before it."""
    return _parse(data, start, _Reader(in_table=in_table, lines=lines))


def row_at(data: bytes, line: int | None, start: int, end: int) -> Row | None:
    """Give the row that a parse found at this place, if one is still there."""
    reader = _Reader(is_cut=line is None, in_table=True, lines=(line or 1) - 1)
    raw = data[start:end]
    if raw.endswith(b"\n"):
        reader.take(raw[:-1], start, end)
    else:
        reader.take_tail(raw, start)
    return reader.rows[0] if reader.rows else None


def cells_of(data: bytes, row: Row) -> tuple[str, ...]:
    """Give what the seven cells of a row say; of too many, the surplus is part of the text."""
    line = data[row.start : row.end].decode("utf-8", "replace").removesuffix("\n")
    cells = table.cells_of(line) or []
    surplus = len(cells) - _WIDTH
    text = "|".join(cells[_TEXT : _TEXT + surplus + 1])
    return (*cells[:_TEXT], text, *cells[_TEXT + surplus + 1 :])


def reaches(data: bytes, end: int) -> bool:
    """Tell whether a line that starts at `end` stands in a table; without reading every row."""
    first = len(BOM) * data.startswith(BOM)
    at = max(first, data.rfind(b"\n#", 0, end) + 1)
    while (at := data.find(_FIRST_COLUMN, at, end)) >= 0:
        start = max(first, data.rfind(b"\n", 0, at) + 1)
        at = data.find(b"\n", at, end)
        if at < 0:
            return False
        cells = table.split(data[start:at].decode("utf-8", "replace"))
        if cells is not None and len(cells) >= _WIDTH and _is_header(cells):
            return True
    return False


def current_row(data: bytes, day: str, section: str) -> Row | None:
    """Give the last row of one key; without reading every row."""
    at, found = len(data), None
    while found is None and (at := data.rfind(day.encode(), 0, at)) >= 0:
        start = max(len(BOM) * data.startswith(BOM), data.rfind(b"\n", 0, at) + 1)
        end = data.find(b"\n", at) + 1 or len(data)
        row = row_at(data, None, start, end)
        if row is not None and (row.is_canonical, row.date, row.section) == (True, day, section):
            # Lines are counted for the one row only: a busy day has hundreds of others.
            line = data.count(b"\n", 0, start) + 1
            found = row_at(data, line, start, end) if reaches(data, start) else None
        at = start
    return found


def _parse(data: bytes, first: int, reader: "_Reader") -> Summary:
    lines = data[first:].split(b"\n")
    tail = lines.pop()
    offset = first
    for raw in lines:
        end = offset + len(raw) + 1
        reader.take(raw, offset, end)
        offset = end
    if not is_closed(data):
        reader.take_tail(tail, offset)
    if reader.is_bad:
        reader.remarks.append(Remark("invalid-utf8"))
    return Summary(
        rows=tuple(reader.rows), remarks=tuple(reader.remarks), reaches_end=reader.in_table
    )


class _Reader:
    """Go through the lines of a SUMMARY, once."""

    def __init__(self, *, is_cut: bool = False, in_table: bool = False, lines: int = 0) -> None:
        self.rows: list[Row] = []
        self.remarks: list[Remark] = []
        self.in_table = in_table
        self._is_cut = is_cut
        self._number = lines
        self._has_foreign = False
        self.is_bad = False
        self._dates: dict[str, bool] = {}
        self._ids: dict[str, str | None] = {}

    def take(self, raw: bytes, start: int, end: int) -> None:
        self._number += 1
        text = self._text(raw)
        if text.startswith("|"):
            cells = table.split(text)
            if cells is None:
                self._foreign()
            elif len(cells) >= _WIDTH and _is_header(cells):
                self.in_table = True
            elif not self.in_table:
                self._foreign()
            elif len(cells) == _WIDTH and cells[0].strip()[:1] not in (":", "-"):
                self._row(cells, start, end)
            elif not _is_rule(cells):
                self._misfit(cells, start, end)
        elif text.startswith("#"):
            self.in_table = False
        elif text and not text.isspace() and not _OURS.match(text):
            self._foreign()

    def take_tail(self, raw: bytes, start: int) -> None:
        """Take the last line, that nobody ended: a row if it is a whole one, else text."""
        self._number += 1
        self._remark("unterminated-tail")
        cells = table.split(self._text(raw))
        if cells is None or len(cells) < _WIDTH or not self.in_table:
            return
        if not _is_header(cells) and not _is_rule(cells):
            self._misfit(cells, start, start + len(raw))

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.is_bad = True
            return raw.decode("utf-8", "replace")

    def _misfit(self, cells: list[str], start: int, end: int) -> None:
        surplus = len(cells) - _WIDTH
        if surplus < 0:
            self._remark("row-skipped")
            return
        if surplus > 0:
            self._remark("row-repaired")
        self._row(cells, start, end)

    def _row(self, cells: list[str], start: int, end: int) -> None:
        day, named = table.read(cells[0])[:10], table.read(cells[1])
        real = self._dates.get(day)
        if real is None:
            real = self._dates[day] = is_date(day)
        if named in self._ids:
            section = self._ids[named]
        else:
            section = self._ids[named] = canonical_id(named.removeprefix("#"))
        line = None if self._is_cut else self._number
        if real and section is not None:
            key, canonical = f"{day}#{section}", True
        else:
            key, canonical = f"line#{self._number}" if line else f"byte#{start}", False
        state = state_of(table.read(cells[-1]))
        self.rows.append(Row(line, start, end, day, section or named, key, canonical, state))

    def _foreign(self) -> None:
        if not self._has_foreign:
            self._has_foreign = True
            self._remark("summary-foreign-content")

    def _remark(self, code: str) -> None:
        self.remarks.append(Remark(code, None if self._is_cut else self._number))


def _is_header(cells: Sequence[str]) -> bool:
    return (
        COLUMNS[0] in cells[0]  # almost no row has it: the rest is rarely looked at
        and table.read(cells[0]) == COLUMNS[0]
        and table.read(cells[1]) == COLUMNS[1]
        and table.read(cells[_WIDTH - 1]) == COLUMNS[-1]
    )


def _is_rule(cells: Sequence[str]) -> bool:
    return table.is_rule([table.read(cell) for cell in cells])


def is_date(text: str) -> bool:
    """Tell whether a text is a real date, spelled `YYYY-MM-DD`."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
