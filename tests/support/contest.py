"""Sixteen processes fight for one task while somebody stops and kills them by chance.

Run as a program for as long as you like: `python -m tests.support.contest 60`.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support import fencing, tasking
from tests.support.fencing import Verdict
from tests.support.tasking import admit, agent

PROCESSES = 16
SESSIONS = 48  # few enough that some processes share one, now and then
EVIL_PAUSE_SECONDS = (0.05, 0.3)
LONGEST_STOP_SECONDS = 0.4


class Contest:
    """One fight, in a workspace of its own."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self._chance = random.Random(seed)
        self._folder = folder
        self._base = tasking.workspace(folder / "billing")
        (self._base / "a.py").write_text("a = 1\n")
        self._task = admit(agent(self._base, "first"))
        self._task.confirm()
        self._task.own("release")
        self._task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
        self._record = tasking.ledger_of(self._base) / f"task/{self._task.task_id}.json"
        self._sessions: dict[int, int] = {}
        self._logs: list[Path] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def fight(self, seconds: float) -> Verdict:
        """Let them fight, and judge it."""
        try:
            for number in range(PROCESSES):
                self._running.append(self._start(number, number % SESSIONS))
            for one in self._running:
                self._go(one)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self._harm()
                time.sleep(self._chance.uniform(*EVIL_PAUSE_SECONDS))
        finally:
            for one in self._running:
                one.kill()
            for one in self._running:
                one.communicate()
        return fencing.check(self._logs, self._record)

    def _harm(self) -> None:
        at = self._chance.randrange(PROCESSES)
        if self._chance.random() < 0.4:  # who has the task is the one whose death matters
            at = self._owner(otherwise=at)
        one = self._running[at]
        if self._chance.random() < 0.5:
            one.send_signal(signal.SIGSTOP)
            time.sleep(self._chance.uniform(0, LONGEST_STOP_SECONDS))
            one.send_signal(signal.SIGCONT)
            return
        one.kill()
        one.communicate()
        # Another session as a rule: then who wants the task must take it over.
        self._running[at] = self._start(at, self._chance.randrange(SESSIONS))
        self._go(self._running[at])

    def _owner(self, *, otherwise: int) -> int:
        """Give the place of the process whose session owns the task, as the ledger has it."""
        state = json.loads(self._record.read_bytes())["body"]
        digests = {
            hashlib.sha256(f"amux-session:session-{number}".encode()).hexdigest(): at
            for at, number in self._sessions.items()
        }
        return digests.get(state["owner"]["sessionDigest"], otherwise)

    def _start(self, at: int, number: int) -> "subprocess.Popen[bytes]":
        self._sessions[at] = number
        log = self._folder / f"log-{len(self._logs)}"
        self._logs.append(log)
        return subprocess.Popen(
            [
                sys.executable, "-m", "tests.support.fighter", str(self._base),
                f"session-{number}", str(self._chance.randrange(1 << 30)), str(log),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ},
        )  # fmt: skip

    @staticmethod
    def _go(one: "subprocess.Popen[bytes]") -> None:
        assert one.stdout is not None
        assert one.stdin is not None
        one.stdout.readline()
        one.stdin.write(b"go\n")
        one.stdin.flush()


def main() -> int:
    """Fight for the seconds that were asked for, and tell how it went."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    with tempfile.TemporaryDirectory(prefix="amux-contest-") as folder:
        verdict = Contest(Path(folder), seed=seed).fight(seconds)
    lines = [f"seed {seed}", f"taken {dict(verdict.taken)}", f"refused {dict(verdict.refused)}"]
    lines += [f"never answered {verdict.unknown}", *verdict.violations]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
