from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core import canonical
from amux.errors import AmuxError
from amux.journal.children import childevidence, children, childset, worklease
from amux.journal.children.childevidence import Seen
from amux.journal.children.children import Asked, Item
from amux.journal.children.worklease import ChildPlan, Slot, Terms
from amux.journal.ledger import shape

NOW, SOON, LATE = "2026-03-14T01:20:00.000Z", "2026-03-14T01:21:00.000Z", "2026-03-14T02:20:00.000Z"
END = "2026-03-14T01:25:00.000Z"
HEX = "ab" * 32


def item(name: str, **changes: object) -> Item:
    given = {
        "workItemId": name,
        "displayName": f"item {name}",
        "mode": "isolated-worktree-patch",
        "allowedPaths": [f"src/{name}/"],
        "expectedWrites": [f"src/{name}/main.py"],
        "sharedSurfaces": [],
        "isolationRoot": f"/wt/{name}",
        "sessionPrompt": "do it",
        "validationRoute": "make test",
        "stopCondition": "tests pass",
        **changes,
    }
    return Item.of(given)


def asked(**changes: object) -> Asked:
    values: dict[str, object] = {
        "task_id": "t", "context_digest": HEX, "source_head": "abc", "dirty_digest": "def",
        "budget": {"turns": 3}, "package_root": "/repo", "active_root": "/repo/.devcodex",
        "isolation_roots": {}, **changes,
    }  # fmt: skip
    return Asked(**values)  # type: ignore[arg-type]


def planned(*items: Item, **changes: object) -> dict[str, object]:
    return children.dispatch_plan(items, children.independence(items), asked(**changes))


@pytest.mark.requirement("T66", "TA43")
@pytest.mark.parametrize(
    ("items", "status", "classification"),
    [
        ([item("a"), item("b")], "independent", "independent"),
        ([item("a")], "serial-required", "serial-required"),
        ([item("a"), item("b", allowedPaths=[], expectedWrites=[])],
         "serial-required", "serial-required"),
        ([item("a"), item("b", allowedPaths=["src/"], expectedWrites=["src/a/main.py"])],
         "serial-required", "serial-required"),
        ([item("a"), item("b", allowedPaths=["src/"], expectedWrites=["src/a/"])],
         "serial-required", "serial-required"),
        ([item("a", sharedSurfaces=["cp-state"]), item("b")],
         "serial-required", "serial-required"),
        ([item("a"), item("b", sharedSurfaces=["audit-session"])],
         "serial-required", "serial-required"),
        ([item("a"), item("a", allowedPaths=["x/"], expectedWrites=[])],
         "serial-required", "serial-required"),
        ([item("a", sharedSurfaces=["memory"]), item("b", sharedSurfaces=["memory"])],
         "weakly-coupled-lock", "weakly-coupled-lock"),
        ([item("a", sharedSurfaces=["memory"]), item("b", sharedSurfaces=["report"])],
         "independent", "independent"),
        ([item("a"), item("b", expectedWrites=["lib/x"])], "serial-required", "policy-violation"),
        ([item("a"), item("b", mode="read-only")], "serial-required", "policy-violation"),
        ([item("a"), item("b", mode="read-only", expectedWrites=[])],
         "independent", "independent"),
    ],
)  # fmt: skip
def test_items_are_independent_by_the_table(
    items: list[Item], status: str, classification: str
) -> None:
    decision = children.independence(items)
    assert (decision.status, decision.classification) == (status, classification)
    assert bool(decision.reasons) is (status != "independent")


@pytest.mark.requirement("T66")
@pytest.mark.parametrize(
    ("allowed", "path", "is_covered"),
    [
        ("src/", "src/a", True), ("src/", "src/a/b/", True), ("src/", "src", True),
        ("src", "src", True), ("src", "src/a", False), ("src/", "srcx/a", False),
        ("src/a", "src/a/", False), ("a/", "b/a/x", False),
    ],
)  # fmt: skip
def test_only_a_trailing_slash_allows_a_subtree(allowed: str, path: str, is_covered: bool) -> None:
    assert children.covers(allowed, path) is is_covered


@pytest.mark.requirement("T67", "TA43")
def test_two_to_four_independent_items_apart_from_each_other_are_eligible() -> None:
    plan = planned(item("a"), item("b"))
    assert (plan["status"], plan["fanOut"], plan["depth"]) == ("parallel-eligible", 2, 1)
    assert plan["reasons"] == []
    assert plan["planDigest"] == canonical.digest_without(plan, "planDigest")
    assert plan["budget"] == {"turns": 3}
    assert planned(item("a"))["status"] == "serial-fallback"
    assert planned(*(item(name) for name in "abcd"))["status"] == "parallel-eligible"
    five = planned(*(item(name) for name in "abcde"))
    assert (five["status"], five["reasons"], five["fanOut"]) == (
        "serial-fallback", ["item-count"], 0,
    )  # fmt: skip


@pytest.mark.requirement("T67")
@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ("wt/b", "isolation-root-not-absolute:b"),
        ("/wt/a/sub", "isolation-roots-overlap:a:b"),
        ("/wt/a", "isolation-roots-overlap:a:b"),
        ("/repo/wt", "isolation-root-in-package:b"),
        ("/", "isolation-root-in-package:b"),
        ("/repo/.devcodex/x", "isolation-root-in-active-root:b"),
    ],
)
def test_isolation_roots_lie_apart(root: str, reason: str) -> None:
    plan = planned(item("a"), item("b", isolationRoot=root))
    assert plan["status"] == "serial-fallback"
    assert reason in list(plan["reasons"])  # type: ignore[call-overload]


@pytest.mark.requirement("T67")
def test_an_isolation_root_counts_as_the_file_system_resolves_it() -> None:
    plan = planned(item("a"), item("b"), isolation_roots={"b": "/repo/src"})
    assert plan["status"] == "serial-fallback"


@pytest.mark.requirement("T67")
def test_a_launch_card_tells_what_a_child_needs() -> None:
    one, two = children.launch_cards(
        [item("a", sharedSurfaces=["memory", "cp-state"]), item("b")],
        requirement_id="t", active_root="/r/.devcodex",
    )  # fmt: skip
    assert set(one) == {
        "schemaVersion", "requirementId", "displayName", "activeRoot", "allowedPaths",
        "forbiddenSharedSurfaces", "sessionPrompt", "isolationMode", "mergeProtocol",
        "validationRoute", "stopCondition",
    }  # fmt: skip
    merge = one["mergeProtocol"]
    assert isinstance(merge, dict)
    assert (merge["reportMemoryOwner"], merge["failureAction"]) == ("root", "serial-takeover")
    assert "memory" not in one["forbiddenSharedSurfaces"]  # type: ignore[operator]
    assert "cp-state" in one["forbiddenSharedSurfaces"]  # type: ignore[operator]
    assert len(two["forbiddenSharedSurfaces"]) == 9  # type: ignore[arg-type]


class Ids:
    """Gives another id each time."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"{self.count:032x}"


def terms(ids: Ids, now: str = NOW, end: str = END) -> Terms:
    return Terms(
        active_root="/repo/.devcodex", base_head="abc", dirty_digest="def", issued_at=now,
        expires_at=end, realpaths={name: (f"/wt/{name}/src/{name}/",) for name in "abcd"},
        isolation_roots={}, new_id=ids,
    )  # fmt: skip


def opened(*items: Item, ids: Ids | None = None) -> ChildPlan:
    items = items or (item("a"), item("b"))
    plan = planned(*items)
    made = ChildPlan(
        task_id="t",
        plan_digest=str(plan["planDigest"]),
        decision=children.independence(items).entry(),
        plan=plan,
        cards=tuple(children.launch_cards(items, requirement_id="t", active_root="/r")),
        slots=(),
        created_at=NOW,
        receipts={},
    )
    return worklease.issue(made, terms(ids or Ids()))


def evidence(slot: Slot, **changes: object) -> dict[str, object]:
    lease = slot.lease
    made: dict[str, object] = {
        "schemaVersion": "ChildAgentEvidenceV1",
        "planDigest": lease.plan_digest,
        "leaseDigest": lease.lease_digest,
        "workItemId": lease.work_item_id,
        "attempt": lease.attempt,
        "hostChildId": f"child-{lease.work_item_id}",
        "status": "completed",
        "baseHead": lease.base_head,
        "dirtyDigest": lease.dirty_digest,
        "actualChangedRealpaths": [f"/wt/{lease.work_item_id}/src/{lease.work_item_id}/main.py"],
        "forbiddenSharedSurfacesTouched": [],
        "patchDigest": HEX,
        "validationReceipts": [{"id": "make test", "status": "passed", "evidenceDigest": HEX}],
        "cleanup": {"complete": True, "ownedResidueCount": 0},
        "completedAt": SOON,
        **changes,
    }
    made.setdefault("evidenceDigest", canonical.digest(made))
    return made


def judged(
    plan: ChildPlan,
    slot: Slot,
    given: Mapping[str, object],
    records: tuple[Mapping[str, object], ...] = (),
    *,
    now: str = SOON,
    resolved: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    seen = Seen(
        now=now, resolved=resolved or {}, other_children=childevidence.other_children(plan, slot)
    )
    return childevidence.judge(plan, slot, given, records, seen)


def submitted(
    plan: ChildPlan, name: str, given: Mapping[str, object], now: str = SOON
) -> ChildPlan:
    slot = plan.latest(name)
    assert slot is not None
    reasons = judged(plan, slot, given, now=now)
    digest = childevidence.submission_digest(given, ())
    assert digest is not None
    result = childevidence.result_of(given, reasons, digest=digest, now=now)
    return worklease.record(plan, slot, result)[0]


@pytest.mark.requirement("T68")
def test_a_lease_is_issued_for_each_item_and_survives_its_record() -> None:
    plan = opened()
    assert [one.lease.work_item_id for one in plan.slots] == ["a", "b"]
    lease = shape.encode(plan.slots[0].lease)
    assert set(lease) == {
        "schemaVersion", "leaseId", "planDigest", "workItemId", "attempt", "mode", "baseHead",
        "dirtyDigest", "activeRoot", "isolationRoot", "allowedRealpaths",
        "forbiddenSharedSurfaces", "issuedAt", "expiresAt", "cancelFence", "leaseDigest",
    }  # fmt: skip
    assert str(lease["leaseId"]).startswith("cwl-")
    assert len(str(lease["leaseId"])) == 36
    assert shape.decode(ChildPlan, shape.encode(plan)) == plan


@pytest.mark.requirement("T68")
def test_a_plan_that_is_done_in_series_hands_out_nothing() -> None:
    assert opened(item("a")).slots == ()


@pytest.mark.requirement("T68")
def test_planning_again_changes_nothing_while_leases_are_under_way() -> None:
    ids = Ids()
    plan = opened(ids=ids)
    assert worklease.issue(plan, terms(ids, SOON)) == plan


@pytest.mark.requirement("T68")
def test_another_try_is_a_new_attempt_with_a_new_lease() -> None:
    ids = Ids()
    plan, taken = worklease.cancel(opened(ids=ids), ["a"])
    assert taken == ("a",)
    again = worklease.issue(plan, terms(ids, SOON))
    attempts = [(one.lease.work_item_id, one.lease.attempt, one.state) for one in again.slots]
    assert attempts == [("a", 1, "cancelled"), ("a", 2, "issued"), ("b", 1, "issued")]
    assert len({one.lease.lease_id for one in again.slots}) == 3
    late = worklease.issue(again, terms(ids, LATE, "2026-03-14T02:30:00.000Z"))
    assert [one.state for one in late.slots] == [
        "cancelled", "cancelled", "issued", "cancelled", "issued",
    ]  # fmt: skip


@pytest.mark.requirement("T69", "TA44")
def test_clean_evidence_may_be_reviewed_and_is_judged_once() -> None:
    plan = opened()
    given = evidence(plan.slots[0])
    after = submitted(plan, "a", given)
    slot = after.latest("a")
    assert slot is not None
    assert (slot.state, slot.result is not None and slot.result.verdict) == (
        "accepted", "accepted-for-root-review",
    )  # fmt: skip
    assert submitted(after, "a", given) == after
    other = submitted(after, "a", evidence(plan.slots[0], hostChildId="other"))
    changed = other.latest("a")
    assert changed is not None
    assert (changed.state, changed.result) == (slot.state, slot.result)
    assert len(changed.beside) == 1


SLIPS: list[tuple[dict[str, object], str]] = [
    ({"schemaVersion": "X"}, "schema-invalid"),
    ({"extra": 1}, "schema-invalid"),
    ({"attempt": True}, "schema-invalid"),
    ({"completedAt": "yesterday"}, "schema-invalid"),
    ({"hostChildId": "x" * 17_000}, "schema-invalid"),
    ({"planDigest": HEX}, "plan-lease-mismatch"),
    ({"leaseDigest": HEX}, "lease-invalid"),
    ({"workItemId": "b"}, "work-attempt-mismatch"),
    ({"attempt": 2}, "work-attempt-mismatch"),
    ({"hostChildId": "  "}, "host-child-identity-missing"),
    ({"status": "failed"}, "child-terminal:failed"),
    ({"status": "timeout"}, "child-terminal:timeout"),
    ({"status": "cancelled"}, "child-terminal:cancelled"),
    ({"baseHead": "other"}, "source-identity-drift"),
    ({"dirtyDigest": "other"}, "source-identity-drift"),
    ({"forbiddenSharedSurfacesTouched": ["memory"]}, "forbidden-shared-surface-touched"),
    ({"actualChangedRealpaths": ["src/a/main.py"]}, "changed-realpath-not-absolute"),
    ({"actualChangedRealpaths": ["/wt/b/src/b/x"]}, "changed-realpath-outside-lease"),
    ({"actualChangedRealpaths": ["/wt/a/src/a/../../x"]}, "changed-realpath-outside-lease"),
    ({"patchDigest": None}, "patch-digest-missing"),
    ({"patchDigest": "short"}, "patch-digest-missing"),
    ({"validationReceipts": []}, "validation-evidence-incomplete"),
    ({"validationReceipts": [{"id": "t", "status": "failed", "evidenceDigest": HEX}]},
     "validation-evidence-incomplete"),
    ({"cleanup": {"complete": False, "ownedResidueCount": 0}},
     "owned-resource-cleanup-incomplete"),
    ({"cleanup": {"complete": True, "ownedResidueCount": 1}},
     "owned-resource-cleanup-incomplete"),
    ({"evidenceDigest": HEX}, "child-evidence-digest-invalid"),
]  # fmt: skip


@pytest.mark.requirement("T69", "TA44")
@pytest.mark.parametrize(("changes", "reason"), SLIPS)
def test_each_slip_is_quarantined_with_its_reason(changes: dict[str, object], reason: str) -> None:
    plan = opened()
    given = evidence(plan.slots[0], **changes)
    assert judged(plan, plan.slots[0], given) == (reason,)
    after = submitted(plan, "a", given).latest("a")
    assert after is not None
    assert after.state == "quarantined"


@pytest.mark.requirement("T69")
def test_all_that_is_wrong_is_named() -> None:
    plan = opened()
    given = evidence(plan.slots[0], status="failed", patchDigest=None, baseHead="x")
    assert set(judged(plan, plan.slots[0], given, now=LATE)) == {
        "child-terminal:failed", "patch-digest-missing", "source-identity-drift",
        "lease-expired-or-time-invalid",
    }  # fmt: skip


@pytest.mark.requirement("T69", "TA44")
def test_the_servers_time_counts_and_not_the_childs() -> None:
    plan = opened()
    given = evidence(plan.slots[0], completedAt=SOON)
    assert judged(plan, plan.slots[0], given, now=LATE) == ("lease-expired-or-time-invalid",)
    early = "2026-03-14T01:19:59.999Z"
    assert judged(plan, plan.slots[0], given, now=early) == ("lease-expired-or-time-invalid",)


@pytest.mark.requirement("T69", "TA44")
def test_a_path_that_leads_out_through_a_link_is_outside() -> None:
    plan = opened()
    path = "/wt/a/src/a/main.py"
    given = evidence(plan.slots[0])
    reasons = judged(plan, plan.slots[0], given, resolved={path: "/home/me/.profile"})
    assert reasons == ("changed-realpath-outside-lease",)


@pytest.mark.requirement("T69", "TA44")
def test_read_only_work_changes_nothing() -> None:
    plan = opened(item("a", mode="read-only", expectedWrites=[]), item("b"))
    clean = evidence(plan.slots[0], actualChangedRealpaths=[], patchDigest=None)
    assert judged(plan, plan.slots[0], clean) == ()
    assert judged(plan, plan.slots[0], evidence(plan.slots[0], patchDigest=None)) == (
        "read-only-mode-mutated",
    )


@pytest.mark.requirement("T69", "TA44")
def test_what_comes_after_a_cancel_is_kept_beside() -> None:
    plan, _ = worklease.cancel(opened(), ["a"])
    slot = plan.latest("a")
    assert slot is not None
    given = evidence(plan.slots[0])
    assert set(judged(plan, slot, given)) == {
        "cancel-fence-changed", "root-serial-fallback-already-started",
    }  # fmt: skip
    after = submitted(plan, "a", given).latest("a")
    assert after is not None
    assert (after.state, after.result, len(after.beside)) == ("cancelled", None, 1)


@pytest.mark.requirement("T69", "TA44")
def test_a_child_hands_back_only_what_it_got() -> None:
    plan = opened()
    slot, given = plan.slots[0], evidence(plan.slots[0])
    own = (plan.decision, plan.plan, plan.cards[0], shape.encode(slot.lease))
    assert judged(plan, slot, given, own) == ()
    forged = {**shape.encode(slot.lease), "expiresAt": LATE}
    assert judged(plan, slot, given, (forged,)) == ("lease-invalid",)
    assert judged(plan, slot, given, ({**plan.plan, "fanOut": 9},)) == ("plan-invalid",)
    foreign = {"schemaVersion": "FencedTaskWriteOwnerLeaseV2"}
    assert judged(plan, slot, given, (foreign,)) == ("record-type-forbidden",)


@pytest.mark.requirement("T70")
def test_integration_takes_over_what_is_missing_or_quarantined() -> None:
    plan = opened(item("a"), item("b"), item("c"))
    plan = submitted(plan, "a", evidence(plan.slots[0]))
    plan = submitted(plan, "b", evidence(plan.slots[1], status="failed"))
    closed, receipt = childset.integrate(plan, [], now=SOON)
    assert receipt["status"] == "root-integration-required"
    assert receipt["patchOrder"] == ["a"]
    takeover = receipt["serialTakeover"]
    assert isinstance(takeover, list)
    assert [(one["workItemId"], one["reasons"]) for one in takeover] == [
        ("b", ["child-terminal:failed"]), ("c", ["child-result-missing"]),
    ]  # fmt: skip
    assert [one.state for one in closed.slots] == ["accepted", "quarantined", "cancelled"]
    assert closed.slots[2].fence == 1
    assert closed.is_closed
    assert receipt["receiptDigest"] == canonical.digest_without(receipt, "receiptDigest")
    assert childset.integrate(closed, [], now=LATE) == (closed, receipt)
    assert shape.decode(ChildPlan, shape.encode(closed)) == closed


@pytest.mark.requirement("T70")
def test_without_any_accepted_result_the_root_does_all() -> None:
    _, receipt = childset.integrate(opened(), [], now=SOON)
    assert receipt["status"] == "serial-fallback-required"
    assert receipt["patchOrder"] == []


@pytest.mark.requirement("T70", "TA44")
def test_one_child_for_two_items_is_believed_for_neither() -> None:
    plan = opened()
    plan = submitted(plan, "a", evidence(plan.slots[0], hostChildId="same"))
    plan = submitted(plan, "b", evidence(plan.slots[1], hostChildId="same"))
    second = plan.latest("b")
    assert second is not None
    assert second.result is not None
    assert second.result.reasons == ("host-child-identity-duplicate",)
    _, receipt = childset.integrate(plan, [], now=SOON)
    assert receipt["accepted"] == []
    quarantined = receipt["quarantined"]
    assert isinstance(quarantined, list)
    assert [one["reasons"] for one in quarantined] == [["host-child-identity-duplicate"]] * 2


@pytest.mark.requirement("T70")
def test_a_second_result_is_told_as_a_duplicate_and_changes_nothing() -> None:
    plan = opened()
    plan = submitted(plan, "a", evidence(plan.slots[0]))
    plan = submitted(plan, "a", evidence(plan.slots[0], hostChildId="late"))
    _, receipt = childset.integrate(plan, [], now=SOON)
    assert receipt["patchOrder"] == ["a"]
    quarantined = receipt["quarantined"]
    assert isinstance(quarantined, list)
    assert [one["reasons"] for one in quarantined] == [["child-result-duplicate"]]


@pytest.mark.requirement("T70")
def test_part_of_a_plan_may_be_closed_and_its_receipt_is_kept_until_new_leases() -> None:
    ids = Ids()
    plan, receipt = childset.integrate(opened(ids=ids), ["a"], now=SOON)
    assert not plan.is_closed
    assert childset.integrate(plan, ["a"], now=LATE)[1] == receipt
    again = worklease.issue(plan, terms(ids, SOON))
    again = submitted(again, "a", evidence(again.slots[1]))
    assert childset.integrate(again, ["a"], now=SOON)[1]["patchOrder"] == ["a"]
    with pytest.raises(AmuxError) as refused:
        childset.integrate(plan, ["zz"], now=SOON)
    assert refused.value.details["reason"] == "MEMORY_WRITER_ARGUMENT_INVALID"


@pytest.mark.requirement("T68")
@given(st.lists(st.sampled_from(["clean", "late", "bad", "cancel", "integrate"]), max_size=8))
def test_no_command_returns_a_lease_to_issued_and_verdicts_stay(commands: list[str]) -> None:
    plan = opened()
    for command in commands:
        before = {one.lease.lease_id: one for one in plan.slots}
        match command:
            case "clean":
                plan = submitted(plan, "a", evidence(plan.slots[0]))
            case "late":
                plan = submitted(plan, "a", evidence(plan.slots[0], hostChildId="l"), now=LATE)
            case "bad":
                plan = submitted(plan, "a", evidence(plan.slots[0], status="failed"))
            case "cancel":
                plan, _ = worklease.cancel(plan, [])
            case _:
                plan, _ = childset.integrate(plan, [], now=SOON)
        for slot in plan.slots:
            was = before[slot.lease.lease_id]
            assert slot.fence >= was.fence
            if was.state != "issued":
                assert (slot.state, slot.result) == (was.state, was.result)


@pytest.mark.requirement("T69")
def test_results_beside_a_lease_are_bounded() -> None:
    plan = submitted(opened(), "a", evidence(opened().slots[0]))
    for number in range(40):
        plan = submitted(plan, "a", evidence(plan.slots[0], hostChildId=f"c{number}"))
    slot = plan.latest("a")
    assert slot is not None
    assert len(slot.beside) == worklease.MAX_BESIDE
    assert slot.replace(beside=()).has_ended


@pytest.mark.requirement("T69")
def test_what_has_no_spelling_is_malformed_and_has_no_name() -> None:
    plan = opened()
    slot = plan.slots[0]
    given = {**evidence(slot), "attempt": 1.5}
    assert judged(plan, slot, given) == ("schema-invalid",)
    assert childevidence.submission_digest(given, ()) is None
    odd: Mapping[str, object] = {"schemaVersion": "AgentWorkLeaseV1", "x": 1.5}
    assert judged(plan, slot, evidence(slot), (odd,)) == ("lease-invalid",)


@pytest.mark.requirement("T70")
def test_a_set_that_was_tampered_with_is_not_believed() -> None:
    plan = submitted(opened(), "a", evidence(opened().slots[0]))
    twin = plan.replace(slots=(plan.slots[0], *plan.slots))
    _, receipt = childset.integrate(twin, ["a"], now=SOON)
    assert receipt["patchOrder"] == []
    foreign = plan.slots[0].replace(lease=plan.slots[0].lease.replace(plan_digest=HEX))
    _, receipt = childset.integrate(plan.replace(slots=(foreign, plan.slots[1])), [], now=SOON)
    assert receipt["patchOrder"] == []
    bare = plan.replace(slots=())
    _, receipt = childset.integrate(bare, [], now=SOON)
    takeover = receipt["serialTakeover"]
    assert isinstance(takeover, list)
    assert [one["reasons"] for one in takeover] == [["agent-work-lease-unplanned"]] * 2


@pytest.mark.requirement("T68")
def test_cancelling_again_takes_nothing_back() -> None:
    plan, _ = worklease.cancel(opened(), [])
    again, taken = worklease.cancel(plan, [])
    assert (again, taken) == (plan, ())
    assert worklease.cancelled(plan.slots[0]) == plan.slots[0]
    assert plan.slot("cwl-none") is None
