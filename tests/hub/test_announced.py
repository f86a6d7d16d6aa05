"""No use case changes anything before its announcement is on the disk."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.path import DocPath
from amux.disk import atomic
from amux.hub.service import Hub
from amux.memory.files import Files
from amux.memory.partition import directory
from amux.memory.service import Memory
from tests.support.rooms import Rooms

PAUSE = 0.1  # seconds that a change which does not wait would need by far less of
PATH = DocPath("a.md")

CHANGES: dict[str, Callable[[Hub, Rooms], object]] = {
    "upsert": lambda hub, rooms: hub.upsert(rooms.actor(), PATH, b"new", revision.of(b"old")),
    "forget": lambda hub, rooms: hub.forget(rooms.actor(), PATH, revision.of(b"old")),
    "discard": lambda hub, rooms: hub.discard(rooms.actor(), "broken.md"),
}


@pytest.mark.requirement("M73")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_waits_for_its_announcement(
    hub: Rooms, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Files(str(tmp_path / "memory"), clock=time.monotonic)
    top = tmp_path / "memory" / directory(hub.grant(hub.actor()).scope)
    top.mkdir(parents=True)
    (top / "a.md").write_bytes(b"old")
    (top / "broken.md").write_bytes(b"\xff")
    audit = hub.audit()
    memory = Memory(store, clock=time.monotonic, cursor_key=b"k" * 32)
    made = Hub(gate=hub.gate(audit), memory=memory, administration=None)  # type: ignore[arg-type]
    events: list[str] = []
    has_changed = threading.Event()
    trail, real = audit._trail._file.fd, {n: getattr(atomic, n) for n in ("fsync", "unlink")}
    real["exchange"] = atomic.exchange

    def fsync(fd: int) -> None:
        if fd == trail:
            has_changed.wait(PAUSE)
            events.append("announced")
        real["fsync"](fd)

    def changing(step: str) -> Callable[..., object]:
        def change(*given: object) -> object:
            events.append("changed")
            has_changed.set()
            return real[step](*given)

        return change

    monkeypatch.setattr(atomic, "fsync", fsync)
    for step in ("unlink", "exchange"):
        monkeypatch.setattr(atomic, step, changing(step))
    CHANGES[name](made, hub)
    assert events[0] == "announced"
    assert "changed" in events
    store.close()
