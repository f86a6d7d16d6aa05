"""One process that fights for a task: it binds, renews, begins, settles and releases by chance.

Run as a program: `python -m tests.support.fighter <workspace> <session> <seed> <log>`. It tells its
log, line by line, what it asks for and what it was answered, with a clock that all processes share;
the clock that the journal sees is shifted by up to a day, another way each call.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

from tests.support.journal_faces import InProcess, Refused
from tests.support.tasking import NAME

DAY_SECONDS = 86_400.0
REST_SECONDS = 0.4  # at most, after a bind that was refused: who has the task gets to use it
TARGET = "a.py"


class Log:
    """Lines that are there as soon as they are written, whatever becomes of the process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **line: object) -> None:
        os.write(self._fd, json.dumps(line).encode() + b"\n")


class Fighter:
    """A session that wants the task."""

    def __init__(self, base: Path, session: str, seed: int, log: Log) -> None:
        self._base = base
        self._chance = random.Random(seed)
        self._session = session
        self._log = log
        self._face = InProcess(base, session=session, seed=seed, AMUX_LOCK_WAIT_MS="10000")
        self._owner: str | None = None
        self._old: list[str] = []
        self._words = 0

    def act(self) -> None:
        """Do one thing that an agent, or a zombie, might do."""
        old = self._chance.choice(self._old) if self._old else None
        if old is not None and self._chance.random() < 0.2:
            self._ask(self._chance.choice(("renew", "begin", "settle", "release")), old)
        elif self._owner is None:
            self._bind()
        else:
            self._ask(
                self._chance.choices(
                    ("renew", "begin", "settle", "release", "bind"), (30, 25, 15, 25, 5)
                )[0],
                self._owner,
            )

    def _bind(self) -> None:
        self._words += 1
        found = self._call(
            "bind", None, "memory_task_admit_v2", operation="bind", task=NAME,
            instruction=f"{self._session} wants it, {self._words}, {os.getpid()}",
        )  # fmt: skip
        if found is not None:
            self._forget()
            self._owner = str(found["owner"])
        else:
            time.sleep(self._chance.uniform(0, REST_SECONDS))

    def _ask(self, what: str, owner: str) -> None:
        match what:
            case "bind":
                self._bind()
                return
            case "begin":
                (self._base / TARGET).write_text(f"{self._chance.random()}\n")
                found = self._call(
                    "begin", owner, "memory_task_operation", op="begin", task=NAME, owner=owner,
                    targets=[TARGET],
                )  # fmt: skip
            case "settle":
                found = self._call(
                    "settle", owner, "memory_task_operation", op="settle", task=NAME, owner=owner
                )
            case _:
                found = self._call(
                    what, owner, "memory_task_write_owner", operation=what, task=NAME, owner=owner,
                    **({"freshContext": True} if what == "renew" else {}),
                )  # fmt: skip
        if found is not None and what == "release" and owner == self._owner:
            self._forget()

    def _call(
        self, what: str, owner: str | None, name: str, /, **given: object
    ) -> dict[str, object] | None:
        self._face.at = time.time() + self._chance.uniform(-DAY_SECONDS, DAY_SECONDS)
        number = time.monotonic_ns()
        self._log.write(call=number, what=what, owner=owner, session=self._session)
        try:
            found = self._face.call(name, **given)
        except Refused as refusal:
            self._log.write(
                call=number, end=time.monotonic_ns(), code=refusal.code, reason=refusal.reason
            )
            if refusal.code == "lease_lost" and owner == self._owner:
                self._lost(refusal.reason)
            if refusal.details.get("blocking") == ["operation"]:
                self._reconcile(refusal.details["nextCall"])
            return None
        context = found["writeContext"]
        assert isinstance(context, dict)
        self._log.write(
            call=number, end=time.monotonic_ns(), code="", replayed=found["replayed"],
            transition=found.get("transition"), owner=found.get("owner"),
            generation=context["writerGeneration"], sequence=context["stateSequence"],
        )  # fmt: skip
        return found

    def _reconcile(self, following: object) -> None:
        """Close what a dead owner left open, as the refusal says."""
        assert isinstance(following, dict)
        self._call("reconcile", None, following["tool"], **following["arguments"])

    def _lost(self, reason: str) -> None:
        if reason == "TASK_WRITE_OWNER_CAS_MISMATCH":
            self._forget()

    def _forget(self) -> None:
        if self._owner is not None:
            self._old.append(self._owner)
        self._owner = None


def main() -> None:
    """Fight until somebody ends it."""
    base, session, seed, log = sys.argv[1:]
    fighter = Fighter(Path(base), session, int(seed), Log(Path(log)))
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        fighter.act()


if __name__ == "__main__":
    main()
