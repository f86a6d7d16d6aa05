"""Starting other processes: the Hub on demand, and a person's editor.

Rule 1: the only module that starts processes; nothing goes through a shell.
Rule 2: a Hub is started only where nobody listens; of two that start at once the lock lets one
        live, and both starters are served by it (M53).
Rule 3: what a start was refused with is what its caller is told.
Rule 4: every wait has an end.

A background Hub keeps our pipe as its standard error until it has taken over its log; the end of
that pipe is the moment it serves, or the moment it died, and nothing need be polled.
"""

import json
import os
import select
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import amux
from amux.client import Client
from amux.errors import AmuxError, Busy, InvalidArgument, Unavailable, from_body
from amux.runtime.context import Settings

START_SECONDS = 5.0  # a start is waited for so long (M53)
PAUSE_SECONDS = 0.02  # between looks at a start that is not ours
SAID_MAX_BYTES = 64 * 1024  # a dying Hub's last words: a refusal, or a traceback
_HUB_MODULE = "serve.py"  # the Hub's side; a zipapp holds the agent's side only
# -P: a folder named `amux` where somebody happens to stand is not this program.
_AS_MODULE = ("-P", "-m", "amux")

# Ended children are collected at the next start; dropping them would leave zombies unseen.
_children: list[subprocess.Popen[bytes]] = []


def ensure_hub(config: Settings, notice: Callable[[str], None]) -> Client:
    """Give a client of a Hub that runs, starting one if nobody listens.

    Tells through `notice` that it did, and for which root. Refuses as `unavailable` where none
    may be started, or none answers in time; with its own refusal where the Hub refused to start.
    """
    connection = config.connection
    require_local(config)
    if is_listening(config.socket_path):
        return Client(connection)
    if config.no_autostart:
        raise Unavailable(
            "no Hub runs, and AMUX_NO_AUTOSTART=1 forbids to start one",
            hint="start it with `amux hub start`",
        )
    start_hub(config)
    notice(f"started a Hub in the background for {config.home}")
    return Client(connection)


def require_local(config: Settings) -> None:
    """Refuse to start a Hub where the settings name another one (M54)."""
    connection = config.connection
    if not connection.may_start:
        raise Unavailable(
            "no Hub is started here: the settings name another one",
            hint="start that one where it lives, or take hub.url or AMUX_HUB away",
            hub=connection.address.text,
        )


def start_hub(config: Settings) -> None:
    """Start a Hub in the background and wait until it serves; refuses as it refused."""
    require_local(config)
    if not os.path.isfile(os.path.join(os.path.dirname(amux.__file__), _HUB_MODULE)):
        raise Unavailable(
            "no Hub runs, and this amux holds the agent's side only",
            hint="install the amux package on this machine and run `amux hub start`",
        )
    deadline = time.monotonic() + START_SECONDS
    child = _spawn_hub(config.home)
    said = _last_words(child, deadline)
    if child.poll() is None or is_listening(config.socket_path):
        _await_socket(config, deadline)
        return
    refusal = _refusal_in(said)
    if isinstance(refusal, Busy):
        # Somebody else's Hub was faster; it is as good as ours once it listens.
        _await_socket(config, deadline, otherwise=refusal)
        return
    raise refusal or Unavailable(
        "the Hub ended at its start",
        hint="run `amux hub serve` to see why",
        status=child.returncode,
    )


def is_listening(socket_path: str) -> bool:
    """Tell whether somebody accepts connections on a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(socket_path)
        except OSError:
            return False
    return True


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    """Wait for something that only looking can tell; False when it did not happen in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def edit(command: str, path: str) -> int:
    """Run a person's editor on a file, on this terminal, and give its exit status."""
    try:
        argv = [*shlex.split(command), path]
        child = subprocess.Popen(argv)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            "the editor could not be started",
            hint="set VISUAL or EDITOR to a command that exists",
            argument="EDITOR",
            cause=type(error).__name__,
        ) from error
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C belongs to the editor, which has the terminal


def random_name(prefix: str) -> str:
    """Make a name that nobody can guess."""
    return prefix + os.urandom(8).hex()


def command() -> list[str]:
    """Tell how this very amux is started, absolutely: what other programs may be given."""
    started = os.path.abspath(sys.argv[0])
    name = os.path.basename(started)
    if name == "__main__.py":
        return [sys.executable, *_AS_MODULE]
    if os.access(started, os.X_OK) or not sys.executable:
        return [started]
    return [sys.executable, started]


def _spawn_hub(home: str) -> subprocess.Popen[bytes]:
    _children[:] = [child for child in _children if child.poll() is None]
    # The child works in / so that it holds no folder of its starter; a relative AMUX_HOME would
    # mean another place there.
    os.putenv("AMUX_HOME", home)
    child = subprocess.Popen(
        # utf8: names of files are UTF-8, in whatever locale the first caller happened to be.
        [sys.executable, "-X", "utf8", *_AS_MODULE, "hub", "serve", "--background"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    )
    _children.append(child)
    return child


def _last_words(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Read what a starting Hub says until it falls silent: it serves then, or it is gone."""
    pipe = child.stderr
    if pipe is None:
        return b""
    said = b""
    with pipe:
        fd = pipe.fileno()
        while (left := deadline - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
            chunk = os.read(fd, SAID_MAX_BYTES)
            if not chunk:
                _settle(child)
                break
            said = (said + chunk)[-SAID_MAX_BYTES:]
    return said


def _settle(child: subprocess.Popen[bytes]) -> None:
    """Give a child that closed its pipe by ending the moment to be seen as ended."""
    try:
        child.wait(PAUSE_SECONDS)
    except subprocess.TimeoutExpired:
        return


def _await_socket(config: Settings, deadline: float, otherwise: AmuxError | None = None) -> None:
    seconds = max(0.0, deadline - time.monotonic())
    if not wait_until(lambda: is_listening(config.socket_path), seconds):
        raise otherwise or Unavailable(
            f"the Hub did not answer within {START_SECONDS:g} s of its start",
            hint="look at run/hub.log in AMUX_HOME",
        )


def _refusal_in(said: bytes) -> AmuxError | None:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    try:
        return from_body(json.loads(lines[-1])) if lines else None
    except ValueError:
        return None
