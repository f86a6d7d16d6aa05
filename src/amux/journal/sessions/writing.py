"""The four writers of the journal as tools (J71): a section, its text, a SUMMARY row, a decision.

Rule 1: the desk has checked what all tools share; a writer checks its own arguments, then secrets,
        then takes the lock. The first failure is the answer, and changed nothing.
Rule 2: a repeat is recognised by its content, writes nothing, and says so (J65).
"""

from collections.abc import Mapping
from datetime import date

from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal.call.errand import Errand
from amux.journal.remark import Remark, as_json
from amux.journal.sessions import artifact, sessionwrite
from amux.journal.sessions.scribe import Receipt, Scribe, day_path, run
from amux.journal.sessions.summaryrow import Cells, append_row
from amux.journal.sessions.taskpart import TaskPart
from amux.journal.store.files import Edited
from amux.journal.store.root import Place, opened
from amux.journal.text import day as days
from amux.journal.text import decisions, event, secretscan
from amux.journal.text.status import State, state_of

DECIDED = "MemoryDecisionReceiptV1"
PROJECT_SUMMARY = ".memory/SUMMARY.md"
NOT_IN_DAY = "session-not-in-day"
EMPTY = "—"


def allocate(errand: Errand) -> Receipt:
    """Open a section without text (memory_session_allocate)."""
    return sessionwrite.allocate(errand)


def write(errand: Errand, tasks: TaskPart | None = None) -> Receipt:
    """Add to a section of one's own, or open one (memory_session_write)."""
    return sessionwrite.write(errand, tasks)


def append(errand: Errand) -> Receipt:
    """Append one event row to the agent's SUMMARY (memory_summary_append)."""
    report = artifact.links(errand.arguments.get("reportArtifact"), "reportArtifact")
    memory = artifact.links(errand.arguments.get("memoryArtifact"), "memoryArtifact")
    given = _given(errand)
    remarks = secretscan.scan(errand.arguments)
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        artifact.require_targets(ground, report, "reportArtifact")
        artifact.require_targets(ground, memory, "memoryArtifact")

    def act(scribe: Scribe) -> Receipt:
        cells, is_found = _placed(errand, scribe, given)
        cells = cells.replace(
            report=report[0] if report else cells.report,
            memory=memory[0] if memory else cells.memory,
        )
        found = append_row(errand, scribe, cells)
        noted = remarks if is_found else [*remarks, Remark(NOT_IN_DAY)]
        return {**found, "warnings": as_json(noted)}

    return run(errand, act)


def decide(errand: Errand) -> Receipt:
    """Record a key decision of the project (memory_decision_append)."""
    evidence = artifact.links(errand.arguments.get("evidence"), "evidence")
    remarks = secretscan.scan(errand.arguments)
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        artifact.require_targets(ground, evidence, "evidence")
    cells = (
        errand.text("day") or f"{errand.now.today}",
        errand.text("decision") or EMPTY,
        errand.text("reason") or EMPTY,
        errand.text("impact") or EMPTY,
        evidence[0].render(PROJECT_SUMMARY) if evidence else EMPTY,
    )

    def edit(old: bytes | None) -> Edited[tuple[int, bool]]:
        known = decisions.is_repeat(old, cells)
        if known is not None:
            return Edited(old or b"", (known.line, True))
        added = decisions.append(old, cells, project=errand.target.project)
        return Edited(added.data, (added.data.count(b"\n", 0, added.start) + 1, False))

    done = run(errand, lambda scribe: scribe.write(PROJECT_SUMMARY, edit))
    line, is_repeat = done.value
    return {
        "schemaVersion": DECIDED,
        "rowNumber": line,
        "transaction": done.receipt,
        "replayed": is_repeat,
        "warnings": as_json(remarks),
    }


class _Given(Value, kw_only=False):
    """A row as the caller gives it; without a day it goes under that of its section."""

    cells: Cells
    day: str | None


def _given(errand: Errand) -> _Given:
    row = errand.text("row")
    if row is not None:
        first, section, kind, summary, report, memory, state = event.check_row(row)
        name = days.canonical_id(section.removeprefix("#")) or section
        cells = Cells(
            day=first[:10], section=name, kind=kind, summary=summary, report=report,
            memory=memory or EMPTY, state=state_of(state),
        )  # fmt: skip
        return _Given(cells, first[:10])
    entry = errand.arguments.get("entry")
    assert isinstance(entry, Mapping)
    section = str(entry["sessionId"])
    day = entry.get("day")
    cells = Cells(
        day=f"{errand.now.today}", section=days.canonical_id(section) or section,
        kind=event.check_type(str(entry["type"])), summary=str(entry["summary"]), report=None,
        memory=None, state=State(str(entry["status"])),
    )  # fmt: skip
    return _Given(cells, day if isinstance(day, str) else None)


def _placed(errand: Errand, scribe: Scribe, given: _Given) -> tuple[Cells, bool]:
    """Give the row under the day of its section, and whether such a section was found."""
    if given.day is not None:
        at = date.fromisoformat(given.day)
        is_found = _has(errand, scribe, at, given.cells.section)
        memory = given.cells.memory if is_found else given.cells.memory or EMPTY
        return given.cells.replace(day=given.day, memory=memory), is_found
    for at in (errand.now.today, errand.now.yesterday):
        if _has(errand, scribe, at, given.cells.section):
            return given.cells.replace(day=f"{at}"), True
    return given.cells.replace(memory=given.cells.memory or EMPTY), False


def _has(errand: Errand, scribe: Scribe, at: date, section: str) -> bool:
    try:
        data = scribe.look(day_path(errand.agent, f"{at:%Y%m%d}"))
    except AmuxError:
        return False
    found = days.parse(data or b"").with_id(section)
    return any(each.is_managed for each in found)
