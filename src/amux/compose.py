"""Putting a Hub together without its sockets: root, lock, layout, store, service.

Rule 1: the lock comes first and is held for life; whoever has it is the only writer (M3).
Rule 2: the layout is known before anything else of the root is read or written (M2).
Rule 3: a command without a running Hub works through the same service, under the same lock (M47).
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amux import __version__
from amux.client import Answer
from amux.config import Config
from amux.core import home
from amux.core.identity import PeerActor
from amux.core.text import to_json
from amux.disk import lock, tree
from amux.disk.tree import Root
from amux.errors import Internal, InvalidArgument
from amux.hub import upgrade
from amux.hub.access import Access
from amux.hub.service import About, Hub
from amux.hub.settings import SettingsFile
from amux.memory.files import Files
from amux.memory.service import Memory

# What amux can do on Linux and not elsewhere (M10).
MISSING = {"darwin": ("notifications of changed files", "linux-dac launches")}
Clock = Callable[[], float]


@contextmanager
def owned(config: Config, *, allow_network_fs: bool = False) -> Iterator[Root]:
    """Hold the root of this machine: made if absent, locked, brought to the present layout.

    Refuses a root that another Hub holds (`busy`), that a newer amux wrote
    (`upgrade_required`), or that lies on a network file system (`invalid_argument`).
    """
    root = Root.create(config.home)
    try:
        network = tree.network_type(config.home)
        if network and not allow_network_fs:
            raise InvalidArgument(
                f"AMUX_HOME lies on a network file system ({network})",
                hint="use a local disk, or `amux hub serve --allow-network-fs` if its locks "
                "and renames are sound",
                reason="network_fs",
            )
        upgrade.require_known(root)
        upgrade.ensure_folder(root, home.RUN_DIR)
        holder = lock.Holder.take(root, f"{home.RUN_DIR}/{home.LOCK_FILE}", {"pid": os.getpid()})
        try:
            upgrade.sweep(root)
            upgrade.bring_up(root, os.urandom)
            yield root
        finally:
            holder.release()
    finally:
        root.close()


def hub(
    config: Config,
    root: Root,
    *,
    clock: Clock,
    socket_path: str,
    stop: Callable[[], None],
    fail: Callable[[], None],
) -> Hub:
    """Build the service of a root that this process holds."""
    settings_file = SettingsFile(root)
    effective = settings_file.load()
    secret = root.read(f"{home.HUB_DIR}/{home.SECRET_FILE}", max_bytes=upgrade.SECRET_BYTES + 1)
    if secret is None or len(secret) != upgrade.SECRET_BYTES:
        raise Internal("hub/secret is not what it was made", hint="restore it from a backup")
    store = Files(os.path.join(config.home, home.MEMORY_DIR), clock=clock, on_failure=fail)
    return Hub(
        about=About(
            version=__version__,
            pid=os.getpid(),
            # A name of a folder need not be UTF-8; what is told about it must be.
            root=tree.shown(config.home),
            socket=tree.shown(socket_path),
            platform={"system": sys.platform, "missing": list(MISSING.get(sys.platform, ()))},
        ),
        access=Access(owner_uid=os.stat(config.home).st_uid, effective=effective),
        memory=Memory(store, clock=clock, cursor_key=secret),
        settings_file=settings_file,
        effective=effective,
        stop=stop,
    )


class Offline:
    """The administrator's calls with no Hub running, behind the method that `client` has."""

    def __init__(self, config: Config, *, clock: Clock) -> None:
        self._config = config
        self._clock = clock

    def ask(self, name: str, arguments: dict[str, object] | None = None) -> Answer:
        """Make one call in process; `busy` where a Hub holds the root after all."""
        given = arguments or {}
        actor = PeerActor(os.geteuid())
        with owned(self._config) as root:
            service = hub(self._config, root, clock=self._clock, socket_path="", stop=_no, fail=_no)
            if name == "settings":
                found = service.set(actor, str(given["name"]), str(given["value"]))
                found["effective"] = None
            else:
                found = service.status(actor)
                found["pid"] = None
            # Nothing is in force while no Hub runs, so nothing is due either.
            found["running"] = found["restart_due"] = False
            return Answer(to_json(found).decode("utf-8"), __version__)


def _no() -> None:
    """Do nothing: there is no server to stop."""
