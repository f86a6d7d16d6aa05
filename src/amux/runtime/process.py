"""Starting other processes: the Hub on demand, a person's editor, an agent.

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
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import amux
from amux.client import Client
from amux.errors import AmuxError, Busy, InvalidArgument, Unavailable, from_body
from amux.runtime.context import Settings

START_SECONDS = 5.0  # a start is waited for so long (M53)
PAUSE_SECONDS = 0.02  # between looks at a start that is not ours
GRACE_SECONDS = 5.0  # for a child that was told to end: agents save their state first
LINE_MAX_BYTES = 32 * 1024 * 1024  # a tool's result may hold a picture
SAID_MAX_BYTES = 64 * 1024  # a dying Hub's last words: a refusal, or a traceback
_HUB_MODULE = "serve.py"  # the Hub's side; a zipapp holds the agent's side only
# -P: a folder named `amux` where somebody happens to stand is not this program.
_AS_MODULE = ("-P", "-m", "amux")

_COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
# What would move the cursor or more, on a terminal that is not the speaker's.
_HARMLESS = bytes(b if b in b"\t\n" or 31 < b != 127 else 63 for b in range(256))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from amux.runtime.user import User

# Ended children are collected at the next start; dropping them would leave zombies unseen.
_children: list[subprocess.Popen[bytes]] = []


def ensure_hub(
    config: Settings, notice: Callable[[str], None], seconds: float = START_SECONDS
) -> Client:
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
    start_hub(config, seconds)
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


def start_hub(config: Settings, seconds: float = START_SECONDS) -> None:
    """Start a Hub in the background and wait until it serves; refuses as it refused."""
    require_local(config)
    if not os.path.isfile(os.path.join(os.path.dirname(amux.__file__), _HUB_MODULE)):
        raise Unavailable(
            "no Hub runs, and this amux holds the agent's side only",
            hint="install the amux package on this machine and run `amux hub start`",
        )
    deadline = time.monotonic() + seconds
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


class Child:
    """An agent's process; nothing of it is left when `end` returns."""

    __slots__ = ("_process", "_told", "_user", "stderr", "stdin", "stdout")

    def __init__(self, process: subprocess.Popen[bytes], user: "User | None", told: int) -> None:
        self._process = process
        self._user = user
        self._told = told  # where a start as another user says why it failed
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr

    @property
    def pid(self) -> int:
        """Name it as the kernel does."""
        return self._process.pid

    def require_started(self) -> None:
        """Refuse where it ended because it could not be started as another user; before `end`."""
        if self._user is not None:
            self._user.require_started(self._told)

    def send(self, number: int) -> None:
        """Send a signal; one that has ended gets none."""
        self._process.send_signal(number)

    def read(self, size: int) -> bytes:
        """Read some bytes of what it says; none at the end."""
        return os.read(self.stdout.fileno(), size) if self.stdout is not None else b""

    def write(self, data: bytes) -> int:
        """Write some bytes to its standard input; tell how many."""
        return os.write(self.stdin.fileno(), data) if self.stdin is not None else 0

    def feed(self, text: str) -> None:
        """Write all of its standard input, beside whatever else is done; its end is told."""
        threading.Thread(target=self._feed, args=(text,), name="input", daemon=True).start()

    def relay_complaints(self) -> None:
        """Pass on what another user's process complains about; it has no descriptor of ours."""
        threading.Thread(target=self._relay, name="complaints", daemon=True).start()

    def lines(self) -> Iterator[str]:
        """Give the lines that it says, until it says no more; too long a one is passed over."""
        rest, is_skipping = bytearray(), False
        while chunk := self.read(65536):
            *ends, last = chunk.split(b"\n")
            for end in ends:
                rest += end
                if not is_skipping:
                    yield rest.decode("utf-8", "replace")
                rest, is_skipping = bytearray(), False
            rest += last
            if len(rest) > LINE_MAX_BYTES:
                rest, is_skipping = bytearray(), True
        if rest and not is_skipping:
            yield rest.decode("utf-8", "replace")

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for its end, and give its exit status as shells count; None if it goes on."""
        try:
            return _as_shells_count(self._process.wait(seconds))
        except subprocess.TimeoutExpired:
            return None

    def wait_or_stop(self) -> int | None:
        """Wait until it ends, and give its exit status, or until it is stopped: None."""
        if self._process.returncode is None:
            _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                return None
            self._process.returncode = os.waitstatus_to_exitcode(status)
        return _as_shells_count(self._process.returncode)

    def end(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """End it and everything that it started in its group, if it has a group of its own."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            if self.wait(grace_seconds) is None:
                self._signal(signal.SIGKILL)
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                _close(pipe)
        if self._told >= 0:
            os.close(self._told)
            self._told = -1
        return _as_shells_count(self._process.wait())

    def _feed(self, text: str) -> None:
        if self.stdin is None:
            return
        with suppress(OSError, ValueError):  # an agent need not read what it was given
            rest = text.encode("utf-8", "surrogateescape")
            while rest:
                rest = rest[self.write(rest) :]
        _close(self.stdin)

    def _relay(self) -> None:
        with suppress(OSError, ValueError):
            while self.stderr is not None and (said := self.stderr.read(65536)):
                os.write(2, _COLOURS.sub(b"", said).translate(_HARMLESS))

    def _signal(self, number: int) -> None:
        try:
            is_leader = os.getpgid(self.pid) == self.pid
            if is_leader:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return


def spawn(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    *,
    has_pipes: bool,
    keeps_stderr: bool = False,
    own_group: bool = False,
    runs_as: "User | None" = None,
    terminal: int | None = None,
) -> Child:
    """Start an agent on this terminal, or with pipes for what it reads and says.

    Its complaints go where ours go, or to a pipe with `keeps_stderr`; `own_group` keeps the
    terminal's Ctrl-C from it. With `runs_as` it is another user's, in a session of its own, with no
    descriptor of ours: on `terminal`, or with three pipes. Raises `OSError` where it cannot begin.
    """
    pipe = subprocess.PIPE if has_pipes else terminal
    told = -1
    if runs_as is not None:
        argv, told = runs_as.wrapped(argv, environment, cwd, on_terminal=terminal is not None)
        environment, cwd = {}, "/"
        keeps_stderr = keeps_stderr or terminal is None
    try:
        child = subprocess.Popen(
            list(argv),
            env=dict(environment),
            cwd=cwd,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.PIPE if keeps_stderr else terminal,
            bufsize=0,
            process_group=0 if own_group and runs_as is None else None,
            start_new_session=runs_as is not None,
            pass_fds=(told,) if told >= 0 else (),
        )
    except OSError:
        if told >= 0:
            os.close(told)
        raise
    return Child(child, runs_as, told)


def stop_self() -> None:
    """Stop this process as a shell's job is stopped; returns when it is continued."""
    os.kill(os.getpid(), signal.SIGSTOP)


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


def _as_shells_count(status: int) -> int:
    return 128 - status if status < 0 else status


def _close(pipe: "IO[bytes]") -> None:
    try:
        pipe.close()
    except OSError:
        return  # what was still to be written has nobody to read it


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
            "the Hub did not answer in the time that its start may take",
            hint="look at run/hub.log in AMUX_HOME",
        )


def _refusal_in(said: bytes) -> AmuxError | None:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    try:
        return from_body(json.loads(lines[-1])) if lines else None
    except ValueError:
        return None
