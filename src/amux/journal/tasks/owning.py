"""Transitions of the owner that are not part of an admission: renew, release, confirm (T51 to T53).

Rule 1: each quotes the reference in force; a repeat of the newest transition is answered again.
Rule 2: renewing takes the session's context and route, and the checkpoints, as they are now.
Rule 3: releasing leaves nothing open behind it.
"""

from typing import TypeAlias

from amux.core.value import Value
from amux.journal.machine import Accepted, DropLive, Effect, HoldLive, Refused, Render
from amux.journal.moment import Moment
from amux.journal.tasks import checkpoint, context, lease, projectlease, settling
from amux.journal.tasks.checkpoint import Answer
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import Claim, Lease
from amux.journal.tasks.operation import Operation
from amux.journal.tasks.task import PENDING, Cause, TaskState, follow


class Renew(Value):
    """Go on owning, with what is present now."""

    owner: str
    request_digest: str


class Release(Value):
    """Own it no more."""

    owner: str
    request_digest: str


class Result(Value):
    """What became of the owner."""

    operation: str
    transition: str
    settled: Operation | None = None
    is_replayed: bool = False


Outcome: TypeAlias = Accepted[TaskState, Result] | Refused


def decide(state: TaskState | None, command: Renew | Release, facts: Facts, now: Moment) -> Outcome:
    """Take a command of the owner."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    name = "renew" if isinstance(command, Renew) else "release"
    if known.repeats(facts.standing.session, command.request_digest) and not _has_moved(
        known, name, facts
    ):
        # The answer may have been lost with the process that lived for the session.
        effects = (HoldLive(),) if name == "renew" else ()
        return Accepted(
            state=known,
            effects=effects,
            result=Result(operation=name, transition=name, is_replayed=True),
        )
    owner = context.quoted(known, command.owner, facts)
    if isinstance(owner, Refused):
        return owner
    if owner.session_digest != facts.standing.session:
        return _other_session(owner)
    if isinstance(command, Renew):
        return _renew(known, owner, command, facts, now)
    return _release(known, owner, command, facts, now)


def _renew(state: TaskState, owner: Lease, command: Renew, facts: Facts, now: Moment) -> Outcome:
    made = renewed(state, owner, command.request_digest, facts, now)
    state = follow(state, cause("renew", command.request_digest, facts, now), owner=made)
    return Accepted(
        state=state, effects=(HoldLive(),), result=Result(operation="renew", transition="renew")
    )


def _release(
    state: TaskState, owner: Lease, command: Release, facts: Facts, now: Moment
) -> Outcome:
    failed = projectlease.differences(owner.project_lease, facts.standing)
    if failed:
        return context.lease_invalid(failed, facts, owner)
    cleared = settling.clear(state, facts, now)
    if isinstance(cleared, Refused):
        return cleared
    claim = claim_of(state, "release", command.request_digest, facts, now)
    made = lease.take(owner, "release", claim, now, task_id=state.task_id)
    state = follow(
        state,
        cause("release", command.request_digest, facts, now),
        owner=made,
        operation=None,
        settled=cleared.settled,
    )
    return Accepted(
        state=state,
        effects=(DropLive(),),
        result=Result(operation="release", transition="release", settled=cleared.done),
    )


class Confirmed(Value):
    """What became of a checkpoint."""

    is_renewed: bool = False
    """Whether the owner's session confirmed, so that its lease observed it."""
    is_replayed: bool = False


def confirm(
    state: TaskState | None, answer: Answer, request_digest: str, facts: Facts, now: Moment
) -> Accepted[TaskState, Confirmed] | Refused:
    """Take a person's answer for a checkpoint; it needs no owner (T47)."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    decided = checkpoint.decide(known.checkpoints, answer, facts.artifacts)
    if isinstance(decided, Refused):
        return decided
    if decided.result:
        return Accepted(state=known, result=Confirmed(is_replayed=True))
    changed = known.replace(checkpoints=decided.state)
    owner = known.owner
    is_own = (
        owner is not None and owner.is_active and owner.session_digest == facts.standing.session
    )
    if owner is not None and is_own:
        owner = renewed(changed, owner, request_digest, facts, now)
    made = follow(
        changed,
        cause(f"confirm:{answer.phase}", request_digest, facts, now),
        owner=owner,
        projection=PENDING,
    )
    effects: tuple[Effect, ...] = (Render(), HoldLive()) if is_own else (Render(),)
    return Accepted(state=made, effects=effects, result=Confirmed(is_renewed=is_own))


def renewed(
    state: TaskState, owner: Lease, request_digest: str, facts: Facts, now: Moment
) -> Lease:
    """Give the lease as its session holds it from now on."""
    # By what it came to own stays known: receipts of an admission that is repeated tell it.
    claim = claim_of(state, owner.last_transition.transition, request_digest, facts, now)
    return lease.take(owner, "renew", claim, now, task_id=state.task_id)


def claim_of(
    state: TaskState, transition: str, request_digest: str, facts: Facts, now: Moment
) -> Claim:
    """Say for whom, and on what, a transition of the owner is made."""
    return Claim(
        session=facts.standing.session,
        agent=facts.standing.agent,
        nonce=facts.nonce,
        project_lease=projectlease.of_session(facts.standing, now.iso),
        cp_set_digest=state.checkpoints.digest,
        lifecycle_revision=state.lifecycle_revision,
        request_digest=request_digest,
        sequence=state.state_sequence + 1,
        transition=transition,
    )


def cause(op: str, request_digest: str, facts: Facts, now: Moment) -> Cause:
    """Say what made a transition."""
    return Cause(op=op, session=facts.standing.session, request_digest=request_digest, at=now.iso)


def _has_moved(state: TaskState, name: str, facts: Facts) -> bool:
    """Tell whether a renewal would take more than is taken: then it is no repeat.

    Nothing was committed since, but what lies outside the record may have changed: a layout that
    was edited would otherwise be refused everywhere, with a renewal as the way out.
    """
    owner = state.owner
    return (
        name == "renew"
        and owner is not None
        and bool(projectlease.differences(owner.project_lease, facts.standing))
    )


def _other_session(owner: Lease) -> Refused:
    return Refused(
        reason="TASK_WRITE_OWNER_SESSION_MISMATCH",
        message="another session owns the task",
        hint="let its owner release it, then bind it",
        details={"observed": owner.observed},
    )
