"""The agent SUMMARY: an append-only table of events; the last of a section is its state (J43-J47).

Rule 1: earlier rows are history: never edited, never dropped.
Rule 2: a row is taken as it stands. One with too many cells is read by joining them, one with
        too few is passed over; both are told.
Rule 3: a row whose date or id is none stands for itself and folds with nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amux.journal.insertion import Insertion
from amux.journal.remark import Remark
from amux.journal.status import State

COLUMNS = ("日期", "会话", "类型", "摘要", "关联报告", "关联记忆", "状态")


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A section was unfinished after it had been finished."""

    key: str
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a SUMMARY holds; rows in file order."""

    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...]
    reaches_end: bool  # a table does: a row may follow without a header

    def current(self) -> tuple[Row, ...]:
        """Give the last row of each key, in file order."""
        raise NotImplementedError

    def conflicts(self) -> tuple[Conflict, ...]:
        """Find sections that were reopened, the newest first."""
        raise NotImplementedError


def parse(data: bytes, *, is_cut: bool = False) -> Summary:
    """Find the rows of a SUMMARY's bytes; of a window that lacks the start, the whole ones."""
    raise NotImplementedError


def render_row(cells: Sequence[str]) -> str:
    """Write seven cells as a row with its newline."""
    raise NotImplementedError


def append(old: bytes | None, cells: Sequence[str], *, agent: str, project: str) -> Insertion:
    """Add a row at the end, with what a table needs before it; None is an absent file.

    The result was parsed again: exactly this row was added.
    """
    raise NotImplementedError


def is_repeat(summary: Summary, cells: Sequence[str]) -> Row | None:
    """Give the current row of this key if it equals these cells but for the clock time (J65)."""
    raise NotImplementedError


def date_cell(day: str, *, today: str, minute: str) -> str:
    """Write the first cell: with the clock time only if the day is today (J47)."""
    return minute if day == today else day


def check_type(text: str, *, may_be_unspecified: bool = False) -> str:
    """Require a type of J46, or refuse with the check that failed; give it as it is written."""
    raise NotImplementedError


def check_row(line: str) -> tuple[str, ...]:
    """Split the caller's row into seven cells, or refuse; `details.check` names what failed (J71)."""
    raise NotImplementedError
