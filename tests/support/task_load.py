"""Processes that work on tasks of one root, and processes that only look: nobody disturbs anybody.

Run as a program: `python -m tests.support.task_load write|read|mix <workspace> <name> <seconds>`.
It waits for a line, works, and prints one JSON object of what it met.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import percentile
from tests.support.journal_faces import InProcess, Refused
from tests.support.tasking import Task, agent, bind

TARGETS = ("a.py", "b.py", "c.py", "d.py")


class Worker:
    """One process at work."""

    def __init__(self, base: Path, name: str) -> None:
        self.base = base
        self.name = name
        self.refused: list[str] = []
        self.calls = 0
        self.renews: list[float] = []
        self.states: list[list[object]] = []

    def prepare(self, role: str) -> None:
        """Make ready for a role."""
        if role != "read":
            self._task = self._owner()

    def write(self, end: float) -> None:
        """Move the task on without a pause, and note each state that was committed."""
        task = self._task
        while time.monotonic() < end:
            for act in (task.renew, lambda: task.begin(*TARGETS), task.settle):
                self._note(self._call(act))

    def read(self, end: float) -> None:
        """Look at the task without a pause, and note each state that was seen."""
        face = InProcess(self.base, session=f"reader-{self.name}-{random.random()}")
        while time.monotonic() < end:
            found = self._call(lambda: face.call("memory_task_resolve", name=self.name))
            if found is None:
                continue
            if found["ledgerCoverage"] != "complete" or found["outcome"] != "resolved-active":
                self.refused.append(f"{found['outcome']}/{found['ledgerCoverage']}")
                continue
            continuation = found["continuation"]
            assert isinstance(continuation, dict)
            items = {one["key"]: one["observed"] for one in continuation["items"]}
            opened = found["pendingOperation"]
            self._see(
                items["admission"]["stateSequence"], items["owner"]["writerGeneration"],
                opened["operationId"] if isinstance(opened, dict) else None,
            )  # fmt: skip

    def mix(self, end: float) -> None:
        """Work on a task of one's own, and look at others now and then."""
        task, chance = self._task, random.Random(self.name)
        while time.monotonic() < end:
            act = chance.choice(("resolve", "renew", "begin", "settle"))
            if act == "resolve":
                self._call(lambda: task.face.call("memory_task_resolve", name=self.name))
            elif act == "renew":
                begun = time.monotonic()
                # Another request than the one before, or it is a repeat, which commits nothing.
                is_fresh = bool(len(self.renews) % 2)
                if self._call(lambda fresh=is_fresh: task.renew(freshContext=fresh)) is not None:
                    self.renews.append(time.monotonic() - begun)
            else:
                if self._call(lambda: task.begin(*TARGETS)) is not None:
                    self._call(task.settle)

    def told(self) -> dict[str, object]:
        return {
            "calls": self.calls, "refused": self.refused, "renews": self.renews,
            "states": self.states,
        }  # fmt: skip

    def _owner(self) -> Task:
        face = agent(self.base, f"owner of {self.name}")
        while True:
            try:
                task = bind(face, task=self.name)
            except Refused as refusal:
                if refusal.code != "busy":  # all of them bind at once, before anything counts
                    raise
                continue
            self._note(task.receipt)
            return task

    def _call(self, act: "object") -> dict[str, object] | None:
        self.calls += 1
        try:
            found = act()  # type: ignore[operator]
        except Refused as refusal:
            self.refused.append("/".join(refusal.both))
            return None
        assert isinstance(found, dict)
        return found

    def _note(self, found: dict[str, object] | None) -> None:
        if found is None:
            return
        context = found["writeContext"]
        assert isinstance(context, dict)
        opened = found.get("operationId") if found.get("phase") == "dispatched" else None
        self._see(context["stateSequence"], context["writerGeneration"], opened)

    def _see(self, *state: object) -> None:
        if [*state] not in self.states[-1:]:
            self.states.append([*state])


@dataclass(frozen=True)
class Load:
    """What the processes of a load met."""

    told: Sequence[dict[str, object]]

    @property
    def calls(self) -> int:
        return sum(int(str(one["calls"])) for one in self.told)

    @property
    def refused(self) -> list[str]:
        return [reason for one in self.told for reason in _list(one["refused"])]

    def renew_p99(self) -> float:
        return percentile([float(t) for one in self.told for t in _list(one["renews"])], 0.99)

    def states(self, at: int) -> set[tuple[object, ...]]:
        return {tuple(one) for one in _list(self.told[at]["states"])}


def run(base: Path, roles: Sequence[tuple[str, str]], seconds: float) -> Load:
    """Run a process for each role (what it does, on which task) and gather what they met."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.task_load", role, str(base), name, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for role, name in roles
    ]
    try:
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == b"ready\n"
        for one in running:
            assert one.stdin is not None
            one.stdin.write(b"go\n")
            one.stdin.flush()
        found = [json.loads(one.communicate(timeout=seconds + 60)[0]) for one in running]
    finally:
        for one in running:
            one.kill()
            one.communicate()
    return Load(found)


def _list(value: object) -> list[str]:
    assert isinstance(value, list)
    return value


def main() -> None:
    """Do what the command line says."""
    role, base, name, seconds = sys.argv[1:]
    worker = Worker(Path(base), name)
    worker.prepare(role)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    getattr(worker, role)(time.monotonic() + float(seconds))
    sys.stdout.write(json.dumps(worker.told()) + "\n")


if __name__ == "__main__":
    main()
