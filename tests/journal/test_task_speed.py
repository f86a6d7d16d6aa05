"""What tasks cost (TP1 to TP7, TP10); `python -m bench --only tasks` measures it in full.

The times of the specification are those that a client waits for. Here the work is bounded that such
a time allows: about twice what each call does today.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.journal.ledger import record
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.state import RuntimeState
from amux.journal.store.root import Held, Place, hold
from bench.tasks import moves
from tests.support import many_tasks, task_load, tasking
from tests.support.effort import effort
from tests.support.tasking import admit, agent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROUNDS = 30
MIB = 1024 * 1024


class Many:
    """A thousand tasks with a hundred transitions each."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.names = many_tasks.multiply(base, many_tasks.worked(base))
        self.face = agent(base, "reader")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    base = tmp_path_factory.mktemp("many") / "billing"
    yield Many(base)
    shutil.rmtree(base)


@pytest.mark.requirement("TP1", "T39")
@pytest.mark.parametrize("what", ["name", "alias", "taskId"])
def test_one_of_a_thousand_tasks_is_found_by_reading_each_once(many: Many, what: str) -> None:
    asked = {
        "name": many.names[500], "alias": "ledger 500",
        "taskId": f"00000000-0000-0000-0000-{501:012x}",
    }[what]  # fmt: skip

    def find() -> None:
        found = many.face.call("memory_task_resolve", name=asked)
        assert (found["outcome"], found["ledgerCoverage"]) == ("resolved-active", "complete")
        assert found["candidate"]["displayName"] == many.names[500]  # type: ignore[index]

    find()
    work = effort(find)
    assert work.calls <= 500 * many_tasks.COUNT
    assert work.files <= 5 * many_tasks.COUNT


@pytest.mark.requirement("TP5", "T8", "T9")
def test_a_thousand_tasks_with_a_past_keep_to_their_room(many: Many) -> None:
    sizes = list(many_tasks.sizes(many.base))
    assert len(sizes) > many_tasks.COUNT
    assert sum(sizes) < 64 * MIB
    assert max(sizes) < 32 * 1024


@pytest.mark.requirement("TP2", "TP3")
def test_a_task_is_admitted_renewed_begun_and_settled_with_little_work(tmp_path: Path) -> None:
    task = admit(agent(tasking.workspace(tmp_path / "billing")))
    task.confirm()
    names = iter(range(1_000))
    task.renew()
    work = [effort(lambda: admit(task.face, f"Task {next(names)}")) for _ in range(20)]
    assert max(one.calls for one in work) <= 60_000, work
    assert max(one.files for one in work) <= 1_000, work
    work = [effort(task.renew), effort(lambda: task.renew(freshContext=True))]
    for _ in range(ROUNDS):
        work += [effort(lambda: task.begin(*task_load.TARGETS)), effort(task.settle)]
    assert max(one.calls for one in work) <= 40_000, work
    assert max(one.files for one in work) <= 400, work


@pytest.mark.requirement("TP4", "T6")
def test_a_transition_is_one_file_written_and_two_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(base=str(tmp_path), steps=(".devcodex",), uid=os.geteuid())
    body = {"text": "x" * (32 * 1024 - 400)}
    syncs: list[int] = []
    fsync = atomic.fsync
    monkeypatch.setattr(atomic, "fsync", lambda fd: (syncs.append(fd), fsync(fd)))

    def work(held: Held) -> None:
        ledger = Ledger(RuntimeState.of(held))
        found = ledger.change(None, record.first("task", "k", {"n": 0, **body}))
        for number in range(ROUNDS):
            made = found.successor({"n": number, **body})
            syncs.clear()
            cost = effort(lambda m=made, f=found: ledger.change(f, m))
            assert len(syncs) == 2  # of the file, and of its directory
            assert cost.files <= 24
            assert cost.calls <= 600
            found = made

    hold(place, wait_ms=1000, act=work)


@pytest.mark.requirement("TP6", "J25")
def test_processes_on_tasks_of_one_root_disturb_nobody(tmp_path: Path) -> None:
    names = [f"Task {number}" for number in range(4)]
    base = tasking.workspace(tmp_path / "billing")
    for name in names:
        task = admit(agent(base), name)
        task.confirm()
        task.own("release")
        task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
    load = task_load.run(base, [("mix", name) for name in names], 8.0)
    assert load.calls > 20
    assert [one for one in load.refused if not one.startswith("busy/")] == []


@pytest.mark.requirement("TP7", "T7")
def test_readers_beside_a_writer_see_only_what_was_committed(tmp_path: Path) -> None:
    base = tasking.workspace(tmp_path / "billing")
    task = admit(agent(base), "Task")
    task.confirm()
    task.own("release")
    task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
    load = task_load.run(base, [("write", "Task"), *[("read", "Task")] * 6], 8.0)
    assert load.refused == []
    committed = load.states(0)
    seen = [load.states(at) for at in range(1, 7)]
    assert len(committed) > 10
    assert all(len(states) > 1 for states in seen)
    assert set().union(*seen) - committed == set()


@pytest.mark.requirement("TP10", "T2", "T51")
def test_a_thousand_moves_between_two_sessions_break_no_fence(tmp_path: Path) -> None:
    assert moves(tmp_path / "billing", 1_000) == 0
