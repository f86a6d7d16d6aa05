"""Durable writes through the Hub's socket, against bare system calls on the same disk."""

import hashlib
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.launch import SLOW_SECONDS
from bench.measure import Figure, paired
from bench.wire import Wire
from tests.support.hub import RunningHub, running_hub

SIZE = 2048
ROUNDS = 200
WRITERS = 16
SPAN_SECONDS = 3.0
UPSERT_BOUND = 2.0
TOGETHER_BOUND = 1 / 6


def figures() -> Iterator[Figure]:
    """Measure one writer, and sixteen in one scope on a slower disk."""
    with tempfile.TemporaryDirectory(prefix="amux-bench-", dir=Path.cwd()) as folder:
        home = Path(folder) / "home"
        with running_hub(home) as hub:
            yield one_writer(hub, Path(folder))
        hub = RunningHub(home)
        launcher = [sys.executable, "-m", "bench.launch", "slow-fsync", "hub", "serve"]
        hub.start(launcher=launcher)
        try:
            yield many_writers(hub, Path(folder))
        finally:
            hub.kill()


def one_writer(hub: RunningHub, folder: Path) -> Figure:
    """Compare a durable 2 KiB upsert with the four system calls that it cannot do without."""
    writer = Writer(hub.config.socket_path, "bench/one.md")
    contents = (content(number) for number in itertools.count())
    bare_folder = folder / "bare"
    bare_folder.mkdir()
    ours, peer = paired(
        lambda: writer.write(next(contents)),
        lambda: bare(bare_folder, "one.md", content(0).encode(), os.fsync),
        rounds=ROUNDS,
        burst=20,
    )
    return Figure(
        name="durable 2 KiB upsert",
        ours=ours * 1000,
        peer=peer * 1000,
        unit="ms",
        bound=UPSERT_BOUND,
        of="bare write, fsync, rename, fsync of the directory",
    )


def many_writers(hub: RunningHub, folder: Path) -> Figure:
    """Compare sixteen writers in one scope with a lock that is held over both fsyncs."""
    writers = [Writer(hub.config.socket_path, f"bench/w{n:02d}.md") for n in range(WRITERS)]
    ours = per_write(
        [lambda number, writer=writer: writer.write(content(number)) for writer in writers]
    )
    lock = threading.Lock()
    locked = folder / "locked"
    locked.mkdir()

    def slow_fsync(fd: int) -> None:
        time.sleep(SLOW_SECONDS)
        os.fsync(fd)

    def under_lock(name: str) -> Callable[[int], None]:
        def write(number: int) -> None:
            with lock:
                bare(locked, name, content(number).encode(), slow_fsync)

        return write

    peer = per_write([under_lock(f"w{n:02d}.md") for n in range(WRITERS)])
    return Figure(
        name=f"{WRITERS} writers, one scope, fsync + 3 ms",
        ours=ours * 1000,
        peer=peer * 1000,
        unit="ms",
        bound=TOGETHER_BOUND,
        of="a lock held over both fsyncs (time a write)",
    )


class Writer:
    """Replaces one document again and again, knowing its revision."""

    def __init__(self, socket_path: str, path: str) -> None:
        self._wire = Wire(socket_path)
        self._path = path
        self._revision = "absent"

    def write(self, text: str) -> None:
        """Replace the document durably."""
        self._wire.call("upsert", path=self._path, content=text, expected_revision=self._revision)()
        self._revision = hashlib.sha256(text.encode()).hexdigest()


def content(number: int) -> str:
    """Make 2 KiB that no other number makes."""
    return f"{number}\n".ljust(SIZE, "x")


def bare(folder: Path, name: str, data: bytes, fsync: Callable[[int], None]) -> None:
    """Write durably with nothing but system calls."""
    temporary = folder / f".tmp-{name}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, data)
    fsync(fd)
    os.close(fd)
    os.rename(temporary, folder / name)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fsync(directory)
    os.close(directory)


def per_write(writes: list[Callable[[int], None]]) -> float:
    """Let all write for a while; give the seconds a write took, all writers together."""
    until = time.perf_counter() + SPAN_SECONDS
    counts = [0] * len(writes)

    def run(index: int) -> None:
        while time.perf_counter() < until:
            writes[index](counts[index])
            counts[index] += 1

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(writes))]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begun) / sum(counts)
