"""The ring of one authority call (T4): lock, facts, commit, read back, effects; no decision.

Rule 1: everything happens under the root's lock, and the clock was read once.
Rule 2: a change of a task is one record replaced; what a call answers is what was read back.
Rule 3: a record that is damaged, or older than one this process has seen, is refused by name.
Rule 4: what follows a commit may fail and is said; the next authority call makes it good.
"""

from collections.abc import Callable
from typing import TypeVar

from amux.core.canonical import ABSENT
from amux.core.value import Value
from amux.disk import glance
from amux.errors import AmuxError, NotFound
from amux.journal.call.errand import Errand
from amux.journal.ground.layout import PROJECT
from amux.journal.ledger import meta, shape
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.record import Record, first
from amux.journal.ledger.shape import Misshapen
from amux.journal.ledger.state import RuntimeState
from amux.journal.machine import Create, DropLive, Effect, HoldLive, Refused
from amux.journal.store import root
from amux.journal.store.files import Edited, Writer
from amux.journal.store.root import Held, Place
from amux.journal.tasks import identity, observing, presence, retention, survey, taskfiles, view
from amux.journal.tasks import task as tasks
from amux.journal.tasks.checkpoint import WAITING
from amux.journal.tasks.context import WriteContext, write_context
from amux.journal.tasks.directory import KINDS
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.identity import Identity
from amux.journal.tasks.ingress import Session
from amux.journal.tasks.projectlease import Standing
from amux.journal.tasks.survey import Survey
from amux.journal.tasks.task import CLEAN, PENDING, Cause, TaskState
from amux.journal.tasks.view import View

MAX_STATES = 64
# What records say that were read already, by their digests: one call reads a record several times.
_STATES: dict[str, TaskState] = {}

T = TypeVar("T")
Warning = dict[str, object]  # noqa: A001 - its name in J56
LAYOUT = "layout.json"
_LAYOUT_MAX_BYTES = 64 * 1024


def run(errand: Errand, act: Callable[["Call"], T]) -> T:
    """Run one authority call under the lock of its target's root."""
    place = Place.of(errand.target, errand.around.uid)
    return root.hold(
        place,
        wait_ms=errand.around.lock_wait_ms,
        act=lambda held: act(Call.begin(errand, held)),
    )


class Loaded(Value, kw_only=False):
    """A task's record, and the state that it holds."""

    record: Record | None
    state: TaskState | None


class Call:
    """One authority call: what it stands on, and what it can do."""

    def __init__(
        self, errand: Errand, held: Held, standing: Standing, session: Record | None
    ) -> None:
        self.errand = errand
        self.held = held
        self.state = RuntimeState.of(held)
        self.ledger = Ledger(self.state)
        self.standing = standing
        self.warnings: list[Warning] = []
        self._session = session
        self._names: dict[str, str] = {}

    @classmethod
    def begin(cls, errand: Errand, held: Held) -> "Call":
        """Find out where the session stands, and make good what of its live file is gone."""
        around, now = errand.around, errand.now
        root_id = root.prepare(held, now=now, random_bytes=around.random_bytes)
        identity_digest = root.identity(
            glance.real(errand.target.active_root), errand.target.project, root_id
        )
        state = RuntimeState.of(held)
        ledger = Ledger(state)
        known = meta.settle(ledger, identity_digest, now.iso)
        record = ledger.read("session", errand.session_digest)
        standing = presence.standing(errand, known, record)
        errand.book.live.keep(state, errand.target.active_root, errand.session_digest)
        return cls(errand, held, standing, record)

    @property
    def session(self) -> Session | None:
        """Give what the ledger knows of the session."""
        return None if self._session is None else presence.session_of(self._session)

    @property
    def iso(self) -> str:
        """Spell the moment of the call."""
        return self.errand.now.iso

    def save_session(self, made: Session) -> None:
        """Keep what is new about the session; an equal record is not written again."""
        body = shape.encode(made)
        before = self._session
        if before is not None and before.body == body:
            return
        successor = (
            first("session", self.standing.session, body)
            if before is None
            else before.successor(body)
        )
        self._session = self.ledger.change(before, successor)

    def renewed(self, epoch: str) -> None:
        """Go on with a new context epoch in this call."""
        self.standing = self.standing.replace(context_epoch=epoch)

    def at_revision(self, revision: int) -> None:
        """Go on with the route revision that the call gives."""
        self.standing = self.standing.replace(route_revision=revision)

    def at_layout(self) -> None:
        """Look at the layout again, after this call has written it."""
        layout, earlier = presence.layouts(self.errand)
        self.standing = self.standing.replace(layout_identity=layout, earlier_layouts=earlier)

    def load(self, task_id: str) -> Loaded:
        """Read a task's record; refuses one that is damaged or was put back from a backup."""
        found = self.ledger.read("task", task_id)
        if found is None:
            return Loaded(None, None)
        state = state_of(found)
        self._note(state)
        return Loaded(found, state)

    def commit(self, before: Loaded, made: TaskState) -> Loaded:
        """Put a task's next state in its place, and give it as read back."""
        body = tasks.encode(made)
        record = (
            first("task", made.task_id, body)
            if before.record is None
            else before.record.successor(body)
        )
        written = self.ledger.change(before.record, record)
        if before.record is None:
            self.errand.book.seen.forget(self.standing.root_identity, made.task_id)
        state = state_of(written)
        self._note(state)
        return Loaded(written, state)

    def locate(self, name: str) -> tuple[str, str]:
        """Give taskId and path of the task that an argument names (T20)."""
        problem: AmuxError | None = None
        if identity.is_task_id(name):
            known = self.ledger.read("task", name)
            path = None if known is None else known.body.get("taskRootRelative")
            if isinstance(path, str):
                try:
                    there = taskfiles.identity_of(self.held.ground, path)
                except AmuxError as error:
                    problem, there = error, None
                if there is not None and there.task_id == name:
                    return name, path
        try:
            found = survey.locate(name, self.survey())
        except NotFound as error:
            # It stands where it always stood, and what is wrong with it there is to be told.
            raise problem or error from error
        if found.problem is not None:
            taskfiles.identity_of(self.held.ground, found.relative_path)
        if found.task_id is None:
            raise Refused(
                reason="TASK_ADMISSION_TRANSACTION_MISSING",
                message="the directory is no task yet",
                hint="adopt it, with the sentence of the person who asks for it as instruction",
            ).error()
        return found.task_id, found.relative_path

    def survey(self) -> Survey:
        """Look at every task directory of the root."""
        return survey.survey(self.held.ground, self.standing.project, self._usable)

    def survey_at_most(self, limit: int) -> Survey | None:
        """Look at every task directory, unless there are too many to do it in passing."""
        count = sum(len(taskfiles.names(self.held.ground, kind)) for kind in KINDS)
        return None if count > limit else self.survey()

    def require_room(self, adding: int) -> None:
        """Make room for records, or refuse (T9)."""
        retention.require_room(self.ledger, self.errand.now, adding=adding)

    def digest_of(self, path: str) -> str | None:
        """Name what a file below the active root holds; None where none can be seen."""
        found = observing.digest(self.held.ground, path)
        return None if found in (None, ABSENT) else found

    def report_directory(self, task_root: str) -> str:
        """Name where reports of a task go today (J33)."""
        return f"{task_root}/reports/{self.errand.agent}/{self.errand.now.today:%Y%m%d}"

    def facts(self, state: TaskState | None, *, path: str | None = None, name: str = "") -> Facts:
        """Gather what a machine may ask for about a task in this state."""
        around, standing = self.errand.around, self.standing
        place = path or ("" if state is None else state.task_root_relative)
        ground = self.held.ground
        owner = None if state is None else state.owner
        opened = None if state is None else state.operation
        return Facts(
            standing=standing,
            name=name or ("" if state is None else state.task_id),
            target=self.target_arguments(),
            artifacts={}
            if state is None
            else observing.artifacts(ground, place, state.checkpoints),
            is_archived=bool(place) and survey.is_archived(ground, place),
            is_identity_valid=self._is_identity_valid(state, place),
            is_owner_live=owner is not None
            and owner.session_digest != standing.session
            and self.state.is_live(owner.session_digest),
            targets={}
            if opened is None
            else observing.targets(
                ground, self.errand.target.source, [one.path for one in opened.targets]
            ),
            seen_context=self._seen_context(state),
            nonce=around.random_bytes(20).hex(),
            lease_id=f"adl-{around.random_bytes(16).hex()}",
            operation_id=f"op-{around.random_bytes(8).hex()}",
        )

    def target_arguments(self) -> dict[str, object]:
        """Give what a next call adds to mean the same project."""
        if self.errand.target.layout.kind == PROJECT:
            return {}
        return {"project": self.standing.project}

    def run_effects(self, effects: tuple[Effect, ...], task_id: str) -> None:
        """Run the effects that need no record: files that are made, live files kept and dropped."""
        book, active = self.errand.book, self.errand.target.active_root
        for effect in effects:
            match effect:
                case Create(path=path, data=data):
                    taskfiles.create(self.writer(), path, data)
                case HoldLive():
                    book.live.hold(self.state, active, self.standing.session, task_id)
                case DropLive():
                    book.live.drop(self.state, active, self.standing.session, task_id)
                case _:
                    pass  # rendering and routes have their own time

    def writer(self) -> Writer:
        """Give the writer of files of this call."""
        return Writer(self.held, now=self.errand.now, random_bytes=self.errand.around.random_bytes)

    def view(self, state: TaskState) -> View:
        """Give what is to be seen of a task's checkpoints."""
        seen = observing.artifacts(self.held.ground, state.task_root_relative, state.checkpoints)
        return View(
            checkpoints=state.checkpoints,
            stale=state.checkpoints.stale(seen),
            task_root=state.task_root_relative,
            zone=self.errand.around.zone,
        )

    def render(self, before: Loaded, request_digest: str) -> tuple[Loaded, object]:
        """Bring the view up to a record that is ahead of it; give J64's receipt of it (T48).

        What fails is said, and leaves the record as it is: pending.
        """
        state = before.state
        if state is None or state.projection != PENDING:
            return before, None
        try:
            written = self.write_view(state)
        except AmuxError as error:
            self.warnings.append(
                {"code": "view-pending", "reason": str(error.details.get("reason", error.code))}
            )
            return before, None
        cause = Cause(
            op="render", session=self.standing.session, request_digest=request_digest, at=self.iso
        )
        return self.commit(before, tasks.follow(state, cause, projection=CLEAN)), written

    def write_view(self, state: TaskState) -> object:
        """Render a task's `sessions.md`, and give the receipt of its write."""
        shown = self.view(state)
        ended = None if state.terminal is None else state.terminal.terminal_status

        def edit(data: bytes | None) -> Edited[list[Warning]]:
            old = data or b""
            found = [one for one in view.drift(old, shown) if one["code"] == "cp-row-outside-block"]
            made = view.render(old, shown)
            if ended is not None or _is_reopened(state):
                made, fits = view.with_status(made, ended)
                if not fits:
                    found.append({"code": "status-line-drift"})
            return Edited(made, found)

        written = self.writer().write(shown.document, edit, is_view=True)
        self.warnings += written.value
        return written.receipt

    def saw(self, state: TaskState) -> WriteContext:
        """Give the write context of a receipt, and remember that it was returned (T56)."""
        found = write_context(state)
        active = self.errand.target.active_root
        self.errand.book.saw(active, state.task_id, found.context_digest)
        return found

    def _seen_context(self, state: TaskState | None) -> str | None:
        if state is None:
            return None
        given = self.errand.arguments.get("contextDigest")
        if not isinstance(given, str):
            return self.errand.book.context(self.errand.target.active_root, state.task_id)
        present = write_context(state).context_digest
        return present if present.startswith(given.lower()) else given

    def _is_identity_valid(self, state: TaskState | None, place: str) -> bool:
        if state is None or not place:
            return True
        try:
            found = taskfiles.identity_of(self.held.ground, place)
        except AmuxError:
            return False
        return isinstance(found, Identity) and (found.task_id, found.task_root_relative) == (
            state.task_id,
            place,
        )

    def _usable(self, task_id: str) -> TaskState | None:
        """Give a task's state if it counts; for names, not for authority."""
        try:
            found = self.ledger.read("task", task_id)
            state = None if found is None else state_of(found)
        except AmuxError:
            return None
        return None if state is None or state.is_foreign(self.standing) else state

    def _note(self, state: TaskState) -> None:
        if not state.is_foreign(self.standing):
            pair = (state.runtime_generation, state.state_sequence)
            self.errand.book.seen.note(self.standing.root_identity, state.task_id, pair)


def _is_reopened(state: TaskState) -> bool:
    """Tell whether a task was opened again and nothing was confirmed since."""
    first_slot = state.checkpoints.slots[0]
    return state.lifecycle_revision > 1 and first_slot.status == WAITING


def state_of(record: Record) -> TaskState:
    """Read the state that a task's record holds, or refuse the record as damaged."""
    known = _STATES.get(record.digest)
    if known is not None:
        return known
    try:
        state = tasks.decode(record.body)
    except Misshapen as error:
        raise record.corrupt("body") from error
    if state.state_sequence != record.seq or state.task_id != record.key:
        raise record.corrupt("sequence")
    if len(_STATES) >= MAX_STATES:
        _STATES.clear()
    _STATES[record.digest] = state
    return state
