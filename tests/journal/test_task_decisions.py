"""What the machines of tasks decide at their edges, without a disk (T3, T32, T51 to T62)."""

from collections.abc import Callable

import pytest

from amux.core import canonical
from amux.journal.admission import asking
from amux.journal.admission.admission import TABLE as PHASES
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused
from amux.journal.tasks import checkpoint, context, lease, task
from amux.journal.tasks.admissionrecord import CP_STATE, FENCED, FINALIZED
from amux.journal.tasks.settling import Begin, Reconcile, Settle
from amux.journal.tasks.task import TaskState
from tests.support.task_world import OVERVIEW_NAME, Someone, World


class Story:
    """One task of session `a`, and what is done with it."""

    def __init__(self) -> None:
        self.world = World()
        made = self.world.admit(self.a, "fix it", "Export totals", "one\n")
        assert isinstance(made, TaskState)
        self.task_id = made.task_id

    @property
    def a(self) -> Someone:
        return self.world.people["a"]

    @property
    def b(self) -> Someone:
        return self.world.people["b"]

    @property
    def state(self) -> TaskState:
        return self.world.states[self.task_id]

    @property
    def owner(self) -> str:
        return self.a.owner[self.task_id]

    def confirm(self) -> None:
        done = self.world.confirm(self.a, self.state, "CP1", OVERVIEW_NAME, "v1")
        assert isinstance(done, Accepted)

    def begin(self, file: str = "x", request: str = "begin") -> object:
        seen = self.world.work.get(file, "absent") or "absent"
        command = Begin(owner=self.owner, request_digest=request, kind="edit", targets={file: seen})
        return self.world.operate(self.a, self.state, command)

    def settle(self, request: str = "settle") -> object:
        command = Settle(owner=self.owner, request_digest=request)
        return self.world.operate(self.a, self.state, command)

    def open_and_unseen(self) -> None:
        """Leave an operation open whose target nobody can see any more."""
        self.confirm()
        assert isinstance(self.begin(), Accepted)
        self.world.work["x"] = None


@pytest.fixture
def story() -> Story:
    return Story()


def reason(found: object) -> str:
    assert isinstance(found, Refused), found
    assert found.error().details["reason"] == found.reason
    return found.reason


@pytest.mark.requirement("T3", "T31")
def test_the_tables_say_all_that_may_follow() -> None:
    assert list(PHASES) == [
        "prepared", "identity-written", "overview-written", "cp-state-written", "owner-fenced",
    ]  # fmt: skip
    assert PHASES[CP_STATE] == FENCED
    assert PHASES[FENCED] == FINALIZED
    assert {name for name, (_, _, moves) in lease.TABLE.items() if not moves} == {"renew"}
    assert set(checkpoint.TABLE.values()) == {"confirmed", "exempt"}


@pytest.mark.requirement("T3", "T51")
@pytest.mark.parametrize("operation", lease.TABLE)
def test_a_lease_follows_only_what_its_table_allows(story: Story, operation: str) -> None:
    owner = story.state.owner
    assert owner is not None
    allowed, _, _ = lease.TABLE[operation]
    for status in (None, "active", "released", "terminal"):
        before = None if status is None else _with(owner, status)
        claim = lease.Claim(
            session="s", agent="codex", nonce="0" * 40, project_lease=owner.project_lease,
            cp_set_digest="c", lifecycle_revision=1, request_digest="r", sequence=2,
            transition="t",
        )  # fmt: skip
        if status in allowed:
            made = lease.take(before, operation, claim, story.world.now, task_id="t")
            assert shape.is_sealed(made)
        else:
            with pytest.raises(ValueError, match=operation):
                lease.take(before, operation, claim, story.world.now, task_id="t")


def _with(owner: lease.Lease, status: str) -> lease.Lease:
    return owner.replace(status=status)


@pytest.mark.requirement("T2", "T56")
def test_another_process_of_the_owner_must_look_before_it_writes(story: Story) -> None:
    story.confirm()
    story.a.seen.clear()  # a new process of the same session
    refused = story.begin()
    assert reason(refused) == "TASK_WRITE_CONTEXT_STALE"
    assert isinstance(refused, Refused)
    assert refused.details["observed"]["stateSequence"] == story.state.state_sequence  # type: ignore[index]
    assert refused.next_call is not None
    assert isinstance(story.world.own(story.a, story.state, "renew", story.owner), Accepted)
    assert isinstance(story.begin(), Accepted)


@pytest.mark.requirement("T2", "T58")
@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (
            lambda one: one.world.own(one.a, one.state, "release", one.owner),
            "TASK_OPERATION_UNSETTLED",
        ),
        (lambda one: one.settle(), "TASK_OPERATION_UNSETTLED"),
        (lambda one: one.begin("y", "other"), "TASK_OPERATION_UNSETTLED"),
        (
            lambda one: one.world.bind(one.a, "go on", one.state),
            "FINALIZED_TASK_RESUME_OPERATION_LIVE",
        ),
        (
            lambda one: one.world.finish(one.a, one.state, one.owner, "completed"),
            "TASK_TERMINAL_OPERATION_UNSETTLED",
        ),
        (
            lambda one: one.world.operate(
                one.a,
                one.state,
                Reconcile(record_digest=one.state.operation.record_digest, request_digest="r"),
            ),
            "TASK_OPERATION_UNSETTLED",
        ),
    ],
)
def test_an_effect_that_nobody_can_see_blocks_whatever_comes_next(
    story: Story, act: Callable[[Story], object], expected: str
) -> None:
    story.open_and_unseen()
    before = story.state
    assert reason(act(story)) == expected
    assert story.state is before


@pytest.mark.requirement("T58")
def test_an_operation_of_ones_own_is_settled_on_the_way(story: Story) -> None:
    story.confirm()
    story.begin()
    story.world.work["x"] = canonical.digest("changed")
    done = story.begin("y", "other")
    assert isinstance(done, Accepted)
    assert done.result.settled is not None
    assert done.result.settled.effect == "known-applied"
    assert story.state.settled.count == 1
    released = story.world.own(story.a, story.state, "release", story.owner)
    assert isinstance(released, Accepted)
    assert released.result.settled.effect == "known-not-applied"


@pytest.mark.requirement("T53", "T58")
def test_what_is_settled_is_settled_once(story: Story) -> None:
    story.confirm()
    assert reason(story.settle()) == "TASK_OPERATION_NOT_FOUND"
    first = story.begin()
    assert isinstance(first, Accepted)
    again = story.begin()
    assert isinstance(again, Accepted)
    assert again.result.is_replayed
    assert again.result.operation == first.result.operation
    story.settle()
    repeated = story.settle()
    assert isinstance(repeated, Accepted)
    assert repeated.result.is_replayed
    assert reason(story.settle("another")) == "TASK_OPERATION_PHASE_INVALID"


@pytest.mark.requirement("T60")
def test_what_a_live_session_has_open_is_its_own(story: Story) -> None:
    story.confirm()
    story.begin()
    opened = story.state.operation
    assert opened is not None
    command = Reconcile(record_digest=opened.record_digest[:16].upper(), request_digest="r")
    assert reason(story.world.operate(story.b, story.state, command)) == (
        "ARTIFACT_RECONCILIATION_OWNER_LIVE"
    )
    story.world.die(story.a)
    wrong = Reconcile(record_digest="0" * 64, request_digest="r")
    assert reason(story.world.operate(story.b, story.state, wrong)) == (
        "ARTIFACT_RECONCILIATION_CAS_MISMATCH"
    )
    assert isinstance(story.world.operate(story.b, story.state, command), Accepted)


@pytest.mark.requirement("T61", "T62")
def test_a_task_is_completed_only_with_its_requirement_confirmed(story: Story) -> None:
    finish = story.world.finish
    assert reason(finish(story.a, story.state, story.owner, "completed")) == (
        "TASK_TERMINAL_CP_CONFIRMATION_REQUIRED"
    )
    story.confirm()
    story.world.files[f"{story.state.task_root_relative}/{OVERVIEW_NAME}"] = b"other\n"
    assert reason(finish(story.a, story.state, story.owner, "completed")) == (
        "TASK_TERMINAL_CP_CONFIRMATION_REQUIRED"
    )
    story.b.owner[story.task_id] = story.owner
    assert reason(finish(story.b, story.state, story.owner, "failed")) == (
        "TASK_TERMINAL_OWNER_MISMATCH"
    )
    owner = story.owner
    done = finish(story.a, story.state, owner, "failed")
    assert isinstance(done, Accepted)
    again = finish(story.a, story.state, owner, "failed")
    assert isinstance(again, Accepted)
    assert again.result.is_replayed
    assert again.result.terminal == done.result.terminal
    assert reason(finish(story.a, story.state, owner, "completed")) == (
        "TASK_TERMINAL_REPLAY_MISMATCH"
    )
    assert story.state.settled.newest == ()


@pytest.mark.requirement("T12", "T62")
def test_who_finishes_a_task_means_it_as_it_is_now(story: Story) -> None:
    story.confirm()
    story.a.epoch = "ctx-2"
    refused = story.world.finish(story.a, story.state, story.owner, "failed")
    assert reason(refused) == "TASK_TERMINAL_OWNER_MISMATCH"
    assert isinstance(refused, Refused)
    assert refused.details["failed"] == ["contextEpoch"]
    assert reason(story.world.own(story.a, story.state, "release", story.owner)) == (
        "TASK_ADMISSION_PROJECT_LEASE_INVALID"
    )
    story.a.epoch = "ctx-1"
    story.a.seen.clear()
    assert reason(story.world.finish(story.a, story.state, story.owner, "failed")) == (
        "TASK_TERMINAL_STATE_CAS_MISMATCH"
    )


@pytest.mark.requirement("T24", "T37")
def test_nothing_of_another_root_is_inherited_but_its_numbers(story: Story) -> None:
    story.confirm()
    story.begin()
    old = story.owner
    before = story.state
    story.world.move()
    assert reason(story.world.own(story.a, story.state, "renew", old)) == (
        "TASK_ADMISSION_TRANSACTION_MISSING"
    )
    assert isinstance(story.world.bind(story.b, "go on", story.state), TaskState)
    after = story.state
    owner = after.owner
    assert owner is not None
    assert (owner.writer_generation, owner.last_transition.transition) == (2, "relocation")
    assert after.admission.admission_generation == before.admission.admission_generation + 1
    assert after.state_sequence > before.state_sequence
    assert (after.operation, after.settled.count, after.terminal) == (None, 0, None)
    assert [slot.status for slot in after.checkpoints.slots] == [
        "waiting", "unstarted", "unstarted",
    ]  # fmt: skip


@pytest.mark.requirement("T8", "T45", "T9")
def test_what_is_kept_of_the_past_is_bounded(story: Story) -> None:
    for number in range(80):
        path = f"{story.state.task_root_relative}/{OVERVIEW_NAME}"
        story.world.files[path] = f"{number}\n".encode()
        done = story.world.confirm(story.a, story.state, "CP1", OVERVIEW_NAME, f"v{number}")
        assert isinstance(done, Accepted)
    state = story.state
    assert state.checkpoints.epoch == 80
    assert len(state.checkpoints.history) == checkpoint.MAX_EPOCHS
    assert len(state.transitions) == task.MAX_TRANSITIONS
    assert len(canonical.encode(task.encode(state))) < 32 * 1024
    assert state.transitions[-1].seq == state.state_sequence


@pytest.mark.requirement("T32")
def test_a_request_that_may_have_been_overtaken_is_not_done_again(story: Story) -> None:
    ref = story.state.admission.ingress_ref
    assert asking.was_begun(story.state, ref)
    assert not asking.was_begun(story.state, "ingress-" + "0" * 40)
    for _ in range(70):
        story.a.epoch += "x"
        assert isinstance(story.world.own(story.a, story.state, "renew", story.owner), Accepted)
    # So far back nobody knows: then it counts as done, and is only answered.
    assert asking.was_begun(story.state, "ingress-" + "0" * 40)


@pytest.mark.requirement("T32", "T36")
def test_a_request_that_was_overtaken_is_answered_and_changes_nothing(story: Story) -> None:
    story.world.own(story.a, story.state, "release", story.owner)
    story.world.bind(story.b, "go on", story.state)
    before = story.state
    found = story.world.admit(story.a, "fix it", "Export totals", "one\n")
    assert found is before
    assert reason(story.world.admit(story.a, "fix it", "Export totals", "two\n")) == (
        "TASK_ADMISSION_IDEMPOTENCY_CONFLICT"
    )


@pytest.mark.requirement("T57")
def test_what_is_missing_is_told_in_one_order(story: Story) -> None:
    missing = context.missing

    def lacks(who: Someone) -> list[str]:
        return missing(story.state, story.world.facts(who, story.state))

    assert lacks(story.a) == ["cp1"]
    assert lacks(story.b) == ["session", "cp1"]
    story.world.archived.add(story.task_id)
    assert lacks(story.a) == ["archived", "cp1"]
    story.world.archived.clear()
    story.confirm()
    assert lacks(story.a) == []
    story.a.epoch = "ctx-2"
    assert lacks(story.a) == ["project-lease"]
    story.a.epoch = "ctx-1"
    story.world.move()
    assert lacks(story.a) == ["root", "project-lease"]


@pytest.mark.requirement("T8", "T23")
def test_a_body_that_is_no_state_is_none(story: Story) -> None:
    body = task.encode(story.state)
    for change in (
        {"stateSequence": "6"}, {"owner": 3}, {"transitions": {}}, {"extra": 1},
        {"schemaVersion": "TaskStateV2"}, {"checkpoints": {**body["checkpoints"], "slots": [1]}},  # type: ignore[dict-item]
    ):  # fmt: skip
        with pytest.raises(shape.Misshapen):
            task.decode({**body, **change})
    with pytest.raises(shape.Misshapen):
        task.decode({name: body[name] for name in body if name != "owner"})
    plain = canonical.parsed(canonical.encode(body))
    assert isinstance(plain, dict)
    assert task.decode(plain) == story.state
