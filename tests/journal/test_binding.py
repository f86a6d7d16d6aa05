"""Where hints are kept, and that nothing hangs on them (T13)."""

import json
import shutil
from pathlib import Path

import pytest

from amux.journal.tasks import route
from tests.support import tasking, workspaces
from tests.support.tasking import admit, agent, bind, ledger_of, state_of
from tests.support.workspaces import AT, tree


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tasking.workspace(tmp_path / "billing")


def hints(base: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_bytes())["body"] for path in (ledger_of(base) / "route").iterdir()]


def warned(receipt: dict[str, object]) -> list[object]:
    warnings = receipt["warnings"]
    assert isinstance(warnings, list)
    return [one["code"] for one in warnings]


@pytest.mark.requirement("T13")
def test_an_admission_and_a_binding_leave_a_hint_each(base: Path) -> None:
    task = admit(agent(base))
    (hint,) = hints(base)
    assert (hint["trigger"], hint["state"], hint["taskId"]) == (
        "admission-bind", "live", task.task_id,
    )  # fmt: skip
    task.own("release")
    bind(agent(base, "other"))
    assert {one["trigger"] for one in hints(base)} == {"admission-bind", "task-bind"}
    assert task.receipt["routeBinding"] == "bound"


@pytest.mark.requirement("T13", "TA2")
def test_a_repeat_writes_no_hint(base: Path) -> None:
    admit(agent(base))
    before = tree(base)
    assert admit(agent(base)).receipt["routeBinding"] == "bound"
    assert tree(base) == before


@pytest.mark.requirement("T13")
def test_a_full_index_lets_no_live_hint_go(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "MAX_HINTS", 1)
    admit(agent(base, "first"))
    before = hints(base)
    second = admit(agent(base, "second"), "Second")
    assert (second.receipt["status"], second.receipt["routeBinding"]) == ("finalized", "skipped")
    assert warned(second.receipt) == ["route-index-full"]
    assert hints(base) == before
    late = agent(base, "third", at=AT + 86_401)
    third = admit(late, "Third")
    assert third.receipt["routeBinding"] == "bound"
    assert len(hints(base)) == 1


@pytest.mark.requirement("T13")
def test_what_fails_about_a_hint_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    workspaces.project(tmp_path, "billing")
    workspaces.layout(tmp_path, '{"mode":"workspace-namespace"}')
    (tmp_path / ".devcodex/workspace").symlink_to(tmp_path)
    task = admit(agent(tmp_path), project="billing")
    assert (task.receipt["status"], task.receipt["routeBinding"]) == ("finalized", "failed")
    assert warned(task.receipt) == ["route-pending"]
    found = task.face.call("memory_task_resolve", name=tasking.NAME, project="billing")
    assert (found["outcome"], found["routeHint"]) == ("resolved-active", None)


@pytest.mark.requirement("T8", "T13")
def test_a_moved_workspace_lets_the_hints_of_its_old_place_go(tmp_path: Path) -> None:
    old = tmp_path / "old"
    workspaces.project(old, "billing", "web")
    workspaces.layout(old, '{"mode":"workspace-namespace"}')
    admit(agent(old, "first"), project="billing")
    moved = old.rename(tmp_path / "new")
    admit(agent(moved, "second"), project="web")
    routes = moved / ".devcodex/workspace/.runtime-state/ledger/route"
    (kept,) = routes.iterdir()
    assert json.loads(kept.read_bytes())["body"]["project"] == "web"


@pytest.mark.requirement("T13", "T64")
def test_the_end_of_another_task_leaves_the_hint(base: Path) -> None:
    face = agent(base)
    first = admit(face)
    first.confirm()
    second = admit(face, "Second")
    assert first.finish()["closeout"]["routeBinding"] == "skipped"  # type: ignore[index]
    (hint,) = hints(base)
    assert (hint["state"], hint["taskId"]) == ("live", second.task_id)
    shutil.rmtree(ledger_of(base) / "route")
    second.confirm()
    assert second.finish()["closeout"]["routeBinding"] == "skipped"  # type: ignore[index]
    assert not (state_of(base) / "ledger/route").is_dir() or hints(base) == []
