"""One agent's SUMMARY as a read sees it: from its index where that holds, else from its text (J60).

Rule 1: both ways lead to the same values, so to the same answer (J61); only the receipt differs.
Rule 2: the text is parsed once, and only if the index does not do.
"""

from functools import cached_property

from amux.disk.ground import Ground
from amux.journal.call.errand import Errand
from amux.journal.remark import Remark, few
from amux.journal.sessions.scribe import summary_path
from amux.journal.store import index, summaryranges, window
from amux.journal.store.summaryranges import CURRENT, STATUS, Newest, Overview, ShapeError
from amux.journal.text import summary
from amux.journal.text.status import State
from amux.journal.text.summary import Row, Summary, is_date

# J71: chars of each cell that an answer shows; a row's text is for finding, the day has it all.
_CUTS = (40, 64, 160, 2000, 500, 500, 100)
_FIELDS = ("date", "sessionId", "type", "summary", "report", "memory", "status")


class SummaryView:
    """The SUMMARY of the agent that a call is about."""

    def __init__(self, ground: Ground | None, errand: Errand) -> None:
        self.window = window.read(ground, summary_path(errand.agent))
        scope = index.Scope(
            agent=errand.agent, project=errand.target.project, scope=errand.target.scope
        )
        self._index = index.consult(ground, scope, self.window)

    @property
    def data(self) -> bytes:
        """Give the bytes that were read."""
        return self.window.data

    @property
    def receipt(self) -> dict[str, object]:
        """Tell whether the index did."""
        return self._index.receipt()

    @cached_property
    def overview(self) -> Overview:
        """Tell what a status tells."""
        kept = self._index.partition(STATUS)
        if kept is not None:
            try:
                return Overview.read(kept)
            except ShapeError:
                self._index.invalid()
        return Overview.of(self._parsed, self.data)

    def select(self, wanted: str, *, since: str | None, most: int) -> tuple[int, list[Row]]:
        """Count the rows that a filter admits and give the newest `most`, newest first."""
        kept = self._index.partition(CURRENT)
        if kept is not None:
            try:
                found = Newest.read(kept).select(self.data, wanted, since=since, most=most)
            except ShapeError:
                self._index.invalid()
            else:
                if found is not None:
                    return found
                self._index.insufficient()
        return summaryranges.select(self._parsed, wanted, since=since, most=most)

    def states(self, day: str) -> dict[str, State]:
        """Tell the state of each key of a month; `day` is `YYYY-MM-DD`."""
        key = summaryranges.month_key(day)
        if self._index.is_fresh and not self._index.has(key):
            return {}
        kept = self._index.partition(key)
        if kept is not None:
            try:
                return {event.key: event.state for event in summaryranges.read_month(kept)}
            except ShapeError:
                self._index.invalid()
        return {event.key: event.state for event in summaryranges.month(self._parsed, day)}

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Tell what was noticed in the text."""
        if self._index.is_fresh:
            return self.overview.remarks
        return few(self._parsed.remarks)

    @cached_property
    def _parsed(self) -> Summary:
        return summary.parse(self.data, is_cut=self.window.is_cut)


def shown(data: bytes, row: Row) -> dict[str, object]:
    """Spell a row of these bytes as answers show it, its cells cut (J71)."""
    first, _, *rest = summary.cells_of(data, row)
    cells = (first, row.section, *rest)
    cut = {name: cell[:most] for name, cell, most in zip(_FIELDS, cells, _CUTS, strict=True)}
    return {
        "date": cut["date"],
        "day": row.date if is_date(row.date) else None,
        "sessionId": cut["sessionId"],
        "sessionIdCanonical": row.is_canonical,
        **{name: cut[name] for name in _FIELDS[2:]},
        "state": row.state,
        "rowNumber": row.line,
        "truncated": any(len(cell) > most for cell, most in zip(cells, _CUTS, strict=True)),
    }
