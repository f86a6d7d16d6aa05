"""Killed before any call that changes the disk, a store starts again with old or new bytes."""

from pathlib import Path

import pytest

from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.memory.document import Present
from amux.memory.files import Files
from tests.crash.test_power_loss import Answered
from tests.crash.traced import Op, marks_of, record, run_driver

SEED, CALLS = 5, 16  # creates at three depths, replacements and forgets
KILLED = 137, -9  # as strace reports the end of its child, and as the system does


def check(root: Path, marks: Path) -> None:
    """Compare what a new store finds with what the killed one had answered."""
    known = Answered()
    for mark in marks_of(marks):
        known.take(mark)
    store = Files(str(root))
    documents = total = 0
    for path, contents in known.allowed().items():
        found = store.read(GLOBAL, DocPath.parse(path))
        data = found.data if isinstance(found, Present) else None
        assert data in contents, path
        documents += data is not None
        total += len(data or b"")
    assert store.usage(GLOBAL) == (documents, total)
    assert not list(root.rglob(".amux-*"))
    assert store.broken(GLOBAL) == []
    # It is in working order, not only readable.
    put = store.put(GLOBAL, DocPath.parse("after/the/crash.md"), b"1", "absent")
    store.remove(GLOBAL, DocPath.parse("after/the/crash.md"), put.revision)
    store.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("M23", "row-3", "bug-6")
def test_a_kill_at_every_call_that_changes_the_disk_loses_nothing(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    _, ops = record(first, seed=SEED, calls=CALLS)
    steps = [op for op in ops if op.verb not in {"mark", "sync-end"}]
    assert {op.verb for op in steps} == {
        "mkdir", "create", "write", "sync-begin", "rename", "exchange", "unlink",
    }  # fmt: skip
    verbs = {str(op.mark[2]) for op in ops if op.verb == "mark" and op.mark[0] == "begin"}
    assert verbs == {"upsert", "forget"}
    for number, step in enumerate(steps):
        place = tmp_path / f"{number}"
        place.mkdir()
        kill_at(place, step)
        check(place / "memory", place / "marks")
    assert len(steps) > 80


def kill_at(place: Path, step: Op) -> None:
    ended = run_driver(
        place / "memory", place / "marks", seed=SEED, calls=CALLS,
        strace_options=[
            "-o", "/dev/null", f"-etrace={step.call}",
            f"-einject={step.call}:signal=KILL:when={step.nth}",
        ],
    )  # fmt: skip
    assert ended.returncode in KILLED, (step, ended)
