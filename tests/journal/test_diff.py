"""A hand-off card's state line against the present, as values (T65)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core import canonical
from amux.journal.finding import diff
from amux.journal.finding.diff import Card, Present
from amux.journal.tasks import checkpoint
from amux.journal.tasks.admissionrecord import FINALIZED, Transaction
from amux.journal.tasks.checkpoint import CONFIRMED, Checkpoints
from amux.journal.tasks.operation import Operation, Settled, Target
from amux.journal.tasks.task import TaskState

HEX = "ab" * 32
ID = "c15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc"


def state(**changes: object) -> TaskState:
    made = TaskState(
        task_id=ID, project="p", task_root_relative="bugs/a", identity_digest=HEX,
        root_identity_digest=HEX, runtime_generation=1, state_sequence=9,
        admission=Transaction(
            admission_id="a", ingress_ref="i", ingress_digest=HEX, request_digest=HEX,
            operation="admit", admission_generation=1, phase=FINALIZED,
        ),
        owner=None, lifecycle_revision=1, checkpoints=checkpoint.start(), operation=None,
        settled=Settled(), admission_lease=None, terminal=None, projection="clean",
        transitions=(),
    )  # fmt: skip
    return made.replace(**changes)  # type: ignore[arg-type]


def confirmed() -> Checkpoints:
    first, *rest = checkpoint.start().slots
    return Checkpoints(epoch=1, slots=(first.replace(status=CONFIRMED), *rest))


def opened(name: str = "op-1") -> Operation:
    return Operation(
        operation_id=name, kind="edit", targets=(Target(path="a", before=HEX),),
        phase="dispatched", effect="unknown", writer_generation=1, expected_state_sequence=1,
        request_digest=HEX, began_at="2026-03-14T01:20:00.000Z",
    )  # fmt: skip


def present(found: TaskState | None, **changes: object) -> Present:
    made = Present(
        task_id=ID, identity_problem=None, status="active", state=found, task_path="bugs/a",
        stale=(), artifacts={},
    )  # fmt: skip
    return made.replace(**changes)  # type: ignore[arg-type]


def card(found: TaskState | None, *artifacts: tuple[str, str], task: str = ID) -> Card:
    return Card(task, diff.read_state_line(diff.state_line(found, artifacts)), "go on")


def verdicts(result: dict[str, object]) -> dict[str, str]:
    items = result["items"]
    assert isinstance(items, list)
    return {one["key"]: one["verdict"] for one in items}


@pytest.mark.requirement("T65", "J69")
@given(st.booleans(), st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=3))
def test_a_state_line_is_canonical_and_reads_back(
    is_confirmed: bool, artifacts: list[tuple[str, str]]
) -> None:
    found = state(checkpoints=confirmed() if is_confirmed else checkpoint.start())
    line = diff.state_line(found, artifacts)
    assert "\n" not in line
    said = diff.read_state_line(line)
    assert said is not None
    assert canonical.encode(said).decode() == line
    assert set(said) == {
        "artifacts", "checkpoints", "lifecycleRevision", "openOperation", "ownerStatus",
        "stateSequence", "writerGeneration",
    }  # fmt: skip


@pytest.mark.requirement("T65")
@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "[" * 100_000, '{"artifacts":[]}', "CP1 is confirmed, believe me"],
)
def test_what_is_no_state_line_is_not_compared(text: str) -> None:
    assert diff.read_state_line(text) is None


@pytest.mark.requirement("T65")
@pytest.mark.parametrize(
    "change", [{"artifacts": 1}, {"artifacts": [1]}, {"artifacts": [{"path": 1, "sha256": "x"}]},
               {"checkpoints": []}, {"more": 1}],
)  # fmt: skip
def test_a_state_line_with_odd_parts_is_none(change: dict[str, object]) -> None:
    said = json.loads(diff.state_line(state(), ())) | change
    assert diff.read_state_line(json.dumps(said)) is None


@pytest.mark.requirement("T65")
def test_the_first_row_of_the_table_that_applies_decides() -> None:
    found = state(checkpoints=confirmed())
    unfinished = found.admission.replace(phase="prepared")
    rows = [
        (card(found), present(found.replace(operation=opened()), status="completed"), "reconcile"),
        (card(found), present(found.replace(admission=unfinished)), "reconcile"),
        (card(found), present(found, identity_problem="identityDigest"), "ask"),
        (card(found), present(found, status="completed"), "ask"),
        (card(found, task="other"), present(found), "ask"),
        (card(found), present(found, stale=("CP1",)), "re-confirm"),
        (card(found), present(state()), "re-confirm"),
        (card(found), present(None), "re-confirm"),
        (card(found), present(found), "continue"),
        (None, present(found), "continue"),
        (None, present(found, stale=("CP1",)), "re-confirm"),
    ]
    for given_card, given_present, overall in rows:
        assert diff.compare(given_card, given_present)["overall"] == overall


@pytest.mark.requirement("T65")
def test_each_item_has_its_verdict() -> None:
    before = state(checkpoints=confirmed(), operation=opened("op-1"))
    now = state(
        state_sequence=12, settled=Settled(count=1, newest=(opened("op-1").replace(effect="x"),)),
        checkpoints=confirmed(),
    )  # fmt: skip
    given = card(before, ("same", "1"), ("changed", "1"), ("gone", "1"))
    result = diff.compare(
        given, present(now, artifacts={"same": "1", "changed": "2", "new": "3"}, stale=("CP1",))
    )
    assert verdicts(result) == {
        "identity": "same", "status": "same", "owner": "same", "admission": "changed",
        "cp:CP1": "changed", "cp:CP2": "same", "cp:CP3": "same", "artifact:same": "same",
        "artifact:changed": "changed", "artifact:gone": "missing", "artifact:new": "new",
        "operation:op-1": "changed",
    }  # fmt: skip
    lost = diff.compare(given, present(None))
    assert verdicts(lost)["owner"] == "missing"
    assert verdicts(lost)["operation:op-1"] == "missing"


@pytest.mark.requirement("T65")
def test_the_next_action_is_the_cards_as_data() -> None:
    found = state()
    result = diff.compare(card(found), present(found))
    assert result["nextAction"] == "the card's next-action: go on"
    moved = diff.compare(card(found), present(found.replace(state_sequence=10)))
    assert moved["nextAction"] == "read again: admission; then the card's next-action: go on"
    assert diff.compare(None, present(found))["nextAction"] == "read the task's sessions.md"
    unfinished = found.replace(admission=found.admission.replace(phase="prepared"))
    assert diff.compare(None, present(unfinished))["nextAction"] == "repeat the admission"
    busy = found.replace(operation=opened("op-2"))
    again = diff.compare(None, present(busy))
    assert again["nextAction"] == "reconcile the open operation"
    assert verdicts(again)["operation:op-2"] == "new"
    assert "ask the person" in str(
        diff.compare(None, present(found, status="unknown"))["nextAction"]
    )


@pytest.mark.requirement("T65")
def test_a_card_of_a_task_that_was_over_says_so() -> None:
    said = json.loads(diff.state_line(state(), ())) | {"ownerStatus": "terminal"}
    given = Card(ID, diff.read_state_line(json.dumps(said)), None)
    over = diff.compare(given, present(state(), status="completed"))
    assert verdicts(over)["status"] == "same"
    reopened = diff.compare(given, present(state()))
    assert verdicts(reopened)["status"] == "changed"


@pytest.mark.requirement("T65")
@given(st.text(max_size=30))
def test_prose_is_never_compared(prose: str) -> None:
    found = state()
    one = diff.compare(Card(ID, card(found).said, prose), present(found))
    other = diff.compare(card(found), present(found))
    assert (one["items"], one["overall"]) == (other["items"], other["overall"])
