"""Nothing that a reader was shown can be undone by a crash (M24, row 18)."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.disk import atomic
from amux.errors import RevisionConflict
from amux.memory.document import Present
from amux.memory.files import Files

PATH = DocPath.parse("a.md")
WRITES = 150


class Disk:
    """Knows which version of the document is durable: the one named before an fsync began."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.durable = 0
        self._lock = threading.Lock()
        fsync = atomic.fsync

        def slow(fd: int) -> None:
            named = version(file.read_bytes()) if os.path.isdir(f"/proc/self/fd/{fd}") else 0
            time.sleep(0.001)  # a slow disk: the time in which a reader could be shown too much
            fsync(fd)
            with self._lock:
                self.durable = max(self.durable, named)

        monkeypatch.setattr(atomic, "fsync", slow)


def version(data: bytes) -> int:
    return int(data or b"0")


def shown(store: Files) -> int:
    """Read as the service does: first the disk, then the ticket, then wait."""
    found = store.read(GLOBAL, PATH)
    ticket = store.pending(GLOBAL, PATH)
    while ticket is not None and not ticket.is_settled:
        time.sleep(0)
    return version(found.data if isinstance(found, Present) else b"")


def shown_at_once(store: Files) -> int:
    found = store.read(GLOBAL, PATH)
    return version(found.data if isinstance(found, Present) else b"")


def shown_by_search(store: Files) -> int:
    view = store.view(GLOBAL)
    for _ in view.refresh():
        pass
    data = view.read("a.md")
    ticket = store.pending(GLOBAL)
    while ticket is not None and not ticket.is_settled:
        time.sleep(0)
    view.close()
    return version(data or b"")


def shown_by_conflict(store: Files) -> int:
    by_revision = {revision.of(b"%d" % number): number for number in range(WRITES + 1)}
    try:
        store.put(GLOBAL, PATH, b"never written", "0" * 64)
    except RevisionConflict as conflict:
        return by_revision.get(str(conflict.details["observed"]), 0)
    return 0


def too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Files], int]) -> int:
    """Count the answers that showed a version before it was durable."""
    store = Files(str(tmp_path / "memory"))
    expected = store.put(GLOBAL, PATH, b"0", revision.ABSENT).revision
    disk = Disk(tmp_path / "memory/global/a.md", monkeypatch)
    done = threading.Event()
    early: list[int] = []

    def watch() -> None:
        while not done.is_set():
            number = read(store)
            if number > disk.durable:
                early.append(number)

    readers = [threading.Thread(target=watch) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, WRITES + 1):
        expected = store.put(GLOBAL, PATH, b"%d" % number, expected).revision
        assert disk.durable >= number  # and no write is answered before it is durable
    done.set()
    for reader in readers:
        reader.join()
    store.close()
    return len(early)


@pytest.mark.slow
@pytest.mark.requirement("M24", "row-18")
@pytest.mark.parametrize("read", [shown, shown_by_search, shown_by_conflict])
def test_no_answer_shows_what_a_crash_could_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Files], int]
) -> None:
    assert too_early(tmp_path, monkeypatch, read) == 0


@pytest.mark.slow
@pytest.mark.requirement("M24")
def test_a_reader_that_does_not_wait_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert too_early(tmp_path, monkeypatch, shown_at_once) > 0
