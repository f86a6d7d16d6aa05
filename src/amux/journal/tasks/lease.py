"""Who may write a task, as a value (T50 to T54).

Rule 1: every transition lives in this file; callers hold leases, never edit them.
Rule 2: there is no clock: `now` is an argument. Its time is shown and decides nothing.
Rule 3: the generation only grows, and survives release. A record deleted on release would start
        again at 1, and a writer asleep since 1 would wake up current.
Rule 4: who quotes another nonce than the one in force is refused, whatever the clock says.
"""

from datetime import timedelta
from typing import ClassVar

from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.moment import Moment
from amux.journal.tasks.projectlease import ProjectLease

ACTIVE, RELEASED, TERMINAL = "active", "released", "terminal"
SHOWN_LIFE = timedelta(minutes=5)  # diagnostic only: no evidence that anybody is gone (T50)

# Operation -> status before, status after, whether the generation moves (and the nonce with it).
TABLE: dict[str, tuple[tuple[str | None, ...], str, bool]] = {
    "acquire": ((None,), ACTIVE, True),
    "renew": ((ACTIVE,), ACTIVE, False),
    "release": ((ACTIVE,), RELEASED, True),
    "bind": ((None, ACTIVE, RELEASED, TERMINAL), ACTIVE, True),
    "terminal": ((ACTIVE,), TERMINAL, True),
}


class LastTransition(Value):
    """What made a lease what it is."""

    operation: str
    transition: str
    request_digest: str
    prior_lease_digest: str | None
    state_sequence: int
    committed_at: str


class Lease(Value):
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

    @property
    def is_active(self) -> bool:
        """Tell whether it gives anybody the right to write."""
        return self.status == ACTIVE

    @property
    def observed(self) -> dict[str, object]:
        """Tell who has it, to a caller who does not (T52): no nonce, no reference."""
        return {
            "writerGeneration": self.writer_generation,
            "status": self.status,
            "agent": self.agent,
            "expiresAt": self.expires_at,
        }


class Claim(Value):
    """Who makes a transition, with what, and where the task then stands."""

    session: str
    agent: str
    nonce: str
    """Fresh random text, taken where the generation moves."""
    project_lease: ProjectLease
    cp_set_digest: str
    lifecycle_revision: int
    request_digest: str
    sequence: int
    """Of the state that the transition leads to."""
    transition: str
    """What it is called in its receipt: `handoff`, `takeover`, ..."""


def take(
    before: Lease | None, operation: str, claim: Claim, now: Moment, *, task_id: str, known: int = 0
) -> Lease:
    """Give the lease to which an operation leads; what it may follow is the table's.

    `known` is the largest generation of a task whose lease is not at hand any more.
    """
    allowed, status, moves = TABLE[operation]
    if (None if before is None else before.status) not in allowed:
        raise ValueError(f"no {operation} from here")
    generation = known if before is None else before.writer_generation
    made = Lease(
        task_id=task_id,
        root_identity_digest=claim.project_lease.root_identity_digest,
        session_digest=claim.session,
        agent=claim.agent,
        writer_generation=generation + 1 if moves else generation,
        nonce=claim.nonce if moves or before is None else before.nonce,
        lease_revision=1 if before is None else before.lease_revision + 1,
        status=status,
        issued_at=now.iso if moves or before is None else before.issued_at,
        expires_at=now.later(SHOWN_LIFE).iso,
        project_lease=claim.project_lease,
        cp_set_digest=claim.cp_set_digest,
        lifecycle_revision=claim.lifecycle_revision,
        last_transition=LastTransition(
            operation=operation,
            transition=claim.transition,
            request_digest=claim.request_digest,
            prior_lease_digest=None if before is None else before.lease_digest,
            state_sequence=claim.sequence,
            committed_at=now.iso,
        ),
    )
    return shape.seal(made)


def reference(nonce: str) -> str:
    """Spell the owner reference of a nonce.

    >>> reference("0123456789" * 4)
    'own-01234567890123456789'
    """
    return f"own-{nonce[:20]}"
