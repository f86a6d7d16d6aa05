"""Putting a Hub together without its sockets: root, lock, layout, store, service.

Rule 1: the lock comes first and is held for life; whoever has it is the only writer (M3).
Rule 2: the layout is known before anything else of the root is read or written (M2).
Rule 3: a command without a running Hub works through the same service, under the same lock (M47).
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from amux import __version__
from amux.client import Answer
from amux.config import Config
from amux.core import home
from amux.core.identity import ROOT_UID, Caller, hub_id_of
from amux.core.text import to_json
from amux.disk import lock, tree
from amux.disk.trail import Trail
from amux.disk.tree import Root
from amux.errors import Corrupt, InvalidArgument
from amux.hub import audit, bindings, credentials, upgrade
from amux.hub import settings as switches
from amux.hub.access import Access
from amux.hub.administration import About, Administration
from amux.hub.gate import Gate
from amux.hub.people import People
from amux.hub.rates import Rates
from amux.hub.service import Hub
from amux.hub.sessions import Sessions
from amux.memory.files import Files
from amux.memory.service import Memory
from amux.threads import Threads

# What amux can do on Linux and not elsewhere (M10).
MISSING = {"darwin": ("notifications of changed files", "linux-dac launches")}
Clock = Callable[[], float]
Now = Callable[[], datetime]


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


@contextmanager
def hub(
    config: Config,
    root: Root,
    *,
    clock: Clock,
    now: Now,
    socket_path: str,
    stop: Callable[[], None],
    fail: Callable[[], None],
) -> Iterator[Hub]:
    """Build the service of a root that this process holds, for as long as it is used."""
    settings = switches.opened(root)
    effective = settings.value
    identity = credentials.opened(root)
    secret = _secret(root)
    hub_id = hub_id_of(secret)
    owner_uid = os.stat(config.home).st_uid
    access = Access(
        owner_uid=owner_uid,
        hub_id=hub_id,
        effective=effective,
        identity=identity,
        now=now,
    )
    trail = Trail(
        root,
        f"{home.HUB_DIR}/{home.AUDIT_FILE}",
        max_bytes=audit.MAX_BYTES,
        parts_kept=audit.PARTS_KEPT,
        reserve_bytes=audit.RESERVE_BYTES,
    )
    store = Files(os.path.join(config.home, home.MEMORY_DIR), clock=clock, on_failure=fail)
    # One thread: while it syncs the trail, what comes gathers for the next time.
    with Threads(1, name="audit") as threads:
        kept = audit.Audit(trail, now=now, run=threads.run)
        gate = Gate(access=access, rates=Rates(), audit=kept, clock=clock)
        administration = Administration(
            about=About(
                version=__version__,
                hub_id=hub_id,
                pid=os.getpid(),
                # A name of a folder need not be UTF-8; what is told about it must be.
                root=tree.shown(config.home),
                socket=tree.shown(socket_path),
                platform={"system": sys.platform, "missing": list(MISSING.get(sys.platform, ()))},
            ),
            gate=gate,
            access=access,
            audit=kept,
            settings=settings,
            effective=effective,
            people=People(identity=identity, owner_uid=owner_uid, now=now, random_bytes=os.urandom),
            sessions=Sessions(
                access=access,
                identity=identity,
                bindings=bindings.opened(root),
                now=now,
                random_bytes=os.urandom,
            ),
            now=now,
            stop=stop,
        )
        memory = Memory(store, clock=clock, cursor_key=secret)
        yield Hub(gate=gate, memory=memory, administration=administration)
    store.close()
    trail.close()


def _secret(root: Root) -> bytes:
    secret = root.read(f"{home.HUB_DIR}/{home.SECRET_FILE}", max_bytes=upgrade.SECRET_BYTES + 1)
    if secret is None or len(secret) != upgrade.SECRET_BYTES:
        raise Corrupt(
            "hub/secret is not what it was made",
            hint="restore it from a backup; without it no binding of this Hub is known again",
            reason="secret",
        )
    return secret


class Offline:
    """The administrator's calls with no Hub running, behind the method that `client` has."""

    def __init__(self, config: Config, *, clock: Clock, wall: Clock) -> None:
        self._config = config
        self._clock = clock
        self._wall = wall

    def ask(self, name: str, arguments: dict[str, object] | None = None) -> Answer:
        """Make one call in process; `busy` where a Hub holds the root after all."""
        caller = Caller(uid=os.geteuid(), surface="cli")
        with (
            _as_owner(self._config.home),
            owned(self._config) as root,
            hub(
                self._config,
                root,
                clock=self._clock,
                now=lambda: datetime.fromtimestamp(self._wall(), UTC),
                socket_path="",
                stop=_no,
                fail=_no,
            ) as service,
        ):
            found = service.administration.call(service.enter(caller), name, arguments or {})
        # Nothing is in force while no Hub runs, so nothing is due either.
        if name in {"settings", "status"}:
            found["running"] = found["restart_due"] = False
        if name == "settings":
            found["effective"] = None
        if name == "status":
            found["pid"] = None
        return Answer(to_json(found).decode("utf-8"), __version__)


@contextmanager
def _as_owner(path: str) -> Iterator[None]:
    """Act, as uid 0, for the owner of a home: what is made there is to be the owner's own."""
    uid, gid = os.geteuid(), os.getegid()
    owner = os.stat(path) if uid == ROOT_UID and os.path.isdir(path) else None
    if owner is not None:
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        if owner is not None:
            os.seteuid(uid)
            os.setegid(gid)


def _no() -> None:
    """Do nothing: there is no server to stop."""
