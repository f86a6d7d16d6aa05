"""Running a Hub: its listeners, its loop, its log, its end.

Rule 1: a stale socket or pid file never blocks a start: the lock alone decides (M3).
Rule 2: one loop serves every listener: a call is the same one, however it came.
Rule 3: after a write whose durability failed, the process ends with a failure, so that its
        supervisor or the next call starts one that reads the truth from disk (M23).
"""

import logging
import os
import signal
import socket
import sys
from asyncio import get_running_loop
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from logging.handlers import RotatingFileHandler
from types import ModuleType

import uvicorn

from amux import compose, listeners
from amux.config import Config
from amux.connections import HANDSHAKE_SECONDS, Connection
from amux.core import home
from amux.disk import atomic, tree
from amux.disk.tree import Root
from amux.errors import InvalidArgument
from amux.hub.service import Hub
from amux.listeners import Listener
from amux.surface import rpc
from amux.surface.deferred import Deferred, Face
from amux.threads import Threads

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
    late: Callable[[str], ModuleType],
    allow_network_fs: bool,
    is_background: bool,
) -> int:
    """Serve until told to stop; the exit status is 0, or 1 after a failed write."""
    _require_utf8()
    os.umask(0o077)  # the log and what libraries make are nobody else's either
    with compose.owned(config, allow_network_fs=allow_network_fs) as root:
        path = _socket_path(config, root)
        server = _Server()
        with (
            listeners.network(config) as network,
            listeners.owners(path) as owners,
            compose.hub(
                config,
                root,
                clock=clock,
                now=lambda: datetime.fromtimestamp(wall(), UTC),
                socket_path=path,
                stop=server.end,
                fail=server.fail,
            ) as hub,
            _shared(config, root, hub) as shared,
            Threads(WRITERS, name="write") as threads,
        ):
            atomic.replace(root, f"{home.RUN_DIR}/{home.PID_FILE}", b"%d\n" % os.getpid())
            _log_to(config if is_background else None)
            _LOG.info("hub %d serves %s", os.getpid(), config.home)
            hub.administration.reach["listen"] = list(network.listen)
            _log_reach(hub)
            handlers = rpc.Calls(hub, threads.run).handlers()

            def mcp() -> Face:
                face: Face = late("mcp_http").Endpoint(
                    hub, handlers=handlers, clock=clock, random_bytes=os.urandom
                )
                return face

            at_mcp = Deferred(mcp)
            application = rpc.Application(
                hub,
                hosts=network.hosts,
                handlers=handlers,
                faces={"/mcp": at_mcp},
                new_incident=lambda: os.urandom(4).hex(),
            )
            # Who listens on a network is asked for MCP, by clients that wait for no import.
            after = at_mcp.prepare if network.listeners else None
            server.run_app(application, (owners, *shared, *network.listeners), after)
            _LOG.info("hub %d ends", os.getpid())
        with suppress(OSError):  # a disk that fails; a stale pid file blocks nothing
            atomic.remove(root, f"{home.RUN_DIR}/{home.PID_FILE}")
        return 1 if server.has_failed else 0


def _require_utf8() -> None:
    """Refuse a locale in which the names of documents would be other bytes on disk."""
    if sys.getfilesystemencoding() != "utf-8":
        raise InvalidArgument(
            "names of files are not UTF-8 in this locale",
            hint="start the Hub with PYTHONUTF8=1 in its environment",
            reason="locale",
        )


class _Server:
    """uvicorn with an end of our own: signals ask it to stop, they do not kill it."""

    def __init__(self) -> None:
        self.has_failed = False
        self._uvicorn: _Uvicorn | None = None
        self._is_ending = False

    def run_app(
        self, app: rpc.App, doors: tuple[Listener, ...], after: Callable[[], None] | None
    ) -> None:
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                loop="uvloop",
                lifespan="off",
                access_log=False,
                log_config=None,
                # Else a header could say who the peer is: `X-Forwarded-For: unix` would be uid 0.
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            ),
            doors,
            after,
        )
        self._uvicorn.should_exit = self._is_ending
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.end())
        self._uvicorn.run()

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
    """uvicorn's server for listeners of several kinds.

    Without its own signals, which would end the process half done.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        doors: tuple[Listener, ...],
        after: Callable[[], None] | None,
    ) -> None:
        super().__init__(config)
        self._doors = doors
        self._after = after

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Serve every listener, each with its own TLS and its own places."""
        await self.lifespan.startup()
        loop = get_running_loop()
        self.servers = [
            await loop.create_server(
                partial(
                    Connection,
                    door=one.door,
                    config=self.config,
                    server_state=self.server_state,
                    app_state=self.lifespan.state,
                ),
                sock=one.socket,
                ssl=one.tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if one.tls else None,
                backlog=listeners.BACKLOG,
            )
            for one in self._doors
        ]
        self.started = True
        if self._after is not None:
            self._after()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _shared(config: Config, root: Root, hub: Hub) -> Iterator[tuple[Listener, ...]]:
    """Open the shared socket if one is wanted; without it the Hub serves all the same (M46)."""
    administration = hub.administration
    path = listeners.shared_path(
        config.table,
        administration.about.hub_id,
        is_per_principal=administration.is_per_principal,
    )
    if not path:
        yield ()
        return
    path = config.path_of(path)
    found: dict[str, object] = {"path": tree.shown(path), "open": True}
    administration.reach["shared_socket"] = found
    doors: tuple[Listener, ...] = ()
    with ExitStack() as opened:
        try:
            doors = (opened.enter_context(listeners.shared(path)),)
            # So that what a crash leaves there can be found and removed.
            record = f"{home.RUN_DIR}/{home.SHARED_RECORD}"
            atomic.replace(root, record, os.fsencode(path))
        except OSError as error:
            found |= {"open": False, "reason": type(error).__name__}
        yield doors


def _log_reach(hub: Hub) -> None:
    """Say where the Hub can be reached beside its owner's socket, and where it cannot."""
    reach = hub.administration.reach
    if reach["listen"]:
        _LOG.info("listens on %s", reach["listen"])
    shared = reach["shared_socket"]
    if isinstance(shared, dict) and shared["open"]:
        _LOG.info("shared socket %s", shared["path"])
    elif isinstance(shared, dict):
        _LOG.warning("no shared socket %s: %s", shared["path"], shared["reason"])


def _socket_path(config: Config, root: Root) -> str:
    """Choose where the socket is; a path too long for the platform gets a short one (M45)."""
    usual = os.path.join(config.home, home.RUN_DIR, home.SOCKET_FILE)
    record = f"{home.RUN_DIR}/{home.SOCKET_RECORD}"
    if len(os.fsencode(usual)) <= home.SOCKET_MAX_BYTES:
        return usual
    short = os.path.join(_private_dir(config), home.short_socket_name(config.home))
    if len(os.fsencode(short)) > home.SOCKET_MAX_BYTES:
        raise InvalidArgument(
            "no path for the Hub's socket is short enough",
            hint="choose a shorter AMUX_HOME, or set XDG_RUNTIME_DIR or TMPDIR to a short folder",
            reason="socket_dir",
        )
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
