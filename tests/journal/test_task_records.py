"""What stands in the ledger and in receipts: names, coordinates, digests, and how much."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.core.canonical import digest, digest_without
from amux.journal.ledger import shape
from amux.journal.tasks import context, task
from amux.journal.tasks import operation as operations
from tests.support.task_agents import OVERVIEW, TEXT, Agent, Place, sha

ROUNDS = 40
MIB = 1024 * 1024


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "billing")


def names(value: object) -> Iterator[str]:
    """Give every schema name that stands in a value."""
    if isinstance(value, dict):
        if isinstance(value.get("schemaVersion"), str):
            yield value["schemaVersion"]
        for one in value.values():
            yield from names(one)
    if isinstance(value, list):
        for one in value:
            yield from names(one)


@pytest.mark.requirement("T1", "T8", "T12")
def test_every_record_goes_by_the_name_that_the_seed_gave_it(place: Place) -> None:
    agent = Agent(place.base)
    receipts: list[object] = [agent.admit(acquireOwner=False)]
    lease = receipts[0]["nextCall"]["arguments"]["continuationLease"]  # type: ignore[index]
    receipts.append(agent.own("acquire", continuationLease=lease))
    receipts.append(agent.bind("go on"))  # with the words comes the hint
    receipts.append(agent.confirm("CP1", OVERVIEW, sha(TEXT)))
    receipts.append(agent.begin())
    kinds = ("ingress", "use", "task", "route")
    records = [one for kind in kinds for one in place.records(kind)]
    assert set(names([*receipts, *records])) >= {
        "AdmissionIngressSnapshotV1", "ProjectTargetLeaseV2", "WorkspaceSessionRouteIndexV1",
        "TaskAdmissionTransactionV1", "AdmissionContinuationLeaseV1", "AdmissionIngressUseV1",
        "FencedTaskWriteOwnerLeaseV2", "CanonicalTaskWriteContextV1", "TaskOperationRecordV1",
        "FormalTaskAdmissionReceiptV2", "TaskWriteOwnerTransitionReceiptV1",
        "MemoryCpConfirmationReceiptV1", "TaskStateV1",
    }  # fmt: skip
    state = place.state()
    assert set(state) == {
        "schemaVersion", "taskId", "project", "taskRootRelative", "identityDigest",
        "rootIdentityDigest", "runtimeGeneration", "stateSequence", "admission", "owner",
        "lifecycleRevision", "checkpoints", "operation", "settled", "admissionLease", "terminal",
        "projection", "transitions",
    }  # fmt: skip
    owner = state["owner"]
    assert isinstance(owner, dict)
    assert owner["leaseDigest"] == digest_without(owner, "leaseDigest")
    assert set(owner["projectLease"]) == {
        "schemaVersion", "project", "activeRoot", "physicalRoot", "rootIdentityDigest",
        "layoutIdentity", "authorityKind", "authorityDigest", "contextEpoch", "routeRevision",
        "runtimeGeneration", "issuedAt", "leaseDigest",
    }  # fmt: skip
    # No receipt shows a nonce.
    assert owner["nonce"] not in str(receipts)


@pytest.mark.requirement("T55")
def test_a_write_context_is_built_from_the_record_and_moves_with_each_commit(
    place: Place,
) -> None:
    agent = Agent(place.base)
    seen = []
    for act in (
        agent.admit,
        lambda: agent.confirm("CP1", OVERVIEW, sha(TEXT)),
        agent.begin,
        agent.settle,
        lambda: agent.own("renew"),
        lambda: agent.own("release"),
    ):
        shown = act()["writeContext"]
        assert isinstance(shown, dict)
        state = task.decode(place.state())
        assert shown == {
            **shape.encode(context.write_context(state)),
            "mutationAuthority": shown["mutationAuthority"],
        }
        assert shown["contextDigest"] == digest_without(shown, "contextDigest", "mutationAuthority")
        assert shown["nonceDigest"] == digest(state.owner.nonce)  # type: ignore[union-attr]
        assert shown["readback"] == "V5"
        seen.append((shown["stateSequence"], shown["contextDigest"]))
    assert len({one for _, one in seen}) == len(seen)
    assert [one for one, _ in seen] == sorted({one for one, _ in seen})


@pytest.mark.requirement("T9", "T75")
def test_what_is_settled_is_chained_and_only_the_newest_are_kept(place: Place) -> None:
    assert operations.chain("0" * 64, "1" * 64) == (
        "6d9a88eb7907e66d60425f0c13d60eeaa8eff25a92f2b6c5b285e336f2d564a8"
    )
    agent = Agent(place.base)
    agent.admit()
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    chain = "0" * 64
    for number in range(10):
        agent.begin(f"{number}.py")
        chain = operations.chain(chain, str(agent.settle()["recordDigest"]))
    settled = place.state()["settled"]
    assert isinstance(settled, dict)
    assert (settled["count"], settled["digest"]) == (10, chain)
    assert [one["targets"][0]["path"] for one in settled["newest"]] == [
        f"{number}.py" for number in range(2, 10)
    ]


# --- how long, how much --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("TP5")
def test_a_thousand_tasks_of_a_hundred_transitions_are_small(place: Place) -> None:
    """Four of the thousand are made: what one adds does not depend on the others."""
    agent, tasks = Agent(place.base), 4
    for number in range(tasks):
        name = f"T {number}"
        agent.admit(instruction=f"w {number}", displayName=name)
        agent.confirm("CP1", OVERVIEW, sha(TEXT), task=name)
        while sequence(place, number) < 100:
            agent.begin("a.py", "b.py", "c.py", "d.py", task=name)
            agent.settle(task=name)
    ledger = place.root / ".runtime-state"
    sizes = [path.stat().st_size for path in ledger.rglob("*") if path.is_file()]
    largest = max(path.stat().st_size for path in (ledger / "ledger/task").iterdir())
    assert largest < 32 * 1024
    assert sum(sizes) / tasks * 1_000 < 64 * MIB


def sequence(place: Place, number: int) -> int:
    (found,) = (
        one for one in place.records("task") if one["taskRootRelative"] == f"bugs/T {number}"
    )
    assert isinstance(found["stateSequence"], int)
    return found["stateSequence"]
