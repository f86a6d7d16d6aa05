"""Searching a full scope through the Hub's socket, against ripgrep on the same files."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, paired, percentile, seconds
from bench.wire import Wire
from tests.support.corpus import full_scope, rare
from tests.support.hub import RunningHub, running_hub

ROUNDS = 90
BURST = 30
TERMS = {
    1: [rare(0)[0]],
    3: [rare(1)[0], "memory", "记忆"],
    16: [term for number in range(2, 10) for term in rare(number)],
}
BOUNDS = {1: 1 / 5, 3: 1 / 3, 16: 1.0}
FIRST_SECONDS = 0.250
LEARN_SECONDS = 3.0  # after the first search, for what the Hub learns while nobody waits
GET_ABOVE_IDLE_MS = {"with SIMD": 2.0, "without SIMD": 4.0}


def figures() -> Iterator[Figure]:
    """Measure searches, the first search after a start, and gets beside saturating searches."""
    ripgrep = shutil.which("rg", path=str(Path(sys.prefix) / "bin"))
    if ripgrep is None:
        raise SystemExit("ripgrep is not installed: `make bench` installs it")
    for mib in (8, 16):
        with tempfile.TemporaryDirectory(prefix="amux-bench-") as folder:
            home = Path(folder) / "home"
            write_scope(home / "memory" / "global", mib)
            with running_hub(home) as hub:
                yield first_search(hub, mib)
                time.sleep(LEARN_SECONDS)
                yield from against_ripgrep(hub, mib, ripgrep)
                if mib == 16:
                    yield get_beside_searches(hub, "with SIMD")
            if mib == 16:
                hub = RunningHub(home)
                launcher = [sys.executable, "-m", "bench.launch", "no-simd"]
                hub.start(launcher=[*launcher, "hub", "serve"])
                try:
                    yield get_beside_searches(hub, "without SIMD")
                finally:
                    hub.kill()


def write_scope(top: Path, mib: int) -> None:
    """Put a full scope on disk."""
    for path, data in full_scope(mib).items():
        file = top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def first_search(hub: RunningHub, mib: int) -> Figure:
    """Time the first search after a start; the best of three starts, the page cache warm."""
    times = []
    for _ in range(3):
        hub.kill()
        hub.start()
        wire = Wire(hub.config.socket_path)
        ask = wire.call("search", query=TERMS[1][0])
        begun = time.perf_counter()
        answer = json.loads(ask())
        times.append(time.perf_counter() - begun if not answer["incomplete"] else 9.9)
        wire.close()
    return Figure(
        name=f"first search after a start, {mib} MiB",
        ours=min(times) * 1000,
        peer=None,
        unit="ms",
        bound=FIRST_SECONDS * 1000,
        of="complete, page cache warm, best of 3",
    )


def against_ripgrep(hub: RunningHub, mib: int, ripgrep: str) -> Iterator[Figure]:
    """Compare searches with ripgrep's whole process."""
    wire = Wire(hub.config.socket_path)
    for count, terms in TERMS.items():
        patterns = [word for term in terms for word in ("-e", term)]
        command = [ripgrep, "-i", "-F", "--no-config", *patterns, str(hub.memory_dir)]
        ask = wire.call("search", query=" ".join(terms))
        ours, peer = paired(
            ask,
            lambda command=command: subprocess.run(command, capture_output=True),
            rounds=ROUNDS,
            burst=BURST,
        )
        yield Figure(
            name=f"search, {count} terms, {mib} MiB",
            ours=ours * 1000,
            peer=peer * 1000,
            unit="ms",
            bound=BOUNDS[count],
            of="rg -i -F, whole process",
        )
    wire.close()


def get_beside_searches(hub: RunningHub, what: str) -> Figure:
    """Measure how much slower a get is while two clients search all the time."""
    wire = Wire(hub.config.socket_path)
    get = wire.call("get", path=next(iter(full_scope(16))))
    wire.call("search", query=TERMS[1][0])()
    idle = percentile([seconds(get) for _ in range(500)], 0.99)
    is_over = threading.Event()
    searchers = [
        threading.Thread(target=_search_on, args=(hub.config.socket_path, is_over))
        for _ in range(2)
    ]
    for searcher in searchers:
        searcher.start()
    time.sleep(0.2)
    busy = percentile([seconds(get) for _ in range(500)], 0.99)
    is_over.set()
    for searcher in searchers:
        searcher.join()
    wire.close()
    return Figure(
        name=f"get p99 beside searches, {what}",
        ours=(busy - idle) * 1000,
        peer=None,
        unit="ms",
        bound=GET_ABOVE_IDLE_MS[what],
        of=f"above idle p99 of {idle * 1000:.2f} ms",
    )


def _search_on(path: str, is_over: threading.Event) -> None:
    wire = Wire(path)
    ask = wire.call("search", query=" ".join(TERMS[16]))
    while not is_over.is_set():
        ask()
    wire.close()


def median_ms(times: list[float]) -> float:
    """Give a median in milliseconds."""
    return statistics.median(times) * 1000
