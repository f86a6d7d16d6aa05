"""Every point at which a process may die while it changes a task: the same call completes (TA4)."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from amux.journal.tasks import context, task, view
from tests.support.killing import Kept, killed_before
from tests.support.task_agents import (
    DAY,
    NAME,
    OVERVIEW,
    TEXT,
    Agent,
    Found,
    Place,
    admission_of,
    codes,
    owner_of,
    sha,
)
from tests.support.workspaces import AT

ROOT = "bugs/Export totals"
MOST = 400  # no call changes the disk more often


@pytest.fixture
def place() -> Iterator[Place]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as top:
        yield Place(Path(top).resolve() / "billing")


def each_point(place: Place, act: Callable[[], object], then: Callable[[int], object]) -> int:
    """Kill the act at every point, each time from the same tree, and look what comes of it."""
    kept = Kept(place.base)
    for nth in range(MOST):
        kept.put_back()
        was_killed = killed_before(nth, act)
        then(nth)
        if not was_killed:
            return nth
    raise AssertionError("the call never ended")


def phase_of(place: Place) -> str | None:
    found = place.records("task")
    return str(admission_of(found[0])["phase"]) if found else None


def is_whole(place: Place, found: Found) -> None:
    """Require one task, one owner, and files to the byte."""
    assert found["phase"] == "finalized"
    assert len(place.records("task")) == 1
    assert [one.name for one in (place.root / "bugs").iterdir()] == [NAME]
    assert (place.task / OVERVIEW).read_text() == TEXT
    assert place.sessions.read_bytes() == view.new(
        display_name=NAME, task_id=str(found["taskId"]), admission_id=str(found["admissionId"]),
        route_key="export totals", project="billing",
    )  # fmt: skip
    owner = owner_of(place.state())
    assert (owner["status"], owner["writerGeneration"]) == ("active", 1)
    assert len(place.records("route")) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("T6", "T31", "T33", "T34", "TA4")
def test_an_admission_that_dies_anywhere_is_finished_by_the_same_call(place: Place) -> None:
    phases, points = admission_matrix(place)
    assert points > 60
    assert phases == {
        None, "prepared", "identity-written", "overview-written", "cp-state-written",
        "owner-fenced", "finalized",
    }  # fmt: skip


def admission_matrix(place: Place) -> tuple[set[str | None], int]:
    """Kill an admission at every point; give the phases that were seen, and how many points."""
    seen = set()

    def look(nth: int) -> None:
        phase = phase_of(place)
        seen.add(phase)
        found = Agent(place.base).admit()
        is_whole(place, found)
        if phase not in (None, "finalized"):
            recovery = found["recovery"]
            assert isinstance(recovery, dict), (nth, phase)
            assert recovery["failedFromPhase"] is None
            assert recovery["recoveredPhase"] == "finalized"
        again = Agent(place.base).admit()
        assert (again["replayed"], again["owner"]) == (True, found["owner"])

    return seen, each_point(place, lambda: Agent(place.base).admit(), look)


def kill_in(place: Place, phase: str) -> None:
    """Leave an admission in a phase, as a kill does."""
    kept = Kept(place.base)
    for nth in range(MOST):
        kept.put_back()
        assert killed_before(nth, lambda: Agent(place.base).admit())
        if phase_of(place) == phase:
            return


@pytest.mark.requirement("T33", "TA5")
def test_a_file_that_a_person_edited_meanwhile_is_not_touched(place: Place) -> None:
    kill_in(place, "overview-written")
    (place.task / OVERVIEW).write_text("a person's words\n")
    agent = Agent(place.base)
    for _ in range(2):
        refused = agent.refusal("admit")
        assert refused.both == ("admission_drift", "TASK_ADMISSION_RECONCILIATION_DRIFT")
        assert refused.details["path"] == f"{ROOT}/{OVERVIEW}"
        assert (refused.details["planned"], refused.details["observed"]) == (
            sha(TEXT), sha("a person's words\n"),
        )  # fmt: skip
        assert refused.details["phase"] == "overview-written"
    admission = admission_of(place.state())
    assert (admission["phase"], admission["failedFromPhase"]) == (
        "needs-reconcile", "overview-written",
    )  # fmt: skip
    bound = agent.bind("take what is there")
    assert bound["phase"] == "finalized"
    assert (place.task / OVERVIEW).read_text() == "a person's words\n"


@pytest.mark.requirement("T33")
def test_bytes_that_are_put_back_let_the_admission_go_on(place: Place) -> None:
    kill_in(place, "overview-written")
    (place.task / OVERVIEW).write_text("other\n")
    agent = Agent(place.base)
    assert agent.refused_to("admit")[1] == "TASK_ADMISSION_RECONCILIATION_DRIFT"
    (place.task / OVERVIEW).write_text(TEXT)
    found = agent.admit()
    is_whole(place, found)
    recovery = found["recovery"]
    assert isinstance(recovery, dict)
    assert recovery["failedFromPhase"] == "overview-written"


@pytest.mark.requirement("T33", "TA6")
def test_a_file_that_is_gone_is_made_with_the_very_bytes(place: Place) -> None:
    kill_in(place, "identity-written")
    path = place.task / ".memory/task.json"
    before = path.read_bytes()
    path.unlink()
    found = Agent(place.base).admit()
    is_whole(place, found)
    assert path.read_bytes() == before
    recovery = found["recovery"]
    assert isinstance(recovery, dict)
    assert f"{ROOT}/.memory/task.json" in recovery["createdFiles"]


@pytest.mark.requirement("T17", "TA13")
def test_what_was_started_may_be_finished_after_its_day(place: Place) -> None:
    kill_in(place, "prepared")
    found = Agent(place.base, at=AT + DAY + 0.001).admit()
    assert found["phase"] == "finalized"


@dataclass
class Case:
    """One call of a task's owner, and what must be true once it was sent again."""

    prepare: "Callable[[Preparing], None]"
    act: Callable[[Agent], Found]
    done: Callable[[Found, Place], bool]
    who: str = "sess-1"


def _admitted(agent: "Preparing") -> None:
    agent.admit()


def _released(agent: "Preparing") -> None:
    agent.admit()
    agent.own("release")


def _confirmed(agent: "Preparing") -> None:
    agent.admit()
    agent.confirm("CP1", OVERVIEW, sha(TEXT))


def _begun(agent: "Preparing") -> None:
    _confirmed(agent)
    agent.begin()


def _finishing(agent: "Preparing") -> None:
    _confirmed(agent)
    (agent.place.task / "reports").mkdir()
    for name in ("ecr.md", "done.md", "reports/r.md"):
        (agent.place.task / name).write_text(name)


def _ended(agent: "Preparing") -> None:
    _finishing(agent)
    agent.seen()
    _finish(agent)


def _settle(agent: Agent) -> Found:
    given = {"task": NAME, "owner": agent.owner, "contextDigest": agent.context}
    return agent.call("memory_task_operation", op="settle", **given)


def _finish(agent: Agent) -> Found:
    evidence = {"ecr": "ecr.md", "completion": "done.md", "report": "reports/r.md"}
    given = {"task": NAME, "owner": agent.owner, "contextDigest": agent.context}
    return agent.call(
        "memory_task_terminal_v1",
        evidence={role: f"{ROOT}/{path}" for role, path in evidence.items()},
        **given,
    )


def _is_ended(_: Found, place: Place) -> bool:
    return (
        "> 当前状态：✅ completed" in place.sessions.read_text()
        and [one["state"] for one in place.records("route")] == ["unbound"]
        and place.state()["projection"] == "clean"
    )


def _is_reopened(found: Found, place: Place) -> bool:
    return (
        found["transition"] == "reopen"
        and place.state()["lifecycleRevision"] == 2
        and "> 当前状态：🔄 active" in place.sessions.read_text()
    )


def _is_confirmed(found: Found, place: Place) -> bool:
    return (
        found["status"] == "confirmed"
        and "| CP1 | ✅ |" in place.sessions.read_text()
        and place.state()["projection"] == "clean"
    )


def _generation(place: Place) -> int:
    found = owner_of(place.state())["writerGeneration"]
    assert isinstance(found, int)
    return found


def _settled_count(place: Place) -> object:
    found = place.state()["settled"]
    assert isinstance(found, dict)
    return found["count"]


CASES = {
    "renew": Case(
        prepare=_admitted,
        act=lambda agent: agent.own("renew", freshContext=True),
        done=lambda found, place: (_generation(place), found["missing"]) == (1, ["cp1"]),
    ),
    "release": Case(
        prepare=_admitted,
        act=lambda agent: agent.own("release"),
        done=lambda found, place: (_generation(place), found["status"]) == (2, "released"),
    ),
    "hand-off": Case(
        prepare=_released,
        act=lambda agent: agent.bind(),
        done=lambda found, place: (_generation(place), found["transition"]) == (3, "handoff"),
        who="sess-2",
    ),
    "takeover": Case(
        prepare=_admitted,
        act=lambda agent: agent.bind(),
        done=lambda found, place: (_generation(place), found["transition"]) == (2, "takeover"),
        who="sess-2",
    ),
    "confirm": Case(
        prepare=_admitted,
        act=lambda agent: agent.confirm("CP1", OVERVIEW, sha(TEXT)),
        done=_is_confirmed,
    ),
    "begin": Case(
        prepare=_confirmed,
        act=lambda agent: agent.begin(contextDigest=agent.context),
        done=lambda found, _: found["phase"] == "dispatched",
    ),
    "settle": Case(
        prepare=_begun,
        act=_settle,
        done=lambda found, place: (found["phase"], _settled_count(place)) == ("settled", 1),
    ),
    "terminal": Case(prepare=_finishing, act=_finish, done=_is_ended),
    "reopen": Case(
        prepare=_ended,
        act=lambda agent: agent.bind("open it", entryVariant="reopen"),
        done=_is_reopened,
    ),
}


class Preparing(Agent):
    """The session that prepares a case."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.base)
        self.place = place

    def seen(self) -> str:
        """Give the digest of the write context as it is now."""
        state = task.decode(self.place.state())
        self.context = context.write_context(state).context_digest
        return self.context


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("T4", "T6", "T48", "T64", "TA22", "TA25", "TA33", "TA40")
@pytest.mark.parametrize("name", CASES)
def test_a_call_that_dies_anywhere_is_done_once_by_the_same_call(place: Place, name: str) -> None:
    assert case_matrix(place, CASES[name]) >= 5


def case_matrix(place: Place, case: Case) -> int:
    """Kill a call at every point, and send it again; give how many points there were."""
    first = Preparing(place)
    case.prepare(first)
    seen = first.seen()
    first.end()
    before = _generation(place)

    def again() -> Agent:
        agent = Agent(place.base, case.who)
        agent.owner, agent.context = first.owner, seen
        return agent

    def look(nth: int) -> None:
        assert len(place.records("task")) == 1, nth
        assert _generation(place) - before in (0, 1), nth
        agent = again()
        found = case.act(agent)
        assert case.done(found, place), (nth, found)
        assert len(place.records("task")) == 1
        agent.end()

    return each_point(place, lambda: case.act(again()), look)


@pytest.mark.requirement("T48", "TA22")
def test_a_view_that_a_kill_left_behind_is_drift_until_the_next_call(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    agent.end()
    kept = Kept(place.base)
    for nth in range(MOST):
        kept.put_back()
        twin = Agent(place.base)
        assert killed_before(nth, lambda twin=twin: twin.confirm("CP1", OVERVIEW, sha(TEXT)))
        if place.state()["projection"] == "pending":
            break
    reader = Agent(place.base)
    found = reader.call("memory_task_resolve", name=NAME)
    assert "cp-view-drift" in codes(found)
    checkpoints = found["checkpoints"]
    assert "confirmed" in str(checkpoints)
    reader.owner = agent.owner
    reader.own("renew")
    assert "| CP1 | ✅ |" in place.sessions.read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.requirement("TP9")
def test_all_points_are_explored_in_two_minutes(place: Place) -> None:
    started, spent = time.perf_counter(), sum(os.times()[:4])
    _, points = admission_matrix(place)
    for name, case in CASES.items():
        points += case_matrix(Place(place.base.parent / name), case)
    wall, busy = time.perf_counter() - started, sum(os.times()[:4]) - spent
    assert points > 200
    assert min(wall, busy) < 120  # others may use this machine
