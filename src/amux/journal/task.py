"""The state of a task, as its record keeps it (T8).

Rule 1: every field is of one commit; its sequence is the record's.
Rule 2: a state that another root identity or generation made is foreign: history, never authority.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from amux.journal import shape
from amux.journal.admissionrecord import AdmissionLease, Transaction
from amux.journal.checkpoint import Checkpoints
from amux.journal.lease import Lease
from amux.journal.operation import Operation, Settled
from amux.journal.projectlease import Standing

MAX_TRANSITIONS = 64
CLEAN, PENDING = "clean", "pending"
SESSION_CHARS = 12  # of a session's digest, where it is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One commit of the task's record."""

    seq: int
    at: str
    op: str
    session: str
    writer_generation: int
    request_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One file that a claim of being done rests on."""

    role: str
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
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
        """Give the number of the present owner, or of the last; 0 before the first."""
        return 0 if self.owner is None else self.owner.writer_generation

    def is_foreign(self, standing: Standing) -> bool:
        """Tell whether it was made under another root identity or runtime generation."""
        return (self.root_identity_digest, self.runtime_generation) != (
            standing.root_identity,
            standing.generation,
        )


def encode(state: TaskState) -> dict[str, object]:
    """Spell a state as the body of its record."""
    return shape.encode(state)


def decode(body: Mapping[str, object]) -> TaskState:
    """Read a state out of the body of its record.

    Raises:
        shape.Misshapen: the body is no state of a task.
    """
    return shape.decode(TaskState, body)
