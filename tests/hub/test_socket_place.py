"""Where the Hub's socket is: in the root, or at a short path that the root records (M45)."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.core import home
from tests.docs.shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.requirement("M45")]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    deep = tmp_path / ("deep" * 30)
    shell.environment["AMUX_HOME"] = str(deep / "home")
    try:
        yield shell
    finally:
        shell.run("amux hub stop")


def test_a_root_with_a_long_path_gets_a_short_private_socket(shell: Shell) -> None:
    short = shell.home.parents[3] / "short"
    short.mkdir(exist_ok=True)
    shell.environment["TMPDIR"] = str(short)
    started = shell.run("amux hub start")
    assert started.returncode == 0, started.stderr
    socket = Path(json.loads(started.stdout)["socket"])
    assert len(str(socket)) <= home.SOCKET_MAX_BYTES
    assert socket.is_relative_to(short)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    # The record leads a client there whose own TMPDIR is another.
    shell.environment["TMPDIR"] = str(shell.home)
    assert json.loads(shell.run("amux hub status").stdout)["running"] is True


def test_where_every_path_is_too_long_a_start_is_refused_and_says_what_to_set(
    shell: Shell,
) -> None:
    too_long = shell.home / ("temporary" * 12)
    too_long.mkdir()
    shell.environment["TMPDIR"] = str(too_long)
    refused = shell.run("amux hub start")
    assert refused.returncode == 2
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert error["code"] == "invalid_argument"
    assert error["details"]["reason"] == "socket_dir"
    assert "XDG_RUNTIME_DIR" in error["hint"]


def test_a_short_root_has_its_socket_inside(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["AMUX_HOME"] = str(tmp_path.parents[2] / "r")
    root = Path(shell.environment["AMUX_HOME"])
    try:
        assert shell.run("amux hub start").returncode == 0
        assert stat.S_IMODE((root / "run/hub.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE((root / "run").stat().st_mode) == 0o700
        assert not (root / "run" / home.SOCKET_RECORD).exists()
    finally:
        shell.run("amux hub stop && amux uninstall --yes --with-memory")
