"""An event to be appended to the agent SUMMARY: what a row must be, and where it goes (J43-J47).

Rule 1: a row is added and nothing else; a table is begun only where none reaches the end.
Rule 2: years of rows are not read again to add one: what stands before cannot change.
Rule 3: a repeat is known by its cells; the clock time is none of them (J65).
"""

import re
from collections.abc import Sequence

from amux.journal.refusals import refuse
from amux.journal.text import table
from amux.journal.text.day import canonical_id
from amux.journal.text.insertion import BOM, Insertion, close, insert
from amux.journal.text.status import State, state_of
from amux.journal.text.summary import (
    COLUMNS,
    Row,
    cells_of,
    current_row,
    is_date,
    parse_end,
    reaches,
)

TYPES = ("dev", "fix", "analyze", "audit", "self-fix", "chat", "resume", "other")
UNSPECIFIED = "unspecified"  # an intent only; its row says `other`

_RULE = "|------|:----:|------|------|---------|---------|:----:|\n"
_TIME = re.compile(r"( \d{2}:\d{2})?", re.ASCII)
_WIDTH = len(COLUMNS)
_TEXT = COLUMNS.index("摘要")


def append(old: bytes | None, cells: Sequence[str], *, agent: str, project: str) -> Insertion:
    """Add a row at the end, with what a table needs before it; None is an absent file.

    What was added was parsed again: exactly this row.
    """
    data = close(old or b"")
    in_table = reaches(data, len(data))
    lead = data
    if not in_table:
        header = table.render(COLUMNS) + _RULE
        if not data.removeprefix(BOM):
            header = f"# Agent SUMMARY — {agent}\n\n> 项目：{project}\n\n{header}"
        lead = insert(data, len(data), header).data
    added = insert(lead, len(lead), table.render(cells), is_block=False)
    after = parse_end(added.data, len(data), in_table=in_table, lines=0)
    wanted = tuple(cell.strip(" \t") for cell in cells)
    if [cells_of(added.data, row) for row in after.rows] != [wanted] or after.remarks:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "the row would not be read as it was given",
            hint="give seven cells of one line each",
            check="seven-cells",
        )
    return added


def is_repeat(data: bytes, cells: Sequence[str]) -> Row | None:
    """Give the current row of this key if it equals these cells but for the clock time (J65)."""
    section = canonical_id(cells[1].removeprefix("#"))
    current = current_row(data, cells[0][:10], section) if section else None
    same = tuple(cell.strip(" \t") for cell in cells[2:])
    return current if current is not None and cells_of(data, current)[2:] == same else None


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
    if not is_date(cells[0][:10]) or not _TIME.fullmatch(cells[0][10:]):
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
