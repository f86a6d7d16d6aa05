"""Running a Hub: its socket, its loop, its log, its end.

Rule 1: a stale socket or pid file never blocks a start: the lock alone decides (M3).
Rule 2: the socket is private from its birth: there is no moment at which others can connect.
Rule 3: after a write whose durability failed, the process ends with a failure, so that its
        supervisor or the next call starts one that reads the truth from disk (M23).
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler

import uvicorn

from amux import compose
from amux.config import Config
from amux.core import home
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import InvalidArgument
from amux.surface import rpc

WRITERS = 32  # threads: each mostly waits for the disk
DRAIN_SECONDS = 3  # a stop waits so long for answers on their way
LOG_MAX_BYTES = 1024 * 1024
LOGS_KEPT = 3
_LOG = logging.getLogger("amux.hub")


def serve(
    config: Config,
    *,
    clock: Callable[[], float],
    wall: Callable[[], float],
    allow_network_fs: bool,
    is_background: bool,
) -> int:
    """Serve until told to stop; the exit status is 0, or 1 after a failed write."""
    os.umask(0o077)  # the log and what libraries make are nobody else's either
    with compose.owned(config, allow_network_fs=allow_network_fs) as root:
        path = _socket_path(config, root)
        server = _Server()
        with (
            _listening(path) as listener,
            compose.hub(
                config,
                root,
                clock=clock,
                now=lambda: datetime.fromtimestamp(wall(), UTC),
                socket_path=path,
                stop=server.end,
                fail=server.fail,
            ) as hub,
            ThreadPoolExecutor(WRITERS, thread_name_prefix="write") as threads,
        ):
            atomic.replace(root, f"{home.RUN_DIR}/{home.PID_FILE}", b"%d\n" % os.getpid())
            _log_to(config if is_background else None)
            _LOG.info("hub %d serves %s", os.getpid(), config.home)
            app = rpc.Application(hub, threads=threads, new_incident=lambda: os.urandom(4).hex())
            server.run_app(app, listener)
            _LOG.info("hub %d ends", os.getpid())
        with suppress(OSError):  # a disk that fails; a stale pid file blocks nothing
            atomic.remove(root, f"{home.RUN_DIR}/{home.PID_FILE}")
        return 1 if server.has_failed else 0


class _Server:
    """uvicorn with an end of our own: signals ask it to stop, they do not kill it."""

    def __init__(self) -> None:
        self.has_failed = False
        self._uvicorn: _Uvicorn | None = None
        self._is_ending = False

    def run_app(self, app: rpc.Application, listener: socket.socket) -> None:
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                app,
                http=rpc.PeerProtocol,
                ws="none",
                loop="uvloop",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._uvicorn.should_exit = self._is_ending
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.end())
        self._uvicorn.run(sockets=[listener])

    def end(self) -> None:
        """Stop once the answers on their way are out."""
        self._is_ending = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def fail(self) -> None:
        """Stop, and say that it was for a failure."""
        self.has_failed = True
        self.end()


class _Uvicorn(uvicorn.Server):
    """uvicorn's server without its own signals, which would end the process half done."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _listening(path: str) -> Iterator[socket.socket]:
    """Open the Hub's socket, private from its birth, and remove it at the end."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _unlink(path)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    listener.listen(512)
    try:
        yield listener
    finally:
        listener.close()
        _unlink(path)


def _socket_path(config: Config, root: Root) -> str:
    """Choose where the socket is; a path too long for the platform gets a short one (M45)."""
    usual = os.path.join(config.home, home.RUN_DIR, home.SOCKET_FILE)
    record = f"{home.RUN_DIR}/{home.SOCKET_RECORD}"
    if len(os.fsencode(usual)) <= home.SOCKET_MAX_BYTES:
        return usual
    short = os.path.join(_private_dir(config), home.short_socket_name(config.home))
    atomic.replace(root, record, os.fsencode(short))
    return short


def _private_dir(config: Config) -> str:
    """Find a folder for short socket paths that only this user can enter."""
    if config.runtime_dir:
        return config.runtime_dir
    made = os.path.join(config.temp_dir, f"amux-{os.geteuid()}")
    os.makedirs(made, mode=0o700, exist_ok=True)
    found = os.lstat(made)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise InvalidArgument(
            "the folder for the Hub's socket is not private",
            hint="set XDG_RUNTIME_DIR, or choose a shorter AMUX_HOME",
            reason="socket_dir",
        )
    return made


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _log_to(config: Config | None) -> None:
    """Log to standard error, or in the background to `run/hub.log`, rotated."""
    if config is None:
        handler: logging.Handler = logging.StreamHandler(sys.stderr)
    else:
        path = os.path.join(config.home, home.RUN_DIR, home.LOG_FILE)
        handler = RotatingFileHandler(
            path, maxBytes=LOG_MAX_BYTES, backupCount=LOGS_KEPT, encoding="utf-8"
        )
        # Until here refusals went to whoever started us; from here on nobody listens there.
        with open(path, "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
