"""What a task's tools answer, from the record as it was read back (T36, T50, T55).

Rule 1: a receipt is built from the present state, so that a repeat tells the same.
Rule 2: the owner reference is told to its own session only; nobody is told a nonce.
Rule 3: the next call is ready to send, and named by what the caller called the task.
"""

from amux.journal.ledger import shape
from amux.journal.tasks import context
from amux.journal.tasks.checkpoint import CONFIRMED, PHASES
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.operation import Operation
from amux.journal.tasks.task import TaskState


def reference(state: TaskState, facts: Facts) -> str | None:
    """Give the owner reference, if the caller's session owns the task."""
    owner = state.owner
    if owner is None or not owner.is_active or owner.session_digest != facts.standing.session:
        return None
    return owner.reference


def authority(state: TaskState, facts: Facts) -> dict[str, object]:
    """Spell write context and authority, which every receipt of a claim or transition has."""
    return {"writeContext": context.shown(state, facts), **context.authority(state, facts)}


def slots(state: TaskState, facts: Facts) -> list[dict[str, object]]:
    """Show the three checkpoints as they are now."""
    stale = state.checkpoints.stale(facts.artifacts)
    shown = []
    for slot in state.checkpoints.slots:
        known = slot.confirmation
        shown.append(
            {
                "phase": slot.phase,
                "status": slot.status,
                "stale": slot.phase in stale,
                "artifactPath": None if known is None else known.artifact_path or None,
                "artifactSha256": None if known is None else known.artifact_sha256 or None,
                "artifactVersion": None if known is None else known.artifact_version or None,
                "confirmedAt": None if known is None else known.confirmed_at,
            }
        )
    return shown


def operation(done: Operation | None) -> dict[str, object] | None:
    """Spell an operation."""
    return None if done is None else shape.encode(done)


def next_call(state: TaskState, facts: Facts) -> dict[str, object] | None:
    """Name what the owner does next: observe, confirm, begin; nothing for anybody else."""
    owner = reference(state, facts)
    if owner is None:
        return None
    lacks = context.missing(state, facts)
    if "cp1" in lacks or "cp-stale" in lacks:
        phase = _unconfirmed(state, facts)
        return facts.call(
            "memory_cp_confirm",
            fill=["artifactPath", "artifactSha256", "sourceMessage"],
            phase=phase,
        )
    if "cp-unobserved" in lacks or "project-lease" in lacks:
        return facts.call("memory_task_write_owner", operation="renew", owner=owner)
    if lacks:
        return None
    return facts.call("memory_task_operation", fill=["targets"], op="begin", owner=owner)


def _unconfirmed(state: TaskState, facts: Facts) -> str:
    stale = state.checkpoints.stale(facts.artifacts)
    waiting = [
        slot.phase
        for slot in state.checkpoints.slots
        if slot.phase in stale or slot.status != CONFIRMED
    ]
    return waiting[0] if waiting else PHASES[0]
