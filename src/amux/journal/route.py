"""That a session means this project now, and which task it worked on last (T11 to T13).

Rule 1: a project lease is recomputed from present facts at each authority call; every field that
        differs is named. It has no expiry: recomputing it is the check.
Rule 2: a route entry is a hint. It never selects a project, a task or an owner, and holds nothing
        that was confirmed; lost or broken, everything but the hint works.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amux.core import canonical
from amux.errors import AmuxError
from amux.journal.refusals import next_call, refuse

HINT_LIFETIME_MS = 24 * 60 * 60 * 1000
HINT_MAX_BYTES = 1024
MAX_HINTS = 1024
TRIGGERS = ("admission-bind", "task-bind", "project-switch", "terminal-unbind")
NO_LAYOUT = "none"
TURN, SESSION = "turn", "session"

# What the lease says that present facts can contradict, in the order in which it is told.
_COMPARED = (
    "project", "activeRoot", "physicalRoot", "rootIdentityDigest", "layoutIdentity",
    "authorityKind", "authorityDigest", "contextEpoch", "routeRevision", "runtimeGeneration",
)  # fmt: skip
# What a started admission's turn is held to: another context or route is no reason to ask a
# person again (T17).
STARTED = tuple(name for name in _COMPARED if name not in {"contextEpoch", "routeRevision"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is so now: where the project lies, and what its session last said."""

    project: str
    active_root: str
    physical_root: str
    root_identity: str
    layout_identity: str
    """Digest of `layout.json`, or `none`."""
    session_digest: str
    context_epoch: str
    route_revision: int
    runtime_generation: int


def authority(session_digest: str, source_event_id: str | None) -> tuple[str, str]:
    """Name what a lease rests on: one turn, or a session as long as it owns."""
    if source_event_id is None:
        return SESSION, canonical.digest({"sessionDigest": session_digest})
    return TURN, canonical.digest(
        {"sessionDigest": session_digest, "sourceEventId": source_event_id}
    )


def project_lease(
    present: Present, *, issued_at: str, source_event_id: str | None = None
) -> dict[str, object]:
    """Make the lease of a session, or of the turn that an event began."""
    kind, rests_on = authority(present.session_digest, source_event_id)
    lease: dict[str, object] = {
        "schemaVersion": "ProjectTargetLeaseV2",
        "project": present.project,
        "activeRoot": present.active_root,
        "physicalRoot": present.physical_root,
        "rootIdentityDigest": present.root_identity,
        "layoutIdentity": present.layout_identity,
        "authorityKind": kind,
        "authorityDigest": rests_on,
        "contextEpoch": present.context_epoch,
        "routeRevision": present.route_revision,
        "runtimeGeneration": present.runtime_generation,
        "issuedAt": issued_at,
    }
    return {**lease, "leaseDigest": canonical.digest(lease)}


def differing(
    lease: Mapping[str, object],
    present: Present,
    *,
    source_event_id: str | None = None,
    fields: Sequence[str] = _COMPARED,
) -> tuple[str, ...]:
    """Name every field in which a lease is not what present facts would give."""
    now = project_lease(
        present, issued_at=str(lease.get("issuedAt")), source_event_id=source_event_id
    )
    failed = [name for name in fields if lease.get(name) != now[name]]
    if lease.get("leaseDigest") != canonical.digest_without(lease, "leaseDigest"):
        failed.append("leaseDigest")
    return tuple(failed)


def invalid(failed: Sequence[str], *, task: str, project: str, owner: str | None) -> AmuxError:
    """Make the refusal of a lease that present facts contradict."""
    arguments = {"operation": "renew", "task": task, "project": project}
    return refuse(
        "TASK_ADMISSION_PROJECT_LEASE_INVALID",
        "the session no longer means this project as it did",
        hint="renew: it takes the present context and route",
        next_call=next_call(
            "memory_task_write_owner",
            arguments if owner is None else {**arguments, "owner": owner},
            fill=["owner"] if owner is None else [],
        ),
        failed=list(failed),
    )


def require_revision(given: int | None, known: int) -> int:
    """Give the session's route revision after a call: it only grows."""
    if given is not None and given < known:
        raise refuse(
            "TASK_ROUTE_REVISION_STALE",
            "the session is at a later route revision",
            hint="leave routeRevision out, or give the present one",
            observed=known,
        )
    return known if given is None else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Which task a session worked on last."""

    session_digest: str
    project: str
    root_identity: str
    task_id: str
    route_revision: int
    state: str
    """`live` or `unbound`."""
    trigger: str
    expires_at: str
    terminal_receipt: str | None = None

    def entry(self) -> dict[str, object]:
        """Spell it as the body of its record."""
        entry: dict[str, object] = {
            "schemaVersion": "WorkspaceSessionRouteIndexV1",
            "sessionDigest": self.session_digest,
            "project": self.project,
            "projectRootIdentityDigest": self.root_identity,
            "taskId": self.task_id,
            "routeRevision": self.route_revision,
            "state": self.state,
            "trigger": self.trigger,
            "expiresAt": self.expires_at,
            "lastTerminalReceiptDigest": self.terminal_receipt,
            "authority": False,
            "hintOnly": True,
        }
        return {**entry, "entryDigest": canonical.digest(entry)}

    def fits(self) -> bool:
        """Tell whether its entry keeps to its size; a longer one is not written."""
        return len(canonical.encode(self.entry())) <= HINT_MAX_BYTES


def read_hint(entry: Mapping[str, object], *, now: str) -> dict[str, object] | None:
    """Give a live entry as an answer shows it, or None for one that says nothing any more.

    `now` and the entry's expiry are spelled alike, so that they compare as texts.
    """
    if entry.get("entryDigest") != canonical.digest_without(entry, "entryDigest"):
        return None
    match entry:
        case {
            "state": "live", "expiresAt": str(expires), "project": str(), "taskId": str(),
            "authority": False, "hintOnly": True,
        } if expires > now:  # fmt: skip
            return dict(entry)
        case _:
            return None


def has_ended(entry: Mapping[str, object], *, now: str) -> bool:
    """Tell whether an entry may be dropped to make room: expired, unbound, or no entry at all."""
    return read_hint(entry, now=now) is None
