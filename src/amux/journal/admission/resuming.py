"""Binding a task that the ledger knows: hand-off, takeover, rebinding, reopening (T32, T54).

Rule 1: each rests on words of a person: an ingress of its own.
Rule 2: evidence that nobody works on it is the live file and the record, never a clock.
Rule 3: what is open is settled if it is the caller's own, and else blocks.
"""

from collections.abc import Mapping

from amux.core.canonical import ABSENT
from amux.journal.admission import asking
from amux.journal.admission.admissionlease import issue
from amux.journal.admission.asking import REOPEN, Ask, Begun
from amux.journal.machine import Accepted, Create, Effect, HoldLive, Refused, Render
from amux.journal.moment import Moment
from amux.journal.tasks import checkpoint, settling
from amux.journal.tasks.admissionrecord import CP_STATE, FINALIZED, PREPARED
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import TERMINAL, Lease, take
from amux.journal.tasks.owning import cause, claim_of
from amux.journal.tasks.task import PENDING, TaskState, follow


def resume(
    state: TaskState, ask: Ask, present: Mapping[str, str], facts: Facts, now: Moment
) -> Accepted[TaskState, Begun] | Refused:
    """Bind or adopt a task whose state counts, by another ingress than its present admission's."""
    if not state.admission.is_finalized:
        return _restart(state, ask, facts, now)
    if state.terminal is not None:
        if ask.ingress.entry_variant != REOPEN:
            return _ended(state, facts)
        changes: dict[str, object] = {
            "terminal": None,
            "checkpoints": checkpoint.reopened(state.checkpoints),
            "lifecycle_revision": state.lifecycle_revision + 1,
            "projection": PENDING,
        }
        return _bound(state, ask, present, facts, now, "reopen", changes)
    if ask.ingress.entry_variant == REOPEN:
        return Refused(
            reason="TASK_ADMISSION_ENTRY_VARIANT_INVALID",
            message="the task has not ended",
            hint="bind it with entryVariant continue",
            details={"allowed": ["continue"]},
        )
    transition = _transition(state, facts)
    if isinstance(transition, Refused):
        return transition
    cleared = settling.clear(state, facts, now, reason="FINALIZED_TASK_RESUME_OPERATION_LIVE")
    if isinstance(cleared, Refused):
        return cleared
    changes = {"operation": None, "settled": cleared.settled}
    bound = _bound(state, ask, present, facts, now, transition, changes)
    return bound.replace(result=bound.result.replace(settled=cleared.done))


def _restart(
    state: TaskState, ask: Ask, facts: Facts, now: Moment
) -> Accepted[TaskState, Begun] | Refused:
    """Put an admission that another request did not finish aside, and begin anew."""
    owner, lease, standing = state.owner, state.admission_lease, facts.standing
    is_others = owner is not None and owner.session_digest != standing.session
    blocking = {
        "identity": not facts.is_identity_valid,
        "live-turn": is_others and owner is not None and owner.is_active and facts.is_owner_live,
        "admission-lease": lease is not None
        and lease.consumed_at is None
        and now.iso <= lease.expires_at
        and lease.session_digest != standing.session,
    }
    if any(blocking.values()):
        return Refused(
            reason="FINALIZED_TASK_RESUME_OWNER_BUSY",
            message="another session is about to finish the admission",
            hint="let it finish, or end it; then bind again",
            details={
                "blocking": [name for name, is_so in blocking.items() if is_so],
                "observed": None if owner is None else owner.observed,
            },
        )
    generation = state.admission.admission_generation + 1
    op = f"{ask.operation}{asking.mark_of(ask.ingress.ingress_ref)}"
    made = follow(
        state,
        cause(op, ask.request_digest, facts, now),
        admission=asking.transaction(ask, generation, PREPARED),
        identity_digest=ask.identity_digest,
        owner=None,
        admission_lease=None,
    )
    return Accepted(state=made, result=Begun(is_started=True))


def _transition(state: TaskState, facts: Facts) -> str | Refused:
    """Name what a bind of a task that has not ended is, or say what blocks it (T54)."""
    owner = state.owner
    if owner is None or not owner.is_active:
        return "handoff"
    if owner.session_digest == facts.standing.session:
        return "rebind"
    return _takeover(state, owner, facts)


def _takeover(state: TaskState, owner: Lease, facts: Facts) -> str | Refused:
    blocking = {
        "identity": not facts.is_identity_valid,
        "live-turn": facts.is_owner_live,
        "operation": state.operation is not None,
    }
    if not any(blocking.values()):
        return "takeover"
    opened = state.operation
    return Refused(
        reason="TASK_WRITE_OWNER_TAKEOVER_INVALID",
        message="the task has an owner, and nothing shows that nobody works on it",
        hint="let the owner release it or end its session; reconcile what it left open",
        next_call=None
        if opened is None or facts.is_owner_live
        else settling.reconcile_call(opened, facts),
        details={
            "blocking": [name for name, is_so in blocking.items() if is_so],
            "observed": owner.observed,
        },
    )


def _bound(
    state: TaskState,
    ask: Ask,
    present: Mapping[str, str],
    facts: Facts,
    now: Moment,
    transition: str,
    changes: dict[str, object],
) -> Accepted[TaskState, Begun]:
    """Give the task its next owner, and both generations their next number, in one commit."""
    changed = state.replace(**changes)
    generation = state.admission.admission_generation + 1
    op = f"{ask.operation}{asking.mark_of(ask.ingress.ingress_ref)}"
    effects: list[Effect] = [
        Create(one.path, one.data)
        for one in ask.files
        if one.data is not None and present.get(one.path, ABSENT) == ABSENT
    ]
    if ask.needs_block:
        effects.append(Render())
    if ask.acquires_owner:
        claim = claim_of(changed, transition, ask.request_digest, facts, now)
        owner = take(state.owner, "bind", claim, now, task_id=state.task_id, known=state.generation)
        made = follow(
            changed,
            cause(op, ask.request_digest, facts, now),
            admission=asking.transaction(ask, generation, FINALIZED),
            owner=owner,
        )
        effects.append(HoldLive())
    else:
        made = follow(
            changed,
            cause(op, ask.request_digest, facts, now),
            admission=asking.transaction(ask, generation, CP_STATE),
            owner=None,
            admission_lease=issue(state, ask.ingress, facts, now),
        )
    return Accepted(state=made, effects=tuple(effects), result=Begun(is_started=True))


def _ended(state: TaskState, facts: Facts) -> Refused:
    status = None if state.terminal is None else state.terminal.terminal_status
    return Refused(
        reason="FINALIZED_TASK_RESUME_TERMINAL",
        message="the task has ended",
        hint="if the person wants it open again, bind it with entryVariant reopen",
        next_call=facts.call(
            "memory_task_admit_v2", fill=["instruction"], operation="bind", entryVariant=REOPEN
        ),
        details={"observed": {"status": TERMINAL, "terminalStatus": status}},
    )
