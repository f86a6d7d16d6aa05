"""Durable writes through the Hub's socket, against bare system calls on the same disk."""

import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from amux.runtime.process import is_listening
from bench import bare
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
    with tempfile.TemporaryDirectory(prefix="amux-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        with running_hub(folder / "home") as hub:
            yield one_writer(hub, folder / "bare", os.fsync, "")
        yield no_hub(folder)
        hub = RunningHub(folder / "home")
        launcher = [sys.executable, "-m", "bench.launch", "slow-fsync", "hub", "serve"]
        hub.start(launcher=launcher)
        try:
            yield one_writer(hub, folder / "slow", slow_fsync, ", fsync + 3 ms")
            yield many_writers(hub, folder)
        finally:
            hub.kill()


def one_writer(hub: RunningHub, folder: Path, fsync: Callable[[int], None], disk: str) -> Figure:
    """Compare a durable 2 KiB upsert with the four system calls that it cannot do without."""
    writer = Writer(hub.config.socket_path, f"bench/{folder.name}.md")
    contents = (content(number) for number in itertools.count())
    return against_bare(
        f"durable 2 KiB upsert{disk}",
        lambda: writer.write(next(contents)),
        folder,
        fsync,
        bound=UPSERT_BOUND,
    )


def no_hub(folder: Path) -> Figure:
    """Compare the same calls with a server of the same libraries that makes them and no more."""
    path, served = str(folder / "floor.sock"), folder / "served"
    served.mkdir()
    process = subprocess.Popen([sys.executable, "-m", "bench.floor", str(served), path])
    try:
        while not Path(path).exists() or not is_listening(path):
            time.sleep(0.02)
        wire = Wire(path)
        numbers = itertools.count()
        return against_bare(
            "the same write by a server that checks nothing (told, no budget)",
            lambda: wire.call("upsert", content=content(next(numbers)))(),
            folder / "floor",
            os.fsync,
            bound=None,
        )
    finally:
        process.terminate()
        process.wait()


def against_bare(
    name: str,
    write: Callable[[], object],
    folder: Path,
    fsync: Callable[[int], None],
    *,
    bound: float | None,
) -> Figure:
    """Compare a durable write with bare system calls on the same disk."""
    folder.mkdir()
    ours, peer = paired(
        write,
        lambda: bare.write(folder, "one.md", content(0).encode(), fsync),
        rounds=ROUNDS,
        burst=20,
    )
    return Figure(
        name=name,
        ours=ours * 1000,
        peer=peer * 1000,
        unit="ms",
        bound=bound,
        of="bare write, fsync, rename, fsync of the directory",
    )


def slow_fsync(fd: int) -> None:
    """Sync as a disk does that takes 3 ms longer."""
    time.sleep(SLOW_SECONDS)
    os.fsync(fd)


def many_writers(hub: RunningHub, folder: Path) -> Figure:
    """Compare sixteen writers in one scope with a lock that is held over both fsyncs."""
    writers = [Writer(hub.config.socket_path, f"bench/w{n:02d}.md") for n in range(WRITERS)]
    ours = per_write(
        [lambda number, writer=writer: writer.write(content(number)) for writer in writers]
    )
    lock = threading.Lock()
    locked = folder / "locked"
    locked.mkdir()

    def under_lock(name: str) -> Callable[[int], None]:
        def write(number: int) -> None:
            with lock:
                bare.write(locked, name, content(number).encode(), slow_fsync)

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
