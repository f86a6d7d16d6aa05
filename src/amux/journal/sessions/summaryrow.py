"""One row of the agent SUMMARY as an edit of it: appended, or recognised as there (J47, J65).

Rule 1: a row is keyed by the day that holds its section, so that a session which ends after
        midnight still folds.
"""

from amux.core.value import Value
from amux.journal.call.errand import Errand
from amux.journal.sessions.scribe import Receipt, Scribe, day_path, summary_path
from amux.journal.store.files import Edit, Edited
from amux.journal.text import event
from amux.journal.text.link import Link
from amux.journal.text.status import GLYPHS, State

SCHEMA = "MemorySummaryEventReceiptV1"
SEMANTICS = "append-only-last-event-wins"
EMPTY = "—"


class Cells(Value):
    """What a row says, before it is spelled."""

    day: str
    """YYYY-MM-DD of the day that holds the section."""
    section: str
    kind: str
    summary: str
    report: Link | str | None
    memory: Link | str | None
    """None is the day."""
    state: State


class _Row(Value, kw_only=False):
    line: int
    is_repeat: bool


def append_row(errand: Errand, scribe: Scribe, cells: Cells) -> Receipt:
    """Append a row, or find that it is the current one of its key; give the event's receipt."""
    done, index = scribe.write_summary(_edit(errand, cells))
    return {
        "schemaVersion": SCHEMA,
        "semantics": SEMANTICS,
        "sessionKey": f"{cells.day}#{cells.section}",
        "currentState": cells.state.value,
        "rowNumber": done.value.line,
        "transaction": done.receipt,
        "indexReceipt": index,
        "replayed": done.value.is_repeat,
        "warnings": [],
    }


def check_row(errand: Errand, scribe: Scribe, summary: str) -> None:
    """Let a row refuse before anything else is committed; the rest of it is ours to write."""
    cells = Cells(
        day=f"{errand.now.today}", section="01", kind="other", summary=summary, report=None,
        memory=None, state=State.ACTIVE,
    )  # fmt: skip
    # Whether a row is one depends on no other row.
    _edit(errand, cells)(None)
    scribe.require_writable(summary_path(errand.agent))


def _edit(errand: Errand, cells: Cells) -> Edit[_Row]:
    spelled = _spelled(errand, cells)

    def edit(old: bytes | None) -> Edited[_Row]:
        data = old or b""
        known = event.is_repeat(data, spelled)
        if known is not None:
            return Edited(data, _Row(known.line or 0, is_repeat=True))
        added = event.append(old, spelled, agent=errand.agent, project=errand.target.project)
        line = added.data.count(b"\n", 0, added.start) + 1
        return Edited(added.data, _Row(line, is_repeat=False))

    return edit


def _spelled(errand: Errand, cells: Cells) -> tuple[str, ...]:
    now, document = errand.now, summary_path(errand.agent)
    date = cells.day.replace("-", "")
    memory = cells.memory or Link(f"{date}.md", day_path(errand.agent, date))
    return (
        event.date_cell(cells.day, today=f"{now.today}", minute=now.minute),
        cells.section,
        cells.kind,
        cells.summary,
        _cell(cells.report, document),
        _cell(memory, document),
        GLYPHS[cells.state],
    )


def _cell(link: Link | str | None, document: str) -> str:
    if isinstance(link, Link):
        return link.render(document)
    return link or EMPTY
