"""One holder of a root, however the last one ended."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from amux.disk.lock import Exclusion, Holder
from amux.disk.tree import Root
from amux.errors import Busy

SPAWN = multiprocessing.get_context("spawn")
FAR = 10.0  # seconds; a test that waits so long has failed


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "run").mkdir()
    opened = Root.open(str(tmp_path))
    yield opened
    opened.close()


def hold(place: str, answer: Connection) -> None:
    try:
        holder = Holder.take(Root.open(place), "run/hub.lock", {"pid": os.getpid()})
    except Busy as busy:
        answer.send(("busy", busy.details))
        return
    answer.send(("held", os.getpid()))
    answer.recv()
    holder.release()
    answer.send("released")


def started(place: Path) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=hold, args=(str(place), theirs))
    process.start()
    theirs.close()
    return process, ours


def taken_within(root: Root, seconds: float) -> Holder:
    end = time.monotonic() + seconds
    while True:
        try:
            return Holder.take(root, "run/hub.lock", {})
        except Busy:
            assert time.monotonic() < end


@pytest.mark.requirement("M3")
def test_a_second_holder_is_refused_and_told_the_pid(root: Root) -> None:
    holder = Holder.take(root, "run/hub.lock", {"pid": 4711, "other": "not told"})
    with pytest.raises(Busy) as busy:
        Holder.take(root, "run/hub.lock", {"pid": 1})
    assert busy.value.details == {"pid": 4711}
    holder.release()
    holder.release()
    Holder.take(root, "run/hub.lock", {"pid": 2}).release()


@pytest.mark.requirement("M3")
def test_a_note_that_is_being_written_is_no_reason_to_fail(root: Root, tmp_path: Path) -> None:
    holder = Holder.take(root, "run/hub.lock", {"pid": 4711})
    for half in (b"", b'{"pid": 47', b"[1]", b"\xff"):
        (tmp_path / "run/hub.lock").write_bytes(half)
        with pytest.raises(Busy) as busy:
            Holder.take(root, "run/hub.lock", {})
        assert busy.value.details == {}
    holder.release()


@pytest.mark.slow
@pytest.mark.requirement("M3")
def test_the_lock_dies_with_its_process_though_a_child_lives_on(root: Root, tmp_path: Path) -> None:
    process, answer = started(tmp_path)
    assert answer.recv() == ("held", process.pid)
    with pytest.raises(Busy) as busy:
        Holder.take(root, "run/hub.lock", {})
    assert busy.value.details == {"pid": process.pid}
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(FAR)
    began = time.monotonic()
    holder = Holder.take(root, "run/hub.lock", {"pid": os.getpid()})
    assert time.monotonic() - began < 0.1
    # A program that the holder starts does not inherit the lock.
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
    ) as child:
        # It had until its exec was done, which is a moment after Popen returns.
        holder.release()
        taken_within(root, FAR).release()
        child.communicate(b"\n")


@pytest.mark.slow
@pytest.mark.requirement("M3")
def test_of_many_that_race_exactly_one_holds(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    racers = [started(tmp_path) for _ in range(6)]
    answers = [answer.recv()[0] for _, answer in racers]
    assert sorted(answers) == ["busy"] * 5 + ["held"]
    for process, answer in racers:
        if process.is_alive():
            with contextlib.suppress(BrokenPipeError):
                answer.send("go")
        process.join(FAR)
    assert json.loads((tmp_path / "run/hub.lock").read_bytes())["pid"]


@pytest.mark.requirement("M3")
def test_a_lock_file_that_was_replaced_meanwhile_is_not_taken_for_the_lock(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run/hub.lock"
    path.touch()
    first = path.stat().st_ino
    real_open = os.open
    replaced = []

    def replace_after_open(name: str, *args: int, **kwargs: int) -> int:
        fd = real_open(name, *args, **kwargs)
        if name == "hub.lock" and not replaced:
            replaced.append(name)
            (tmp_path / "new").touch()
            (tmp_path / "new").rename(path)
        return fd

    monkeypatch.setattr(os, "open", replace_after_open)
    holder = Holder.take(root, "run/hub.lock", {"pid": 7})
    assert replaced
    assert path.stat().st_ino != first
    assert json.loads(path.read_bytes()) == {"pid": 7}
    holder.release()


@pytest.mark.requirement("M25", "bug-7")
def test_a_wait_inside_a_process_ends_in_busy() -> None:
    lock = Exclusion(time.monotonic)
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with lock.held(time.monotonic() + FAR):
            entered.set()
            leave.wait(FAR)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(FAR)
    began = time.monotonic()
    with pytest.raises(Busy), lock.held(began + 0.05):
        pass
    assert 0.04 < time.monotonic() - began < 1
    leave.set()
    thread.join()
    with lock.held(0.0):  # free: had without waiting, though the deadline has passed
        pass
