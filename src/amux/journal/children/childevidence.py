"""What a child hands in: judged by what its lease says, never by its word (T69).

Rule 1: all that is wrong is named, not only the first; without a reason it may be reviewed.
Rule 2: the time that counts is the server's; paths count as the file system resolves them.
Rule 3: of the journal's own records a child may only hand back what it was given, byte for byte.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from amux.core import canonical
from amux.core.value import Value
from amux.journal.children import children
from amux.journal.children.worklease import (
    ACCEPTED_VERDICT,
    CANCELLED,
    DUPLICATE_CHILD,
    QUARANTINED,
    ChildPlan,
    Result,
    Slot,
)  # fmt: skip
from amux.journal.ledger import shape

SCHEMA = "ChildAgentEvidenceV1"
MAX_BYTES = 16 * 1024
STATUSES = ("completed", "failed", "timeout", "cancelled")
PASSED = "passed"
_HEX = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Seen(Value):
    """What the ring saw when the evidence came in."""

    now: str
    resolved: Mapping[str, str]
    """Each changed path as the file system resolves it now."""
    other_children: frozenset[str]
    """Who handed in the other items of the plan, by the host's ids."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_receipts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and set(one) == {"id", "status", "evidenceDigest"}
        and all(isinstance(part, str) for part in one.values())
        for one in value
    )


def _is_cleanup(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"complete", "ownedResidueCount"}
        and isinstance(value["complete"], bool)
        and _is_number(value["ownedResidueCount"])
    )


_FIELDS: dict[str, Callable[[object], bool]] = {
    "schemaVersion": lambda value: value == SCHEMA,
    "planDigest": _is_text,
    "leaseDigest": _is_text,
    "workItemId": _is_text,
    "attempt": _is_number,
    "hostChildId": _is_text,
    "status": lambda value: value in STATUSES,
    "baseHead": _is_text,
    "dirtyDigest": _is_text,
    "actualChangedRealpaths": _is_texts,
    "forbiddenSharedSurfacesTouched": _is_texts,
    "patchDigest": lambda value: value is None or isinstance(value, str),
    "validationReceipts": _is_receipts,
    "cleanup": _is_cleanup,
    "completedAt": lambda value: isinstance(value, str) and _TIME.fullmatch(value) is not None,
    "evidenceDigest": _is_text,
}


def is_well_formed(evidence: Mapping[str, object]) -> bool:
    """Tell whether evidence has each of its fields, and is not too long."""
    try:
        size = len(canonical.encode(evidence))
    except ValueError:
        return False
    return (
        size <= MAX_BYTES
        and set(evidence) == set(_FIELDS)
        and all(is_right(evidence[name]) for name, is_right in _FIELDS.items())
    )


def submission_digest(evidence: object, records: Sequence[object]) -> str | None:
    """Name all that was handed in; None where it has no spelling of its own."""
    try:
        return canonical.digest({"evidence": evidence, "records": list(records)})
    except ValueError:
        return None


def judge(
    plan: ChildPlan,
    slot: Slot,
    evidence: Mapping[str, object],
    records: Sequence[Mapping[str, object]],
    seen: Seen,
) -> tuple[str, ...]:
    """Name all that speaks against the evidence; nothing may be reviewed (T69)."""
    found = [*_returned(plan, slot, records)]
    if not is_well_formed(evidence):
        found.append("schema-invalid")
    else:
        found += _of_identity(slot, evidence, seen)
        found += _of_changes(slot, evidence, seen)
        found += _of_work(slot, evidence)
    found += _of_time(plan, slot, seen)
    return tuple(dict.fromkeys(found))


def _returned(
    plan: ChildPlan, slot: Slot, records: Sequence[Mapping[str, object]]
) -> tuple[str, ...]:
    """Compare what a child hands back with what it was given."""
    given: dict[str, tuple[str, tuple[object, ...]]] = {
        "RequirementIndependenceDecisionV1": ("plan-invalid", (plan.decision,)),
        "HostSubagentDispatchPlanV1": ("plan-invalid", (plan.plan,)),
        "ParallelLaunchCardV1": ("plan-invalid", plan.cards),
        "AgentWorkLeaseV1": ("lease-invalid", (shape.encode(slot.lease),)),
    }
    found = []
    for one in records:
        reason, known = given.get(str(one.get("schemaVersion")), ("record-type-forbidden", ()))
        if not any(_is_equal(one, each) for each in known):
            found.append(reason)
    return tuple(dict.fromkeys(found))


def _is_equal(one: object, other: object) -> bool:
    try:
        return canonical.digest(one) == canonical.digest(other)
    except ValueError:
        return False


def _of_identity(slot: Slot, evidence: Mapping[str, object], seen: Seen) -> list[str]:
    lease, found = slot.lease, []
    if evidence["leaseDigest"] != lease.lease_digest:
        found.append("lease-invalid")
    if evidence["planDigest"] != lease.plan_digest:
        found.append("plan-lease-mismatch")
    if (evidence["workItemId"], evidence["attempt"]) != (lease.work_item_id, lease.attempt):
        found.append("work-attempt-mismatch")
    child = str(evidence["hostChildId"]).strip()
    if not child:
        found.append("host-child-identity-missing")
    elif child in seen.other_children:
        found.append(DUPLICATE_CHILD)
    if (evidence["baseHead"], evidence["dirtyDigest"]) != (lease.base_head, lease.dirty_digest):
        found.append("source-identity-drift")
    return found


def _of_work(slot: Slot, evidence: Mapping[str, object]) -> list[str]:
    found = []
    if evidence["status"] != "completed":
        found.append(f"child-terminal:{evidence['status']}")
    if evidence["forbiddenSharedSurfacesTouched"]:
        found.append("forbidden-shared-surface-touched")
    if not _is_validated(slot, evidence):
        found.append("validation-evidence-incomplete")
    if evidence["cleanup"] != {"complete": True, "ownedResidueCount": 0}:
        found.append("owned-resource-cleanup-incomplete")
    if evidence["evidenceDigest"] != canonical.digest_without(evidence, "evidenceDigest"):
        found.append("child-evidence-digest-invalid")
    return found


def _of_time(plan: ChildPlan, slot: Slot, seen: Seen) -> list[str]:
    found = []
    if not slot.lease.issued_at <= seen.now <= slot.lease.expires_at:
        found.append("lease-expired-or-time-invalid")
    if slot.fence != slot.lease.cancel_fence:
        found.append("cancel-fence-changed")
    if slot.state == CANCELLED or plan.is_closed:
        found.append("root-serial-fallback-already-started")
    return found


def _of_changes(slot: Slot, evidence: Mapping[str, object], seen: Seen) -> list[str]:
    lease, found = slot.lease, []
    changed = _texts(evidence["actualChangedRealpaths"])
    if not all(path.startswith("/") for path in changed):
        found.append("changed-realpath-not-absolute")
    absolute = [path for path in changed if path.startswith("/")]
    if not all(_is_inside(path, seen, lease.allowed_realpaths) for path in absolute):
        found.append("changed-realpath-outside-lease")
    patch = evidence["patchDigest"]
    if lease.mode == children.READ_ONLY and (changed or patch is not None):
        found.append("read-only-mode-mutated")
    if lease.mode == children.PATCH and not (isinstance(patch, str) and _HEX.fullmatch(patch)):
        found.append("patch-digest-missing")
    return found


def _is_inside(path: str, seen: Seen, allowed: Sequence[str]) -> bool:
    """Tell whether a path is allowed as it is spelled and as it resolves.

    A child's path through a link, or by `..`, is another path than the one it names.
    """
    if {".", ".."} & set(path.split("/")):
        return False
    real = seen.resolved.get(path, path)
    return any(children.covers(one, path) for one in allowed) and any(
        children.covers(one, real) for one in allowed
    )


def _is_validated(slot: Slot, evidence: Mapping[str, object]) -> bool:
    receipts = evidence["validationReceipts"]
    if not isinstance(receipts, list) or (not receipts and slot.lease.mode != children.READ_ONLY):
        return False
    return all(
        one["id"] and one["status"] == PASSED and _HEX.fullmatch(one["evidenceDigest"])
        for one in receipts
    )


def result_of(
    evidence: Mapping[str, object], reasons: Sequence[str], *, digest: str, now: str
) -> Result:
    """Make what is kept of a submission; what is malformed is not kept, only that it came."""
    is_sound = is_well_formed(evidence)
    patch = evidence["patchDigest"] if is_sound else None
    return Result(
        submission_digest=digest,
        verdict=QUARANTINED if reasons else ACCEPTED_VERDICT,
        reasons=tuple(reasons),
        submitted_at=now,
        host_child_id=str(evidence["hostChildId"]).strip() if is_sound else "",
        patch_digest=patch if isinstance(patch, str) else None,
        evidence=dict(evidence) if is_sound else None,
    )


def other_children(plan: ChildPlan, slot: Slot) -> frozenset[str]:
    """Name the children whose results decided other items of a plan.

    What was kept beside a lease came too late to decide, and takes nothing from anybody.
    """
    return frozenset(
        other.result.host_child_id
        for other in plan.slots
        if other.lease.work_item_id != slot.lease.work_item_id
        and other.result is not None
        and other.result.host_child_id
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
