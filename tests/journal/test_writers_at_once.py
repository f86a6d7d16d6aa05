"""Many writers of one memory: one at a time, nobody's bytes lost, no lock left by the dead."""

import ctypes
import json
import os
import random
import re
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amux.errors import AmuxError
from amux.journal.text import day as days
from tests.support.journal_faces import Cli, Mcp, Refused
from tests.support.readers import Reader
from tests.support.roots import SECONDS, tree
from tests.support.writer_processes import LOCK, Process, together
from tests.support.writers import Receipt, Writer, workspace_in

DAY = ".devcodex/.memory/clients/codex/tasks/20260314.md"
SUMMARY = ".devcodex/.memory/clients/codex/SUMMARY.md"
AT = f"at={SECONDS}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return workspace_in(tmp_path / "billing")


def refusals(answers: list[Receipt]) -> list[object]:
    return [answer["error"] for answer in answers if "error" in answer]


@pytest.mark.requirement("JA6", "JP6", "J26", "J40")
def test_twenty_openers_at_a_barrier_get_twenty_sections(base: Path) -> None:
    options = [[AT, f"session=s{number}"] for number in range(20)]
    with together(base, options) as writers:
        begun = time.monotonic()
        for number, writer in enumerate(writers):
            writer.send("write", content=f"text of {number}.", title=f"{number}")
        answers = [writer.answer() for writer in writers]
        seconds = time.monotonic() - begun
    assert refusals(answers) == []
    assert sorted(str(one["sessionId"]) for one in answers) == [f"{n:02d}" for n in range(1, 21)]
    data = (base / DAY).read_bytes()
    day = days.parse(data)
    assert [section.id for section in day.sections] == [f"{n:02d}" for n in range(1, 21)]
    assert len({section.token for section in day.sections}) == 20
    assert all(section.is_managed for section in day.sections)
    assert all(data.count(f"text of {number}.\n".encode()) == 1 for number in range(20))
    assert seconds <= 2.0


@pytest.mark.requirement("JA7", "J65")
def test_twenty_equal_calls_of_one_session_are_one_section(base: Path) -> None:
    with together(base, [[AT]] * 20) as writers:
        for writer in writers:
            writer.send("write", content="text", title="T", row="row", status="active")
        answers = [writer.answer() for writer in writers]
    assert refusals(answers) == []
    assert len({one["section"] for one in answers}) == 1
    assert sum(one["replayed"] is True for one in answers) == 19
    data = (base / DAY).read_bytes()
    assert len(days.parse(data).sections) == 1
    assert data.count(b"text\n") == 1
    assert (base / SUMMARY).read_bytes().count(b"| row |") == 1


@pytest.mark.requirement("J25", "J26", "J63")
def test_twenty_writers_lose_no_byte_of_each_other_whoever_dies(base: Path) -> None:
    """The dead leave no lock, no temporary, and no half of anything."""
    chance = random.Random(3)
    dying = set(chance.sample(range(20), 6))
    acked: dict[int, list[str]] = {number: [] for number in range(20)}
    sent: dict[int, list[str]] = {number: [] for number in range(20)}
    options = [[AT, f"session=s{n}", "AMUX_LOCK_WAIT_MS=30000"] for n in range(20)]
    with together(base, options) as writers:
        handles: dict[int, object] = {}
        for number, writer in enumerate(writers):
            writer.send("allocate", title=f"{number}")
        for number, writer in enumerate(writers):
            handles[number] = writer.answer()["section"]
        for turn in range(6):
            alive = [n for n in range(20) if turn < 2 or n not in dying]
            for number in alive:
                text = f"w{number} t{turn} {'x' * chance.choice([1, 40, 5000])}."
                sent[number].append(text)
                writers[number].send(
                    "write", content=text, section=handles[number], row=f"row {number} {turn}"
                )
            if turn == 1:
                time.sleep(0.05)
                for number in dying:  # in the midst of it
                    writers[number].kill()
                alive = [number for number in alive if number not in dying]
            for number in alive:
                answer = writers[number].answer()
                assert "error" not in answer, answer
                acked[number].append(sent[number][-1])
        data = (base / DAY).read_bytes()
        rows = (base / SUMMARY).read_bytes()
    day = days.parse(data)
    assert len(day.sections) == 20
    for section in day.sections:
        number = int(section.title)
        text = data[section.start : section.end].decode()
        found = re.findall(r"w\d+ t\d+ x+\.", text)
        assert found[: len(acked[number])] == acked[number]
        assert found[len(acked[number]) :] in ([], sent[number][len(acked[number]) :])
        for turn in range(len(acked[number])):
            assert rows.count(f"| row {number} {turn} |".encode()) == 1
    # A temporary of the dead goes with the next write; nobody waits for them.
    begun = time.monotonic()
    Writer(base, session="after").write("after", row="after")
    assert time.monotonic() - begun < 1.0
    left = [path for path in (base / ".devcodex/.memory").rglob("*") if ".amux-" in path.name]
    assert left == []


@pytest.mark.requirement("JA15", "J25", "J3")
def test_a_stopped_holder_is_waited_for_and_a_killed_one_is_not(base: Path) -> None:
    Writer(base).write("first")
    with together(base, [[AT, "session=holder"]], HELD="1") as (holder,):
        holder.send("write", content="held", title="held")
        assert holder.line() == "inside"
        holder.signal(signal.SIGSTOP)
        writer = Process(base, AT, "session=late")
        try:
            assert writer.line() == "ready"
            begun = time.monotonic()
            answer = writer.call("write", content="late", title="late")
            assert 1.7 <= time.monotonic() - begun <= 2.3
            error = answer["error"]
            assert isinstance(error, dict)
            assert error["code"] == "busy"
            assert error["details"]["reason"] == "MEMORY_TRANSACTION_LOCKED"
            writer.send("write", content="late", title="late")
            time.sleep(0.3)  # it is waiting by now
            begun = time.monotonic()
            assert Reader(base).ask("status")["today"]
            assert time.monotonic() - begun < 0.5
            os.kill(holder.pid, signal.SIGKILL)
            killed = time.monotonic()
            assert writer.answer()["sessionId"] == "02"
            assert time.monotonic() - killed < 0.1
        finally:
            writer.kill()


@pytest.mark.requirement("JA16", "J25", "J63")
@pytest.mark.parametrize("what", ["memory.lock", ""])
def test_no_rename_happens_under_a_lock_that_its_path_no_longer_names(
    base: Path, tmp_path: Path, what: str
) -> None:
    Writer(base).write("first")
    log = tmp_path / "renames"
    environment = {"RENAMES": str(log)}
    wait = "AMUX_LOCK_WAIT_MS=20000"
    holder = Process(base, AT, "session=holder", wait, HELD="1", **environment)
    waiter = Process(base, AT, "session=waiter", wait, **environment)
    try:
        assert holder.line() == waiter.line() == "ready"
        holder.send("write", content="of the holder", title="holder")
        assert holder.line() == "inside"
        waiter.send("write", content="of the waiter", title="waiter")
        time.sleep(0.2)  # it is waiting by now
        gone = base / ".devcodex/.runtime-state" / what
        if what:
            gone.unlink()
        else:
            # In one step: the waiter makes the lock anew in a folder that is only half removed.
            shutil.rmtree(gone.rename(tmp_path / "gone"))
        assert waiter.answer()["sessionId"] == "02"  # it has the new lock
        holder.say("go on")
        assert holder.line() == "inside"  # it starts over
        holder.say("go on")
        assert holder.answer()["sessionId"] == "03"
    finally:
        holder.kill()
        waiter.kill()
    data = (base / DAY).read_bytes()
    assert data.count(b"of the holder") == data.count(b"of the waiter") == 1
    renames = [json.loads(line) for line in log.read_text().splitlines()]
    assert {pid for pid, *_ in renames} == {holder.pid, waiter.pid}
    assert [rename for rename in renames if rename[2] != [rename[3]]] == []
    assert (base / LOCK).exists()


READS: list[tuple[str, Receipt]] = [
    ("memory_status", {"limit": 5}),
    ("memory_summary_query", {"status": "all", "limit": 5}),
    ("memory_session_query", {"limit": 1}),
    ("memory_session_query", {"limit": 5, "handoffOnly": True}),
]


def at_work(
    base: Path,
    home: Path,
    number: int,
    ready: threading.Barrier,
    seconds: float,
    reads: list[float],
    failed: list[Refused],
) -> int:
    """Be one of the agents of JP7: one call in five writes. Give how many calls were made."""
    chance = random.Random(number)
    calls = 0
    with Mcp(base, home=home, AMUX_SESSION=f"s{number}") as face:
        opened = face.call("memory_session_write", content="begun", title=f"{number}")
        ready.wait(60)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            calls += 1
            begun = time.monotonic()
            try:
                if chance.random() < 0.2:
                    text = f"{number} {calls}."
                    face.call(
                        "memory_session_write", content=text, section=opened["section"], row=text
                    )
                else:
                    name, given = chance.choice(READS)
                    face.send(name, given if calls > 1 else {})
                    reads.append(time.monotonic() - begun)
            except Refused as refusal:
                if refusal.reason != "CONTEXT_BINDING_REQUIRED":
                    failed.append(refusal)
                face.call("memory_status")
    return calls


@pytest.mark.requirement("J26", "J3", "JP7")
def test_twelve_servers_read_and_write_and_are_refused_nothing_but_a_lock(
    base: Path, tmp_path: Path
) -> None:
    """A short run; JP7_SECONDS=60 is the whole of JP7, with its bounds."""
    seconds = float(os.environ.get("JP7_SECONDS", "4"))
    reads: list[float] = []
    failed: list[Refused] = []
    ready = threading.Barrier(12)
    with ThreadPoolExecutor(12) as pool:
        running = [
            pool.submit(at_work, base, tmp_path, number, ready, seconds, reads, failed)
            for number in range(12)
        ]
        calls = sum(one.result() for one in running)
    assert {refusal.both for refusal in failed} <= {("busy", "MEMORY_TRANSACTION_LOCKED")}
    assert len(failed) <= calls / 20  # a loaded machine; the bound is the whole run's
    assert len(reads) > 50
    if seconds >= 60:
        assert len(failed) <= calls / 1000
        assert sorted(reads)[int(len(reads) * 0.99)] <= 0.2


@pytest.mark.timeout(3600)
@pytest.mark.requirement("JP8", "J59")
def test_an_index_stays_small_however_much_is_written(tmp_path: Path) -> None:
    """JP8_WRITES=10000 is the whole run."""
    writes = int(os.environ.get("JP8_WRITES", "600"))
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as place:
        base = workspace_in(Path(place) / "billing")
        root = base / ".devcodex"
        top = root / ".runtime-state/derived-indexes/v1/memory"
        for number in range(writes):
            writer = Writer(base, at=SECONDS + number * 600)
            receipt = writer.write(f"text {number}", title=f"{number}", row=f"what {number} did")
            assert receipt["warnings"] == []
            if number % 50 and number != writes - 1:
                continue
            for folder in top.iterdir():
                manifests = list((folder / "manifests").iterdir())
                assert len(manifests) <= 2
                source = json.loads(manifests[0].read_bytes())["source"]["path"]
                size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                assert size <= 2 * (root / source).stat().st_size + 64 * 1024


@pytest.mark.requirement("J26", "J1")
def test_twenty_commands_at_once_get_twenty_sections(base: Path, tmp_path: Path) -> None:
    started = [
        Cli(base, home=tmp_path, AMUX_SESSION=f"s{number}", AMUX_AGENT="codex").start(
            "journal", "write", "--content", f"text of {number}.", "--row", f"row {number}",
            AMUX_LOCK_WAIT_MS="20000",
        )
        for number in range(20)
    ]  # fmt: skip
    answers = [json.loads(child.communicate(timeout=60)[0]) for child in started]
    assert sorted(str(one["sessionId"]) for one in answers) == [f"{n:02d}" for n in range(1, 21)]
    root = base / ".devcodex/.memory/clients/codex"
    (day,) = (root / "tasks").iterdir()
    data, rows = day.read_bytes(), (root / "SUMMARY.md").read_bytes()
    for number in range(20):
        assert data.count(f"text of {number}.\n".encode()) == 1
        assert rows.count(f"| row {number} |".encode()) == 1


@pytest.mark.requirement("J19", "J63")
def test_a_directory_that_is_swapped_for_a_link_meanwhile_leads_nobody_outside(
    base: Path, tmp_path: Path
) -> None:
    Writer(base).write("first")
    outside = tmp_path / "outside"
    (outside / "tasks").mkdir(parents=True)
    codex = base / ".devcodex/.memory/clients/codex"
    link = codex.with_name("link")
    link.symlink_to(outside)
    is_over = threading.Event()

    def swap() -> None:
        libc = ctypes.CDLL(None)
        names = os.fsencode(codex), os.fsencode(link)
        while not is_over.is_set():
            assert libc.renameat2(-100, names[0], -100, names[1], ctypes.c_uint(2)) == 0

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes: Counter[object] = Counter()
    try:
        end = time.monotonic() + 3
        number = 0
        while time.monotonic() < end:
            number += 1
            try:
                Writer(base).write(f"text {number}.", title=f"{number}")
                outcomes["written"] += 1
            except AmuxError as refusal:
                outcomes[refusal.details["reason"]] += 1
    finally:
        is_over.set()
        swapping.join()
    assert tree(outside) == {"tasks": "/"}
    # The attack was one: both ways were met.
    assert outcomes["MEMORY_PATH_REPARSE_BLOCKED"]
    assert outcomes["written"] + outcomes["MEMORY_FILE_READBACK_MISMATCH"]
    assert set(outcomes) <= {
        "written", "MEMORY_PATH_REPARSE_BLOCKED", "MEMORY_FILE_READBACK_MISMATCH",
    }, outcomes  # fmt: skip
