"""A root in memory: the pure machines of tasks, run by a ring that may die between any two steps.

What the machines decide is believed; what they must never decide is watched from outside, by what
was issued, written and committed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from amux.core import canonical
from amux.core.canonical import ABSENT
from amux.journal.admission import admission, admissionlease
from amux.journal.admission.asking import Ask, PlannedFile
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Create, HoldLive, Refused
from amux.journal.moment import Moment
from amux.journal.tasks import checkpoint, context, identity, ingress, owning, settling, task, view
from amux.journal.tasks.admissionrecord import CP_STATE, IDENTITY, OVERVIEW, Recovery
from amux.journal.tasks.checkpoint import Answer
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.identity import Identity
from amux.journal.tasks.ingress import Ingress, Session, Use
from amux.journal.tasks.owning import Release, Renew
from amux.journal.tasks.projectlease import Standing
from amux.journal.tasks.settling import Begin, Reconcile, Settle
from amux.journal.tasks.task import Evidence, TaskState
from amux.journal.work import closeout
from amux.journal.work.closeout import Finish

START = Moment(datetime(2026, 3, 14, 9, 20, tzinfo=UTC))
OVERVIEW_NAME = "00-问题概况.md"


class Crash(Exception):
    """The process died here."""


@dataclass
class Someone:
    """A session: what it remembers, and whether a process of it lives."""

    name: str
    digest: str
    agent: str
    is_live: bool = False
    epoch: str = "ctx-1"
    seen: dict[str, str] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)
    lease: dict[str, str] = field(default_factory=dict)


class World:
    """One root, its sessions and its clock."""

    def __init__(self, names: tuple[str, ...] = ("a", "b", "c")) -> None:
        self.now = START
        self.root = canonical.digest("root")
        self.generation = 1
        self.layout = canonical.digest("layout")
        self.files: dict[str, bytes] = {}
        self.work: dict[str, str | None] = {}  # targets of operations; None cannot be seen
        self.states: dict[str, TaskState] = {}
        self.ingresses: dict[str, Ingress] = {}
        self.uses: dict[str, Use] = {}
        self.known: dict[str, Session] = {}
        self.archived: set[str] = set()
        self.people = {
            name: Someone(name, canonical.digest(f"amux-session:{name}"), "codex") for name in names
        }
        self.issued: dict[str, list[str]] = {}  # task -> the owner references that were given out
        self.first_identity: dict[str, bytes] = {}
        self.budget: int | None = None
        self.commits = 0
        self._chance = 0
        self._checked: dict[str, TaskState] = {}

    # --- what the ring sees ----------------------------------------------------------------------

    def standing(self, who: Someone) -> Standing:
        session = self.known.get(who.digest)
        return Standing(
            project="billing", active_root="/w/.devcodex", physical_root="/w/.devcodex",
            root_identity=self.root, layout_identity=self.layout, session=who.digest,
            agent=who.agent, context_epoch=who.epoch,
            route_revision=1 if session is None else session.route_revision,
            generation=self.generation,
        )  # fmt: skip

    def facts(self, who: Someone, state: TaskState | None) -> Facts:
        self._chance += 1
        owner = None if state is None else state.owner
        opened = None if state is None else state.operation
        return Facts(
            standing=self.standing(who),
            name="t",
            artifacts={} if state is None else self.artifacts(state),
            is_archived=state is not None and state.task_id in self.archived,
            is_identity_valid=state is None or self.identity(state.task_root_relative) is not None,
            is_owner_live=owner is not None
            and owner.session_digest != who.digest
            and any(
                one.is_live for one in self.people.values() if one.digest == owner.session_digest
            ),
            targets={}
            if opened is None
            else {
                one.path: seen
                for one in opened.targets
                if (seen := self.work.get(one.path, ABSENT)) is not None
            },
            seen_context=None if state is None else who.seen.get(state.task_id),
            nonce=canonical.digest(f"nonce {self._chance}")[:40],
            lease_id=f"adl-{canonical.digest(f'lease {self._chance}')[:32]}",
            operation_id=f"op-{self._chance:016x}",
        )

    def artifacts(self, state: TaskState) -> dict[str, str]:
        found = {}
        for slot in state.checkpoints.slots:
            if slot.confirmation is not None:
                data = self.files.get(
                    f"{state.task_root_relative}/{slot.confirmation.artifact_path}"
                )
                if data is not None:
                    found[slot.phase] = canonical.digest(data)
        return found

    def identity(self, path: str) -> Identity | None:
        data = self.files.get(f"{path}/{identity.TASK_FILE}")
        try:
            found = None if data is None else identity.parse(data)
        except identity.Invalid:
            return None
        is_here = isinstance(found, Identity) and found.task_root_relative == path
        return found if is_here and isinstance(found, Identity) else None

    # --- steps, any of which may be the last -----------------------------------------------------

    def _step(self) -> None:
        if self.budget is not None:
            if self.budget == 0:
                raise Crash
            self.budget -= 1

    def crashing(self, who: Someone, steps: int, act: Callable[[], object]) -> bool:
        """Do something and die after so many steps; tell whether that came to pass."""
        self.budget = steps
        try:
            act()
        except Crash:
            self.die(who)
            return True
        finally:
            self.budget = None
        return False

    def die(self, who: Someone) -> None:
        """End the process of a session: what it knew is gone."""
        who.is_live = False
        who.seen.clear()

    def commit(self, made: TaskState) -> TaskState:
        self._step()
        before = self.states.get(made.task_id)
        assert made.state_sequence == (0 if before is None else before.state_sequence) + 1
        assert made.transitions[-1].seq == made.state_sequence
        if before is not None:
            assert made.generation >= before.generation, "numbers only grow"
            if _reference(made) != _reference(before) and _reference(made) is not None:
                assert made.generation > before.generation, "a new nonce has a new number"
        self.states[made.task_id] = made
        self.commits += 1
        reference = _reference(made)
        if reference is not None:
            given = self.issued.setdefault(made.task_id, [])
            if reference not in given[-1:]:
                given.append(reference)
        self._step()  # a process may die with its commit done and nothing told
        return made

    def _create(self, path: str, data: bytes) -> None:
        self._step()
        there = self.files.setdefault(path, data)
        assert there == data, "nothing is written over"
        if path.endswith(identity.TASK_FILE):
            assert self.first_identity.setdefault(path, data) == data
        self._step()

    def _effects(self, who: Someone, decided: Accepted[TaskState, object]) -> None:
        for effect in decided.effects:
            match effect:
                case Create(path=path, data=data):
                    self._create(path, data)
                case HoldLive():
                    who.is_live = True
                case _:
                    pass

    # --- calls -----------------------------------------------------------------------------------

    def admit(
        self, who: Someone, words: str, name: str, text: str, *, acquires: bool = True
    ) -> TaskState | Refused:
        standing = self.standing(who)
        made = self._hear(who, words, "bugs", "fix", name, ingress.default_event)
        if isinstance(made, Refused):
            return made
        use = self.uses.get(made.ingress_ref)
        task_id = identity.task_id_of(made.ingress_key)
        segment = f"{name}--{task_id[:8]}" if self._is_taken(name, task_id) else name
        path = f"bugs/{segment}" if use is None else use.task_root_relative
        planned = shape.seal(
            Identity(
                aliases=(), created_at=made.issued_at, display_name=name, entry_variant="fix",
                project="billing", project_root_identity_digest=standing.root_identity,
                task_id=task_id, task_kind="bugs", task_root_relative=path,
            )
        )  # fmt: skip
        files = (
            PlannedFile(path=f"{path}/{identity.TASK_FILE}", phase=IDENTITY, data=planned.render()),
            PlannedFile(path=f"{path}/{OVERVIEW_NAME}", phase=OVERVIEW, data=text.encode()),
            PlannedFile(
                path=f"{path}/.memory/{view.NAME}", phase=CP_STATE, data=_sessions(planned, made)
            ),
        )
        ask = Ask(
            operation="admit", ingress=made, use=use, acquires_owner=acquires, task_id=task_id,
            request_digest=canonical.digest(
                {"operation": "admit", "overview": text, "productSource": None, "task": None}
            ),
            task_root_relative=path, identity_digest=planned.identity_digest, files=files,
        )  # fmt: skip
        return self._admission(who, ask)

    def bind(
        self, who: Someone, words: str, state: TaskState, *, variant: str = "continue",
        acquires: bool = True,
    ) -> TaskState | Refused:  # fmt: skip
        path = state.task_root_relative
        there = self.identity(path)
        if there is None:
            return Refused(reason="TASK_IDENTITY_INVALID", message="")

        def ref(one: str) -> str:
            asked = _asked(words, "bugs", variant, there.display_name, lambda _: one)
            return ingress.ref_of(ingress.key_of(asked, self.standing(who)))

        def event(digest: str) -> str:
            return ingress.numbered_event(
                digest, lambda one: ref(one) in self.uses, lambda one: self._stands(who, ref(one))
            )

        made = self._hear(who, words, "bugs", variant, there.display_name, event)
        if isinstance(made, Refused):
            return made
        kept = tuple(
            PlannedFile(
                path=f"{path}/{name}",
                phase=phase,
                data=None if f"{path}/{name}" in self.files else b"made anew\n",
            )
            for name, phase in (
                (identity.TASK_FILE, IDENTITY), (OVERVIEW_NAME, OVERVIEW),
                (f".memory/{view.NAME}", CP_STATE),
            )
        )  # fmt: skip
        ask = Ask(
            operation="bind", ingress=made, use=self.uses.get(made.ingress_ref),
            acquires_owner=acquires, task_id=there.task_id, request_digest=canonical.digest(
                {"operation": "bind", "overview": None, "productSource": None, "task": "t"}
            ),
            task_root_relative=path, identity_digest=there.identity_digest, files=kept,
        )  # fmt: skip
        return self._admission(who, ask)

    def own(self, who: Someone, state: TaskState, operation: str, owner: str) -> object:
        digest = canonical.digest({"operation": operation, "owner": owner})
        command = Renew if operation == "renew" else Release
        return self._taken(
            who,
            state,
            lambda facts: owning.decide(
                state, command(owner=owner, request_digest=digest), facts, self.now
            ),
        )

    def acquire(self, who: Someone, state: TaskState, lease_id: str) -> object:
        digest = canonical.digest({"operation": "acquire", "lease": lease_id})
        facts = self.facts(who, state)
        decided = admissionlease.acquire(state, lease_id, digest, facts, self.now)
        if isinstance(decided, Refused):
            return decided
        self._effects(who, decided)
        if decided.state is not state:
            state = self.commit(decided.state)
        finished = admissionlease.finish(state, digest, facts, self.now)
        if finished is not state:
            state = self.commit(finished)
        self._answered(who, state)
        return decided

    def confirm(
        self, who: Someone, state: TaskState, phase: str, path: str, version: str
    ) -> object:
        data = self.files.get(f"{state.task_root_relative}/{path}", b"")
        answer = Answer(
            phase=phase, is_exempt=False, artifact_path=path,
            artifact_sha256=canonical.digest(data), artifact_version=version,
            source_message="yes", at=self.now.iso, session=who.digest, agent=who.agent,
        )  # fmt: skip
        digest = canonical.digest([phase, path, version, canonical.digest(data)])
        return self._taken(
            who, state, lambda facts: owning.confirm(state, answer, digest, facts, self.now)
        )

    def operate(
        self, who: Someone, state: TaskState, command: Begin | Settle | Reconcile
    ) -> object:
        return self._taken(
            who, state, lambda facts: settling.decide(state, command, facts, self.now)
        )

    def finish(self, who: Someone, state: TaskState, owner: str, status: str) -> object:
        digest = canonical.digest({"terminal": status, "owner": owner})
        command = Finish(
            owner=owner, request_digest=digest, status=status,
            evidence=(Evidence(role="ecr", path="x", sha256="0" * 64, bytes=1),),
        )  # fmt: skip
        return self._taken(
            who, state, lambda facts: closeout.decide(state, command, facts, self.now)
        )

    # --- how a call goes -------------------------------------------------------------------------

    def _taken(
        self, who: Someone, state: TaskState,
        decide: "Callable[[Facts], Accepted[TaskState, object] | Refused]",
    ) -> object:  # fmt: skip
        decided = decide(self.facts(who, state))
        if isinstance(decided, Refused):
            return decided
        made = state
        if decided.state is not state:
            made = self.commit(decided.state)
            self._effects(who, decided)
            if made.projection == task.PENDING:
                self._step()
                digest = made.transitions[-1].request_digest
                cause = owning.cause("render", digest, self.facts(who, made), self.now)
                made = self.commit(task.follow(made, cause, projection=task.CLEAN))
        self._answered(who, made)
        return decided

    def _admission(self, who: Someone, ask: Ask) -> TaskState | Refused:
        state = self.states.get(ask.task_id)
        decided = admission.start(state, ask, self._present(ask), self.facts(who, state), self.now)
        if isinstance(decided, Refused):
            return decided
        recovery: Recovery | None = decided.result.recovery
        if decided.result.is_started:
            self._step()
            self.ingresses.setdefault(ask.ingress.ingress_ref, ask.ingress)
            self._step()
            self.uses.setdefault(
                ask.ingress.ingress_ref,
                Use(
                    ingress_ref=ask.ingress.ingress_ref,
                    task_id=ask.task_id,
                    task_root_relative=ask.task_root_relative,
                    operation=ask.operation,
                    request_digest=ask.request_digest,
                    at=self.now.iso,
                ),
            )
            self._effects(who, decided)
            state = self.commit(decided.state)
        else:
            state = decided.state
        while not decided.result.is_replayed and not admission.is_done(state, ask, self.now):
            step = admission.step(
                state, ask, self._present(ask), self.facts(who, state), self.now, recovery
            )
            if step.result is not None:
                if step.state is not state:
                    self.commit(step.state)
                return step.result
            self._effects(who, step)
            state = self.commit(step.state)
        self._answered(who, state)
        return state

    def _hear(
        self, who: Someone, words: str, kind: str, variant: str, name: str,
        event: Callable[[str], str],
    ) -> Ingress | Refused:  # fmt: skip
        asked = _asked(words, kind, variant, name, event)
        standing = self.standing(who)
        known = self.ingresses.get(ingress.ref_of(ingress.key_of(asked, standing)))
        found = ingress.register(asked, self.known.get(who.digest), known, standing, self.now)
        if isinstance(found, Refused):
            return found
        self.known[who.digest] = found.state.session
        return found.state.ingress

    def _stands(self, who: Someone, ref: str) -> bool:
        state = self.states.get(self.uses[ref].task_id)
        if (
            state is None
            or state.is_foreign(self.standing(who))
            or state.admission.ingress_ref != ref
        ):
            return False
        owner = state.owner
        is_own = owner is not None and owner.is_active and owner.session_digest == who.digest
        return is_own or not state.admission.is_finalized

    def _present(self, ask: Ask) -> Mapping[str, str]:
        return {
            one.path: canonical.digest(self.files[one.path]) if one.path in self.files else ABSENT
            for one in ask.files
        }

    def _is_taken(self, name: str, task_id: str) -> bool:
        there = self.identity(f"bugs/{name}")
        return there is not None and there.task_id != task_id

    def _answered(self, who: Someone, state: TaskState) -> None:
        who.seen[state.task_id] = context.write_context(state).context_digest
        owner = state.owner
        if owner is not None and owner.is_active and owner.session_digest == who.digest:
            who.owner[state.task_id] = owner.reference
        lease = state.admission_lease
        if lease is not None and lease.session_digest == who.digest:
            who.lease[state.task_id] = lease.lease_id

    # --- what must hold, whatever was done -------------------------------------------------------

    def check(self) -> None:
        """Require what T2 promises of every state."""
        by_path: dict[str, str] = {}
        for task_id, state in self.states.items():
            if self._checked.get(task_id) is not state:
                assert task.decode(_plain(task.encode(state))) == state
                self._checked[task_id] = state
            if f"{state.task_root_relative}/{identity.TASK_FILE}" in self.files:
                assert by_path.setdefault(state.task_root_relative, task_id) == task_id
            accepted = {
                (who.name, reference)
                for who in self.people.values()
                for reference in self.issued.get(task_id, [])[-20:]
                if not isinstance(context.quoted(state, reference, self.facts(who, state)), Refused)
                and state.owner is not None
                and state.owner.session_digest == who.digest
            }
            assert len(accepted) <= 1, "one owner"
            for who in self.people.values():
                self._check_authority(who, state)
        for path, data in self.first_identity.items():
            assert self.files.get(path, data) == data

    def _check_authority(self, who: Someone, state: TaskState) -> None:
        facts = self.facts(who, state)
        has_authority = not context.missing(state, facts)
        if not has_authority:
            return
        owner, first = state.owner, state.checkpoints.slots[0]
        assert owner is not None
        assert (owner.status, owner.session_digest) == ("active", who.digest)
        assert owner.root_identity_digest == self.root == state.root_identity_digest
        assert state.runtime_generation == self.generation
        assert state.admission.phase == "finalized"
        assert state.terminal is None
        assert state.task_id not in self.archived
        assert first.status == checkpoint.CONFIRMED
        for slot in state.checkpoints.slots:
            if slot.status == checkpoint.CONFIRMED:
                kept = slot.confirmation
                assert kept is not None
                data = self.files[f"{state.task_root_relative}/{kept.artifact_path}"]
                assert canonical.digest(data) == kept.artifact_sha256
        assert owner.cp_set_digest == state.checkpoints.digest

    def pass_time(self, seconds: float) -> None:
        """Move the clock, either way."""
        self.now = self.now.later(timedelta(seconds=seconds))

    def move(self) -> None:
        """Move the root elsewhere: it is another root, and nothing counts any more."""
        self.root = canonical.digest(self.root)
        self.generation = 1 + max(
            [self.generation, *(one.runtime_generation for one in self.states.values())]
        )

    def revoke(self) -> None:
        """Take authority from every task, as a person may."""
        self.generation += 1


def _reference(state: TaskState) -> str | None:
    owner = state.owner
    return owner.reference if owner is not None and owner.is_active else None


def _asked(
    words: str, kind: str, variant: str, name: str, event: Callable[[str], str]
) -> ingress.Asked:
    digest = ingress.instruction_digest(words)
    return ingress.Asked(
        instruction_digest=digest, instruction_chars=len(words), task_kind=kind,
        entry_variant=variant, route_key=name, source_event_id=event(digest),
    )  # fmt: skip


def _sessions(made: Identity, asked: Ingress) -> bytes:
    return view.new(
        display_name=made.display_name, task_id=made.task_id, admission_id=asked.admission_id,
        route_key=asked.route_key, project=made.project,
    )  # fmt: skip


def _plain(value: object) -> dict[str, object]:
    plain = canonical.parsed(canonical.encode(value))
    assert isinstance(plain, dict)
    return plain
