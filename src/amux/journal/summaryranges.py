"""What an index keeps of a SUMMARY: where its rows are, folded so far as answers need (J58).

Rule 1: ranges, not text: a reader who hashed the file has its bytes and cuts the rows out itself.
Rule 2: an answer is made from this data, whether it was read from an index or made from a parse
        just now; that is why both answers are equal (J61).
Rule 3: one more row changes three partitions. What that cannot tell is made anew from the file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from amux.journal import summary
from amux.journal.remark import MAX_REMARKS, Remark
from amux.journal.status import UNRESOLVED, State
from amux.journal.summary import Conflict, Row, Summary

STATUS = "summary:status"
CURRENT = "summary:current"
MAX_LATEST = 20
MAX_OPEN = 20
MAX_CONFLICTS = 20
MAX_ROWS = 50  # of each state; a first page of any limit

Data = dict[str, object]
Partitions = dict[str, object]


class Place(NamedTuple):
    """Where a row stands: its line (None in a window that lacks the start) and its bytes."""

    line: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of one kind: how many there are, and where the newest are, newest first."""

    count: int
    places: tuple[Place, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether no row of this kind is left out."""
        return len(self.places) == self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a status tells of a SUMMARY."""

    lines: int
    latest: tuple[Place, ...]
    open_keys: tuple[str, ...]
    newest_open: Place | None  # of the open rows listed, the one of the latest date
    conflicts: tuple[Conflict, ...]
    counts: dict[State, int]
    remarks: tuple[Remark, ...]
    is_appendable: bool  # a row may follow the last byte as it is


def partitions(data: bytes) -> Partitions:
    """Make all partitions of a SUMMARY's whole bytes."""
    raise NotImplementedError


def after_row(
    data: bytes, old_size: int, old: Callable[[str], object]
) -> Partitions | None:
    """Make the partitions that change when `data` got one row after its first `old_size` bytes.

    `old` gives a partition as it was, None where there was none. None is given where this cannot
    be told from the partitions alone: then all of them are made anew.
    """
    raise NotImplementedError
