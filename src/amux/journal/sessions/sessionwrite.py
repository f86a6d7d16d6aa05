"""Opening a section and adding to one: the parts of one call, in their order (J71, J74, J65).

Rule 1: text first, then the task's notes, the SUMMARY row last; all parts are checked before the
        first is committed. What was committed stays; the same call sent again does the rest.
Rule 2: a failure of a later part is told in the receipt, with the same call as the next one.
Rule 3: a part that is there already is recognised by its content and written no second time.
"""

from collections.abc import Callable

from amux.core import canonical
from amux.errors import AmuxError
from amux.journal.call.errand import Errand
from amux.journal.refusals import next_call, refuse
from amux.journal.remark import Remark, as_json
from amux.journal.sessions import artifact, sessiontext
from amux.journal.sessions.scribe import Receipt, Scribe, day_path, run
from amux.journal.sessions.sessiontext import Text
from amux.journal.sessions.summaryrow import Cells, append_row, check_row
from amux.journal.sessions.tasknotes import add_notes, check_notes
from amux.journal.sessions.taskpart import TaskNotes, TaskPart
from amux.journal.store.root import Place, opened
from amux.journal.text import event, secretscan
from amux.journal.text.section import Block
from amux.journal.text.status import State

ALLOCATED = "MemorySessionAllocationReceiptV1"
WRITTEN = "MemorySessionWriteReceiptV1"
TOOL = "memory_session_write"
REPEATED_MAX_BYTES = 2048  # of arguments that a receipt gives back: the rest the caller has


def allocate(errand: Errand) -> Receipt:
    """Open a section without text, or find again the one that the same call opened."""
    opening = sessiontext.opening(errand)
    remarks = secretscan.scan(errand.arguments)
    text = run(errand, lambda scribe: sessiontext.open_one(errand, scribe, opening, None))
    return {
        "schemaVersion": ALLOCATED,
        "date": text.date,
        "sessionId": text.section.id,
        "sessionBinding": text.section.token,
        "sessionBindingSchemaVersion": "MemorySessionBindingV1",
        "section": text.section.handle,
        "transaction": text.transaction,
        "indexReceipt": text.index,
        "replayed": text.is_repeat,
        "warnings": as_json(remarks),
    }


def write(errand: Errand, tasks: TaskPart | None = None) -> Receipt:
    """Add text, a card, a status or a SUMMARY row to a section, and open one if none is named."""
    return _Write(errand, tasks).receipt()


class _Write:
    """One memory_session_write; what it has committed it keeps if the lock is lost meanwhile."""

    def __init__(self, errand: Errand, tasks: TaskPart | None) -> None:
        self._errand = errand
        self._tasks = tasks
        self._named = sessiontext.named(errand)
        self._opening = sessiontext.opening(errand) if self._named is None else None
        self._links = artifact.links(errand.arguments.get("artifacts"), "artifacts")
        self._remarks = secretscan.scan(errand.arguments)
        self._text: Text | None = None
        self._entry: Receipt | None = None
        self._event: Receipt | None = None
        self._pending: dict[str, AmuxError] = {}

    def receipt(self) -> Receipt:
        """Do it, and tell what stands."""
        errand = self._errand
        place = Place.of(errand.target, errand.around.uid)
        with opened(place) as ground:
            artifact.require_targets(ground, self._links, "artifacts")
            document = day_path(errand.agent, sessiontext.date_of(errand))
            self._remarks += artifact.remarks(ground, document, errand.text("content") or "")
        try:
            run(errand, self._parts)
        except AmuxError as refusal:
            if self._text is None:
                raise
            # The text is there: what is missing is no refusal of the call.
            if self._has_notes and self._entry is None:
                self._pending.setdefault("task-entry-pending", refusal)
            if self._cells is not None and self._event is None:
                self._pending.setdefault("row-pending", refusal)
        assert self._text is not None
        return self._told(self._text)

    @property
    def _has_notes(self) -> bool:
        return self._errand.text("task") is not None and self._errand.text("content") is not None

    @property
    def _cells(self) -> str | None:
        return self._errand.text("row")

    def _parts(self, scribe: Scribe) -> None:
        """Do all parts that are not done yet."""
        notes = self._notes(scribe)
        if self._text is None:
            block = self._block(scribe)
            self._check(scribe, notes)
            self._text = self._place(scribe, block)
        text = self._text
        if notes is not None and self._entry is None:
            self._entry = self._later(
                "task-entry-pending", lambda: add_notes(self._errand, scribe, notes, text)
            )
        if self._cells is not None and self._event is None:
            cells = self._row(text)
            self._event = self._later(
                "row-pending", lambda: append_row(self._errand, scribe, cells)
            )

    def _later(self, code: str, part: Callable[[], Receipt]) -> Receipt | None:
        """Do a part after the first: what refuses it is told, and ends nothing."""
        try:
            return part()
        except AmuxError as refusal:
            self._pending[code] = refusal
            return None

    def _check(self, scribe: Scribe, notes: TaskNotes | None) -> None:
        if notes is not None:
            check_notes(scribe, notes)
        if self._cells is not None:
            check_row(self._errand, scribe, self._cells)

    def _place(self, scribe: Scribe, block: Block | None) -> Text:
        if self._named is not None:
            return sessiontext.extend_one(self._errand, scribe, self._named, block)
        assert self._opening is not None
        return sessiontext.open_one(self._errand, scribe, self._opening, block)

    def _row(self, text: Text) -> Cells:
        errand = self._errand
        return Cells(
            day=f"{text.date[:4]}-{text.date[4:6]}-{text.date[6:]}",
            section=text.section.id,
            kind=_kind(text.section.intent),
            summary=self._cells or "",
            report=self._links[0] if self._links else None,
            memory=None,
            state=_state(errand.text("status"), text),
        )

    def _notes(self, scribe: Scribe) -> TaskNotes | None:
        task = self._errand.text("task")
        if task is None:
            return None
        if self._tasks is None:
            raise _no_task(task)
        status = self._errand.text("status")
        notes = self._tasks.notes(self._errand, scribe.held, task, status=status)
        return notes if self._has_notes else None

    def _block(self, scribe: Scribe) -> Block | None:
        """Give what is added to the section; None where only a row is."""
        errand = self._errand
        document = day_path(errand.agent, self._date(scribe))
        rendered = tuple(link.render(document) for link in self._links)
        status = errand.text("status")
        block = Block(
            content=errand.text("content") or "",
            links=rendered,
            card=sessiontext.card(errand, scribe, self._links, rendered, self._tasks),
            status=State(status) if status else None,
        )
        return block if block != Block() else None

    def _date(self, scribe: Scribe) -> str:
        """Find the day of the section that is named, once: links are written for it."""
        if self._named is not None:
            self._named = sessiontext.located(self._errand, scribe, self._named)
            return self._named.date or ""
        return sessiontext.date_of(self._errand)

    def _told(self, text: Text) -> Receipt:
        is_repeat = text.is_repeat and not self._pending
        for part in (self._entry, self._event):
            is_repeat = is_repeat and (part is None or part["replayed"] is True)
        remarks = [*self._remarks, *(Remark(code) for code in self._pending)]
        found: Receipt = {
            "schemaVersion": WRITTEN,
            "mode": "bound-session",
            "date": text.date,
            "sessionId": text.section.id,
            "section": text.section.handle,
            "opened": text.is_opened,
            "bindingStatus": "verified",
            "targetBeforeDigest": text.before,
            "targetAfterDigest": text.after,
            "nonTargetStable": True,
            "readbackVerified": True,
            "transaction": text.transaction,
            "summaryEvent": self._event,
            "taskEntry": self._entry,
            "indexReceipt": text.index,
            "replayed": is_repeat,
            "warnings": as_json(remarks),
            "nextCall": self._again() if self._pending else self._next(text),
        }
        if text.is_opened:
            found["sessionBinding"] = text.section.token
        return found

    def _again(self) -> Receipt:
        """Give the same call, without its content where that is long."""
        arguments = dict(self._errand.arguments)
        if len(canonical.encode(arguments)) <= REPEATED_MAX_BYTES:
            return next_call(TOOL, arguments)
        left_out = [name for name in ("content", "handoff") if arguments.pop(name, None)]
        return next_call(TOOL, arguments, fill=left_out)

    def _next(self, text: Text) -> Receipt | None:
        """Give the call that goes on in this section, unless it is finished."""
        errand = self._errand
        if errand.text("status") == State.COMPLETED.value:
            return None
        arguments: Receipt = {
            name: errand.arguments[name]
            for name in ("agent", "project", "scope")
            if name in errand.arguments
        }
        arguments["section"] = text.section.handle
        if text.date != f"{errand.now.today:%Y%m%d}":
            arguments["date"] = text.date
        return next_call(TOOL, arguments, fill=["content"])


def _kind(intent: str | None) -> str:
    """Spell a section's intent as the type of its row; what people made of it may be none."""
    try:
        return event.type_cell(event.check_type(intent or "", may_be_unspecified=True))
    except AmuxError:
        return "other"


def _state(status: str | None, text: Text) -> State:
    if status is not None:
        return State(status)
    return State.ACTIVE if text.section.state is State.UNKNOWN else text.section.state


def _no_task(task: str) -> AmuxError:
    return refuse(
        "TASK_NOT_FOUND",
        "no task of this name takes notes here",
        hint="resolve the name with memory_task_resolve, or write without task",
        task=task,
    )
