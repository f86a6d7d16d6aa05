"""The invariants of tasks (T2) over random commands, with deaths between any two steps."""

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from amux.journal.machine import Accepted, Refused
from amux.journal.tasks import context
from amux.journal.tasks.admissionrecord import FINALIZED
from amux.journal.tasks.settling import Begin, Reconcile, Settle
from amux.journal.tasks.task import TaskState
from tests.support import task_walk
from tests.support.task_world import OVERVIEW_NAME, World

WHO = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["fix it", "go on", "take over"])
NAMES = st.sampled_from(["Export totals", "Login"])
TEXTS = st.sampled_from(["one\n", "two\n"])
STEPS = st.integers(0, 24)
AT = st.integers(0, 9)
PATHS = st.sampled_from([OVERVIEW_NAME, "plan.md", "design.md"])
VERSIONS = st.sampled_from(["v1", "v2", "v3"])
QUICK = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
THOROUGH = settings(QUICK, max_examples=300, stateful_step_count=50)


class Tasks(RuleBasedStateMachine):
    """Sessions that admit, bind, own, confirm, operate and finish, and a world that goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize()
    def one_task(self) -> None:
        self.world.admit(self.world.people["a"], "fix it", "Export totals", "one\n")

    @rule(who=WHO, words=WORDS, name=NAMES, text=TEXTS, acquires=st.booleans())
    def admit(self, who: str, words: str, name: str, text: str, acquires: bool) -> None:
        someone = self.world.people[who]
        found = self.world.admit(someone, words, name, text, acquires=acquires)
        if isinstance(found, TaskState):
            before = self.world.commits
            again = self.world.admit(someone, words, name, text, acquires=acquires)
            assert again == found, "a repeat is answered with the same"
            assert self.world.commits == before, "and writes nothing"

    @rule(who=WHO, words=WORDS, name=NAMES, text=TEXTS, steps=STEPS)
    def admit_and_die(self, who: str, words: str, name: str, text: str, steps: int) -> None:
        someone = self.world.people[who]
        world = self.world
        is_dead = world.crashing(someone, steps, lambda: world.admit(someone, words, name, text))
        if is_dead:
            found = world.admit(someone, words, name, text)
            if isinstance(found, TaskState) and found.admission.operation == "admit":
                assert found.admission.phase == FINALIZED

    @rule(who=WHO, words=WORDS, at=st.integers(0, 9), acquires=st.booleans())
    def bind(self, who: str, words: str, at: int, acquires: bool) -> None:
        state = self._state(at)
        if state is not None:
            self.world.bind(self.world.people[who], words, state, acquires=acquires)

    @rule(
        who=WHO, at=st.integers(0, 9), steps=STEPS, variant=st.sampled_from(["continue", "reopen"])
    )
    def bind_and_die(self, who: str, at: int, steps: int, variant: str) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is not None:
            self.world.crashing(
                someone,
                steps,
                lambda: self.world.bind(someone, "go on", state, variant=variant),
            )

    @rule(who=WHO, at=AT, operation=st.sampled_from(["renew", "release"]))
    def own(self, who: str, at: int, operation: str) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is None:
            return
        quoted = someone.owner.get(state.task_id, "own-nothing")
        decided = self.world.own(someone, state, operation, quoted)
        after = self._again(state)
        if isinstance(decided, Refused):
            assert after == state
            return
        repeated = self.world.own(someone, after, operation, quoted)
        assert isinstance(repeated, Accepted)
        assert repeated.result.is_replayed
        assert self._again(after) == after

    @rule(
        who=WHO, at=st.integers(0, 9), steps=STEPS, operation=st.sampled_from(["renew", "release"])
    )
    def own_and_die(self, who: str, at: int, steps: int, operation: str) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is not None:
            quoted = someone.owner.get(state.task_id, "own-nothing")
            self.world.crashing(
                someone, steps, lambda: self.world.own(someone, state, operation, quoted)
            )

    @rule(who=WHO, at=AT, steps=STEPS)
    def acquire(self, who: str, at: int, steps: int) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is not None:
            lease = someone.lease.get(state.task_id, "adl-" + "0" * 32)
            self.world.crashing(someone, steps, lambda: self.world.acquire(someone, state, lease))

    @rule(who=WHO, at=AT, phase=st.sampled_from(["CP1", "CP2", "CP3"]), path=PATHS,
          version=VERSIONS)  # fmt: skip
    def confirm(self, who: str, at: int, phase: str, path: str, version: str) -> None:
        state = self._state(at)
        if state is None or f"{state.task_root_relative}/{path}" not in self.world.files:
            return
        decided = self.world.confirm(self.world.people[who], state, phase, path, version)
        after = self._again(state)
        if isinstance(decided, Refused):
            assert after == state
            return
        slot = after.checkpoints.slot(phase)
        assert slot.confirmation is not None
        assert phase not in after.checkpoints.stale(self.world.artifacts(after))

    @rule(who=WHO, at=AT, file=st.sampled_from(["x", "y"]), steps=STEPS)
    def begin(self, who: str, at: int, file: str, steps: int) -> None:
        state, someone = self._state(at), self.world.people[who]
        seen = self.world.work.get(file, "absent")
        if state is None or seen is None:
            return
        lacks = context.missing(state, self.world.facts(someone, state))
        command = Begin(
            owner=someone.owner.get(state.task_id, "own-nothing"),
            request_digest=f"begin {file}",
            kind="edit",
            targets={file: seen},
        )
        opened = state.operation
        self.world.crashing(someone, steps, lambda: self.world.operate(someone, state, command))
        after = self._again(state)
        if after.operation is not None and after.operation != opened:
            assert not lacks, "no mutation without authority"
            assert after.operation.phase == "dispatched"

    @rule(who=WHO, at=AT)
    def settle(self, who: str, at: int) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is not None:
            owner = someone.owner.get(state.task_id, "own-nothing")
            self.world.operate(someone, state, Settle(owner=owner, request_digest="settle"))

    @rule(who=WHO, at=AT)
    def reconcile(self, who: str, at: int) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is None or state.operation is None:
            return
        command = Reconcile(record_digest=state.operation.record_digest, request_digest="reconcile")
        is_blocked = None in (self.world.work.get(one.path, "") for one in state.operation.targets)
        decided = self.world.operate(someone, state, command)
        if is_blocked:
            assert isinstance(decided, Refused), "an unknown effect is closed by nobody"

    @rule(
        who=WHO, at=st.integers(0, 9), status=st.sampled_from(["completed", "failed"]), steps=STEPS
    )
    def finish(self, who: str, at: int, status: str, steps: int) -> None:
        state, someone = self._state(at), self.world.people[who]
        if state is None:
            return
        owner = someone.owner.get(state.task_id, "own-nothing")
        opened = state.operation
        self.world.crashing(
            someone, steps, lambda: self.world.finish(someone, state, owner, status)
        )
        after = self._again(state)
        if after.terminal is not None and state.terminal is None:
            assert opened is None or all(
                self.world.work.get(one.path, "") is not None for one in opened.targets
            )
            if status == "completed":
                assert not after.checkpoints.stale(self.world.artifacts(after))
                assert after.checkpoints.slots[0].status == "confirmed"

    @rule(at=AT, path=PATHS, text=st.sampled_from(["one\n", "two\n", "three\n"]))
    def edit(self, at: int, path: str, text: str) -> None:
        state = self._state(at)
        if state is not None:
            self.world.files[f"{state.task_root_relative}/{path}"] = text.encode()

    @rule(file=st.sampled_from(["x", "y"]), seen=st.sampled_from(["1", "2", None]))
    def change_target(self, file: str, seen: str | None) -> None:
        self.world.work[file] = seen

    @rule(seconds=st.integers(-100_000, 100_000))
    def pass_time(self, seconds: int) -> None:
        states, commits = dict(self.world.states), self.world.commits
        owners = {one: context.missing(states[one], self._facts(states[one])) for one in states}
        self.world.pass_time(seconds)
        for one, lacks in owners.items():
            assert context.missing(states[one], self._facts(states[one])) == lacks
        assert (self.world.states, self.world.commits) == (states, commits)

    @rule(who=WHO)
    def die(self, who: str) -> None:
        self.world.die(self.world.people[who])

    @rule(who=WHO)
    def fresh_context(self, who: str) -> None:
        someone = self.world.people[who]
        someone.epoch += "1"

    @rule(how=st.sampled_from(["move", "revoke"]))
    def lose_authority(self, how: str) -> None:
        if self.world.commits % 7:  # rarely: afterwards everything is bound anew
            return
        getattr(self.world, how)()
        for state in self.world.states.values():
            for who in self.world.people.values():
                assert context.missing(state, self.world.facts(who, state))

    @rule(at=AT)
    def archive(self, at: int) -> None:
        state = self._state(at)
        if state is not None:
            self.world.archived ^= {state.task_id}

    @invariant()
    def what_tasks_promise(self) -> None:
        self.world.check()

    def _state(self, at: int) -> TaskState | None:
        states = list(self.world.states.values())
        return states[at % len(states)] if states else None

    def _again(self, state: TaskState) -> TaskState:
        return self.world.states[state.task_id]

    def _facts(self, state: TaskState) -> object:
        return self.world.facts(self.world.people["a"], state)


class TestQuickly(Tasks.TestCase):
    settings = QUICK


TestQuickly.runTest = pytest.mark.requirement("T2", "T3")(TestQuickly.runTest)


@pytest.mark.slow
@pytest.mark.timeout(600)  # of which a failure may take most, to be told in few steps
class TestThoroughly(Tasks.TestCase):
    settings = THOROUGH


TestThoroughly.runTest = pytest.mark.requirement("T2")(TestThoroughly.runTest)


@pytest.mark.slow
@pytest.mark.requirement("TP10")
def test_ten_thousand_hand_overs_leave_one_nonce_in_force() -> None:
    world, chance = World(("a", "b")), random.Random(7)
    state = world.admit(world.people["a"], "fix it", "Export totals", "one\n")
    assert isinstance(state, TaskState)
    grown = [state.generation]
    for turn in range(10_000):
        state = world.states[state.task_id]
        who = world.people[chance.choice("ab")]
        other = world.people["b" if who.name == "a" else "a"]
        match chance.randrange(4):
            case 0:
                other.is_live = bool(chance.randrange(2))
                world.bind(who, f"go on {turn}", state)
            case 1:
                world.own(who, state, "release", who.owner.get(state.task_id, ""))
            case _:
                known = world.issued[state.task_id][-3:]
                quoted = chance.choice([*known, who.owner.get(state.task_id, "")])
                world.own(who, state, "renew", quoted)
        after = world.states[state.task_id]
        assert after.generation - grown[-1] in (0, 1)
        if _reference(after) != _reference(state):
            assert after.generation == grown[-1] + 1, "a nonce lasts as long as its number"
        grown.append(after.generation)
        accepted = {
            reference
            for reference in world.issued[state.task_id][-10:]
            if not isinstance(context.quoted(after, reference, world.facts(who, after)), Refused)
        }
        assert len(accepted) <= 1
    assert grown[-1] > 1_000


def _reference(state: TaskState) -> str | None:
    owner = state.owner
    return owner.reference if owner is not None and owner.is_active else None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("TP8")
def test_a_hundred_thousand_commands_keep_what_tasks_promise() -> None:
    assert 5_000 < task_walk.walk(100_000) < 95_000
