"""What a status tells of a workspace's sessions, and which call comes next (J53, J71).

Rule 1: what one agent left is seen by the next: other agents' open sessions are told.
Rule 2: SUMMARY and days may disagree; both are told, neither is corrected.
Rule 3: the next call is one that J53 would have the agent make; None where nothing is open.
"""

import re
from datetime import date
from functools import lru_cache

from amux.core.value import Value
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.call.errand import Errand
from amux.journal.ground.agent import AGENTS
from amux.journal.refusals import next_call
from amux.journal.remark import Remark
from amux.journal.sessions.answer import Json, put_together
from amux.journal.sessions.scribe import day_path, summary_path
from amux.journal.sessions.summaryview import SummaryView, shown
from amux.journal.store import dayranges, window
from amux.journal.store.dayranges import Part, Parts
from amux.journal.store.summaryranges import rows_at
from amux.journal.store.window import Window
from amux.journal.text import summary
from amux.journal.text.status import UNRESOLVED, State
from amux.journal.text.summary import Row

MAX_CONFLICTS = 20
MAX_OTHERS = 8
MAX_OTHERS_OPEN = 5
OTHERS_BYTES = 64 * 1024  # of each other agent's SUMMARY: enough for its last hundreds of rows
OLD_DAYS = 14  # an open row older than this is located first, and named to the person (J53)
CLIENTS = ".memory/clients"

_AGENT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Day(Value, kw_only=False):
    """A day of the agent, as a status looks at it."""

    date: date
    window: Window
    parts: Parts

    def key(self, part: Part) -> str:
        """Name a section across days."""
        return f"{self.date}#{part.id}"

    def shown(self) -> Json:
        """Spell what there is of the file."""
        source = self.window.source()
        return {
            "date": f"{self.date:%Y%m%d}",
            **{name: source[name] for name in ("path", "exists", "bytes", "modifiedAt")},
        }


class Open(Value, kw_only=False):
    """An unfinished session, as far as the next call needs it."""

    row: Row
    agent: str | None
    has_card: bool


def status(ground: Ground | None, errand: Errand) -> Json:
    """Make the answer of memory_status."""
    view = SummaryView(ground, errand)
    overview = view.overview
    days = [_day(ground, errand.agent, when) for when in (errand.now.today, errand.now.yesterday)]
    open_rows = rows_at(view.data, overview.open)
    cards = [day.key(part) for day in days for part in reversed(day.parts.sections) if part.card]
    others, left, unread = _others(ground, errand)
    conflicts = [
        *_mismatches(view, days),
        *(_conflict("summary-reopened", each.key, each.states) for each in overview.conflicts),
    ]
    content: Json = {
        "today": days[0].shown(),
        "yesterday": days[1].shown(),
        "latestRows": [
            shown(view.data, row)
            for row in rows_at(view.data, overview.latest[: errand.number("limit")])
        ],
        "openSessionKeys": [row.key for row in open_rows],
        "cards": list(dict.fromkeys(cards)),
        "conflicts": conflicts[:MAX_CONFLICTS],
        "counts": dict(overview.counts),
        "otherAgents": others,
    }
    remarks = [
        *overview.remarks,
        *(remark for day in days for remark in (*day.parts.remarks, *_without_status(day))),
        *unread,
    ]
    found = put_together(
        "MemoryStatusV1", errand, view.window, content, remarks, index_receipt=view.receipt
    )
    own = [Open(row, None, row.key in cards) for row in open_rows if row.is_canonical]
    found["reportDirectory"] = f"reports/<topic>/{errand.agent}/{errand.now.today:%Y%m%d}"
    found["nextCall"] = (
        _next(errand, own) or _next_of_day(errand, days, view) or _next(errand, left)
    )
    return found


def _day(ground: Ground | None, agent: str, when: date) -> Day:
    found = window.read(ground, day_path(agent, f"{when:%Y%m%d}"))
    return Day(when, found, dayranges.parts(found.data, is_cut=found.is_cut))


def _without_status(day: Day) -> list[Remark]:
    return [
        Remark("day-status-missing", part.line, part.id)
        for part in day.parts.sections
        if part.is_managed and part.state is State.UNKNOWN
    ]


def _mismatches(view: SummaryView, days: list[Day]) -> list[Json]:
    """Find sessions of the two days that are done by one account and open by the other."""
    found = []
    for day in days:
        told = {day.key(part): part.state for part in day.parts.sections}
        known = view.states(f"{day.date}") if told else {}
        for key, state in reversed(told.items()):
            both = {state, known.get(key, state)}
            if State.COMPLETED in both and both & UNRESOLVED:
                found.append(_conflict("summary-day-mismatch", key, (known[key], state)))
    return found


def _conflict(kind: str, key: str, states: tuple[State, ...]) -> Json:
    return {"kind": kind, "sessionKey": key, "states": list(states)}


def _others(ground: Ground | None, errand: Errand) -> tuple[list[Json], list[Open], list[Remark]]:
    """Tell what other agents left: shown, as open sessions, and what could not be read."""
    names = [
        name
        for name in window.names(ground, CLIENTS)
        if name != errand.agent and _AGENT.fullmatch(name)
    ]
    told: list[Json] = []
    left: list[Open] = []
    remarks = [Remark("other-agents-cut")] if len(names) > MAX_OTHERS else []
    for name in names[:MAX_OTHERS]:
        try:
            shown_one, open_one = _other(ground, errand, name)
        except AmuxError:
            # Its link or its odd file is its own trouble, and doctor's: ours can still be told.
            remarks.append(Remark("other-agent-unreadable"))
        else:
            told.append(shown_one)
            left += open_one
    return told, left, remarks


def _other(ground: Ground | None, errand: Errand, name: str) -> tuple[Json, list[Open]]:
    found = window.read(ground, summary_path(name), max_bytes=OTHERS_BYTES)
    parsed = _parsed(found.data, found.is_cut)
    rows = [row for row in reversed(parsed.current()) if row.state in UNRESOLVED]
    days: dict[str, Day] = {}
    told, left = [], []
    for row in rows[:MAX_OTHERS_OPEN]:
        has_card = None
        for when in (errand.now.today, errand.now.yesterday):
            if row.is_canonical and row.date == f"{when}":
                day = days.get(row.date) or _day(ground, name, when)
                days[row.date] = day
                has_card = any(part.id == row.section and part.card for part in day.parts.sections)
        text = shown(found.data, row)["summary"]
        told.append({"sessionKey": row.key, "summary": text, "hasCard": has_card})
        if row.is_canonical and name in AGENTS:  # of a stranger's name no call can ask
            left.append(Open(row, name, bool(has_card)))
    last = shown(found.data, parsed.rows[-1]) if parsed.rows else None
    return {"id": name, "unresolved": told, "lastRow": last}, left


@lru_cache(maxsize=16)  # eight others at most, and most have not written since the last status
def _parsed(end: bytes, is_cut: bool) -> summary.Summary:
    return summary.parse(end, is_cut=is_cut)


def _next(errand: Errand, found: list[Open]) -> Json | None:
    """Name the call that shows the unfinished session of the latest date."""
    newest = max(found, key=lambda each: each.row.date, default=None)
    if newest is None:
        return None
    where = errand.where | ({"agent": newest.agent} if newest.agent else {})
    when = date.fromisoformat(newest.row.date)
    if not 0 <= (errand.now.today - when).days <= OLD_DAYS:
        return next_call(
            "memory_summary_query", where | {"status": "unresolved", "since": newest.row.date}
        )
    return _section(where, f"{when:%Y%m%d}", newest.row.section, has_card=newest.has_card)


def _next_of_day(errand: Errand, days: list[Day], view: SummaryView) -> Json | None:
    """Name the call that shows an unfinished section that has no row."""
    for day in days:
        waiting = [part for part in reversed(day.parts.sections) if part.state in UNRESOLVED]
        known = view.states(f"{day.date}") if waiting else {}
        for part in waiting:
            if day.key(part) not in known:
                date_text = f"{day.date:%Y%m%d}"
                return _section(errand.where, date_text, part.id, has_card=part.card is not None)
    return None


def _section(where: Json, day: str, name: str, *, has_card: bool) -> Json:
    arguments = where | {"date": day, "sessionId": name}
    return next_call(
        "memory_session_query", arguments | ({"handoffOnly": True} if has_card else {})
    )
