"""The project SUMMARY: decisions in managed tables, between whatever people write (J48).

Rule 1: people's text is never changed; a table that is not the file's end gets a new one after it.
"""

from collections.abc import Sequence

from amux.core.value import Value
from amux.journal.refusals import refuse
from amux.journal.text import table
from amux.journal.text.insertion import BOM, Insertion, close, insert

COLUMNS = ("日期", "决策", "原因", "影响范围", "证据")
HEADING = "## 决策记录"

_RULE = "|------|------|------|---------|------|\n"


class Decision(Value):
    """One row of a decision table."""

    line: int
    end: int  # where the next line starts
    cells: tuple[str, ...]  # always five


def parse(data: bytes) -> tuple[Decision, ...]:
    """Find the rows of all decision tables, in file order."""
    return tuple(_rows(data)[0])


def append(old: bytes | None, cells: Sequence[str], *, project: str) -> Insertion:
    """Add a decision at the end, with heading and table where none reaches it; None: no file."""
    data = close(old or b"")
    before, end = _rows(data)
    row = table.render(cells)
    if end is not None:
        added = insert(data, end, row, is_block=False)
    else:
        head = f"{HEADING}\n\n{table.render(COLUMNS)}{_RULE}"
        if not data.removeprefix(BOM):
            head = f"# 项目 SUMMARY — {project}\n\n{head}"
        lead = insert(data, len(data), head)
        added = insert(lead.data, len(lead.data), row, is_block=False)
    wanted = tuple(cell.strip(" \t") for cell in cells)
    if [each.cells for each in parse(added.data)] != [*(each.cells for each in before), wanted]:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "the decision would not be read as it was given",
            hint="give each part in one line of text",
            argument="decision",
        )
    return added


def is_repeat(old: bytes | None, cells: Sequence[str]) -> Decision | None:
    """Give the last row if it equals these cells but for the date (J65)."""
    rows = parse(close(old or b""))
    same = tuple(cell.strip(" \t") for cell in cells[1:])
    return rows[-1] if rows and rows[-1].cells[1:] == same else None


def _rows(data: bytes) -> tuple[list[Decision], int | None]:
    """Find the rows, and where the last table ends if nothing but blanks follows it."""
    rows: list[Decision] = []
    in_table, end, offset = False, None, 0
    for number, raw in enumerate(data.split(b"\n")[:-1], start=1):
        offset += len(raw) + 1
        line = (raw.removeprefix(BOM) if number == 1 else raw).decode("utf-8", "replace")
        cells = table.cells_of(line)
        if cells is None:
            in_table = False
            end = end if not line.strip() else None
        elif tuple(cells) == COLUMNS:
            in_table, end = True, offset
        elif not in_table:
            end = None
        else:
            end = offset
            if len(cells) == len(COLUMNS) and not table.is_rule(cells):
                rows.append(Decision(line=number, end=offset, cells=tuple(cells)))
    return rows, end
