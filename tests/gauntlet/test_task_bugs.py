"""Faults that users of other systems reported about tasks, tried over real MCP servers."""

from pathlib import Path

import pytest

from tests.support import tasking
from tests.support.journal_faces import Mcp, Refused
from tests.support.tasking import INSTRUCTION, NAME, OVERVIEW, Task

DAY_HOURS = 24

ADMISSION = {
    "instruction": INSTRUCTION,
    "taskKind": "bugs",
    "displayName": NAME,
    "overview": OVERVIEW,
}

pytestmark = pytest.mark.slow


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tasking.workspace(tmp_path / "shop")


def bound(face: Mcp) -> Task:
    receipt = face.call(
        "memory_task_admit_v2", operation="bind", task=NAME, instruction="take the totals over"
    )
    return Task(face, receipt)


@pytest.mark.requirement("bug-32")
def test_a_zombie_owner_is_fenced_off(base: Path, tmp_path: Path) -> None:
    with Mcp(base, home=tmp_path, AMUX_SESSION="a") as first:
        old = Task(first, first.call("memory_task_admit_v2", **ADMISSION))
        old.confirm()
    # Its server is gone, so another may take over; then the first session wakes up again.
    with Mcp(base, home=tmp_path, AMUX_SESSION="b") as second:
        new = bound(second)
        with Mcp(base, home=tmp_path, AMUX_SESSION="a") as woken:
            old.face = woken
            for late in (old.renew, lambda: old.begin("totals.py"), old.finish):
                with pytest.raises(Refused) as refused:
                    late()
                assert refused.value.code == "lease_lost"
        new.renew()
        assert new.begin("totals.py")["phase"] == "dispatched"
        assert new.settle()["phase"] == "settled"


@pytest.mark.requirement("bug-34")
def test_a_claim_whose_answer_was_lost_is_answered_again(base: Path, tmp_path: Path) -> None:
    with Mcp(base, home=tmp_path, AMUX_SESSION="a") as first:
        first.process.ask("tools/call", {"name": "memory_task_admit_v2", "arguments": ADMISSION})
        first.process.process.kill()  # before anybody read what it said
    with Mcp(base, home=tmp_path, AMUX_SESSION="a") as again:
        receipt = again.call("memory_task_admit_v2", **ADMISSION)
        repeated = again.call("memory_task_admit_v2", **ADMISSION)
    assert receipt["status"] == "finalized"
    assert repeated["replayed"] is True
    assert repeated["owner"] == receipt["owner"]
    assert repeated["taskId"] == receipt["taskId"]
    assert len(list((base / ".devcodex" / "bugs").iterdir())) == 1


@pytest.mark.requirement("bug-36")
@pytest.mark.parametrize("days", [-1, 1])
def test_generations_decide_not_clocks(base: Path, days: int) -> None:
    """The other's clock is a day off; `at` moves it inside the server of the tests' own kind."""
    mine = tasking.agent(base, "a")
    task = tasking.admit(mine)
    task.confirm()
    other = tasking.agent(base, "b", at=mine.at + days * DAY_HOURS * 3600)
    with pytest.raises(Refused) as refused:
        tasking.bind(other)
    assert refused.value.code == "lease_held"
    task.own("release")
    taken = tasking.bind(other)
    assert taken.receipt["writeContext"]["writerGeneration"] == 3
    with pytest.raises(Refused) as late:
        task.renew()
    assert late.value.code == "lease_lost"
