"""The sockets that a Hub listens on: its owner's, the shared one, and TCP.

Rule 1: the owner's socket is private from its birth: there is no moment at which others can
        connect (M45).
Rule 2: an address that is not loopback needs TLS, or the Hub refuses to start: there is no way
        to send a token in the clear (M45).
Rule 3: a shared socket that cannot be made stops nothing: the Hub serves without it, and says so
        (M46).
"""

import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address

from amux.config import Config, HubTable
from amux.connections import Door
from amux.core import home
from amux.core.hosts import Hosts
from amux.errors import InvalidArgument

BACKLOG = 512
PRIVATE, PUBLIC = 0o600, 0o666


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One socket, the connections that come through it, and its TLS."""

    socket: socket.socket
    door: Door
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What of a Hub can be reached over TCP, and by which names."""

    listeners: tuple[Listener, ...]
    listen: tuple[str, ...]
    hosts: Hosts


@contextmanager
def owners(path: str) -> Iterator[Listener]:
    """Open the Hub's own socket, and remove it at the end."""
    with _unix(path, PRIVATE) as listener:
        yield Listener(socket=listener, door=Door(is_owners=True))


@contextmanager
def shared(path: str) -> Iterator[Listener]:
    """Open the socket for other uids; `OSError` where it cannot be made."""
    folder = os.path.dirname(path)
    if folder == home.SHARED_DIR:  # any other is the person's to make, who named it
        with suppress(FileExistsError):
            os.mkdir(folder)
            os.chmod(folder, 0o755)  # whatever the umask is
    found = os.lstat(folder)
    # Whoever owns the folder could put another socket there and be sent the tokens.
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise PermissionError("the folder is not the Hub's own")
    if _is_served(path):
        raise FileExistsError("another Hub listens there")
    with _unix(path, PUBLIC) as listener:
        yield Listener(socket=listener, door=Door(is_owners=False))
    if folder == home.SHARED_DIR:
        with suppress(OSError):  # another Hub has its socket there
            os.rmdir(folder)


def shared_path(table: HubTable, hub_id: str, *, is_per_principal: bool) -> str:
    """Choose where the shared socket is to be; empty where none is wanted (M46)."""
    if table.shared_socket:
        return table.shared_socket
    return f"{home.SHARED_DIR}/{hub_id}.sock" if is_per_principal else ""


@contextmanager
def network(config: Config) -> Iterator[Network]:
    """Open the TCP addresses that are set; refuses what cannot be served as it is set."""
    table = config.table
    tls = _tls(config, table) if table.tls_cert else None
    with ExitStack() as opened:
        found: list[Listener] = []
        bound: list[tuple[str, int]] = []
        for row in table.listen:
            host, _, port = row.rpartition(":")
            for listener in _tcp(host, int(port), is_tls=tls is not None):
                opened.enter_context(listener)
                found.append(Listener(socket=listener, door=Door(is_owners=False), tls=tls))
                bound.append((host, listener.getsockname()[1]))
        yield Network(
            listeners=tuple(found),
            listen=tuple(dict.fromkeys(f"{host}:{port}" for host, port in bound)),
            hosts=Hosts(listen=bound, names=table.names, is_tls=tls is not None),
        )


def remove(path: str) -> None:
    """Remove a socket that nobody serves any more."""
    with suppress(FileNotFoundError):
        os.unlink(path)


@contextmanager
def _unix(path: str, mode: int) -> Iterator[socket.socket]:
    """Bind a Unix socket that has its mode from its birth; remove it at the end."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        remove(path)
        mask = os.umask(0o777 & ~mode)
        try:
            listener.bind(path)
        finally:
            os.umask(mask)
        listener.listen(BACKLOG)
        try:
            yield listener
        finally:
            listener.close()
            remove(path)


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _tcp(host: str, port: int, *, is_tls: bool) -> Iterator[socket.socket]:
    """Bind every address of a host; a name may have several."""
    try:
        rows = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise _refused(f"{host} is no address", "hub.listen", error) from error
    for family, kind, protocol, _, address in dict.fromkeys(rows):
        if not is_tls and not ip_address(str(address[0]).partition("%")[0]).is_loopback:
            raise InvalidArgument(
                f"{host} can be reached from other machines, and there is no TLS",
                hint="set hub.tls_cert and hub.tls_key, or listen on 127.0.0.1",
                argument="hub.listen",
            )
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise _refused(f"cannot listen on {host}:{port}", "hub.listen", error) from error
        yield listener


def _tls(config: Config, table: HubTable) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    cert, key = config.path_of(table.tls_cert), config.path_of(table.tls_key)
    try:
        # The key's passphrase is nobody's to type: a background Hub must not wait for a terminal.
        context.load_cert_chain(cert, key, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise _refused("the certificate cannot be used", "hub.tls_cert", error) from error
    return context


def _refused(message: str, argument: str, error: Exception) -> InvalidArgument:
    return InvalidArgument(
        message,
        hint=f"see {argument} in config.toml",
        argument=argument,
        cause=type(error).__name__,
    )
