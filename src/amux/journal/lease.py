"""Who may write a task, as a value (T50 to T54).

Rule 1: every transition lives in this file; callers hold leases, never edit them.
Rule 2: there is no clock: `now` is an argument. Its time is shown and decides nothing.
Rule 3: the generation only grows, and survives release. A record deleted on release would start
        again at 1, and a writer asleep since 1 would wake up current.
Rule 4: who quotes another nonce than the one in force is refused, whatever the clock says.
"""

from dataclasses import dataclass
from typing import ClassVar

from amux.journal.projectlease import ProjectLease

ACTIVE, RELEASED, TERMINAL = "active", "released", "terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastTransition:
    """What made a lease what it is."""

    operation: str
    transition: str
    request_digest: str
    prior_lease_digest: str | None
    state_sequence: int
    committed_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write a task, or who had it last."""

    SCHEMA: ClassVar[str] = "FencedTaskWriteOwnerLeaseV2"
    DIGEST: ClassVar[str] = "lease_digest"

    task_id: str
    root_identity_digest: str
    session_digest: str
    agent: str
    writer_generation: int
    nonce: str
    lease_revision: int
    status: str
    issued_at: str
    expires_at: str
    project_lease: ProjectLease
    cp_set_digest: str
    lifecycle_revision: int
    last_transition: LastTransition
    lease_digest: str = ""

    @property
    def reference(self) -> str:
        """Spell what its owner quotes."""
        return reference(self.nonce)


def reference(nonce: str) -> str:
    """Spell the owner reference of a nonce.

    >>> reference("0123456789" * 4)
    'own-01234567890123456789'
    """
    return f"own-{nonce[:20]}"
