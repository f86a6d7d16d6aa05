"""What an index keeps of a day: where its sections and their cards are (J58).

Rule 1: an answer is made from this data, whether it was read from an index or made from a parse
        just now; that is why both answers are equal (J61).
Rule 2: data of another shape raises ShapeError: whoever wrote it, it is not ours.
"""

from typing import NamedTuple

from amux.core.value import Value
from amux.journal.remark import Remark, few
from amux.journal.store.summaryranges import ShapeError, read_remark, read_state
from amux.journal.text import card, day
from amux.journal.text.status import State


class Part(NamedTuple):
    """A section as answers need it; offsets count bytes of the file."""

    ordinal: int
    id: str
    title: str
    status: str | None
    state: State
    is_managed: bool
    line: int | None
    body: int
    end: int
    card: tuple[int, int] | None  # of its ContextHandoffCard


class Parts(Value, kw_only=False):
    """A day as answers need it; sections in file order."""

    sections: tuple[Part, ...]
    remarks: tuple[Remark, ...]


def key(date: str) -> str:
    """Name the one partition of a day; `date` is YYYYMMDD."""
    return f"daily:{date}"


def parts(data: bytes, *, is_cut: bool = False) -> Parts:
    """Find the sections and cards of a day's bytes, or of a window that lacks the start."""
    found = day.parse(data, is_cut=is_cut)
    return Parts(
        tuple(_part(data, section) for section in found.sections),
        few(found.remarks),
    )


def partition(data: bytes) -> object:
    """Make the partition of a day's whole bytes."""
    found = parts(data)
    return {
        "sections": [
            [*section[:9], None if section.card is None else list(section.card)]
            for section in found.sections
        ],
        "remarks": [[remark.code, remark.line] for remark in found.remarks],
    }


def read(data: object) -> Parts:
    """Read what `partition` made."""
    match data:
        case {"sections": list(sections), "remarks": list(remarks)}:
            return Parts(tuple(map(_read_part, sections)), tuple(map(read_remark, remarks)))
        case _:
            raise ShapeError("daily")


def _part(data: bytes, section: day.Section) -> Part:
    found = card.find(data[section.body : section.end])
    place = None if found is None else (section.body + found.start, section.body + found.end)
    return Part(
        section.ordinal, section.id, section.title, section.status, section.state,
        section.is_managed, section.line, section.body, section.end, place,
    )  # fmt: skip


def _read_part(data: object) -> Part:
    match data:
        case [
            int(ordinal), str(name), str(title), None | str() as status, str(state),
            bool(is_managed), None | int() as line, int(body), int(end), place,
        ]:  # fmt: skip
            return Part(
                ordinal, name, title, status, read_state(state), is_managed, line, body, end,
                _read_card(place),
            )  # fmt: skip
        case _:
            raise ShapeError("section")


def _read_card(data: object) -> tuple[int, int] | None:
    match data:
        case None:
            return None
        case [int(start), int(end)]:
            return start, end
        case _:
            raise ShapeError("card")
