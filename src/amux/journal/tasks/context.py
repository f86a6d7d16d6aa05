"""To which coordinates a formal write is bound, and whether it may happen (T37, T55 to T57).

Rule 1: a write context is built from the record as read back, and from nothing else.
Rule 2: every commit of the record moves it; a writer who has not seen the last is refused.
Rule 3: what is missing is told by name, in one order; no flag goes round a check.
"""

from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Refused
from amux.journal.tasks import projectlease
from amux.journal.tasks.checkpoint import CONFIRMED
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import Lease
from amux.journal.tasks.task import TaskState

MISSING = (
    "admission", "archived", "owner", "session", "root", "cp1", "cp-stale", "cp-unobserved",
    "project-lease",
)  # fmt: skip


class WriteContext(Value):
    """The coordinates of a task at one commit."""

    SCHEMA: ClassVar[str] = "CanonicalTaskWriteContextV1"
    DIGEST: ClassVar[str] = "context_digest"

    task_id: str
    root_identity_digest: str
    lifecycle_revision: int
    state_sequence: int
    writer_generation: int
    holder_session: str | None
    operation_set_digest: str
    settled_set_digest: str
    runtime_generation: int
    context_epoch: str | None
    route_revision: int | None
    cp_set_digest: str
    owner_status: str | None
    admission_id: str
    admission_generation: int
    nonce_digest: str | None
    readback: str = "V5"
    context_digest: str = ""


def write_context(state: TaskState) -> WriteContext:
    """Give the coordinates at which a record stands."""
    owner = state.owner
    lease = None if owner is None else owner.project_lease
    opened = [] if state.operation is None else [state.operation]
    return shape.seal(
        WriteContext(
            task_id=state.task_id,
            root_identity_digest=state.root_identity_digest,
            lifecycle_revision=state.lifecycle_revision,
            state_sequence=state.state_sequence,
            writer_generation=state.generation,
            holder_session=None if owner is None else owner.session_digest,
            operation_set_digest=canonical.digest(
                [[one.operation_id, one.phase] for one in opened]
            ),
            settled_set_digest=state.settled.digest,
            runtime_generation=state.runtime_generation,
            context_epoch=None if lease is None else lease.context_epoch,
            route_revision=None if lease is None else lease.route_revision,
            cp_set_digest=state.checkpoints.digest,
            owner_status=None if owner is None else owner.status,
            admission_id=state.admission.admission_id,
            admission_generation=state.admission.admission_generation,
            nonce_digest=None if owner is None else canonical.digest(owner.nonce),
        )
    )


def shown(state: TaskState, facts: Facts) -> dict[str, object]:
    """Spell the write context for a receipt, with the authority that it comes with."""
    body = shape.encode(write_context(state))
    return {**body, "mutationAuthority": not missing(state, facts)}


def missing(state: TaskState, facts: Facts) -> list[str]:
    """Name what keeps the calling session from changing anything, in T57's words and order."""
    owner, standing = state.owner, facts.standing
    is_own = owner is not None and owner.session_digest == standing.session
    found = {
        "admission": not state.admission.is_finalized,
        "archived": facts.is_archived,
        "owner": owner is None or not owner.is_active,
        "session": owner is not None and not is_own,
        "root": state.is_foreign(standing)
        or (owner is not None and owner.root_identity_digest != standing.root_identity),
        "cp1": state.checkpoints.slot("CP1").status != CONFIRMED,
        "cp-stale": bool(state.checkpoints.stale(facts.artifacts)),
        "cp-unobserved": owner is not None and owner.cp_set_digest != state.checkpoints.digest,
        "project-lease": owner is not None
        and is_own
        and bool(projectlease.differences(owner.project_lease, standing)),
    }
    return [name for name in MISSING if found[name]]


def authority(state: TaskState, facts: Facts) -> dict[str, object]:
    """Spell both for a receipt."""
    lacks = missing(state, facts)
    return {"mutationAuthority": not lacks, "missing": lacks}


def admitted(state: TaskState | None, facts: Facts) -> TaskState | Refused:
    """Give a state that may grant something, or say that there is none (T37)."""
    if state is not None and not state.is_foreign(facts.standing):
        return state
    return Refused(
        reason="TASK_ADMISSION_TRANSACTION_MISSING",
        message="the task is not admitted under this root",
        hint="bind it, with the sentence of the person who asks for it as instruction",
        next_call=facts.call("memory_task_admit_v2", fill=["instruction"], operation="bind"),
    )


def quoted(state: TaskState, owner: str, facts: Facts) -> Lease | Refused:
    """Give the lease in force if the caller quotes it (T52)."""
    lease = state.owner
    if lease is None:
        return Refused(
            reason="TASK_WRITE_OWNER_MISSING",
            message="nobody owns the task",
            hint="repeat the admission, or bind the task",
            next_call=facts.call("memory_task_admit_v2", fill=["instruction"], operation="bind"),
        )
    if not lease.is_active or owner != lease.reference:
        return _not_in_force(lease, facts)
    return lease


def writer(
    state: TaskState | None, owner: str, facts: Facts, *, checkpoints: bool = True
) -> Lease | Refused:
    """Give the lease of a caller who may write now, or the first thing that is missing (T57).

    Without `checkpoints` only owner, session, root and context count (T59, T71).
    """
    known = admitted(state, facts)
    if isinstance(known, Refused):
        return known
    lease = quoted(known, owner, facts)
    if isinstance(lease, Refused):
        return lease
    lacks = missing(known, facts)
    if "session" in lacks or "root" in lacks:
        return _not_in_force(lease, facts)
    if checkpoints:
        problem = _unready(known, lease, facts, lacks)
        if problem is not None:
            return problem
    return _stale_context(known, lease, facts) or lease


def lease_invalid(failed: list[str], facts: Facts, lease: Lease | None) -> Refused:
    """Refuse on a project lease that present facts contradict (T12)."""
    return Refused(
        reason="TASK_ADMISSION_PROJECT_LEASE_INVALID",
        message="the session no longer means this project as it did",
        hint="renew: it takes the present context and route; after a revoke, bind",
        next_call=_renew(facts, lease)
        if lease is not None
        else facts.call("memory_task_admit_v2", fill=["instruction"], operation="bind"),
        details={"failed": failed},
    )


def _unready(state: TaskState, lease: Lease, facts: Facts, lacks: list[str]) -> Refused | None:
    """Say why the checkpoints, or what they rest on, do not let a writer through."""
    stale = list(state.checkpoints.stale(facts.artifacts))
    table = {
        "admission": Refused(
            reason="TASK_ADMISSION_NOT_FINALIZED",
            message="the admission is not finished",
            hint="repeat the admission",
            details={"phase": state.admission.phase},
        ),
        "archived": Refused(
            reason="TASK_ARCHIVED",
            message="the task is archived",
            hint="a person takes .archived away, or another task is admitted",
        ),
        "cp1": Refused(
            reason="TASK_CP_NOT_CONFIRMED",
            message="nobody has confirmed the requirement yet",
            hint="show it, and confirm CP1 with the person's answer",
            next_call=_confirm(facts, "CP1"),
        ),
        "cp-stale": Refused(
            reason="TASK_CP_STALE",
            message="a confirmed file is not what was confirmed",
            hint="put its bytes back, or show it again and confirm it as a new version",
            details={"slots": stale},
            next_call=_confirm(facts, stale[0]) if stale else None,
        ),
        "cp-unobserved": Refused(
            reason="TASK_CP_NOT_OBSERVED",
            message="a checkpoint was confirmed since the owner last looked",
            hint="renew: it takes the checkpoints as they are",
            next_call=_renew(facts, lease),
        ),
    }
    for name, refused in table.items():
        if name in lacks:
            return refused
    if "project-lease" in lacks:
        failed = projectlease.differences(lease.project_lease, facts.standing)
        return lease_invalid(failed, facts, lease)
    return None


def _stale_context(state: TaskState, lease: Lease, facts: Facts) -> Refused | None:
    present = write_context(state)
    if facts.seen_context == present.context_digest:
        return None
    observed = {
        "stateSequence": present.state_sequence,
        "writerGeneration": present.writer_generation,
        "lifecycleRevision": present.lifecycle_revision,
        "cpSetDigest": present.cp_set_digest,
        "ownerStatus": present.owner_status,
        "admissionGeneration": present.admission_generation,
        "runtimeGeneration": present.runtime_generation,
    }
    return Refused(
        reason="TASK_WRITE_CONTEXT_STALE",
        message="the task has moved since the caller last saw it",
        hint="renew, then look again at what is to be done",
        next_call=_renew(facts, lease),
        details={"observed": observed},
    )


def _not_in_force(lease: Lease, facts: Facts) -> Refused:
    return Refused(
        reason="TASK_WRITE_OWNER_CAS_MISMATCH",
        message="what is quoted is not the owner in force",
        hint="repeat the admission if the task is yours, else bind it by words of a person",
        next_call=facts.call("memory_task_admit_v2", fill=["instruction"], operation="bind"),
        details={"observed": lease.observed},
    )


def _renew(facts: Facts, lease: Lease) -> dict[str, object]:
    """Name the call that renews; the reference is shown to its own session only."""
    if lease.session_digest == facts.standing.session:
        return facts.call("memory_task_write_owner", operation="renew", owner=lease.reference)
    return facts.call("memory_task_write_owner", fill=["owner"], operation="renew")


def _confirm(facts: Facts, phase: str) -> dict[str, object]:
    return facts.call(
        "memory_cp_confirm",
        fill=["artifactPath", "artifactSha256", "sourceMessage"],
        phase=phase,
    )
