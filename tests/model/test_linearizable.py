"""Threads on one store: some order of what they did explains what they saw (M26)."""

import random
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.errors import RevisionConflict
from amux.memory.files import Files
from tests.model.linearizable import (
    ABSENT,
    NEVER,
    Call,
    Result,
    by_brute_force,
    is_linearizable,
)

DOCUMENTS = ["a.md", "b/c.md"]


def tiny_history(chance: random.Random) -> list[Call]:
    def some() -> str:
        return chance.choice([ABSENT, "a", "b"])

    history = []
    for _ in range(chance.randrange(1, 6)):
        began = chance.random() * 10
        verb = chance.choice(["get", "upsert", "forget"])
        new = chance.choice("ab") if verb == "upsert" else ABSENT
        if chance.random() < 0.15:
            history.append(Call(began, NEVER, verb, some(), new))
            continue
        result = (
            Result("value", some())
            if verb == "get"
            else chance.choice([Result("done"), Result("conflict", some()), Result("gone")])
        )
        history.append(Call(began, began + chance.random() * 6, verb, some(), new, result))
    return history


@pytest.mark.slow
@pytest.mark.requirement("M26")
def test_the_checker_agrees_with_brute_force() -> None:
    chance = random.Random(1)
    answers = []
    for _ in range(3000):
        history = tiny_history(chance)
        answers.append(is_linearizable(history))
        assert answers[-1] == by_brute_force(history), history
    assert answers.count(True) > 200
    assert answers.count(False) > 200


class Worker(threading.Thread):
    """Reads, writes and forgets for a while, and keeps what it was told."""

    def __init__(self, store: Files, number: int, calls: int) -> None:
        super().__init__()
        self.histories: defaultdict[str, list[Call]] = defaultdict(list)
        self.failure: Exception | None = None
        self._store = store
        self._number = number
        self._calls = calls
        self._chance = random.Random(number)

    def run(self) -> None:
        try:
            last: dict[str, str] = {}
            for number in range(self._calls):
                name = self._chance.choice(DOCUMENTS)
                call = self._one(name, last.get(name, ABSENT), number)
                told = call.result
                if told is not None:
                    last[name] = told.revision or call.new
                self.histories[name].append(call)
        except Exception as error:  # noqa: BLE001 - told to the test
            self.failure = error

    def _one(self, name: str, expected: str, number: int) -> Call:
        path = DocPath.parse(name)
        verb = self._chance.choices(["get", "upsert", "forget"], [35, 55, 10])[0]
        data = b"%d of %d" % (number, self._number)  # every content is new
        new = revision.of(data) if verb == "upsert" else ABSENT
        began = time.monotonic()
        try:
            if verb == "get":
                result = Result("value", self._read(path))
            elif verb == "upsert":
                self._store.put(GLOBAL, path, data, expected)
                result = Result("done")
            else:
                was = self._store.remove(GLOBAL, path, expected)
                result = Result("gone") if was == ABSENT else Result("done")
        except RevisionConflict as conflict:
            result = Result("conflict", str(conflict.details["observed"]))
        return Call(began, time.monotonic(), verb, expected, new, result)

    def _read(self, path: DocPath) -> str:
        found = self._store.read(GLOBAL, path)
        ticket = self._store.pending(GLOBAL, path)
        while ticket is not None and not ticket.is_settled:
            time.sleep(0)
        return found.revision


def run_workers(store: Files, workers: int, calls: int) -> dict[str, list[Call]]:
    threads = [Worker(store, number, calls) for number in range(workers)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)  # many more places where another thread comes in between
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert [thread.failure for thread in threads] == [None] * workers
    return {name: [c for t in threads for c in t.histories[name]] for name in DOCUMENTS}


@pytest.mark.slow
@pytest.mark.requirement("M26")
def test_every_history_of_a_document_is_linearizable(tmp_path: Path) -> None:
    store = Files(str(tmp_path))
    for name, history in run_workers(store, workers=6, calls=700).items():
        assert len(history) > 1800
        outcomes = {call.result.kind for call in history if call.result}
        assert {"value", "done", "conflict"} <= outcomes
        assert is_linearizable(history) is True, name
    store.close()


@pytest.mark.slow
@pytest.mark.requirement("M26")
def test_a_store_that_does_not_compare_under_the_lock_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(3)
    require = revision.require

    def now_and_then(observed: str, expected: str) -> None:
        if chance.random() > 0.02:
            require(observed, expected)

    monkeypatch.setattr(revision, "require", now_and_then)
    store = Files(str(tmp_path))
    histories = run_workers(store, workers=4, calls=300)
    assert False in [is_linearizable(history) for history in histories.values()]
    store.close()
