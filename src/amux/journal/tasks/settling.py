"""Operations of a task: begun by its owner, settled by what the targets show (T58 to T60).

Rule 1: an open operation of the same session is settled inside whatever needs none open.
Rule 2: a target that cannot be observed leaves the effect unknown, and that blocks.
Rule 3: anybody may close what a session that is gone has left open; nobody else's live one.
"""

from collections.abc import Mapping
from typing import TypeAlias

from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused
from amux.journal.moment import Moment
from amux.journal.tasks import context, operation
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.operation import UNKNOWN, Operation, Target
from amux.journal.tasks.task import Cause, TaskState, follow


class Begin(Value):
    """Announce a change of these targets."""

    owner: str
    request_digest: str
    kind: str
    targets: Mapping[str, str]
    """What each target is before, by path."""


class Settle(Value):
    """Say that the announced change is over."""

    owner: str
    request_digest: str


class Reconcile(Value):
    """Close an operation that somebody left open."""

    record_digest: str
    request_digest: str


class Result(Value):
    """What became of operations."""

    operation: Operation
    settled: Operation | None = None
    """One that was settled on the way."""
    is_replayed: bool = False


Outcome: TypeAlias = Accepted[TaskState, Result] | Refused


def decide(
    state: TaskState | None, command: Begin | Settle | Reconcile, facts: Facts, now: Moment
) -> Outcome:
    """Take a command about operations."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    if known.repeats(facts.standing.session, command.request_digest):
        again = _again(known, command)
        if again is not None:
            return Accepted(state=known, result=again)
    match command:
        case Begin():
            return _begin(known, command, facts, now)
        case Settle():
            return _settle(known, command, facts, now)
        case Reconcile():
            return _reconcile(known, command, facts, now)


class Cleared(Value, kw_only=False):
    """A state in which no operation is open, and the one that was settled for it."""

    settled: operation.Settled
    done: Operation | None


def clear(
    state: TaskState, facts: Facts, now: Moment, *, reason: str = "TASK_OPERATION_UNSETTLED"
) -> Cleared | Refused:
    """Settle what is open, for a transition of the same session that needs nothing open."""
    if state.operation is None:
        return Cleared(state.settled, None)
    done = operation.settle(state.operation, facts.targets, now.iso)
    if done is None:
        return unsettled(state.operation, facts, reason)
    return Cleared(operation.add(state.settled, done), done)


def unsettled(opened: Operation, facts: Facts, reason: str) -> Refused:
    """Refuse because nobody can tell what an operation did."""
    return Refused(
        reason=reason,
        message="an operation is open, and a target of it cannot be observed",
        hint="make its targets readable, then settle or reconcile it",
        next_call=reconcile_call(opened, facts),
        details={
            "operationId": opened.operation_id,
            "recordDigest": opened.record_digest,
            "targets": operation.unseen(opened, facts.targets),
        },
    )


def reconcile_call(opened: Operation, facts: Facts) -> dict[str, object]:
    """Name the call that closes an operation by observation."""
    return facts.call(
        "memory_artifact_mutation_reconcile_v1",
        expectedCloseoutDigest=opened.record_digest[:16],
    )


def _begin(state: TaskState, command: Begin, facts: Facts, now: Moment) -> Outcome:
    lease = context.writer(state, command.owner, facts)
    if isinstance(lease, Refused):
        return lease
    cleared = clear(state, facts, now)
    if isinstance(cleared, Refused):
        return cleared
    begun = shape.seal(
        Operation(
            operation_id=facts.operation_id,
            kind=command.kind,
            targets=tuple(
                Target(path=path, before=before) for path, before in command.targets.items()
            ),
            phase=operation.TABLE[None, "begin"],
            effect=UNKNOWN,
            writer_generation=lease.writer_generation,
            expected_state_sequence=state.state_sequence,
            request_digest=command.request_digest,
            began_at=now.iso,
        )
    )
    made = follow(
        state, _cause("begin", command, facts, now), operation=begun, settled=cleared.settled
    )
    return Accepted(state=made, result=Result(operation=begun, settled=cleared.done))


def _settle(state: TaskState, command: Settle, facts: Facts, now: Moment) -> Outcome:
    lease = context.writer(state, command.owner, facts, checkpoints=False)
    if isinstance(lease, Refused):
        return lease
    if state.operation is None:
        return _none_open(state)
    return _close(state, command, facts, now)


def _reconcile(state: TaskState, command: Reconcile, facts: Facts, now: Moment) -> Outcome:
    opened, owner = state.operation, state.owner
    if opened is None:
        return _none_open(state, is_reconcile=True)
    is_own = owner is not None and owner.session_digest == facts.standing.session
    if owner is not None and facts.is_owner_live and not is_own:
        return Refused(
            reason="ARTIFACT_RECONCILIATION_OWNER_LIVE",
            message="the session that began the operation is still at work",
            hint="let it settle its operation, or end it first",
            details={"observed": owner.observed},
        )
    if not opened.record_digest.startswith(command.record_digest.lower()):
        return Refused(
            reason="ARTIFACT_RECONCILIATION_CAS_MISMATCH",
            message="another operation than the quoted one is open",
            hint="reconcile the one that is open, by its recordDigest",
            next_call=reconcile_call(opened, facts),
            details={"observed": opened.record_digest},
        )
    return _close(state, command, facts, now)


def _close(state: TaskState, command: Settle | Reconcile, facts: Facts, now: Moment) -> Outcome:
    cleared = clear(state, facts, now)
    if isinstance(cleared, Refused):
        return cleared
    assert cleared.done is not None
    name = "settle" if isinstance(command, Settle) else "reconcile"
    made = follow(state, _cause(name, command, facts, now), operation=None, settled=cleared.settled)
    return Accepted(state=made, result=Result(operation=cleared.done))


def _again(state: TaskState, command: Begin | Settle | Reconcile) -> Result | None:
    """Give the answer of the newest transition again, from the record (T53)."""
    if isinstance(command, Begin):
        found = state.operation
    else:
        found = state.settled.newest[-1] if state.settled.newest else None
    return None if found is None else Result(operation=found, is_replayed=True)


def _none_open(state: TaskState, *, is_reconcile: bool = False) -> Refused:
    if state.settled.count and not is_reconcile:
        return Refused(
            reason="TASK_OPERATION_PHASE_INVALID",
            message="no operation is open: the last one is settled",
            hint="begin another one before the next change",
        )
    return Refused(
        reason="TASK_OPERATION_NOT_FOUND",
        message="no operation is open",
        hint="begin one before files are changed",
    )


def _cause(name: str, command: Begin | Settle | Reconcile, facts: Facts, now: Moment) -> Cause:
    return Cause(
        op=name,
        session=facts.standing.session,
        request_digest=command.request_digest,
        at=now.iso,
    )
