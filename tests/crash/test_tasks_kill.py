"""Killed at any call that changes something, a task is what it was or what it was to be.

The caller is a fork of this process that dies before the chosen call. Then a reader looks, and
changes nothing; and the same call, sent again by a process that knows nothing of the first, makes
good what is missing, once.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.test_journal_kill import is_killed
from tests.support import tasking
from tests.support.journal_faces import InProcess
from tests.support.tasking import Task, admit, ledger_of
from tests.support.workspaces import tree

CHANGING = ("write", "fsync", "rename", "unlink", "mkdir", "link", "fchmod", "ftruncate")
Arguments = dict[str, object]
SOURCE = {"sourceHead": "abc", "dirtyDigest": "clean"}


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


@dataclass(frozen=True)
class Case:
    """One call, and the state that it comes to."""

    tool: str
    arguments: Arguments
    session: str = "sess-1"


def server(base: Path, session: str, seed: int) -> InProcess:
    return InProcess(base, session=session, seed=seed)


def seen(task: Task) -> str:
    """Give the context digest at which a call is made, as a command line quotes it."""
    context = task.renew()["writeContext"]
    assert isinstance(context, dict)
    return str(context["contextDigest"])


def item(base: Path, name: str) -> Arguments:
    return {
        "workItemId": name, "displayName": name, "mode": "read-only",
        "allowedPaths": [f"src/{name}/"], "isolationRoot": str(base.parent / f"wt-{name}"),
    }  # fmt: skip


def plan_of(base: Path, task: Task) -> Arguments:
    return {
        "op": "plan", "owner": task.owner, "items": [item(base, "a"), item(base, "b")],
        "source": SOURCE, **task.named,
    }  # fmt: skip


def renewing(_base: Path, task: Task) -> Case:
    return Case(
        "memory_task_write_owner",
        {"operation": "renew", "owner": task.owner, "freshContext": True, **task.named},
    )


def releasing(_base: Path, task: Task) -> Case:
    task.begin("a.py")
    return Case(
        "memory_task_write_owner", {"operation": "release", "owner": task.owner, **task.named}
    )


def beginning(_base: Path, task: Task) -> Case:
    arguments = {"op": "begin", "owner": task.owner, "targets": ["a.py"], **task.named}
    return Case("memory_task_operation", {**arguments, "contextDigest": seen(task)})


def settling(_base: Path, task: Task) -> Case:
    task.begin("a.py")
    arguments = {"op": "settle", "owner": task.owner, **task.named}
    return Case("memory_task_operation", {**arguments, "contextDigest": seen(task)})


def reconciling(_base: Path, task: Task) -> Case:
    digest = task.begin("a.py")["recordDigest"]
    return Case(
        "memory_artifact_mutation_reconcile_v1", {"expectedCloseoutDigest": digest, **task.named}
    )


def confirming(_base: Path, task: Task) -> Case:
    path = task.root / "plan.md"
    path.write_text("plan\n")
    return Case(
        "memory_cp_confirm",
        {
            "phase": "CP2", "artifactPath": "plan.md", "artifactSha256": tasking.sha256(path),
            "sourceMessage": "yes", **task.named,
        },
    )  # fmt: skip


def finishing(_base: Path, task: Task) -> Case:
    task.begin("a.py")
    arguments = {"owner": task.owner, "evidence": task.evidence(), **task.named}
    return Case("memory_task_terminal_v1", {**arguments, "contextDigest": seen(task)})


def taking_over(_base: Path, task: Task) -> Case:
    task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
    return Case(
        "memory_task_admit_v2",
        {"operation": "bind", "instruction": "take over", **task.named},
        session="other",
    )


def planning(base: Path, task: Task) -> Case:
    return Case("memory_child_plan", {**plan_of(base, task), "contextDigest": seen(task)})


def cancelling(base: Path, task: Task) -> Case:
    return _of_plan(base, task, "cancel")


def integrating(base: Path, task: Task) -> Case:
    return _of_plan(base, task, "integrate")


def _of_plan(base: Path, task: Task, op: str) -> Case:
    planned = task.face.call("memory_child_plan", **plan_of(base, task))
    digest = planned["plan"]["planDigest"]  # type: ignore[index]
    arguments = {"op": op, "owner": task.owner, "planDigest": digest, **task.named}
    return Case("memory_child_plan", {**arguments, "contextDigest": seen(task)})


def submitting(base: Path, task: Task) -> Case:
    planned = task.face.call("memory_child_plan", **plan_of(base, task))
    lease = planned["leases"][0]["leaseId"]  # type: ignore[index]
    return Case("memory_child_submit", {"lease": lease, "evidence": {}}, session="child")


MAKERS = (
    renewing, releasing, beginning, settling, reconciling, confirming, finishing, taking_over,
    planning, cancelling, integrating, submitting,
)  # fmt: skip


def after(base: Path) -> Arguments:
    """Give what a call led to, but for what chance and a lost answer may change."""
    found: Arguments = {}
    for path in sorted(ledger_of(base).rglob("*.json")):
        value = json.loads(path.read_bytes())
        kind, body = path.parent.name, value["body"]
        if kind == "task":
            owner = body["owner"]
            found[kind] = {
                "sequence": body["stateSequence"], "owner": owner["status"],
                "generation": owner["writerGeneration"], "projection": body["projection"],
                "open": body["operation"] is not None, "settled": body["settled"]["count"],
                "terminal": body["terminal"] is not None,
                "slots": [one["status"] for one in body["checkpoints"]["slots"]],
                "ops": [one["op"].partition("@")[0] for one in body["transitions"]],
            }  # fmt: skip
        elif kind == "child":
            found[kind] = [
                value["seq"],
                [(one["state"], one["fence"], len(one["beside"])) for one in body["slots"]],
                body["closedAt"],
            ]
        elif kind not in {"ingress", "use"}:  # the same words, started anew, are a new request
            found[kind] = sorted(
                each.name for each in path.parent.iterdir() if each.suffix == ".json"
            )
    return found


def temporaries(base: Path) -> list[str]:
    return [name for name in tree(base) if ".amux-" in name]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("T6", "T7", "T53", "TA22", "TA25", "TA33", "TA40")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_call_that_was_killed_is_made_good_by_the_same_call(
    memory_disk: Path, make: Callable[[Path, Task], Case]
) -> None:
    base = tasking.workspace(memory_disk / "billing")
    (base / "a.py").write_text("a = 1\n")
    task = admit(server(base, "sess-1", 1))
    task.confirm()
    case = make(base, task)
    task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
    kept = memory_disk / "kept"
    shutil.copytree(base / ".devcodex", kept)
    server(base, case.session, 2).call(case.tool, **case.arguments)
    wanted = after(base)

    def again(nth: int) -> bool:
        shutil.rmtree(base / ".devcodex")
        shutil.copytree(kept, base / ".devcodex")
        caller = server(base, case.session, 3)
        was_killed = is_killed(
            nth, calls=CHANGING, call=lambda: caller.call(case.tool, **case.arguments)
        )
        left = tree(base)
        found = server(base, "reader", 4).call("memory_task_resolve", name=tasking.NAME)
        assert found["ledgerCoverage"] == "complete"
        assert found["candidate"] is not None
        assert tree(base) == left
        server(base, case.session, 5).call(case.tool, **case.arguments)
        found = after(base)
        assert {name: found[name] for name in wanted if found[name] != wanted[name]} == {}
        assert found.keys() == wanted.keys()
        assert temporaries(base) == []
        return was_killed

    nth = 1
    while again(nth):
        nth += 1
    assert nth > 3
