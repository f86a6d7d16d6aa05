"""Starting, stopping and finding a Hub: real processes on a root of their own."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux import config, errors
from amux.errors import AmuxError, Code, Unavailable
from amux.runtime import process
from tests.support.command import Command

AMUX = [sys.executable, "-m", "amux"]
WAIT_SECONDS = 20.0


def wait_for(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Machine:
    """One AMUX_HOME, and commands on it; whatever Hub they started ends with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "AMUX_HOME": str(home),
            # Short, whatever the test is called: a long AMUX_HOME has its socket here (M45).
            "TMPDIR": tempfile.gettempdir(),
        }

    def start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*AMUX, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment | environment,
        )

    def run(self, *words: str, **environment: str) -> tuple[int, bytes, bytes]:
        child = self.start(*words, **environment)
        out, err = child.communicate(timeout=30)
        return child.returncode, out, err

    def answer(self, *words: str) -> dict[str, object]:
        status, out, err = self.run(*words)
        assert status == 0, err
        return json.loads(out)

    def pid(self) -> int:
        return int(str(self.answer("hub", "status")["pid"]))

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError, ProcessLookupError):
            os.kill(int((self.home / "run" / "hub.pid").read_text()), signal.SIGKILL)


@pytest.fixture
def machine() -> Iterator[Machine]:
    # Not tmp_path, which is named for the test: some tests look at the socket in the root, and
    # it is there only if the path is short (tests/hub/test_socket_place.py has the long ones).
    with tempfile.TemporaryDirectory(prefix="amux-", ignore_cleanup_errors=True) as folder:
        found = Machine(Path(folder) / "Lucas Costa: 项目 é" / 'a\'b "c"')
        found.home.parent.mkdir()
        try:
            yield found
        finally:
            found.close()


def refusal(err: bytes) -> dict[str, object]:
    return json.loads(err.splitlines()[-1])["error"]


@pytest.mark.requirement("M53", "row-1", "row-12", "bug-37")
@pytest.mark.slow
def test_a_call_on_a_fresh_home_starts_a_hub_and_memory_is_off(machine: Machine) -> None:
    status, out, err = machine.run("memory", "search", "x")
    assert (status, out) == (4, b"")
    notice, last = err.decode().splitlines()
    assert str(machine.home) in notice
    assert refusal(last.encode())["code"] == "memory_disabled"
    assert "amux system config set memory.enabled true" in str(refusal(err)["hint"])
    assert list((machine.home / "memory").rglob("*")) == []
    assert machine.run("memory", "search", "x")[2].count(b"\n") == 1  # it runs: nothing to tell


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_a_background_hub_outlives_its_starter_in_a_session_of_its_own(machine: Machine) -> None:
    assert machine.answer("hub", "start")["started"] is True
    pid = machine.pid()
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").resolve() == Path("/")
    log = str(machine.home / "run" / "hub.log")
    assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)] == ["/dev/null", log, log]
    again = machine.answer("hub", "start")
    assert (again["started"], again["pid"]) == (False, pid)


@pytest.mark.requirement("M53", "M3")
@pytest.mark.slow
def test_many_calls_at_once_start_one_hub(machine: Machine) -> None:
    children = [machine.start("memory", "list") for _ in range(6)]
    for child in children:
        err = child.communicate(timeout=60)[1]
        assert child.returncode == 4, err
        assert refusal(err)["code"] == "memory_disabled"
    assert machine.pid() == int((machine.home / "run" / "hub.pid").read_text())


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_stop_waits_until_the_root_is_free(machine: Machine) -> None:
    machine.answer("hub", "start")
    pid = machine.pid()
    assert machine.answer("hub", "stop")["stopped"] is True
    assert not (machine.home / "run" / "hub.sock").exists()
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert machine.answer("hub", "stop")["stopped"] is False
    assert machine.answer("hub", "status")["running"] is False
    assert machine.answer("hub", "restart")["running"] is True


@pytest.mark.requirement("M53", "M6")
@pytest.mark.slow
def test_a_restart_puts_a_setting_in_force(machine: Machine) -> None:
    machine.answer("hub", "start")
    before = machine.pid()
    status, _, err = machine.run("system", "config", "set", "memory.enabled", "true")
    assert status == 0
    assert b"amux hub restart" in err
    assert machine.answer("system", "status")["restart_due"] is True
    assert machine.answer("hub", "restart")["pid"] != before
    assert machine.answer("system", "status")["restart_due"] is False
    assert machine.answer("memory", "list")["documents"] == []


@pytest.mark.requirement("M47", "M6")
@pytest.mark.slow
def test_settings_are_read_and_changed_with_no_hub_and_start_none(machine: Machine) -> None:
    machine.answer("system", "config", "set", "isolation.policy", "per_principal")
    assert machine.answer("system", "config", "get", "isolation.policy")["saved"] == "per_principal"
    assert machine.answer("system", "status")["restart_due"] is False
    assert machine.answer("hub", "status")["running"] is False
    status, _, err = machine.run("system", "config", "set", "memory.enabled", "shared")
    assert status == 2
    assert refusal(err)["details"] == {"argument": "value"}


@pytest.mark.requirement("M53", "M2")
@pytest.mark.slow
def test_a_hub_that_refuses_to_start_is_told_with_its_own_refusal(machine: Machine) -> None:
    machine.home.mkdir()
    (machine.home / "layout").write_text("999\n")
    for words in (["memory", "list"], ["hub", "start"], ["system", "status"], ["uninstall"]):
        status, out, err = machine.run(*words)
        assert (status, out) == (4, b"")
        assert refusal(err)["code"] == "upgrade_required"
    assert sorted(one.name for one in machine.home.iterdir()) == ["layout"]


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_without_autostart_nothing_is_started(machine: Machine) -> None:
    status, _, err = machine.run("memory", "list", AMUX_NO_AUTOSTART="1")
    assert status == 5
    assert refusal(err)["code"] == "unavailable"
    assert not machine.home.exists()


@pytest.mark.requirement("M3", "M53")
@pytest.mark.slow
def test_a_stale_socket_and_pid_file_do_not_block_a_start(machine: Machine) -> None:
    machine.answer("hub", "start")
    os.kill(machine.pid(), signal.SIGKILL)
    wait_for(lambda: not process.is_listening(str(machine.home / "run" / "hub.sock")))
    assert (machine.home / "run" / "hub.sock").exists()
    status, _, err = machine.run("memory", "list")
    assert (status, refusal(err)["code"]) == (4, "memory_disabled")


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_a_folder_named_like_the_program_is_not_run_as_the_hub(
    machine: Machine, tmp_path: Path
) -> None:
    trap = tmp_path / "amux"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('run by mistake')\n")
    script = Path(sys.executable).with_name("amux")
    done = subprocess.run(
        [str(script), "hub", "start"], cwd=tmp_path, env=machine.environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_a_relative_home_is_the_same_for_the_hub_that_is_started(machine: Machine) -> None:
    machine.environment["AMUX_HOME"] = "relative"
    folder = machine.home.parent
    done = subprocess.run(
        [*AMUX, "hub", "start"], cwd=folder, env=machine.environment, capture_output=True
    )
    machine.home = folder / "relative"
    assert done.returncode == 0, done.stderr
    assert (folder / "relative" / "run" / "hub.sock").exists()


class Holding:
    """Somebody who holds the lock of a root as a Hub that is just starting does."""

    def __init__(self, home: Path) -> None:
        (home / "run").mkdir(parents=True)
        self.lock = (home / "run" / "hub.lock").open("w")
        self.lock.write('{"pid": 4711}')
        self.lock.flush()
        fcntl.flock(self.lock, fcntl.LOCK_EX)


@pytest.mark.requirement("M3", "M53")
@pytest.mark.slow
def test_a_root_that_is_held_by_somebody_who_never_serves_is_busy(home: Path) -> None:
    holding = Holding(home)
    done = Command(home).run("memory", "list")
    assert done.code == "busy"
    assert done.details["pid"] == 4711
    holding.lock.close()


@pytest.mark.requirement("M3", "M53")
@pytest.mark.slow
def test_whoever_comes_second_is_served_by_the_hub_of_the_first(home: Path) -> None:
    holding = Holding(home)
    listener = socket.socket(socket.AF_UNIX)

    earlier = list(process._children)  # kept: they live on, and to drop them would be a leak

    def ours_has_ended() -> bool:
        return any(child.poll() is not None for child in process._children if child not in earlier)

    def serve_at_last() -> None:
        wait_for(ours_has_ended)
        listener.bind(str(home / "run" / "hub.sock"))
        listener.listen()

    first = threading.Thread(target=serve_at_last)
    first.start()
    process.start_hub(config.load({"AMUX_HOME": str(home)}))
    first.join()
    listener.close()
    holding.lock.close()


def test_a_build_without_the_hub_says_so(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.amux, "__file__", str(tmp_path / "amux.pyz" / "amux" / "x.py"))
    done = Command(home).run("memory", "list")
    assert done.code == "unavailable"
    assert "install" in str(done.refusal["hint"])
    assert not home.exists()


@pytest.mark.parametrize("said", [b"", b"not json\n", b"[1]\n", b'{"error":{"code":"busy"'])
def test_last_words_that_are_no_refusal_are_none(said: bytes) -> None:
    assert process._refusal_in(said) is None


def test_last_words_are_read_as_the_refusal_they_are() -> None:
    body = errors.Busy("no", pid=3).body()
    found = process._refusal_in(b"notice\n" + json.dumps(body).encode() + b"\n")
    assert isinstance(found, errors.Busy)
    assert found.details == {"pid": 3}


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_a_hub_that_says_nothing_is_waited_for_with_an_end(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = tmp_path / "hung"
    hung.write_text("#!/bin/sh\nexec sleep 30\n")
    hung.chmod(0o755)
    monkeypatch.setattr(process.sys, "executable", str(hung))
    monkeypatch.setenv("AMUX_HOME", "")
    began = time.monotonic()
    with pytest.raises(Unavailable):
        process.start_hub(config.load({"AMUX_HOME": str(home)}), 0.3)
    assert time.monotonic() - began < 3
    for child in process._children:
        child.kill()
        child.wait()


@pytest.mark.requirement("M49", "M52")
@pytest.mark.slow
def test_on_a_real_terminal_answers_are_readable_and_uninstall_asks(machine: Machine) -> None:
    machine.answer("hub", "start")

    def typed(*words: str, line: bytes = b"") -> tuple[int, str]:
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [*AMUX, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=machine.environment
        )
        os.close(theirs)
        os.write(ours, line)
        shown = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                shown += chunk
        os.close(ours)
        return child.wait(), shown.decode()

    status, shown = typed("hub", "status")
    assert status == 0
    assert "runs, pid" in shown
    status, shown = typed("uninstall", line=b"no\n")
    assert status == 2
    assert "Type yes" in shown
    assert (machine.home / "layout").exists()
    status, shown = typed("uninstall", line=b"yes\n")
    assert status == 0
    assert not (machine.home / "layout").exists()


def test_every_code_of_a_refusal_has_its_class() -> None:
    assert {kind.code for kind in AmuxError.__subclasses__()} == set(Code)
