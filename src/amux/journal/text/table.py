"""A row of a Markdown table: its cells, and the row that cells make (J44, J47).

Rule 1: cells are split at a bar that no backslash precedes; only that backslash is written and
        taken away again, so a cell comes back as it was given.
"""

import re
from collections.abc import Sequence

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r":?-+:?")
_BLANKS = " \t"


def split(line: str) -> list[str] | None:
    """Split a line, its newline left out, into its cells as they stand; None if it is no row."""
    row = line.rstrip(" \t\r")
    if not row.startswith("|") or not row.endswith("|") or row.endswith("\\|") or len(row) < 2:
        return None
    return _BAR.split(row[1:-1]) if "\\|" in row else row[1:-1].split("|")


def read(cell: str) -> str:
    """Give what a cell says, as it stands in its row."""
    return cell.strip(_BLANKS).replace("\\|", "|")


def cells_of(line: str) -> list[str] | None:
    """Split a line, its newline left out, into what its cells say; None if it is no row."""
    cells = split(line)
    return None if cells is None else [read(cell) for cell in cells]


def is_rule(cells: Sequence[str]) -> bool:
    """Tell whether the cells are those of the line below a header."""
    return all(_RULE.fullmatch(cell) for cell in cells)


def render(cells: Sequence[str]) -> str:
    """Write cells as a row with its newline."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
