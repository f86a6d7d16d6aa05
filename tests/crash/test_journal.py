"""Whatever a kill or a power loss leaves of a journal, each file is one that a writer made.

The driver's system calls are recorded once; every state that a disk may be in between them is
built and looked at: each file is the last that was answered or one that was being written, the
text is there before its row, and the call that was under way, sent again, is done exactly once.
The derived index takes no part: a reader checks all of it (see test_index.py).
"""

import hashlib
import itertools
import json
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from amux.errors import AmuxError
from amux.journal.text import day as days
from tests.crash.disk_model import Disk, Tree
from tests.crash.journal_driver import writer_of
from tests.crash.test_power_loss import Crashed
from tests.crash.traced import CALLS, RECORDING, Op, operations, record, run_driver

DRIVER = Path(__file__).with_name("journal_driver.py")
ROOT = ".devcodex"
STATES_A_POINT = 100
RESENT_EVERY = 40  # states: sending a call again costs a hundred looks


@dataclass(slots=True)
class Answered:
    """What the disk must hold at one point: each file's versions from the last sure one on."""

    root: str
    versions: dict[str, list[str]] = field(default_factory=dict)
    sure: dict[str, int] = field(default_factory=dict)
    in_flight: dict[object, tuple[str, dict[str, object]]] = field(default_factory=dict)
    acked: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    _staged: dict[str, bytes] = field(default_factory=dict)

    def see(self, op: Op) -> None:
        """Take notice of what the writers did to their disk, and of what they were answered."""
        match op.verb:
            case "mark":
                self._take(op.mark)
            case "create" | "truncate":
                self._staged[op.path] = b""
            case "write":
                self._staged[op.path] += op.data
            case "rename" if is_memory(op.other):
                self._renamed(os.path.relpath(op.other, self.root), self._staged[op.path])

    def _take(self, mark: list[object]) -> None:
        if mark[0] == "begin":
            _, writer, name, given = mark
            assert isinstance(given, dict)
            self.in_flight[writer] = (str(name), given)
            return
        _, writer, files = mark
        assert isinstance(files, dict)
        self.acked.append(self.in_flight.pop(writer))
        for path, digest in files.items():
            versions = self.versions.setdefault(path, [])
            if digest not in versions:  # it came by no rename
                versions.append(str(digest))
            self._make_sure(path, versions.index(digest))

    def _renamed(self, path: str, data: bytes) -> None:
        """A version came; what came before it in the same call is sure by now."""
        for other, versions in self.versions.items():
            if other != path and versions:
                self._make_sure(other, len(versions) - 1)
        self.versions.setdefault(path, []).append(hashlib.sha256(data).hexdigest())

    def allowed(self) -> dict[str, set[str | None]]:
        found: dict[str, set[str | None]] = {}
        for path, versions in self.versions.items():
            sure = self.sure.get(path)
            found[path] = {None, *versions} if sure is None else set(versions[sure:])
        return found

    def _make_sure(self, path: str, number: int) -> None:
        self.sure[path] = max(self.sure.get(path, -1), number)


@dataclass(slots=True)
class Report:
    points: int = 0
    states: int = 0
    resent: int = 0
    violations: list[str] = field(default_factory=list)


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


def recorded(place: Path, *, seed: int, calls: int, writers: int = 1, bug: str = "") -> list[Op]:
    (place / ".git").mkdir(parents=True)
    _, ops = record(
        place, seed=seed, calls=calls, writers=writers, bug=bug, driver=DRIVER, name=ROOT
    )
    return textual(ops)


def textual(ops: list[Op]) -> list[Op]:
    return [op for op in ops if "/derived-indexes" not in op.path]


def is_memory(path: str) -> bool:
    return "/.memory/" in path and not path.endswith(".tmp")


def enumerate_crashes(root: Path, ops: list[Op], place: Path, *, in_order: bool) -> Report:
    chance = random.Random(7)
    disk, known, report = Disk(str(root)), Answered(str(root)), Report()
    visited: set[int] = set()
    crashed = State(Path(tempfile.mkdtemp(dir=place)))
    for op in ops:
        known.see(op)
        if op.verb != "mark":
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
            wrong = looked_at(tree, allowed)
            if not wrong and len(visited) % RESENT_EVERY == 0:
                report.resent += 1
                crashed.become(tree)
                wrong = crashed.sent_again(known)
            if wrong:
                report.violations.append(f"after {op.verb} {op.path}: {wrong}")
    report.states = len(visited)
    return report


def looked_at(tree: Tree, allowed: dict[str, set[str | None]]) -> str:
    """Say what is wrong with the memory that a crash left, if anything is."""
    files = dict(tree)
    for path, digests in allowed.items():
        data = files.get(f"{ROOT}/{path}")
        digest = None if data is None else hashlib.sha256(data).hexdigest()
        if digest not in digests:
            return f"{path} holds {data!r:.40}"
    return ""


class State(Crashed):
    """A directory that is made into one state after the other, and written to again."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        (top / ".git").mkdir()

    def sent_again(self, known: Answered) -> str:
        """Send what was under way again; say what is there twice, or not, if anything is."""
        calls = [*known.in_flight.items()]
        for number, (name, given) in calls:
            writer = writer_of(f"{self._top}/{ROOT}", int(str(number)), random.Random(1))
            try:
                writer.call(name, **given)
            except AmuxError as refusal:
                return f"the call again: {refusal.code} {refusal.details}"
        wrong = complete(Path(self._top), [*known.acked, *(call for _, call in calls)])
        self._forget()
        return wrong

    def _forget(self) -> None:
        """Take stock again: the calls have changed the directory."""
        self._now = {}
        for folder, names, files in os.walk(self._top):
            at = os.path.relpath(folder, self._top)
            for name in names if at != "." else [name for name in names if name != ".git"]:
                self._now[os.path.normpath(f"{at}/{name}")] = None
            if ".git" in names and at == ".":
                names.remove(".git")
            for name in files:
                self._now[os.path.normpath(f"{at}/{name}")] = Path(folder, name).read_bytes()


def complete(base: Path, calls: list[tuple[str, dict[str, object]]]) -> str:
    """Say which of the calls is not there exactly once, or what else is there."""
    memory = base / ROOT / ".memory"
    text = (memory / "clients/codex/tasks/20260314.md").read_bytes() if calls else b""
    summary = memory / "clients/codex/SUMMARY.md"
    rows = summary.read_bytes() if summary.exists() else b""
    decided = (memory / "SUMMARY.md").read_bytes() if (memory / "SUMMARY.md").exists() else b""
    wanted = {json.dumps(call, sort_keys=True): call for call in calls}.values()
    for name, given in wanted:
        if name == "decide":
            # A decision repeats the last row only: others may have decided in between.
            if decided.count(f"| {given['decision']} |".encode()) < 1:
                return f"{given['decision']} is not there"
            continue
        if text.count(str(given["content"]).encode()) != 1:
            return f"{given['content']!r:.20} is there more than once, or not"
        if "row" in given and rows.count(f"| {given['row']} |".encode()) != 1:
            return f"{given['row']} is there more than once, or not"
    opened = {str(given["title"]) for _, given in wanted if "title" in given}
    day = days.parse(text)
    if len(day.sections) != len(opened) or {each.title for each in day.sections} != opened:
        return "the sections are not those that were opened"
    left = [path.name for path in memory.rglob("*") if path.name.endswith(".tmp")]
    return f"a temporary is left: {left}" if left else ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("J63", "J64", "JP12")
def test_no_state_of_the_disk_after_a_power_loss_loses_text_or_belies_a_receipt(
    tmp_path: Path, memory_disk: Path
) -> None:
    states = resent = 0
    for number, (in_order, writers, calls) in enumerate(
        [(False, 1, 100), (True, 1, 40), (False, 4, 30)]
    ):
        place = tmp_path / f"{number}"
        ops = recorded(place, seed=number, calls=calls, writers=writers)
        report = enumerate_crashes(place / ROOT, ops, memory_disk, in_order=in_order)
        assert report.violations[:3] == []
        states += report.states
        resent += report.resent
    assert states >= 6_000
    assert resent >= 100


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("J63", "J64")
@pytest.mark.parametrize(
    "bug", ["no_file_fsync", "no_folder_fsync", "no_way_fsync", "in_place", "row_first"]
)
def test_a_write_route_that_forgets_a_step_is_found_out(
    tmp_path: Path, memory_disk: Path, bug: str
) -> None:
    ops = recorded(tmp_path / "w", seed=1, calls=8, bug=bug)
    report = enumerate_crashes(tmp_path / "w" / ROOT, ops, memory_disk, in_order=False)
    assert len(report.violations) > 10


def killed_and_repeated(place: Path, *, verb: str, bug: str = "") -> list[Op]:
    """Record a writer that dies right before a name is durable, and one that repeats the call."""
    first = place / "first"
    step = next(
        op
        for before, op in itertools.pairwise(recorded(first, seed=4, calls=1))
        if op.verb == "sync-begin"
        and before.verb == verb
        and is_memory(before.other if verb == "rename" else before.path)
    )
    second = place / "second"
    (second / ".git").mkdir(parents=True)
    ops: list[Op] = []
    kill = f"-einject={step.call}:signal=KILL:when={step.nth}"
    for number, (inject, fault) in enumerate((([kill], ""), ([], bug))):
        log = second / f"log{number}"
        run_driver(
            second / ROOT, second / "marks", seed=4, calls=1, bug=fault, driver=DRIVER,
            strace_options=[*RECORDING, "-o", str(log), f"-etrace={CALLS}", *inject],
        )  # fmt: skip
        ops += operations(log, str(second / ROOT), str(second / "marks"))
    return textual(ops)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("J63", "J64", "J65")
@pytest.mark.parametrize(
    ("verb", "bug"),
    [
        ("rename", ""), ("rename", "no_flush_of_nothing"),
        ("mkdir", ""), ("mkdir", "no_way_of_others"),
    ],
)  # fmt: skip
def test_a_repeat_is_answered_from_durable_bytes_whoever_wrote_them(
    tmp_path: Path, memory_disk: Path, verb: str, bug: str
) -> None:
    ops = killed_and_repeated(tmp_path, verb=verb, bug=bug)
    marks = [op.mark for op in ops if op.verb == "mark"]
    assert [mark[0] for mark in marks] == ["begin", "begin", "end"]
    root = tmp_path / "second" / ROOT
    report = enumerate_crashes(root, ops, memory_disk, in_order=False)
    assert bool(report.violations) is bool(bug), report.violations[:3]
