"""The project lease: that this session, or this turn, means this project at these roots (T12).

Rule 1: it is never believed: each authority call recomputes it from present facts and compares.
Rule 2: it has no expiry; a difference is told by the names of the fields that differ.
Rule 3: an admission that has started is held to fewer of them: to finish it, nobody is asked for
        a new sentence because the context was renewed meanwhile (T17).
"""

from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape

NO_LAYOUT = "none"
TURN, SESSION = "turn", "session"
_ALWAYS = (
    "project", "active_root", "physical_root", "root_identity_digest", "layout_identity",
    "authority_kind", "authority_digest", "runtime_generation",
)  # fmt: skip
_PRESENT = ("context_epoch", "route_revision")


class ProjectLease(Value):
    """One lease, as it was when it was issued."""

    SCHEMA: ClassVar[str] = "ProjectTargetLeaseV2"
    DIGEST: ClassVar[str] = "lease_digest"

    project: str
    active_root: str
    physical_root: str
    root_identity_digest: str
    layout_identity: str
    authority_kind: str
    authority_digest: str
    context_epoch: str
    route_revision: int
    runtime_generation: int
    issued_at: str
    lease_digest: str = ""


class Standing(Value):
    """Where a session stands now, as the ring sees it under the lock: the facts of a lease."""

    project: str
    active_root: str
    physical_root: str
    """The active root with every link resolved."""
    root_identity: str
    layout_identity: str
    earlier_layouts: frozenset[str] = frozenset()
    """Layout identities that became the present one by our own hand at the first admission."""
    session: str
    """The session's digest."""
    agent: str
    context_epoch: str
    route_revision: int
    generation: int


def of_turn(standing: Standing, event: str, at: str) -> ProjectLease:
    """Issue the lease of one message of the session, for an ingress."""
    digest = canonical.digest({"sessionDigest": standing.session, "sourceEventId": event})
    return _issue(standing, TURN, digest, at)


def of_session(standing: Standing, at: str) -> ProjectLease:
    """Issue the lease of the session, for an owner."""
    digest = canonical.digest({"sessionDigest": standing.session})
    return _issue(standing, SESSION, digest, at)


def differences(lease: ProjectLease, standing: Standing, *, is_started: bool = False) -> list[str]:
    """Name the fields, as on the wire, in which a lease is not what would be issued now.

    The authority of a turn is the ingress's own business (T17); here the session's counts.
    """
    present = of_session(standing, lease.issued_at)
    names = _ALWAYS if is_started else _ALWAYS + _PRESENT
    failed = [name for name in names if getattr(lease, name) != getattr(present, name)]
    if lease.authority_kind == TURN:
        failed = [name for name in failed if not name.startswith("authority_")]
    if lease.layout_identity in standing.earlier_layouts and "layout_identity" in failed:
        failed.remove("layout_identity")
    if not shape.is_sealed(lease):
        failed.append("lease_digest")
    return [shape.wire_name(name) for name in failed]


def _issue(standing: Standing, kind: str, digest: str, at: str) -> ProjectLease:
    return shape.seal(
        ProjectLease(
            project=standing.project,
            active_root=standing.active_root,
            physical_root=standing.physical_root,
            root_identity_digest=standing.root_identity,
            layout_identity=standing.layout_identity,
            authority_kind=kind,
            authority_digest=digest,
            context_epoch=standing.context_epoch,
            route_revision=standing.route_revision,
            runtime_generation=standing.generation,
            issued_at=at,
        )
    )
