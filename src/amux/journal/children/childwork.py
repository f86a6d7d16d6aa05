"""Children of a task: plans, leases and what they hand in, over the ring (T66 to T71).

Rule 1: planning, cancelling and integrating are the owner's; handing in is the child's and writes
        its own record only.
Rule 2: a child's record commits on its own: the task's sequence and the root's context stay.
Rule 3: paths are resolved here, when evidence comes in: what they are then, counts.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from amux.core import canonical
from amux.disk import glance
from amux.errors import AmuxError, Corrupt
from amux.journal import relative
from amux.journal.call.errand import Errand
from amux.journal.children import childevidence, children, childset, worklease
from amux.journal.children.childevidence import Seen
from amux.journal.children.children import Asked, Item
from amux.journal.children.worklease import ChildPlan, Slot, Terms
from amux.journal.ledger import shape
from amux.journal.ledger.record import Record, first
from amux.journal.ledger.shape import Misshapen
from amux.journal.machine import Refused
from amux.journal.refusals import refuse
from amux.journal.tasks import authority, context, retention
from amux.journal.tasks.authority import Call
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.task import TaskState

Result = dict[str, object]
_LEASE = re.compile(r"cwl-[0-9a-f]{32}")
_PLAN_KEY = re.compile(r"[0-9a-f]{64}")


def plan(errand: Errand) -> Result:
    """Plan, cancel or integrate the work of children."""
    return authority.run(errand, lambda call: _plan(errand, call))


def submit(errand: Errand) -> Result:
    """Take what a child hands in, and give the verdict."""
    lease_id = _lease_id(errand)
    return authority.run(errand, lambda call: _submit(errand, call, lease_id))


def _plan(errand: Errand, call: Call) -> Result:
    task_id, path = call.locate(str(errand.text("task")))
    loaded = call.load(task_id)
    facts = call.facts(loaded.state, path=path, name=str(errand.text("task")))
    lease = context.writer(loaded.state, str(errand.text("owner")), facts, checkpoints=False)
    if isinstance(lease, Refused):
        raise lease.error()
    assert loaded.state is not None
    op = errand.text("op")
    if op == "plan":
        found = _made(errand, call, loaded.state, facts)
    elif op == "cancel":
        found = _cancelled(errand, call, task_id)
    else:
        found = _integrated(errand, call, task_id)
    call.saw(loaded.state)
    return {
        **found,
        "writeContext": context.shown(loaded.state, facts),
        "warnings": call.warnings,
    }


def _made(errand: Errand, call: Call, state: TaskState, facts: Facts) -> Result:
    items = _items(errand)
    source = _source(errand)
    decision = children.independence(items)
    package, active = glance.real(errand.target.source), call.standing.physical_root
    roots = {
        item.work_item_id: glance.real(item.isolation_root)
        for item in items
        if item.isolation_root.startswith("/")
    }
    asked = Asked(
        task_id=state.task_id,
        context_digest=context.write_context(state).context_digest,
        source_head=source[0],
        dirty_digest=source[1],
        budget=_budget(errand),
        package_root=package,
        active_root=active,
        isolation_roots=roots,
    )
    made = children.dispatch_plan(items, decision, asked)
    cards = children.launch_cards(items, requirement_id=state.task_id, active_root=active)
    key = str(made["planDigest"])
    before = call.ledger.read("child", key)
    known = None if before is None else _decoded(before)
    new = known or ChildPlan(
        task_id=state.task_id,
        plan_digest=key,
        decision=decision.entry(),
        plan=made,
        cards=tuple(cards),
        slots=(),
        created_at=errand.now.iso,
        receipts={},
    )
    issued = worklease.issue(new, _terms(errand, items, roots, source, active))
    if issued != known:
        _commit(call, before, issued)
    slots = [issued.latest(item.work_item_id) for item in items]
    return {
        "schemaVersion": "HostSubagentDispatchResultV1",
        "decision": dict(issued.decision),
        "plan": dict(issued.plan),
        "cards": [dict(card) for card in issued.cards],
        "leases": [shape.encode(slot.lease) for slot in slots if slot is not None],
        "nextCall": facts.call(
            "memory_child_plan", op="integrate", owner=str(errand.text("owner")),
            planDigest=key[:16],
        ),
    }  # fmt: skip


def _terms(
    errand: Errand,
    items: Sequence[Item],
    roots: Mapping[str, str],
    source: tuple[str, str],
    active: str,
) -> Terms:
    around, now = errand.around, errand.now
    return Terms(
        active_root=active,
        base_head=source[0],
        dirty_digest=source[1],
        issued_at=now.iso,
        expires_at=now.later(timedelta(seconds=errand.number("ttlSeconds"))).iso,
        realpaths={
            item.work_item_id: tuple(
                _allowed(roots.get(item.work_item_id, item.isolation_root), path)
                for path in item.allowed_paths
            )
            for item in items
        },
        isolation_roots=roots,
        new_id=lambda: around.random_bytes(16).hex(),
    )


def _allowed(root: str, path: str) -> str:
    """Give the place of an allowed path in a child's own tree; a subtree keeps its mark."""
    return f"{root.rstrip('/')}/{path}"


def _items(errand: Errand) -> list[Item]:
    given = errand.arguments.get("items")
    if not isinstance(given, list):
        raise _missing("items")
    items = [Item.of(one) for one in given if isinstance(one, Mapping)]
    for item in items:
        for path in (*item.allowed_paths, *item.expected_writes):
            relative.require(path.removesuffix("/"))
    return items


def _source(errand: Errand) -> tuple[str, str]:
    match errand.arguments.get("source"):
        case {"sourceHead": str(head), "dirtyDigest": str(dirty)}:
            return head, dirty
        case _:
            raise _missing("source")


def _budget(errand: Errand) -> dict[str, int] | None:
    given = errand.arguments.get("budget")
    if not isinstance(given, Mapping):
        return None
    return {str(name): value for name, value in given.items() if isinstance(value, int)}


def _cancelled(errand: Errand, call: Call, task_id: str) -> Result:
    before, known = _known(errand, call, task_id)
    made, taken = worklease.cancel(known, _ids(errand))
    if made != known:
        _commit(call, before, made)
    return {
        "schemaVersion": "HostSubagentCancellationV1",
        "cancelled": list(taken),
        "serialTakeover": childset.takeover(made, taken),
    }


def _integrated(errand: Errand, call: Call, task_id: str) -> Result:
    before, known = _known(errand, call, task_id)
    made, receipt = childset.integrate(known, _ids(errand), now=errand.now.iso)
    if made != known:
        _commit(call, before, made)
        retention.drop_plans(call.ledger, task_id)
    return receipt


def _known(errand: Errand, call: Call, task_id: str) -> tuple[Record, ChildPlan]:
    """Give the plan that a call names by the start of its digest, of this task."""
    start = errand.text("planDigest")
    if start is None:
        raise _missing("planDigest")
    keys = [key for key in call.ledger.keys("child") if key.startswith(start)]
    for key in keys:
        found = call.ledger.read("child", key)
        if found is not None and _decoded(found).task_id == task_id:
            return found, _decoded(found)
    raise refuse(
        "MEMORY_WRITER_ARGUMENT_INVALID",
        "the task has no such plan",
        hint="give planDigest as the plan's receipt has it",
        argument="planDigest",
    )


def _ids(errand: Errand) -> list[str]:
    given = errand.arguments.get("workItemIds")
    return [str(one) for one in given] if isinstance(given, list) else []


def _lease_id(errand: Errand) -> str:
    """Name the lease that a child hands in for: its own, which its environment names."""
    child, given = errand.around.child, errand.text("lease")
    own = None if child is None else child.lease_id
    if own is not None and given is not None and given != own:
        raise refuse(
            "CHILD_AGENT_WRITE_FORBIDDEN",
            "a child hands in for its own lease only",
            hint="leave lease out",
        )
    lease_id = given or own or ""
    if not _LEASE.fullmatch(lease_id):
        raise _no_lease("the lease is spelled as none")
    return lease_id


def _submit(errand: Errand, call: Call, lease_id: str) -> Result:
    evidence = errand.arguments.get("evidence")
    given = errand.arguments.get("records")
    records = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    assert isinstance(evidence, Mapping)
    before, known, slot = _slot(call, lease_id, evidence)
    digest = childevidence.submission_digest(evidence, records)
    if digest is None:
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "the evidence has no canonical spelling",
            hint="use whole numbers and plain text",
            argument="evidence",
        )
    same = slot.same(digest)
    if same is None:
        seen = Seen(
            now=errand.now.iso,
            resolved=_resolved(evidence),
            other_children=childevidence.other_children(known, slot),
        )
        reasons = childevidence.judge(known, slot, evidence, records, seen)
        same = childevidence.result_of(evidence, reasons, digest=digest, now=errand.now.iso)
        made, slot, _ = worklease.record(known, slot, same)
        _commit(call, before, made)
        is_replayed = False
    else:
        is_replayed = True
    return {
        "schemaVersion": "ChildAgentSubmissionReceiptV1",
        "validation": {
            "schemaVersion": "ChildAgentEvidenceValidationV1",
            "verdict": same.verdict,
            "reasons": list(same.reasons),
        },
        "leaseState": slot.state,
        "replayed": is_replayed,
        "warnings": call.warnings,
    }


def _slot(
    call: Call, lease_id: str, evidence: Mapping[str, object]
) -> tuple[Record, ChildPlan, Slot]:
    """Find the plan of a lease: the one that the evidence names, else any.

    One that was handed out at another root, before a copy or a move, is none of this root's.
    """
    ledger, active = call.ledger, call.standing.physical_root
    named = evidence.get("planDigest")
    keys = ledger.keys("child")
    if isinstance(named, str) and _PLAN_KEY.fullmatch(named) and named in keys:
        keys = [named, *(key for key in keys if key != named)]
    for key in keys:
        try:
            found = ledger.read("child", key)
            known = None if found is None else _decoded(found)
        except Corrupt:
            continue
        slot = None if known is None else known.slot(lease_id)
        if found is None or known is None or slot is None:
            continue
        if slot.lease.active_root == active:
            return found, known, slot
    raise _no_lease("no lease of this memory has that id")


def _resolved(evidence: Mapping[str, object]) -> dict[str, str]:
    paths = evidence.get("actualChangedRealpaths")
    if not isinstance(paths, list):
        return {}
    return {
        path: glance.real(path)
        for path in paths
        if isinstance(path, str) and path.startswith("/") and "\0" not in path
    }


def _commit(call: Call, before: Record | None, made: ChildPlan) -> None:
    body = shape.encode(made)
    call.ledger.change(
        before,
        first("child", made.plan_digest, body) if before is None else before.successor(body),
    )


def _decoded(found: Record) -> ChildPlan:
    try:
        made = shape.decode(ChildPlan, found.body)
    except Misshapen as error:
        raise found.corrupt("body") from error
    if made.plan_digest != found.key or made.plan_digest != canonical.digest_without(
        made.plan, "planDigest"
    ):
        raise found.corrupt("plan")
    return made


def _missing(name: str) -> AmuxError:
    return refuse(
        "MEMORY_WRITER_ARGUMENT_REQUIRED",
        f"{name} is needed for this op",
        hint="plan needs items and source, cancel and integrate need planDigest",
        argument=name,
    )


def _no_lease(message: str) -> AmuxError:
    return refuse(
        "AGENT_WORK_LEASE_INVALID",
        message,
        hint="hand in with the lease that the root gave; it can plan another attempt",
        argument="lease",
    )
