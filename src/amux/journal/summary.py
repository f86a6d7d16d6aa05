"""The agent SUMMARY: an append-only table of events; the last of a section is its state (J43-J47).

Rule 1: earlier rows are history: never edited, never dropped.
Rule 2: a row is taken as it stands. One with too many cells is read by joining them, one with
        too few is passed over; both are told.
Rule 3: a row whose date or id is none stands for itself and folds with nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from amux.journal import table
from amux.journal.day import canonical_id
from amux.journal.insertion import BOM, Insertion, close, decode, insert, is_closed
from amux.journal.refusals import refuse
from amux.journal.remark import Remark
from amux.journal.status import State, state_of

COLUMNS = ("日期", "会话", "类型", "摘要", "关联报告", "关联记忆", "状态")
TYPES = ("dev", "fix", "analyze", "audit", "self-fix", "chat", "resume", "other")
UNSPECIFIED = "unspecified"  # an intent only; its row says `other`
MAX_STATES = 20  # of one conflict: enough to see what happened

_RULE = "|------|:----:|------|------|---------|---------|:----:|\n"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_OURS = re.compile(r"> ?项目[：:]")
_WIDTH = len(COLUMNS)
_TEXT = COLUMNS.index("摘要")


@dataclass(frozen=True, slots=True)
class Row:
    """One event of a SUMMARY; offsets count bytes of the file."""

    line: int | None
    start: int
    end: int
    cells: tuple[str, ...]  # always seven
    date: str  # the first ten characters of the first cell
    section: str  # canonical, or as it stands
    key: str  # `YYYY-MM-DD#id`; unlike any other for a row that folds with nothing
    is_canonical: bool
    state: State


@dataclass(frozen=True, slots=True)
class Conflict:
    """A section was unfinished after it had been finished."""

    key: str
    states: tuple[State, ...]  # what followed what, repeats left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
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
        reopened: dict[str, list[State]] = {}
        for row in self.rows:
            if row.state is State.COMPLETED:
                finished.add(row.key)
            elif row.key in finished:
                reopened[row.key] = []
        for row in self.rows if reopened else ():
            if row.key in reopened:
                states = reopened.pop(row.key)
                reopened[row.key] = [*states, row.state]
        return tuple(
            Conflict(key, tuple(state for state, _ in groupby(states))[-MAX_STATES:])
            for key, states in reversed(reopened.items())
        )


def parse(data: bytes, *, is_cut: bool = False) -> Summary:
    """Find the rows of a SUMMARY's bytes; of a window that lacks the start, the whole ones."""
    first = data.find(b"\n") + 1 if is_cut else len(BOM) * data.startswith(BOM)
    reader = _Reader(is_cut=is_cut)
    lines = data[first:].split(b"\n")
    tail = lines.pop()
    offset = first
    for raw in lines:
        end = offset + len(raw) + 1
        reader.take(raw, offset, end)
        offset = end
    if not is_closed(data):
        reader.take_tail(tail, offset)
    if decode(data)[1]:
        reader.remarks.append(Remark("invalid-utf8"))
    return Summary(
        rows=tuple(reader.rows), remarks=tuple(reader.remarks), reaches_end=reader.in_table
    )


class _Reader:
    """Go through the lines of a SUMMARY, once."""

    def __init__(self, *, is_cut: bool) -> None:
        self.rows: list[Row] = []
        self.remarks: list[Remark] = []
        # A window that lacks the start almost always begins inside the one long table.
        self.in_table = is_cut
        self._is_cut = is_cut
        self._number = 0
        self._has_foreign = False
        self._dates: dict[str, bool] = {}
        self._ids: dict[str, str | None] = {}

    def take(self, raw: bytes, start: int, end: int) -> None:
        self._number += 1
        if raw.startswith(b"|"):
            cells = table.cells_of(raw.decode("utf-8", "replace"))
            if cells is None:
                self._foreign()
            elif _is_header(cells):
                self.in_table = True
            elif not self.in_table:
                self._foreign()
            elif len(cells) == _WIDTH and cells[0][:1] not in (":", "-"):
                self._row(cells, start, end)
            elif not table.is_rule(cells):
                self._misfit(cells, start, end)
        elif raw.startswith(b"#"):
            self.in_table = False
        elif raw and not raw.isspace() and not _OURS.match(raw.decode("utf-8", "replace")):
            self._foreign()

    def take_tail(self, raw: bytes, start: int) -> None:
        """Take the last line, that nobody ended: a row if it is a whole one, else text."""
        self._number += 1
        self._remark("unterminated-tail")
        cells = table.cells_of(raw.decode("utf-8", "replace"))
        is_row = cells is not None and len(cells) >= _WIDTH and not table.is_rule(cells)
        if cells is not None and self.in_table and is_row and not _is_header(cells):
            self._misfit(cells, start, start + len(raw))

    def _misfit(self, cells: list[str], start: int, end: int) -> None:
        surplus = len(cells) - _WIDTH
        if surplus < 0:
            self._remark("row-skipped")
            return
        if surplus > 0:
            self._remark("row-repaired")
            joined = "|".join(cells[_TEXT : _TEXT + surplus + 1])
            cells = [*cells[:_TEXT], joined, *cells[_TEXT + surplus + 1 :]]
        self._row(cells, start, end)

    def _row(self, cells: list[str], start: int, end: int) -> None:
        day, named = cells[0][:10], cells[1]
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
        self.rows.append(
            Row(
                line,
                start,
                end,
                tuple(cells),
                day,
                section or named,
                key,
                canonical,
                state_of(cells[-1]),
            )
        )

    def _foreign(self) -> None:
        if not self._has_foreign:
            self._has_foreign = True
            self._remark("summary-foreign-content")

    def _remark(self, code: str) -> None:
        self.remarks.append(Remark(code, None if self._is_cut else self._number))


def _is_header(cells: Sequence[str]) -> bool:
    return (
        cells[0] == COLUMNS[0]
        and len(cells) >= _WIDTH
        and cells[1] == COLUMNS[1]
        and cells[_WIDTH - 1] == COLUMNS[-1]
    )


def is_date(text: str) -> bool:
    """Tell whether a text is a real date, spelled `YYYY-MM-DD`."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def append(old: bytes | None, cells: Sequence[str], *, agent: str, project: str) -> Insertion:
    """Add a row at the end, with what a table needs before it; None is an absent file.

    The result was parsed again: exactly this row was added.
    """
    data = close(old or b"")
    before = parse(data)
    header = table.render(COLUMNS) + _RULE
    if not data.removeprefix(BOM):
        header = f"# Agent SUMMARY — {agent}\n\n> 项目：{project}\n\n{header}"
    if not before.reaches_end:
        lead = insert(data, len(data), header)
        added = insert(lead.data, len(lead.data), table.render(cells), is_block=False)
    else:
        added = insert(data, len(data), table.render(cells), is_block=False)
    after = parse(added.data)
    wanted = tuple(cell.strip(" \t") for cell in cells)
    if after.rows[:-1] != before.rows or after.rows[-1:] == () or after.rows[-1].cells != wanted:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "the row would not be read as it was given",
            hint="give seven cells of one line each",
            check="seven-cells",
        )
    return added


def is_repeat(summary: Summary, cells: Sequence[str]) -> Row | None:
    """Give the current row of this key if it equals these cells but for the clock time (J65)."""
    day, section = cells[0][:10], canonical_id(cells[1])
    current = None
    for row in summary.rows:
        if row.is_canonical and row.date == day and row.section == section:
            current = row
    same = tuple(cell.strip(" \t") for cell in cells[2:])
    return current if current is not None and current.cells[2:] == same else None


def date_cell(day: str, *, today: str, minute: str) -> str:
    """Write the first cell: with the clock time only if the day is today (J47)."""
    return minute if day == today else day


def type_cell(intent: str) -> str:
    """Write the third cell of a section's row: an unspecified intent is `other` (J46)."""
    return "other" if intent == UNSPECIFIED else intent


def check_type(text: str, *, may_be_unspecified: bool = False) -> str:
    """Require a type of J46, or refuse with the check that failed; give it as it is written."""
    if may_be_unspecified and text == UNSPECIFIED:
        return text
    parts = text.split("+")
    reason = None
    if not text.strip():
        reason = "SUMMARY_TYPE_EMPTY"
    elif "/" in text:
        reason = "SUMMARY_TYPE_SLASH"
    elif any(character.isspace() for character in text):
        reason = "SUMMARY_TYPE_WHITESPACE"
    elif len(set(parts)) < len(parts) or not set(parts) <= set(TYPES):
        reason = "SUMMARY_TYPE_NON_CANONICAL"
    if reason is not None:
        hint = f"join some of {', '.join(TYPES)} by +"
        raise refuse(reason, "the type is not a canonical one", hint=hint, check="type")
    return text


def check_row(line: str) -> tuple[str, ...]:
    """Split the caller's row into seven cells, or refuse; `details.check` tells why (J71)."""
    if line.splitlines() != [line]:
        raise _unfit("one-line", "a row is one line")
    cells = table.cells_of(line)
    if cells is None or len(cells) != _WIDTH:
        raise _unfit("seven-cells", "a row has seven cells")
    if not is_date(cells[0][:10]) or not re.fullmatch(r"( \d{2}:\d{2})?", cells[0][10:]):
        raise _unfit("real-date", "the first cell is no real date")
    if canonical_id(cells[1].removeprefix("#")) is None:
        raise _unfit("id", "the second cell is no session id")
    if not cells[_TEXT]:
        raise _unfit("summary", "the summary is empty")
    check_type(cells[2])
    if state_of(cells[-1]) is State.UNKNOWN:
        raise _unfit("state", "the last cell names no known state")
    return tuple(cells)


def _unfit(check: str, message: str) -> Exception:
    hint = f"write | {' | '.join(COLUMNS)} |, with 🔄, ✅ or ⛔ last"
    return refuse("MEMORY_WRITER_ARGUMENT_INVALID", message, hint=hint, argument="row", check=check)
