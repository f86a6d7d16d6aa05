"""Callers that read and write a few documents of a Hub at once, and keep a record of it.

Each runs in a process of its own and writes one line a call to its own file, so that whatever
happens to the Hub, what the callers knew of it stays.
"""

import hashlib
import json
import multiprocessing
import random
import string
import time
from collections.abc import Iterable
from dataclasses import asdict
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event as Flag
from pathlib import Path

from amux.client import Client
from amux.errors import AmuxError, Busy, OutcomeUnknown, RevisionConflict, Unavailable
from tests.model.linearizable import ABSENT, NEVER, Call, Result

SPAWN = multiprocessing.get_context("spawn")
FOLDER = "load/"
PATHS = tuple(f"{FOLDER}{name}" for name in ("a.md", "b.md", "coming/and/going.md", "d.md"))
WORD = "burden"  # stands in every document, so that one search finds all
PAUSE_SECONDS = 0.005  # where no Hub runs
FAULT = "fault"


class Caller:
    """One caller: it remembers the revision that it saw last of each document."""

    def __init__(self, name: str, socket_path: str, record: Path) -> None:
        self._name = name
        self._client = Client(socket_path)
        self._record = record.open("a", encoding="utf-8", buffering=1)
        self._known = dict.fromkeys(PATHS, ABSENT)
        self._chance = random.Random(name)
        self._written = 0

    def close(self) -> None:
        self._record.close()

    def step(self) -> bool:
        """Make one call; False where no Hub answered."""
        path = self._chance.choice(PATHS)
        kind = self._chance.choices(["get", "put", "remove", "search"], [35, 40, 15, 10])[0]
        begun = time.monotonic()
        try:
            match kind:
                case "get":
                    self.read(path)
                case "put":
                    self._put(path)
                case "remove":
                    self._remove(path)
                case _:
                    self._search()
        except Unavailable:
            return False  # nothing was sent, or nothing was read
        except Busy:
            return True  # nothing was done
        except AmuxError as fault:
            self._write(FAULT, Call(begun, begun, kind, result=Result(str(fault.code))))
        return True

    def read(self, path: str) -> str:
        """Read one document."""
        begun = time.monotonic()
        found = self._client.ask("get", {"path": path}).value()
        self._saw(path, begun, str(found["revision"]))
        return self._known[path]

    def _saw(self, path: str, begun: float, revision: str) -> None:
        self._known[path] = revision
        told = Result("value", revision)
        self._write(path, Call(begun, time.monotonic(), "get", result=told))

    def _search(self) -> None:
        begun = time.monotonic()
        found = self._client.ask("search", {"query": WORD, "path_prefix": FOLDER}).value()
        hits = found["hits"]
        assert isinstance(hits, list)
        seen = {hit["path"]: hit["revision"] for hit in hits}
        assert seen.keys() <= set(PATHS), seen
        is_whole = not found["incomplete"] and not found["truncated"]
        for path in PATHS if is_whole else seen:
            self._saw(path, begun, seen.get(path, ABSENT))

    def _put(self, path: str) -> None:
        self._written += 1
        text = f"{WORD} of {self._name}, number {self._written}\n"
        text += self._chance.choice(string.ascii_letters) * self._chance.randrange(3000)
        new = hashlib.sha256(text.encode("utf-8")).hexdigest()
        self._change("upsert", path, new, {"content": text})

    def _remove(self, path: str) -> None:
        self._change("forget", path, ABSENT, {})

    def _change(self, verb: str, path: str, new: str, more: dict[str, object]) -> None:
        expected = self._known[path]
        begun = time.monotonic()
        told: Result | None
        try:
            given = {"path": path, "expected_revision": expected, **more}
            found = self._client.ask(verb, given).value()
            assert found["revision"] == new
            told = Result("gone" if found.get("already_absent") else "done")
            self._known[path] = new
        except RevisionConflict as conflict:
            self._known[path] = str(conflict.details["observed"])
            told = Result("conflict", self._known[path])
        except OutcomeUnknown:
            told = None
        self._write(path, Call(begun, time.monotonic(), verb, expected, new, told))

    def _write(self, path: str, call: Call) -> None:
        self._record.write(json.dumps([path, asdict(call)]) + "\n")


def call_until(stop: Flag, name: str, socket_path: str, record: Path) -> None:
    """Make calls until told to stop."""
    caller = Caller(name, socket_path, record)
    while not stop.is_set():
        if not caller.step():
            stop.wait(PAUSE_SECONDS)
    caller.close()


class Load:
    """Several callers at once, as long as the block runs."""

    def __init__(self, socket_path: str, place: Path, *, callers: int = 4) -> None:
        self._stop = SPAWN.Event()
        self.records = [place / f"caller-{number}" for number in range(callers)]
        self._processes: list[BaseProcess] = [
            SPAWN.Process(target=call_until, args=(self._stop, record.name, socket_path, record))
            for record in self.records
        ]

    def __enter__(self) -> "Load":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for process in self._processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def require_alive(self) -> None:
        """Fail where a caller has ended by itself."""
        assert all(process.exitcode in {None, 0} for process in self._processes)


def recorded(records: Iterable[Path], kills: list[float]) -> dict[str, list[Call]]:
    """Read what callers recorded, by document.

    What a call whose answer was lost has done, it has done before the Hub that had it was seen
    to be dead: before the first of `kills` after its end.
    """
    found: dict[str, list[Call]] = {}
    for record in records:
        for line in record.read_text(encoding="utf-8").splitlines():
            path, fields = json.loads(line)
            if fields["result"] is None:
                later = [moment for moment in kills if moment > fields["ended"]]
                fields["ended"] = min(later, default=NEVER)
            else:
                fields["result"] = Result(*fields["result"])
            found.setdefault(path, []).append(Call(**fields))
    return found
