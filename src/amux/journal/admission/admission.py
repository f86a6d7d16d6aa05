"""From an ingress to a task, exactly once (T29 to T35): where a call starts, and each step of it.

Rule 1: phases are committed one by one, each after its effect; a call that was killed is finished
        by the same request, from what stands on disk.
Rule 2: every file is whole or absent, is never written over, and must be what was planned; one that
        differs stops the admission and stays as it is.
Rule 3: a request that was answered is answered again, and writes nothing; one that was overtaken by
        another admission of the task stays overtaken.
Rule 4: nothing of a foreign state is inherited but its numbers.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from amux.core import canonical
from amux.core.canonical import ABSENT
from amux.journal.admission import asking, resuming
from amux.journal.admission.admissionlease import issue
from amux.journal.admission.asking import Ask, Begun, PlannedFile
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Create, Effect, HoldLive, Refused, Render
from amux.journal.moment import Moment
from amux.journal.tasks import checkpoint, context, ingress, projectlease
from amux.journal.tasks.admissionrecord import (
    CP_STATE,
    FENCED,
    FINALIZED,
    NEEDS_RECONCILE,
    PHASES,
    PREPARED,
    Recovery,
    Transaction,
)
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import take
from amux.journal.tasks.operation import Settled
from amux.journal.tasks.owning import cause, claim_of
from amux.journal.tasks.task import CLEAN, TaskState, follow

Started: TypeAlias = Accepted[TaskState, Begun] | Refused
Present: TypeAlias = Mapping[str, str]
"""The digest of each planned path, or `absent`."""

# phase reached -> the phase that is committed next, once its effect is done (T31).
TABLE: dict[str, str] = dict(pairwise(PHASES))


def start(
    state: TaskState | None, ask: Ask, present: Present, facts: Facts, now: Moment
) -> Started:
    """Find out where a request stands, and take its first step (T32).

    The state is left as it is where the request was answered before, or only has to be gone on
    with; else it is the one that begins, or all there is to it.
    """
    problem = (
        ingress.startable(ask.ingress, ask.use, facts.standing, now)
        or _lease_problem(state, ask, facts)
        or _conflict(ask)
    )
    if problem is not None:
        return problem
    is_usable = state is not None and not state.is_foreign(facts.standing)
    if state is not None and is_usable:
        if state.admission.ingress_ref == ask.ingress.ingress_ref:
            return _again(state, ask, present, facts)
        if ask.use is not None and asking.was_begun(state, ask.ingress.ingress_ref):
            return Accepted(state=state, result=Begun(is_replayed=True))
    if ask.operation == "admit":
        return _prepared(None, ask, facts, now) if state is None else _taken(ask)
    if state is None or not is_usable:
        return _prepared(state, ask, facts, now)
    return resuming.resume(state, ask, present, facts, now)


def step(
    state: TaskState,
    ask: Ask,
    present: Present,
    facts: Facts,
    now: Moment,
    recovery: Recovery | None,
) -> Accepted[TaskState, Refused | None]:
    """Take the next step of an admission: effects first, then the state that records them.

    A result that is a refusal stops the admission: its state says what is to be reconciled.
    """
    drift = _drift(ask.files, present)
    if drift is not None:
        return Accepted(state=failed(state, drift.reason, facts, ask, now), result=drift)
    phase = TABLE[state.admission.reached]
    if state.admission.reached == CP_STATE and not ask.acquires_owner:
        return Accepted(state=_leased(state, ask, facts, now, recovery), result=None)
    effects: list[Effect] = [
        Create(one.path, one.data)
        for one in ask.files
        if one.data is not None
        and present.get(one.path, ABSENT) == ABSENT
        and PHASES.index(one.phase) <= PHASES.index(phase)
    ]
    changes: dict[str, object] = {}
    if phase == CP_STATE and ask.needs_block:
        effects.append(Render())
    if phase == FENCED:
        effects.append(HoldLive())
        changes = _owned(state, ask, facts, now)
    is_last = phase == FINALIZED
    changes["admission"] = _at(state.admission, phase, recovery if is_last else None)
    made = follow(state, cause(phase, ask.request_digest, facts, now), **changes)
    return Accepted(state=made, effects=tuple(effects), result=None)


def is_done(state: TaskState, ask: Ask, now: Moment) -> bool:
    """Tell whether nothing is left to do for a request."""
    if state.admission.is_finalized:
        return True
    lease = state.admission_lease
    return (
        not ask.acquires_owner
        and state.admission.phase == CP_STATE
        and lease is not None
        and lease.consumed_at is None
        and now.iso <= lease.expires_at
        and lease.ingress_digest == ask.ingress.snapshot_digest
    )


def recovery_of(state: TaskState, ask: Ask, present: Present) -> Recovery | None:
    """Note what a call finds that finishes an interrupted admission; sealed at its end (T34)."""
    admission = state.admission
    if admission.is_finalized or (admission.phase == CP_STATE and state.admission_lease):
        return None
    there = {one.phase for one in ask.files if present.get(one.path, ABSENT) != ABSENT}
    gone = {one.phase for one in ask.files if present.get(one.path, ABSENT) == ABSENT}
    reached = PREPARED
    for phase in PHASES[1:4]:
        if phase in gone or phase not in there:
            break
        reached = phase
    if reached == CP_STATE and PHASES.index(admission.reached) > PHASES.index(CP_STATE):
        reached = admission.reached
    planned = [one for one in ask.files if one.data is not None]
    return Recovery(
        admission_id=admission.admission_id,
        failed_from_phase=admission.failed_from_phase,
        observed_phase=reached,
        recovered_phase="",
        created_files=tuple(one.path for one in planned if present.get(one.path, ABSENT) == ABSENT),
        effect_digests={one.path: canonical.digest(one.data or b"") for one in planned},
        prior_transaction_digest=admission.transaction_digest,
    )


def failed(state: TaskState, reason: str, facts: Facts, ask: Ask, now: Moment) -> TaskState:
    """Give the state of an admission whose step failed; the same failure again changes nothing."""
    admission = state.admission
    if (admission.phase, admission.error_reason) == (NEEDS_RECONCILE, reason):
        return state
    made = shape.seal(
        admission.replace(
            phase=NEEDS_RECONCILE,
            failed_from_phase=admission.reached,
            error_reason=reason,
        )
    )
    return follow(state, cause(NEEDS_RECONCILE, ask.request_digest, facts, now), admission=made)


def _lease_problem(state: TaskState | None, ask: Ask, facts: Facts) -> Refused | None:
    """Refuse where the project is no longer meant as it was (T12).

    A session that owns what it asked for rests on its owner's lease, which it can renew; else
    the call rests on the ingress's.
    """
    owner = None if state is None or state.is_foreign(facts.standing) else state.owner
    is_own = (
        owner is not None and owner.is_active and owner.session_digest == facts.standing.session
    )
    if owner is not None and is_own and ask.use is not None:
        failed = projectlease.differences(owner.project_lease, facts.standing, is_started=True)
        return context.lease_invalid(failed, facts, owner) if failed else None
    failed = projectlease.differences(
        ask.ingress.project_lease, facts.standing, is_started=ask.use is not None
    )
    return context.lease_invalid(failed, facts, None) if failed else None


def _conflict(ask: Ask) -> Refused | None:
    use = ask.use
    if use is None or (use.request_digest, use.operation, use.task_id) == (
        ask.request_digest,
        ask.operation,
        ask.task_id,
    ):
        return None
    return conflict(use.task_id)


def conflict(task_id: str) -> Refused:
    """Refuse to use one request of a person for two admissions."""
    return Refused(
        reason="TASK_ADMISSION_IDEMPOTENCY_CONFLICT",
        message="these words have asked for another admission already",
        hint="repeat that call as it was; for something else, give other words as instruction",
        details={"taskId": task_id},
    )


def _taken(ask: Ask) -> Refused:
    return conflict(ask.task_id).replace(
        hint="the task is there: bind it, with the words of the person"
    )


def _again(state: TaskState, ask: Ask, present: Present, facts: Facts) -> Started:
    """Answer a request once more whose admission is the task's present one."""
    if state.admission.request_digest != ask.request_digest:
        return conflict(state.task_id)
    if ask.identity_digest != state.identity_digest:
        return binding_mismatch("identityDigest")
    if not state.admission.is_finalized:
        return Accepted(state=state, result=Begun(recovery=recovery_of(state, ask, present)))
    gone = [one.path for one in ask.files if present.get(one.path, ABSENT) == ABSENT]
    if state.terminal is None and (gone or not facts.is_identity_valid or ask.needs_block):
        return Refused(
            reason="TASK_ADMISSION_READBACK_MISMATCH",
            message="a file of the task is gone, or its identity or checkpoint block is",
            hint="put it back, or bind the task with new words",
            details={"paths": gone, "checkpointBlock": not ask.needs_block},
        )
    return Accepted(state=state, result=Begun(is_replayed=True))


def binding_mismatch(what: str) -> Refused:
    """Refuse a name, alias or place that is not the identity's."""
    return Refused(
        reason="TASK_IDENTITY_BINDING_MISMATCH",
        message="the task is known under another identity",
        hint="leave displayName and aliases out, or admit another task",
        details={"field": what},
    )


def _prepared(before: TaskState | None, ask: Ask, facts: Facts, now: Moment) -> Started:
    """Begin an admission where nothing stands that counts."""
    standing = facts.standing
    generation = 1 if before is None else before.admission.admission_generation + 1
    known = None if before is None else before.generation
    fresh = TaskState(
        task_id=ask.task_id,
        project=standing.project,
        task_root_relative=ask.task_root_relative,
        identity_digest=ask.identity_digest,
        root_identity_digest=standing.root_identity,
        runtime_generation=standing.generation,
        state_sequence=0 if before is None else before.state_sequence,
        admission=asking.transaction(ask, generation, PREPARED),
        owner=None,
        lifecycle_revision=1 if before is None else before.lifecycle_revision,
        checkpoints=checkpoint.start(),
        operation=None,
        settled=Settled(),
        admission_lease=None,
        terminal=None,
        projection=CLEAN,
        # History: its numbers go on, and a request that was overtaken stays overtaken.
        transitions=() if before is None else before.transitions,
    )
    name = "relocation" if ask.operation == "bind" else ask.operation
    op = f"{name}{asking.mark_of(ask.ingress.ingress_ref)}"
    made = follow(fresh, cause(op, ask.request_digest, facts, now))
    assert known is None or made.generation >= known
    return Accepted(state=made, result=Begun(is_started=True))


def _owned(state: TaskState, ask: Ask, facts: Facts, now: Moment) -> dict[str, object]:
    """Give what changes when the admission makes its owner."""
    mark = asking.mark_of(ask.ingress.ingress_ref)
    is_relocated = any(one.op == f"relocation{mark}" for one in state.transitions)
    name = "relocation" if is_relocated else "acquire"
    claim = claim_of(state, name, ask.request_digest, facts, now)
    made = take(None, "acquire", claim, now, task_id=state.task_id, known=state.generation)
    lease = state.admission_lease
    if lease is not None and lease.consumed_at is None:
        lease = shape.seal(lease.replace(consumed_at=now.iso))
    return {"owner": made, "admission_lease": lease}


def _leased(
    state: TaskState, ask: Ask, facts: Facts, now: Moment, recovery: Recovery | None
) -> TaskState:
    """Give the state that waits for its owner, with the permission to make one later."""
    lease = issue(state, ask.ingress, facts, now)
    return follow(
        state,
        cause("lease", ask.request_digest, facts, now),
        admission=_at(state.admission, CP_STATE, recovery),
        admission_lease=lease,
    )


def _at(admission: Transaction, phase: str, recovery: Recovery | None) -> Transaction:
    kept = admission.recovery
    if recovery is not None:
        kept = shape.seal(recovery.replace(recovered_phase=phase))
    return shape.seal(
        admission.replace(
            phase=phase,
            failed_from_phase=None,
            error_reason=None,
            recovery=kept,
        )
    )


def _drift(files: Sequence[PlannedFile], present: Present) -> Refused | None:
    for one in files:
        found = present.get(one.path, ABSENT)
        if one.data is None or found in (ABSENT, planned := canonical.digest(one.data)):
            continue
        return Refused(
            reason="TASK_ADMISSION_RECONCILIATION_DRIFT",
            message="a file of the admission is not what was planned",
            hint="put its bytes back; or keep them, and bind the task with new words of the person",
            details={"path": one.path, "planned": planned, "observed": found},
        )
    return None
