"""What an index keeps of a SUMMARY: where its rows are, folded so far as answers need (J58).

Rule 1: places, not text: a reader who hashed the file has its bytes and cuts the rows out itself.
Rule 2: an answer is made from this data, whether it was read from an index or made from a parse
        just now; that is why both answers are equal (J61).
Rule 3: one more row changes three partitions. What that cannot tell is made anew from the file.
Rule 4: data of another shape raises ShapeError: whoever wrote it, it is not ours.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from amux.core.value import Value
from amux.journal.remark import Remark, few
from amux.journal.text import summary
from amux.journal.text.insertion import is_closed
from amux.journal.text.status import FILTERS, UNRESOLVED, State
from amux.journal.text.summary import Conflict, Row, Summary

STATUS = "summary:status"
CURRENT = "summary:current"
ALL = "all"  # of CURRENT: the events, not folded
MAX_LATEST = 20
MAX_OPEN = 20
MAX_CONFLICTS = 20
MAX_ROWS = 50  # of each state: a first page of any limit

Data = dict[str, object]


class ShapeError(ValueError):
    """A partition's data is not what this release makes."""


class Place(NamedTuple):
    """Where a row stands; it has no line in a window that lacks the file's start."""

    line: int | None
    start: int
    end: int


class Event(NamedTuple):
    """A row of a month, without its text."""

    place: Place
    key: str
    state: State


class Listed(Value, kw_only=False):
    """Rows of one kind: how many there are, and where the newest are, newest first."""

    count: int
    places: tuple[Place, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether none is left out."""
        return len(self.places) == self.count


class Overview(Value):
    """What a status tells of a SUMMARY."""

    lines: int
    latest: tuple[Place, ...]
    open: tuple[Place, ...]
    conflicts: tuple[Conflict, ...]
    counts: Mapping[str, int]
    remarks: tuple[Remark, ...]
    is_appendable: bool

    @classmethod
    def of(cls, found: Summary, data: bytes) -> "Overview":
        """Tell it of what was just parsed."""
        folded = found.current()
        return cls(
            lines=data.count(b"\n"),
            latest=tuple(map(_place, found.rows[: -MAX_LATEST - 1 : -1])),
            open=tuple(_place(row) for row in reversed(folded) if row.state in UNRESOLVED)[
                :MAX_OPEN
            ],
            conflicts=found.conflicts()[:MAX_CONFLICTS],
            counts=_counts(row.state for row in folded),
            remarks=few(found.remarks),
            is_appendable=found.reaches_end and is_closed(data),
        )

    @classmethod
    def read(cls, data: object) -> "Overview":
        """Read what `as_data` wrote."""
        match data:
            case {
                "lines": int(lines),
                "latest": list(latest),
                "open": list(opened),
                "conflicts": list(conflicts),
                "counts": dict(counts),
                "remarks": list(remarks),
                "isAppendable": bool(is_appendable),
            }:
                return cls(
                    lines=lines,
                    latest=tuple(map(_read_place, latest)),
                    open=tuple(map(_read_place, opened)),
                    conflicts=tuple(map(_read_conflict, conflicts)),
                    counts={state: _number(counts.get(state)) for state in State},
                    remarks=tuple(map(read_remark, remarks)),
                    is_appendable=is_appendable,
                )
            case _:
                raise ShapeError(STATUS)

    def as_data(self) -> Data:
        """Spell it for an index."""
        return {
            "lines": self.lines,
            "latest": [list(place) for place in self.latest],
            "open": [list(place) for place in self.open],
            "conflicts": [[each.key, *each.states] for each in self.conflicts],
            "counts": dict(self.counts),
            "remarks": [[each.code, each.line] for each in self.remarks],
            "isAppendable": self.is_appendable,
        }


class Newest(Value, kw_only=False):
    """The newest current rows of each state, and the newest events, `all`."""

    of: Mapping[str, Listed]

    @classmethod
    def parsed(cls, found: Summary) -> "Newest":
        """Tell it of what was just parsed."""
        lists: dict[str, list[Row]] = {state: [] for state in State}
        for row in reversed(found.current()):
            lists[row.state].append(row)
        lists[ALL] = list(reversed(found.rows))
        return cls(
            {
                kind: Listed(len(rows), tuple(map(_place, rows[:MAX_ROWS])))
                for kind, rows in lists.items()
            }
        )

    @classmethod
    def read(cls, data: object) -> "Newest":
        """Read what `as_data` wrote."""
        found = {}
        for kind in (*State, ALL):
            match data:
                case dict() if isinstance(its := data.get(kind), dict):
                    places = its.get("places")
                    listed = places if isinstance(places, list) else []
                    found[str(kind)] = Listed(
                        _number(its.get("count")), tuple(map(_read_place, listed))
                    )
                case _:
                    raise ShapeError(CURRENT)
        return cls(found)

    def as_data(self) -> Data:
        """Spell it for an index."""
        return {
            kind: {"count": its.count, "places": [list(place) for place in its.places]}
            for kind, its in self.of.items()
        }

    def select(
        self, data: bytes, wanted: str, *, since: str | None, most: int
    ) -> tuple[int, list[Row]] | None:
        """Count the rows that a filter admits and give the newest `most`, newest first.

        `all` gives events, any other filter current rows. None is given where they are not all
        known here.
        """
        lists = [self.of[kind] for kind in ([ALL] if wanted == ALL else FILTERS[wanted])]
        is_whole = all(its.is_whole for its in lists)
        if since is not None and not is_whole:
            return None
        # What a list leaves out may come right after its last row: what is older is not sure.
        floor = max((_floor(its, len(data)) for its in lists), default=0)
        sure = [place for its in lists for place in its.places if place.start >= floor]
        sure.sort(key=lambda place: place.start, reverse=True)
        if since is None:
            rows = rows_at(data, sure[:most])
            counted = sum(its.count for its in lists)
            return (counted, rows) if is_whole or len(rows) == most else None
        rows = [row for row in rows_at(data, sure) if is_since(row, since)]
        return len(rows), rows[:most]


def select(found: Summary, wanted: str, *, since: str | None, most: int) -> tuple[int, list[Row]]:
    """Count the rows of a parse that a filter admits and give the newest `most`, newest first."""
    rows = [
        row
        for row in (found.rows if wanted == ALL else found.current())
        if (wanted == ALL or row.state in FILTERS[wanted])
        and (since is None or is_since(row, since))
    ]
    return len(rows), rows[: -most - 1 : -1]


def is_since(row: Row, since: str) -> bool:
    """Tell whether a row's date is a real one, and not before this."""
    return row.date >= since and summary.is_date(row.date)


def rows_at(data: bytes, places: Iterable[Place]) -> list[Row]:
    """Cut rows out of the bytes that they were found in."""
    found = (summary.row_at(data, *place) for place in places)
    return [row for row in found if row is not None]


def month_key(date: str) -> str:
    """Name the partition of a month; `date` is `YYYY-MM` or more."""
    return f"summary:{date[:7]}"


def month(found: Summary, date: str) -> tuple[Event, ...]:
    """Give the events of one month."""
    begin = date[:7]
    return tuple(
        Event(_place(row), row.key, row.state)
        for row in found.rows
        if row.is_canonical and row.date.startswith(begin)
    )


def read_month(data: object) -> tuple[Event, ...]:
    """Read a month's partition."""
    match data:
        case {"rows": str(text)}:
            return tuple(_read_event(line) for line in text.splitlines())
        case _:
            raise ShapeError("month")


def partitions(data: bytes) -> dict[str, Data]:
    """Make all partitions of a SUMMARY's whole bytes."""
    found = summary.parse(data)
    months: dict[str, list[Event]] = {}
    for row in found.rows:
        if row.is_canonical:
            event = Event(_place(row), row.key, row.state)
            months.setdefault(month_key(row.date), []).append(event)
    return {
        STATUS: Overview.of(found, data).as_data(),
        CURRENT: Newest.parsed(found).as_data(),
        **{key: _month_data(events) for key, events in months.items()},
    }


def after_row(data: bytes, old_size: int, old: Callable[[str], object]) -> dict[str, Data] | None:
    """Make the partitions that change when `data` got one row after its first `old_size` bytes.

    `old` gives a partition as it was, None where there was none. None is given where this cannot
    be told from the partitions alone, or they are not ours: then all of them are to be made anew.
    """
    try:
        return _after_row(data, old_size, old)
    except ShapeError:
        return None


def _after_row(data: bytes, old_size: int, old: Callable[[str], object]) -> dict[str, Data] | None:
    told = Overview.read(old(STATUS))
    added = summary.parse_end(data, old_size, in_table=True, lines=told.lines)
    if not told.is_appendable or added.remarks or len(added.rows) != 1:
        return None
    row = added.rows[0]
    key = month_key(row.date)
    if not row.is_canonical:
        return None
    of_month = old(key)
    before = () if of_month is None else read_month(of_month)
    event = Event(_place(row), row.key, row.state)
    happened = [each for each in (*before, event) if each.key == row.key]
    newest = _moved(Newest.read(old(CURRENT)), happened)
    opened = newest.select(data, "unresolved", since=None, most=MAX_OPEN)
    if opened is None:
        return None
    conflict = summary.conflict_of(row.key, [each.state for each in happened])
    conflicts = [each for each in told.conflicts if each.key != row.key]
    overview = Overview(
        lines=told.lines + 1,
        latest=(event.place, *told.latest)[:MAX_LATEST],
        open=tuple(map(_place, opened[1])),
        conflicts=((conflict, *conflicts) if conflict else tuple(conflicts))[:MAX_CONFLICTS],
        counts={state: newest.of[state].count for state in State},
        remarks=told.remarks,
        is_appendable=True,
    )
    return {
        STATUS: overview.as_data(),
        CURRENT: newest.as_data(),
        key: _month_data((*before, event)),
    }


def _moved(newest: Newest, happened: Sequence[Event]) -> Newest:
    """Take the last event of one key into the lists, and the one before it out of its state."""
    of = dict(newest.of)
    if len(happened) > 1:
        last = happened[-2]
        its = of[last.state]
        left = tuple(place for place in its.places if place != last.place)
        of[last.state] = Listed(its.count - 1, left)
    for kind in (happened[-1].state, ALL):
        its = of[kind]
        of[kind] = Listed(its.count + 1, (happened[-1].place, *its.places)[:MAX_ROWS])
    return Newest(of)


def _counts(states: Iterable[State]) -> dict[str, int]:
    counted = Counter(states)
    return {state: counted[state] for state in State}


def _floor(its: Listed, size: int) -> int:
    if its.is_whole:
        return 0
    return its.places[-1].start if its.places else size


def _place(row: Row) -> Place:
    return Place(row.line, row.start, row.end)


def _month_data(events: Iterable[Event]) -> Data:
    # One text a month: thousands of small values would take longer to spell than to find.
    lines = [
        f"{event.place.line} {event.place.start} {event.place.end} {event.state} {event.key}\n"
        for event in events
    ]
    return {"rows": "".join(lines)}


def _read_event(text: str) -> Event:
    match text.split(" "):
        case [line, start, end, state, key]:
            try:
                return Event(Place(int(line), int(start), int(end)), key, State(state))
            except ValueError as error:
                raise ShapeError("month") from error
        case _:
            raise ShapeError("month")


def _read_place(data: object) -> Place:
    match data:
        case [int(line), int(start), int(end)]:
            return Place(line, start, end)
        case _:
            raise ShapeError("place")


def _read_conflict(data: object) -> Conflict:
    match data:
        case [str(key), *states]:
            return Conflict(key, tuple(map(read_state, states)))
        case _:
            raise ShapeError("conflict")


def read_remark(data: object) -> Remark:
    """Read a remark; raises ShapeError."""
    match data:
        case [str(code), None | int() as line]:
            return Remark(code, line)
        case _:
            raise ShapeError("remark")


def read_state(data: object) -> State:
    """Read the name of a state; raises ShapeError."""
    try:
        return State(str(data))
    except ValueError as error:
        raise ShapeError("state") from error


def _number(data: object) -> int:
    if isinstance(data, int):
        return data
    raise ShapeError("number")
