"""However many start a Hub at once, and however the last one ended, one Hub owns the root."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from amux.core import home as names
from tests.kill.home import Home, refusal_of, revision_of, until

STRAY = ".amux-0123456789abcdef"


def refusal(done: "subprocess.CompletedProcess[bytes]") -> dict[str, object]:
    found: dict[str, object] = json.loads(done.stderr.splitlines()[-1])["error"]
    return found


def ended(
    child: "subprocess.Popen[bytes]", seconds: float = 30.0
) -> "subprocess.CompletedProcess[bytes]":
    out, err = child.communicate(timeout=seconds)
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def has_one_left(racers: "list[subprocess.Popen[bytes]]") -> bool:
    return sum(racer.poll() is None for racer in racers) == 1


@pytest.mark.slow
@pytest.mark.requirement("M2", "M3", "M53")
def test_commands_that_need_a_hub_at_once_on_a_fresh_home_start_one(home: Home) -> None:
    children = [home.begin("memory", "list") for _ in range(6)]
    for child in children:
        done = ended(child)
        assert done.returncode == 4, done.stderr.decode()
        assert refusal(done)["code"] == "memory_disabled"
    until(lambda: len(home.hubs()) == 1, "the losers to end")
    assert home.hubs() == [home.pid()]
    assert not home.temporaries()


@pytest.mark.slow
@pytest.mark.requirement("M3", "M53")
def test_commands_at_once_after_a_kill_start_one_hub_and_all_succeed(home: Home) -> None:
    home.enable()
    for number in range(5):
        children = [
            home.begin(
                *("memory", "upsert", f"n{number}/{writer}.md", "--expected-revision", "absent"),
                stdin=b"by %d\n" % writer,
            )
            for writer in range(5)
        ]
        for child in children:
            done = ended(child)
            assert done.returncode == 0, done.stderr.decode()
        until(lambda: len(home.hubs()) == 1, "the losers to end")
        assert home.hubs() == [home.pid()]
        assert len(home.listed()) == 5 * (number + 1)
        home.kill_hub()


@pytest.mark.slow
@pytest.mark.requirement("M3")
def test_of_four_hubs_that_race_for_a_root_one_owns_it(home: Home) -> None:
    home.enable()
    owners = set()
    for _ in range(20):
        # From the second round on, socket, pid file and lock file are those of a killed Hub.
        racers = [
            subprocess.Popen(
                [sys.executable, "-m", "amux", "hub", "serve"],
                env=home.environment,
                stderr=subprocess.PIPE,
            )
            for _ in range(4)
        ]
        until(partial(has_one_left, racers), "three to give up")
        until(lambda: not refusal_of(lambda: home.ask("status")), "the owner to serve")
        (owner,) = (racer for racer in racers if racer.poll() is None)
        assert home.pid() == owner.pid
        assert int((home.home / names.RUN_DIR / names.PID_FILE).read_text()) == owner.pid
        for racer in racers:
            if racer is owner:
                continue
            done = ended(racer)
            assert done.returncode == 5
            found = refusal(done)
            assert found["code"] == "busy"
            assert found["details"] == {"pid": owner.pid}
        owners.add(owner.pid)
        owner.kill()
        owner.communicate()
    assert len(owners) == 20


@pytest.mark.slow
@pytest.mark.requirement("M3", "M53")
def test_a_killed_hub_leaves_nothing_that_blocks_the_next(home: Home) -> None:
    home.enable().start()
    run = home.home / names.RUN_DIR
    home.kill()
    assert (run / names.SOCKET_FILE).is_socket()
    # The kernel may have given the number of the dead to somebody else: to this test, say.
    (run / names.PID_FILE).write_text(f"{os.getpid()}\n")
    (run / names.LOCK_FILE).write_text(json.dumps({"pid": os.getpid()}))
    assert refusal(home.cli("memory", "list"))["code"] == "unavailable"
    done = home.amux("memory", "list")
    assert done.returncode == 0, done.stderr.decode()
    assert f"started a Hub in the background for {home.home}" in done.stderr.decode()
    assert int((run / names.PID_FILE).read_text()) == home.pid() != os.getpid()


@pytest.mark.slow
@pytest.mark.requirement("M8", "M23", "M28", "bug-6")
def test_a_kill_in_the_middle_of_a_thousand_writes_breaks_no_start(home: Home) -> None:
    home.enable().start()
    texts = {
        f"w{writer}/{number}.md": f"{number} " * 200 for writer in range(4) for number in range(250)
    }
    acknowledged: set[str] = set()
    lost: set[str] = set()

    def write(writer: int) -> None:
        for number in range(250):
            path = f"w{writer}/{number}.md"
            given = {"path": path, "content": texts[path], "expected_revision": "absent"}
            code = refusal_of(lambda given=given: home.ask("upsert", **given))
            if code == "outcome_unknown":
                lost.add(path)
            elif not code:
                acknowledged.add(path)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    until(lambda: len(acknowledged) >= 400, "half of the writes")
    home.kill()
    for writer in writers:
        writer.join()
    assert 400 <= len(acknowledged) < 1000
    # What else a crash, of amux or of others, may have left.
    for place in (home.home, home.home / "hub", home.home / "run", home.memory_dir / "w0"):
        (place / STRAY).write_bytes(b"half of a")
    (home.memory_dir / "stray.tmp").write_bytes(b"somebody's")
    cut = home.memory_dir / "cut.md"
    cut.write_bytes("记忆".encode()[:-1])

    done = home.amux("memory", "check")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["broken"] == [
        {"path": "cut.md", "reason": "not_utf8"},
        {"path": "stray.tmp", "reason": "odd_name"},
    ]
    assert not home.temporaries()
    listed = home.listed()
    assert acknowledged <= listed.keys() <= acknowledged | lost
    for path, (_, revision) in listed.items():
        assert revision == revision_of(texts[path].encode())


@pytest.mark.slow
@pytest.mark.requirement("M25", "M28", "M53", "bug-7")
def test_a_stopped_hub_is_told_within_six_seconds_and_goes_on_when_it_may(home: Home) -> None:
    home.enable()
    pid = start_with_document(home)
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 6.0
    try:
        read = home.begin("memory", "show", "a.md")
        write = home.begin(
            *("memory", "upsert", "a.md", "--expected-revision", revision_of(b"old\n")),
            stdin=b"new\n",
        )
        for child, code, status in ((read, "unavailable", 5), (write, "outcome_unknown", 6)):
            done = ended(child, deadline - time.monotonic())
            assert refusal(done)["code"] == code
            assert done.returncode == status
        # It is no dead Hub: no other one was started in its place.
        assert home.hubs() == [pid]
    finally:
        os.kill(pid, signal.SIGCONT)
    done = home.amux("memory", "show", "a.md")
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["content"] in {"old\n", "new\n"}
    assert home.pid() == pid


def start_with_document(home: Home) -> int:
    done = home.amux("memory", "upsert", "a.md", "--expected-revision", "absent", stdin=b"old\n")
    assert done.returncode == 0, done.stderr.decode()
    return home.pid()
