"""When a task is over: evidence, the terminal transition, what is left to do (T61 to T64).

Rule 1: all checks come before any commit, in one order; the first that fails is the answer.
Rule 2: a task ends on four files that are hashed here, not on a word, an exit code or a timeout.
Rule 3: what follows the commit can be done again: a repeat of the call finishes it.
"""

from collections.abc import Sequence
from typing import TypeAlias

from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, DropLive, Refused, Render, UnbindRoute
from amux.journal.moment import Moment
from amux.journal.tasks import context, lease, projectlease, settling
from amux.journal.tasks.checkpoint import CONFIRMED
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import TERMINAL, Lease
from amux.journal.tasks.operation import Operation
from amux.journal.tasks.owning import cause, claim_of
from amux.journal.tasks.task import PENDING, Evidence, TaskState, Terminal, follow

STATUSES = ("completed", "rejected", "cancelled", "failed")
ROLES = ("ecr", "report", "memory", "completion")
MAX_BYTES = 8 * 1024 * 1024


class Finish(Value):
    """End the task."""

    owner: str
    request_digest: str
    status: str
    evidence: tuple[Evidence, ...]
    """As the ring hashed it; empty where it did not stand, which `problem` says."""
    problem: Refused | None = None


class Result(Value):
    """What became of it."""

    terminal: Terminal
    settled: Operation | None = None
    is_replayed: bool = False


Outcome: TypeAlias = Accepted[TaskState, Result] | Refused
_AFTER = (Render(), UnbindRoute(), DropLive())


def decide(state: TaskState | None, command: Finish, facts: Facts, now: Moment) -> Outcome:
    """Take the end of a task."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    if known.terminal is not None and known.owner is not None and known.owner.status == TERMINAL:
        return _again(known, command, known.terminal, known.owner)
    owner = _owner(known, command, facts)
    if isinstance(owner, Refused):
        return owner
    cleared = settling.clear(known, facts, now, reason="TASK_TERMINAL_OPERATION_UNSETTLED")
    if isinstance(cleared, Refused):
        return cleared
    problem = _moved(known, facts) or _unconfirmed(known, command, facts) or command.problem
    if problem is not None:
        return problem
    claim = claim_of(known, "terminal", command.request_digest, facts, now)
    ended = lease.take(owner, "terminal", claim, now, task_id=known.task_id)
    terminal = shape.seal(
        Terminal(
            task_id=known.task_id,
            admission_id=known.admission.admission_id,
            terminal_status=command.status,
            writer_generation=ended.writer_generation,
            settled_set_digest=cleared.settled.digest,
            evidence=command.evidence,
            completed_at=now.iso,
        )
    )
    made = follow(
        known,
        cause("terminal", command.request_digest, facts, now),
        owner=ended,
        terminal=terminal,
        operation=None,
        # What a task did is chained in the digest; the records themselves are not kept (T9).
        settled=cleared.settled.replace(newest=()),
        projection=PENDING,
    )
    return Accepted(
        state=made, effects=_AFTER, result=Result(terminal=terminal, settled=cleared.done)
    )


def evidence_problem(end: str, message: str, **details: object) -> Refused:
    """Refuse a piece of evidence (T63); `end` is the end of its reason."""
    return Refused(
        reason=f"TASK_TERMINAL_EVIDENCE_{end}",
        message=message,
        hint="name four different files of the task: ecr, report, memory, completion",
        details=details,
    )


def place_problem(role: str, path: str, task_root: str) -> str | None:
    """Say by which end of a reason a path does not do for its role, or None (T63).

    Paths are relative to the active root.
    """
    folder, _, name = path.rpartition("/")
    if not name:
        return "PATH_INVALID"
    if role == "report":
        is_fit = path.startswith(f"{task_root}/reports/")
    elif role == "memory":
        is_fit = folder in (".memory", f"{task_root}/.memory")
    else:
        is_fit = folder == task_root
    return None if is_fit else "SCOPE_INVALID"


def missing_roles(given: Sequence[str]) -> list[str]:
    """Name the roles without a file; `memory` has one by default."""
    return [role for role in ROLES if role not in given and role != "memory"]


def _again(state: TaskState, command: Finish, terminal: Terminal, owner: Lease) -> Outcome:
    if owner.last_transition.request_digest != command.request_digest:
        return Refused(
            reason="TASK_TERMINAL_REPLAY_MISMATCH",
            message="the task has ended, by another request",
            hint="to go on with it, bind it with entryVariant reopen",
            details={"observed": {"terminalStatus": terminal.terminal_status}},
        )
    effects = _AFTER if state.projection == PENDING else (UnbindRoute(), DropLive())
    return Accepted(
        state=state, effects=effects, result=Result(terminal=terminal, is_replayed=True)
    )


def _owner(state: TaskState, command: Finish, facts: Facts) -> Lease | Refused:
    """Give the lease of the owner who ends the task, or refuse with what is wrong about him."""
    found = context.quoted(state, command.owner, facts)
    problem: dict[str, object] = {}
    if isinstance(found, Refused):
        problem = {**found.details, "cause": found.reason}
    elif found.session_digest != facts.standing.session:
        problem = {"observed": found.observed, "cause": "TASK_WRITE_OWNER_SESSION_MISMATCH"}
    elif not state.admission.is_finalized:
        problem = {"cause": "TASK_ADMISSION_NOT_FINALIZED", "phase": state.admission.phase}
    else:
        failed = projectlease.differences(found.project_lease, facts.standing)
        if not failed:
            return found
        problem = {"cause": "TASK_ADMISSION_PROJECT_LEASE_INVALID", "failed": failed}
    return Refused(
        reason="TASK_TERMINAL_OWNER_MISMATCH",
        message="only the owner in force ends a task",
        hint="renew, or bind the task, then end it",
        next_call=facts.call("memory_task_write_owner", fill=["owner"], operation="renew"),
        details=problem,
    )


def _moved(state: TaskState, facts: Facts) -> Refused | None:
    present = context.write_context(state)
    if facts.seen_context == present.context_digest:
        return None
    return Refused(
        reason="TASK_TERMINAL_STATE_CAS_MISMATCH",
        message="the task has moved since the caller last saw it",
        hint="renew, look again at what is left, then end it",
        next_call=facts.call("memory_task_write_owner", fill=["owner"], operation="renew"),
        details={"observed": {"stateSequence": present.state_sequence}},
    )


def _unconfirmed(state: TaskState, command: Finish, facts: Facts) -> Refused | None:
    stale = state.checkpoints.stale(facts.artifacts)
    is_confirmed = state.checkpoints.slot("CP1").status == CONFIRMED
    if command.status != "completed" or (is_confirmed and not stale):
        return None
    return Refused(
        reason="TASK_TERMINAL_CP_CONFIRMATION_REQUIRED",
        message="a task is completed only with its requirement confirmed as it is now",
        hint="show the file, and confirm the checkpoint with the person's answer",
        next_call=facts.call(
            "memory_cp_confirm",
            fill=["artifactPath", "artifactSha256", "sourceMessage"],
            phase=stale[0] if stale else "CP1",
        ),
        details={"slots": list(stale) if is_confirmed else ["CP1"]},
    )
