"""A set of children's results, closed: what the root may review, and what it does itself (T70).

Rule 1: accepted means reviewable. The root applies patches under its own operations and writes all
        memory; whatever is missing or doubtful it does itself.
Rule 2: closing a set again gives the same receipt, until new leases are handed out.
"""

from collections.abc import Sequence

from amux.core import canonical
from amux.journal.children import children
from amux.journal.children.childevidence import other_children
from amux.journal.children.worklease import (
    DUPLICATE_CHILD,
    ChildPlan,
    Result,
    Slot,
    cancelled,
    chosen,
    set_digest,
)  # fmt: skip


def integrate(
    plan: ChildPlan, ids: Sequence[str], *, now: str
) -> tuple[ChildPlan, dict[str, object]]:
    """Close a set of items: what the root may review, and what it does itself (T70)."""
    names = chosen(plan, ids)
    key = set_digest(names)
    if key in plan.receipts and (plan.is_closed or _has_ended(plan, names)):
        return plan, dict(plan.receipts[key])
    accepted: list[dict[str, object]] = []
    taken: list[dict[str, object]] = []
    quarantined: list[dict[str, object]] = []
    for item in plan.items:
        if item.work_item_id not in names:
            continue
        slot = plan.latest(item.work_item_id)
        reasons = _against(plan, slot)
        if slot is not None and not slot.has_ended:
            plan = plan.with_slot(cancelled(slot))
        quarantined += _quarantined(plan, item.work_item_id, reasons)
        if slot is not None and slot.result is not None and not reasons:
            accepted.append(_accepted(slot, slot.result))
        else:
            taken.append(_takeover(item, reasons))
    receipt: dict[str, object] = {
        "schemaVersion": "RootAgentIntegrationReceiptV1",
        "status": "root-integration-required" if accepted else "serial-fallback-required",
        "accepted": accepted,
        "patchOrder": [one["workItemId"] for one in accepted if one["patchDigest"] is not None],
        "serialTakeover": taken,
        "quarantined": quarantined,
    }
    receipt["receiptDigest"] = canonical.digest(receipt)
    every = [item.work_item_id for item in plan.items]
    closed_at = now if set(names) == set(every) else plan.closed_at
    return plan.replace(receipts={**plan.receipts, key: receipt}, closed_at=closed_at), receipt


def takeover(plan: ChildPlan, names: Sequence[str]) -> list[dict[str, object]]:
    """Say what the root does itself of items that were taken back."""
    return [_takeover(item, ("cancelled",)) for item in plan.items if item.work_item_id in names]


def _has_ended(plan: ChildPlan, names: Sequence[str]) -> bool:
    slots = [plan.latest(name) for name in names]
    return all(slot is None or slot.has_ended for slot in slots)


def _against(plan: ChildPlan, slot: Slot | None) -> tuple[str, ...]:
    """Name what speaks against the last attempt of an item when its set is closed."""
    if slot is None:
        return ("agent-work-lease-unplanned",)
    if slot.result is None:
        return ("child-result-missing",)
    found = list(slot.result.reasons)
    twins = [one for one in plan.slots if one.lease.lease_id == slot.lease.lease_id]
    if len(twins) > 1:
        found.append("agent-work-lease-duplicate")
    if slot.lease.plan_digest != plan.plan_digest:
        found.append("child-result-unplanned")
    if slot.result.host_child_id in other_children(plan, slot):
        found.append(DUPLICATE_CHILD)
    return tuple(dict.fromkeys(found))


def _quarantined(
    plan: ChildPlan, name: str, against_last: Sequence[str]
) -> list[dict[str, object]]:
    """Tell every result of an item that is not to be reviewed, of all its attempts."""
    found = []
    slots = [one for one in plan.slots if one.lease.work_item_id == name]
    for slot in slots:
        reasons = against_last if slot is slots[-1] else ("superseded-attempt",)
        if slot.result is not None and (reasons or not slot.result.is_accepted):
            found.append(_shown(slot, slot.result, reasons))
        found += [_shown(slot, one, ("child-result-duplicate",)) for one in slot.beside]
    return found


def _accepted(slot: Slot, result: Result) -> dict[str, object]:
    evidence = result.evidence or {}
    return {
        "workItemId": slot.lease.work_item_id,
        "attempt": slot.lease.attempt,
        "evidenceDigest": evidence.get("evidenceDigest"),
        "patchDigest": result.patch_digest,
        "actualChangedRealpaths": evidence.get("actualChangedRealpaths", []),
    }


def _shown(slot: Slot, result: Result, more: Sequence[str]) -> dict[str, object]:
    return {
        "workItemId": slot.lease.work_item_id,
        "attempt": slot.lease.attempt,
        "submissionDigest": result.submission_digest,
        "reasons": list(dict.fromkeys((*result.reasons, *more))),
    }


def _takeover(item: children.Item, reasons: Sequence[str]) -> dict[str, object]:
    return {
        "workItemId": item.work_item_id,
        "displayName": item.display_name,
        "reasons": list(reasons),
        "validationRoute": item.validation_route,
        "stopCondition": item.stop_condition,
    }
