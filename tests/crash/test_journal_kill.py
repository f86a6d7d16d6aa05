"""Killed at any call of the system, a write is there whole or not at all, and mends by repeating.

The writer is a fork of this process: it counts its calls of `os` and dies by its own hand before
the chosen one, so that each of some hundred moments costs milliseconds. After one call is before
the next.
"""

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.journal.text import day as days
from tests.support.roots import tree
from tests.support.writers import Receipt, Writer, workspace_in

DAY = ".devcodex/.memory/clients/codex/tasks/20260314.md"
SUMMARY = ".devcodex/.memory/clients/codex/SUMMARY.md"
CALLS = (
    "open", "close", "read", "write", "lseek", "stat", "fstat", "fsync", "rename", "unlink",
    "mkdir", "fchmod", "fchown", "link", "scandir", "dup",
)  # fmt: skip
CONTENT = "the text of this call\nin two lines"
CALL: Receipt = {"content": CONTENT, "row": "the row", "status": "blocked"}


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


def die_at(nth: int, calls: Sequence[str] = CALLS) -> None:
    """Let this process die at its nth call of the system."""
    count = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **more: object) -> object:
            nonlocal count
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **more)

        return call

    for name in calls:
        setattr(os, name, counted(getattr(os, name)))
    fcntl.flock = counted(fcntl.flock)  # type: ignore[assignment]
    atomic._renameat2 = counted(atomic._renameat2)  # type: ignore[assignment]


def is_killed(nth: int, *, call: Callable[[], object], calls: Sequence[str] = CALLS) -> bool:
    """Do a call in a child that dies at its nth step; tell whether it came so far."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_at(nth, calls)
            call()
            status = 0
        finally:
            os._exit(status)
    ended = os.waitpid(child, 0)[1]
    assert ended in {0, signal.SIGKILL}
    return ended == signal.SIGKILL


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("JA8", "JP12", "J63", "J65")
@pytest.mark.parametrize("kind", ["new tree", "opens", "extends"])
def test_a_call_killed_at_any_moment_is_mended_by_the_same_call(
    memory_disk: Path, kind: str
) -> None:
    template = workspace_in(memory_disk / "template")
    given = dict(CALL)
    if kind != "new tree":
        Writer(template, session="neighbour").write("of the neighbour", row="its row")
        own = Writer(template).write("earlier text", title="ours")
        given |= {"section": own["section"]} if kind == "extends" else {}
        (template / ".devcodex/foreign.md").write_bytes(b"theirs")
        with (template / SUMMARY).open("ab") as file:
            file.write(b"\nprose of a person\n")
    before = tree(template)
    moments = 0
    for nth in range(1, 3000):
        base = memory_disk / "w"
        shutil.copytree(template, base)
        if not is_killed(nth, call=partial(Writer(base).write, **given)):
            break
        moments += 1
        check_whole(base, before)
        receipt = Writer(base).write(**given)
        check_once(base, before, receipt)
        shutil.rmtree(base)
    else:
        pytest.fail("it never came through")
    assert moments > 300, moments


def check_whole(base: Path, before: dict[str, bytes | str]) -> None:
    """Each file is the old one, or the old one with the whole of its addition."""
    for name, end in ((DAY, f"{CONTENT}\n\n- **状态**：⛔ blocked\n"), (SUMMARY, " | ⛔ |\n")):
        old = before.get(name, b"")
        path = base / name
        data = path.read_bytes() if path.exists() else b""
        assert isinstance(old, bytes)
        assert data == old or (data.startswith(old) and data.endswith(end.encode()))


def check_once(base: Path, before: dict[str, bytes | str], receipt: Receipt) -> None:
    """All parts are there once, all that was there still is, and nothing else came."""
    after = tree(base)
    text, rows = (base / DAY).read_bytes(), (base / SUMMARY).read_bytes()
    old = before.get(DAY, b"")
    assert isinstance(old, bytes)
    opened = 0 if "section" in receipt and not receipt["opened"] else 1
    assert len(days.parse(text).sections) == len(days.parse(old).sections) + opened
    assert text.count(CONTENT.encode()) == 1
    assert rows.count(b"| the row |") == 1
    assert receipt["warnings"] == []
    for name, data in before.items():
        if "/.runtime-state" in name or name in {DAY, SUMMARY}:
            continue
        assert after[name] == data
    assert text.startswith(old)
    left = [name for name in after if ".amux-" in name and "/derived-indexes/" not in name]
    assert left == []
