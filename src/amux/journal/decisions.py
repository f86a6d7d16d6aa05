"""The project SUMMARY: decisions in managed tables, between whatever people write (J48).

Rule 1: people's text is never changed; a table that is not the file's end gets a new one after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amux.journal.insertion import Insertion

COLUMNS = ("日期", "决策", "原因", "影响范围", "证据")
HEADING = "## 决策记录"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One row of a decision table."""

    line: int
    cells: tuple[str, ...]  # always five


def parse(data: bytes) -> tuple[Decision, ...]:
    """Find the rows of all decision tables, in file order."""
    raise NotImplementedError


def append(old: bytes | None, cells: Sequence[str], *, project: str) -> Insertion:
    """Add a decision at the end, with heading and table where none reaches it; None: no file."""
    raise NotImplementedError


def is_repeat(old: bytes | None, cells: Sequence[str]) -> Decision | None:
    """Give the last row if it equals these cells but for the date (J65)."""
    raise NotImplementedError
