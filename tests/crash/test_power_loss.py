"""Whatever a power loss leaves, the store finds the old document or the new one (M23).

The driver's system calls are recorded once; then every state that a disk may be in at every
point between them is built, the store is started on it, and what it holds is compared with what
the driver had been answered.
"""

import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pytest

from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.errors import AmuxError
from amux.memory.document import Present
from amux.memory.files import Files
from tests.crash.disk_model import Disk, Tree
from tests.crash.traced import Op, record

STATES_A_POINT = 160  # beyond this a sample: two writers' pending writes multiply


@dataclass(slots=True)
class Answered:
    """What the driver knew at one point: answered contents, and calls without an answer."""

    acked: dict[str, bytes | None] = field(default_factory=dict)
    in_flight: dict[object, tuple[str, bytes | None]] = field(default_factory=dict)

    def take(self, mark: list[object]) -> None:
        if mark[0] == "begin":
            _, writer, _, path, data = mark
            self.in_flight[writer] = (str(path), None if data is None else str(data).encode())
        else:
            _, writer, path, outcome = mark
            assert outcome == "ok"
            self.acked[str(path)] = self.in_flight.pop(writer)[1]

    def allowed(self) -> dict[str, set[bytes | None]]:
        found = {path: {data} for path, data in self.acked.items()}
        for path, data in self.in_flight.values():
            found.setdefault(path, {None}).add(data)
        return found


@dataclass(slots=True)
class Report:
    points: int = 0
    states: int = 0
    violations: list[str] = field(default_factory=list)


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    """Give a directory that is quick to fill and to empty; nothing in it needs to last."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


def enumerate_crashes(root: Path, ops: list[Op], place: Path, *, in_order: bool) -> Report:
    chance = random.Random(7)
    disk, known, report = Disk(str(root)), Answered(), Report()
    visited: set[int] = set()
    crashed = Crashed(Path(tempfile.mkdtemp(dir=place)))
    for op in ops:
        if op.verb == "mark":
            known.take(op.mark)
        else:
            disk.apply(op)
        report.points += 1
        if op.verb == "sync-begin":  # nothing has changed yet
            continue
        allowed = known.allowed()
        version = hash(tuple(sorted((path, frozenset(a)) for path, a in allowed.items())))
        for tree in disk.states(chance, in_order=in_order, most=STATES_A_POINT):
            state = hash((tree, version))
            if state in visited:
                continue
            visited.add(state)
            crashed.become(tree)
            wrong = crashed.recover(allowed)
            if wrong:
                report.violations.append(f"after {op.verb} {op.path}: {wrong}")
    report.states = len(visited)
    return report


class Crashed:
    """A directory that is made into one state after the other; most states differ little."""

    def __init__(self, top: Path) -> None:
        self._top = str(top)
        self._now: dict[str, bytes | None] = {}

    def become(self, tree: Tree) -> None:
        wanted = dict(tree)
        for path in sorted(self._now, reverse=True):  # what is in a folder before the folder
            if path not in wanted or (self._now[path] is None) != (wanted[path] is None):
                remove = os.rmdir if self._now[path] is None else os.unlink
                remove(f"{self._top}/{path}")
                del self._now[path]
        for path, data in tree:
            if path not in self._now and data is None:
                os.mkdir(f"{self._top}/{path}")
            elif data is not None and self._now.get(path) != data:
                with open(f"{self._top}/{path}", "wb") as file:
                    file.write(data)
        self._now = wanted

    def recover(self, allowed: dict[str, set[bytes | None]]) -> str:
        """Start a store on what the crash left; say what is wrong with it, if anything is."""
        store = Files(f"{self._top}/memory", has_notices=False)
        try:
            for path, contents in allowed.items():
                found = store.read(GLOBAL, parsed(path))
                data = found.data if isinstance(found, Present) else None
                if data not in contents:
                    return f"{path} holds {data!r:.30}"
            documents = sum(
                1 for path, data in self._now.items() if data is not None and ".amux-" not in path
            )
            if store.usage(GLOBAL).documents != documents:
                return "the quota counts what is not there"
        except AmuxError as refusal:
            return f"{path} is refused: {refusal.code} {refusal.details}"
        finally:
            store.close()
            self._now.setdefault("memory", None)
            temporaries = [path for path in self._now if ".amux-" in path]
            left = [path for path in temporaries if os.path.exists(f"{self._top}/{path}")]
            for path in set(temporaries) - set(left):
                del self._now[path]
        return "a temporary is left" if left else ""


@lru_cache
def parsed(path: str) -> DocPath:
    return DocPath.parse(path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("M20", "M23", "row-3", "bug-6")
def test_no_state_of_the_disk_after_a_power_loss_breaks_a_promise(
    tmp_path: Path, memory_disk: Path
) -> None:
    states = calls = 0
    # How many states a run leaves depends on how its writers happen to overlap.
    runs = [(True, 1, 60), (False, 1, 60), *[(False, 4, 120)] * 6]
    for number, (in_order, writers, each) in enumerate(runs):
        if states >= 20_000:
            break
        place = tmp_path / f"{number}"
        place.mkdir()
        root, ops = record(place, seed=number, calls=each, writers=writers)
        report = enumerate_crashes(root, ops, memory_disk, in_order=in_order)
        assert report.violations[:3] == []
        states += report.states
        calls += each * writers
    assert calls >= 300
    assert states >= 20_000


@pytest.mark.slow
@pytest.mark.requirement("M20", "M23")
@pytest.mark.parametrize(
    "bug", ["no_file_fsync", "no_folder_fsync", "no_parent_fsync", "no_forget_fsync", "in_place"]
)
def test_a_store_that_forgets_a_step_is_found_out(
    tmp_path: Path, memory_disk: Path, bug: str
) -> None:
    root, ops = record(tmp_path, seed=1, calls=25, bug=bug)
    del ops[400:]
    report = enumerate_crashes(root, ops, memory_disk, in_order=False)
    assert len(report.violations) > 10
