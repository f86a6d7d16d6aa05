"""The newest hand-off card of a task, in whichever agent's day it stands (T65).

Rule 1: the days of all agents of the last fourteen, newest first, within 8 MiB; what lies beyond
        is as if it were not there.
Rule 2: a card names its task by id. What it says is data, and grants nothing.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from amux.core.value import Value
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.finding import diff
from amux.journal.finding.diff import Card
from amux.journal.store import window
from amux.journal.text import card, day

DAYS = 14
READ_BYTES = 8 * 1024 * 1024
SHOWN_CHARS = 4_000  # of a card in an answer (T41)
_CLIENTS = ".memory/clients"
_TIME = re.compile(r"^- \*\*时间\*\*[：:](.*)$", re.MULTILINE)
_AGENT = re.compile(r"[a-z][a-z-]{0,63}")


class Handoff(Value):
    """A card as it was found."""

    agent: str
    date: str
    section: str
    text: str
    """As answers show it: tokens hidden, and cut."""
    compared: Card


def newest(ground: Ground | None, task_id: str, today: date) -> Handoff | None:
    """Find the newest card that names a task."""
    left = READ_BYTES
    agents = _agents(ground)
    for back in range(-1, DAYS):  # a day may have been begun in a zone that is ahead
        when = f"{today - timedelta(days=back):%Y%m%d}"
        found: list[tuple[tuple[int, str, str, int], Handoff]] = []
        for agent in agents:
            if left <= 0:
                break
            seen = _window(ground, f"{_CLIENTS}/{agent}/tasks/{when}.md", left)
            left -= len(seen.data)
            found += list(_in_day(seen, agent, when, task_id))
        if found:
            return max(found, key=lambda one: one[0])[1]
    return None


def _agents(ground: Ground | None) -> list[str]:
    try:
        return [name for name in window.names(ground, _CLIENTS) if _AGENT.fullmatch(name)]
    except AmuxError:
        return []


def _window(ground: Ground | None, path: str, left: int) -> window.Window:
    try:
        return window.read(ground, path, max_bytes=left)
    except AmuxError:  # what is odd about one agent's day hides no other's
        return window.Window(path, b"", 0, None)


def _in_day(
    seen: window.Window, agent: str, when: str, task_id: str
) -> Iterator[tuple[tuple[int, str, str, int], Handoff]]:
    if task_id.encode() not in seen.data:
        return
    for section in day.parse(seen.data, is_cut=seen.is_cut).sections:
        body = seen.data[section.body : section.end]
        found = card.find(body)
        if found is None or found.values.get("task") != task_id:
            continue
        said = diff.read_state_line(found.values.get(card.STATE, ""))
        action = found.values.get("next-action")
        # Two agents' cards of one day: the ledger's own count tells which came later.
        sequence = said["stateSequence"] if said is not None else None
        rank = (
            sequence if isinstance(sequence, int) else -1,
            _stamp(body),
            agent,
            section.ordinal,
        )
        yield (
            rank,
            Handoff(
                agent=agent,
                date=when,
                section=section.id,
                text=day.shown(body[found.start : found.end])[:SHOWN_CHARS],
                compared=Card(task_id, said, None if action in (None, card.ABSENT) else action),
            ),
        )


def _stamp(body: bytes) -> str:
    match = _TIME.search(body.decode("utf-8", "replace"))
    return "" if match is None else match[1].strip()
