"""A workspace of a thousand tasks with a hundred transitions each, made from one that was real."""

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from amux.journal.ledger import record, shape
from amux.journal.ledger.record import Record
from amux.journal.tasks import identity as identities
from amux.journal.tasks import task
from tests.support import tasking
from tests.support.tasking import Task, admit, agent, ledger_of

TRANSITIONS = 100
TARGETS = ("a.py", "b.py", "c.py", "d.py")
COUNT = 1_000


def worked(base: Path) -> Task:
    """Admit a task, confirm it, and work on it until its record has had all its transitions."""
    tasking.workspace(base)
    made = admit(agent(base, "template"), "Template")
    made.confirm()
    for name in ("plan.md", "steps.md"):
        (made.root / name).write_text(f"{name}\n")
    made.confirm("CP2", "plan.md")
    made.confirm("CP3", "steps.md")
    turn = 0
    while sequence(base, made) < TRANSITIONS:
        turn += 1
        for name in TARGETS:
            (base / name).write_text(f"{turn}\n")
        made.begin(*TARGETS)
        made.settle()
        made.renew(freshContext=bool(turn % 2))
    return made


def sequence(base: Path, made: Task) -> int:
    """Count the transitions of a task."""
    data = (ledger_of(base) / f"task/{made.task_id}.json").read_bytes()
    count = json.loads(data)["seq"]
    assert isinstance(count, int)
    return count


def multiply(base: Path, made: Task, count: int = COUNT) -> list[str]:
    """Make this many more tasks of the same past; give their names."""
    path = ledger_of(base) / f"task/{made.task_id}.json"
    found = record.parse(path.read_bytes(), "task", made.task_id)
    state = task.decode(found.body)
    known = identities.parse((made.root / ".memory/task.json").read_bytes())
    assert isinstance(known, identities.Identity)
    notes = (made.root / ".memory/sessions.md").read_bytes()
    names = []
    for number in range(count):
        name = f"Export totals of ledger {number}"
        root, task_id = f"bugs/{name}", str(uuid.UUID(int=number + 1))
        own = shape.seal(
            known.replace(task_id=task_id, display_name=name, task_root_relative=root,
                aliases=(f"ledger {number}",), identity_digest="",
            )
        )  # fmt: skip
        memory = base / ".devcodex" / root / ".memory"
        memory.mkdir(parents=True)
        (memory / "task.json").write_bytes(own.render())
        (memory / "sessions.md").write_bytes(notes)
        for file in ("00-问题概况.md", "plan.md", "steps.md"):
            os.link(made.root / file, memory.parent / file)
        body = task.encode(
            state.replace(task_id=task_id, task_root_relative=root,
                identity_digest=own.identity_digest,
            )
        )  # fmt: skip
        assert found.previous is not None
        (path.parent / f"{task_id}.json").write_bytes(_at(found, task_id, body).data)
        names.append(name)
    return names


def _at(found: Record, task_id: str, body: dict[str, object]) -> Record:
    """Make the record of another task at the same place of its chain."""
    before = found.replace(key=task_id, seq=found.seq - 1, digest=str(found.previous))
    return before.successor(body)


def sizes(base: Path) -> Iterator[int]:
    """Give the size of each file of the runtime state."""
    for path in (base / ".devcodex/.runtime-state").rglob("*"):
        if path.is_file():
            yield path.stat().st_size
