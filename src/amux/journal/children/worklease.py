"""What a child may do and what became of it: work leases of one plan (T68, T70).

Rule 1: a lease leaves `issued` once and never comes back to it; another try is a new attempt.
Rule 2: what a child hands in is kept beside the lease, accepted or quarantined; the same evidence
        again gets the verdict that it got. Accepted means reviewable, and completes nothing.
Rule 3: cancelling raises the fence first: a result that was under way is too late from then on.
Rule 4: plans have records of their own and never move a task's sequence.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.children import children
from amux.journal.ledger import shape
from amux.journal.refusals import refuse

ISSUED, ACCEPTED, QUARANTINED, CANCELLED = "issued", "accepted", "quarantined", "cancelled"
ACCEPTED_VERDICT = "accepted-for-root-review"
MAX_BESIDE = 16  # results kept beside a lease that has its verdict; a child cannot fill the disk
DUPLICATE_CHILD = "host-child-identity-duplicate"

# state, command -> next state: the whole machine (T68). Results that come to a lease which has
# its verdict are kept beside it.
TRANSITIONS = {
    (ISSUED, "submit clean"): ACCEPTED,
    (ISSUED, "submit otherwise"): QUARANTINED,
    (ISSUED, "cancel"): CANCELLED,
    (ISSUED, "integrate without a result"): CANCELLED,
}


class WorkLease(Value):
    """What one child may do, as it was handed out; it never changes."""

    SCHEMA: ClassVar[str] = "AgentWorkLeaseV1"
    DIGEST: ClassVar[str] = "lease_digest"

    lease_id: str
    plan_digest: str
    work_item_id: str
    attempt: int
    mode: str
    base_head: str
    dirty_digest: str
    active_root: str
    isolation_root: str
    allowed_realpaths: tuple[str, ...]
    forbidden_shared_surfaces: tuple[str, ...]
    issued_at: str
    expires_at: str
    cancel_fence: int = 0
    lease_digest: str = ""


class Result(Value):
    """What a child handed in, and the verdict on it."""

    submission_digest: str
    verdict: str
    reasons: tuple[str, ...]
    submitted_at: str
    host_child_id: str
    patch_digest: str | None
    evidence: Mapping[str, object] | None
    """The evidence itself, of the result that decided; None beside."""

    @property
    def is_accepted(self) -> bool:
        """Tell whether the root may review it."""
        return self.verdict == ACCEPTED_VERDICT


class Slot(Value):
    """One lease and what became of it."""

    lease: WorkLease
    state: str = ISSUED
    fence: int = 0
    result: Result | None = None
    beside: tuple[Result, ...] = ()

    def same(self, submission_digest: str) -> Result | None:
        """Give the verdict that this very submission got before."""
        results = (*self.beside, *(() if self.result is None else (self.result,)))
        return next((one for one in results if one.submission_digest == submission_digest), None)

    @property
    def has_ended(self) -> bool:
        """Tell whether its state is one that stays."""
        return self.state != ISSUED


class ChildPlan(Value):
    """A plan, its leases, and what came back: the body of a child record."""

    SCHEMA: ClassVar[str] = "ChildPlanRecordV1"

    task_id: str
    plan_digest: str
    decision: Mapping[str, object]
    plan: Mapping[str, object]
    cards: tuple[Mapping[str, object], ...]
    slots: tuple[Slot, ...]
    """In the order of the plan's items; of one item the attempts in their order."""
    created_at: str
    closed_at: str | None = None
    receipts: Mapping[str, Mapping[str, object]]
    """Of each set that was integrated, by the digest of its work item ids."""

    @property
    def items(self) -> tuple[children.Item, ...]:
        """Give the items of the plan."""
        items = self.plan.get("workItems")
        return tuple(children.Item.of(one) for one in items) if isinstance(items, list) else ()

    @property
    def is_closed(self) -> bool:
        """Tell whether all of it was integrated."""
        return self.closed_at is not None

    def slot(self, lease_id: str) -> Slot | None:
        """Give the lease of this id, if it is one of the plan's."""
        return next((one for one in self.slots if one.lease.lease_id == lease_id), None)

    def latest(self, work_item_id: str) -> Slot | None:
        """Give the last attempt of an item."""
        found = [one for one in self.slots if one.lease.work_item_id == work_item_id]
        return found[-1] if found else None

    def with_slot(self, slot: Slot) -> "ChildPlan":
        """Give the plan in which this slot replaces the one of its lease."""
        return self.replace(
            slots=tuple(
                slot if one.lease.lease_id == slot.lease.lease_id else one for one in self.slots
            ),
        )


class Terms(Value):
    """What the leases that are handed out now have in common."""

    active_root: str
    base_head: str
    dirty_digest: str
    issued_at: str
    expires_at: str
    realpaths: Mapping[str, tuple[str, ...]]
    """What each item may change, as the file system resolves it, by its id."""
    isolation_roots: Mapping[str, str]
    new_id: Callable[[], str]
    """32 random hex digits each time."""


def issue(plan: ChildPlan, terms: Terms) -> ChildPlan:
    """Hand out a lease for each item that has none under way.

    A repeat while all are under way, or accepted, changes nothing. An item whose last attempt was
    cancelled, quarantined or has expired gets a new attempt with a new lease.
    """
    if plan.plan.get("status") != children.ELIGIBLE:
        return plan
    slots: list[Slot] = []
    for item in plan.items:
        own = [one for one in plan.slots if one.lease.work_item_id == item.work_item_id]
        last = own[-1] if own else None
        if last is not None and last.state == ISSUED and last.lease.expires_at < terms.issued_at:
            own[-1] = last = cancelled(last)
        if last is None or last.state in {QUARANTINED, CANCELLED} or plan.is_closed:
            own.append(Slot(lease=_lease(plan, item, len(own) + 1, terms)))
        slots += own
    if tuple(slots) == plan.slots:
        return plan
    return plan.replace(slots=tuple(slots), closed_at=None, receipts={})


def _lease(plan: ChildPlan, item: children.Item, attempt: int, terms: Terms) -> WorkLease:
    return shape.seal(
        WorkLease(
            lease_id=f"cwl-{terms.new_id()}",
            plan_digest=plan.plan_digest,
            work_item_id=item.work_item_id,
            attempt=attempt,
            mode=item.mode,
            base_head=terms.base_head,
            dirty_digest=terms.dirty_digest,
            active_root=terms.active_root,
            isolation_root=terms.isolation_roots.get(item.work_item_id, item.isolation_root),
            allowed_realpaths=terms.realpaths.get(item.work_item_id, ()),
            forbidden_shared_surfaces=item.forbidden_surfaces,
            issued_at=terms.issued_at,
            expires_at=terms.expires_at,
        )
    )


def cancelled(slot: Slot) -> Slot:
    """Take back a lease that is under way; one that has its verdict stays as it is."""
    if slot.has_ended:
        return slot
    return slot.replace(state=CANCELLED, fence=slot.fence + 1)


def cancel(plan: ChildPlan, ids: Sequence[str]) -> tuple[ChildPlan, tuple[str, ...]]:
    """Take back the leases of these items; tell which were under way."""
    taken = []
    for name in chosen(plan, ids):
        slot = plan.latest(name)
        if slot is not None and not slot.has_ended:
            plan = plan.with_slot(cancelled(slot))
            taken.append(name)
    return plan, tuple(taken)


def record(plan: ChildPlan, slot: Slot, result: Result) -> tuple[ChildPlan, Slot, bool]:
    """Keep what a child handed in, and tell whether it is a repeat.

    The verdict of a lease is given once.
    """
    known = slot.same(result.submission_digest)
    if known is not None:
        return plan, slot, True
    if slot.has_ended:
        beside = (*slot.beside, result.replace(evidence=None))[-MAX_BESIDE:]
        changed = slot.replace(beside=beside)
    else:
        command = "submit clean" if result.is_accepted else "submit otherwise"
        changed = slot.replace(state=TRANSITIONS[slot.state, command], result=result)
    return plan.with_slot(changed), changed, False


def chosen(plan: ChildPlan, ids: Sequence[str]) -> tuple[str, ...]:
    """Give the items that a call means, in the order of the plan; none named are all."""
    known = [item.work_item_id for item in plan.items]
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "the plan has no such item",
            hint="name work items of this plan, or leave workItemIds out for all",
            argument="workItemIds",
            unknown=unknown,
        )
    return tuple(name for name in known if not ids or name in ids)


def set_digest(names: Sequence[str]) -> str:
    """Name a set of items."""
    return canonical.digest(sorted(names))
