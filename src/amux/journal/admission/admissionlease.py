"""Finishing an admission in a second call: a permission that is used once (T35).

Rule 1: it is bound to session, root, context and ingress; a field that is not as now is a mismatch.
Rule 2: making the owner consumes it in the same commit, and never again.
Rule 3: editing state by hand, or keeping the person's words, is no substitute.
"""

import re
from datetime import timedelta

from amux.journal.ledger import shape
from amux.journal.machine import Accepted, HoldLive, Refused
from amux.journal.moment import Moment
from amux.journal.tasks import context
from amux.journal.tasks.admissionrecord import CP_STATE, FENCED, FINALIZED, AdmissionLease
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.ingress import Ingress
from amux.journal.tasks.lease import take
from amux.journal.tasks.owning import Result, cause, claim_of
from amux.journal.tasks.task import TaskState, follow

LIFETIME = timedelta(minutes=30)
_SHAPE = re.compile(r"adl-[0-9a-f]{32}")


def issue(state: TaskState, known: Ingress, facts: Facts, now: Moment) -> AdmissionLease:
    """Make the permission for an admission that waits for its owner."""
    standing = facts.standing
    return shape.seal(
        AdmissionLease(
            lease_id=facts.lease_id,
            admission_id=state.admission.admission_id,
            task_id=state.task_id,
            project=standing.project,
            root_identity_digest=standing.root_identity,
            session_digest=standing.session,
            context_epoch=standing.context_epoch,
            route_revision=standing.route_revision,
            ingress_digest=known.snapshot_digest,
            issued_at=now.iso,
            expires_at=min(known.expires_at, now.later(LIFETIME).iso),
        )
    )


def acquire(
    state: TaskState | None, lease_id: str, request_digest: str, facts: Facts, now: Moment
) -> Accepted[TaskState, Result] | Refused:
    """Make the owner by a permission; `finish` then ends the admission."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    lease = _checked(known, lease_id, facts)
    if isinstance(lease, Refused):
        return lease
    if lease.consumed_at is not None:
        return _again(known, request_digest, facts)
    if now.iso > lease.expires_at:
        return _refused("EXPIRED", "the permission was not used in time")
    problem = _not_now(known)
    if problem is not None:
        return problem
    claim = claim_of(known, "acquire", request_digest, facts, now)
    made = follow(
        known,
        cause("acquire", request_digest, facts, now),
        admission=shape.seal(known.admission.replace(phase=FENCED)),
        owner=take(None, "acquire", claim, now, task_id=known.task_id, known=known.generation),
        admission_lease=shape.seal(lease.replace(consumed_at=now.iso)),
    )
    return Accepted(
        state=made,
        effects=(HoldLive(),),
        result=Result(operation="acquire", transition="acquire"),
    )


def finish(state: TaskState, request_digest: str, facts: Facts, now: Moment) -> TaskState:
    """Give the state of an admission that has its owner and nothing left to do."""
    if state.admission.phase != FENCED:
        return state
    return follow(
        state,
        cause(FINALIZED, request_digest, facts, now),
        admission=shape.seal(state.admission.replace(phase=FINALIZED)),
    )


def _checked(state: TaskState, lease_id: str, facts: Facts) -> AdmissionLease | Refused:
    if not _SHAPE.fullmatch(lease_id):
        return _refused("INVALID", "this is no permission to finish an admission")
    lease, standing = state.admission_lease, facts.standing
    if lease is None or lease.lease_id != lease_id:
        return _refused("MISMATCH", "the task has no such permission")
    present = {
        "taskId": (lease.task_id, state.task_id),
        "project": (lease.project, standing.project),
        "rootIdentityDigest": (lease.root_identity_digest, standing.root_identity),
        "sessionDigest": (lease.session_digest, standing.session),
        "contextEpoch": (lease.context_epoch, standing.context_epoch),
        "routeRevision": (lease.route_revision, standing.route_revision),
    }
    failed = [name for name, (was, now) in present.items() if was != now]
    if not shape.is_sealed(lease):
        failed.append("leaseDigest")
    if failed:
        return _refused("MISMATCH", "the permission was given to somebody else", failed=failed)
    return lease


def _again(
    state: TaskState, request_digest: str, facts: Facts
) -> Accepted[TaskState, Result] | Refused:
    """Answer once more the session whose owner the permission made, as long as that is in force."""
    owner = state.owner
    if (
        owner is not None
        and owner.is_active
        and owner.session_digest == facts.standing.session
        and any(
            (one.op, one.request_digest, one.writer_generation)
            == ("acquire", request_digest, owner.writer_generation)
            for one in state.transitions
        )
    ):
        result = Result(operation="acquire", transition="acquire", is_replayed=True)
        return Accepted(state=state, effects=(HoldLive(),), result=result)
    return _refused("REPLAYED", "the permission is used up")


def _not_now(state: TaskState) -> Refused | None:
    owner = state.owner
    if owner is not None and owner.is_active:
        return Refused(
            reason="TASK_WRITE_OWNER_CONFLICT",
            message="the task has an owner",
            hint="let its owner release it, then bind it",
            details={"observed": owner.observed},
        )
    if state.admission.phase == CP_STATE:
        return None
    return Refused(
        reason="TASK_WRITE_OWNER_ADMISSION_PHASE_INVALID",
        message="the admission does not wait for its owner",
        hint="repeat the admission, or bind the task",
        details={"phase": state.admission.phase},
    )


def _refused(end: str, message: str, **details: object) -> Refused:
    return Refused(
        reason=f"TASK_ADMISSION_CONTINUATION_{end}",
        message=message,
        hint="repeat the admission as it was asked for; it answers with what is in force",
        details=details,
    )
