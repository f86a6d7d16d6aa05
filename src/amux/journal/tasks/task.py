"""The state of a task, as its record keeps it (T8).

Rule 1: every field is of one commit; its sequence is the record's.
Rule 2: a state that another root identity or generation made is foreign: history, never authority.
"""

from collections.abc import Mapping
from typing import ClassVar

from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.tasks.admissionrecord import AdmissionLease, Transaction
from amux.journal.tasks.checkpoint import Checkpoints
from amux.journal.tasks.lease import Lease
from amux.journal.tasks.operation import Operation, Settled
from amux.journal.tasks.projectlease import Standing

MAX_TRANSITIONS = 64
CLEAN, PENDING = "clean", "pending"
SESSION_CHARS = 12  # of a session's digest, where it is shown


class Transition(Value):
    """One commit of the task's record."""

    seq: int
    at: str
    op: str
    session: str
    writer_generation: int
    request_digest: str


class Evidence(Value):
    """One file that a claim of being done rests on."""

    role: str
    path: str
    sha256: str
    bytes: int


class Terminal(Value):
    """That a task is over, and on what evidence."""

    SCHEMA: ClassVar[str] = "WorkflowTaskTerminalReceiptV1"
    DIGEST: ClassVar[str] = "receipt_digest"

    task_id: str
    admission_id: str
    terminal_status: str
    writer_generation: int
    settled_set_digest: str
    evidence: tuple[Evidence, ...]
    completed_at: str
    receipt_digest: str = ""


class TaskState(Value):
    """All that the ledger knows of one task."""

    SCHEMA: ClassVar[str] = "TaskStateV1"

    task_id: str
    project: str
    task_root_relative: str
    identity_digest: str
    root_identity_digest: str
    runtime_generation: int
    state_sequence: int
    admission: Transaction
    owner: Lease | None
    lifecycle_revision: int
    checkpoints: Checkpoints
    operation: Operation | None
    """The one that is open."""
    settled: Settled
    admission_lease: AdmissionLease | None
    terminal: Terminal | None
    projection: str
    transitions: tuple[Transition, ...]

    @property
    def generation(self) -> int:
        """Give the largest number that an owner of the task has had; 0 before the first.

        An admission that begins anew has no owner, and goes on counting all the same.
        """
        known = [one.writer_generation for one in self.transitions]
        return max(known, default=0) if self.owner is None else self.owner.writer_generation

    def is_foreign(self, standing: Standing) -> bool:
        """Tell whether it was made under another root identity or runtime generation."""
        return (self.root_identity_digest, self.runtime_generation) != (
            standing.root_identity,
            standing.generation,
        )

    def repeats(self, session: str, request_digest: str) -> bool:
        """Tell whether a request is the one that made the newest transition (T53)."""
        newest = self.transitions[-1:]
        return bool(newest) and (newest[0].session, newest[0].request_digest) == (
            session[:SESSION_CHARS],
            request_digest,
        )


class Cause(Value):
    """What made a transition: an operation, of a session, by a request, at a time."""

    op: str
    session: str
    request_digest: str
    at: str


def follow(state: TaskState, cause: Cause, **changes: object) -> TaskState:
    """Make the state that a transition leads to: one commit further, and noted."""
    changed = state.replace(state_sequence=state.state_sequence + 1, **changes)
    noted = Transition(
        seq=changed.state_sequence,
        at=cause.at,
        op=cause.op,
        session=cause.session[:SESSION_CHARS],
        writer_generation=changed.generation,
        request_digest=cause.request_digest,
    )
    return changed.replace(transitions=(*state.transitions, noted)[-MAX_TRANSITIONS:])


def encode(state: TaskState) -> dict[str, object]:
    """Spell a state as the body of its record."""
    return shape.encode(state)


def decode(body: Mapping[str, object]) -> TaskState:
    """Read a state out of the body of its record.

    Raises:
        shape.Misshapen: the body is no state of a task.
    """
    return shape.decode(TaskState, body)
