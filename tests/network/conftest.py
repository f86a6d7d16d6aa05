"""Homes with a path short enough for a socket, and one Hub on a loopback port for many tests."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.authority import Authority
from tests.support.hub import RunningHub
from tests.support.machines import AMUX, PORT, Client, Far, Machines
from tests.support.network import configure, network_hub, person, port_of, token_file
from tests.support.rights import cannot


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that other users may look into."""
    found = Path(tempfile.mkdtemp(prefix="amux-net-"))
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


class Loopback:
    """A Hub on a loopback port with a name of its own, and a person's token for it."""

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub
        self.port = port_of(hub)
        self.token = person(hub)
        self.bearer = f"Bearer {self.token}"


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    folder = Path(tempfile.mkdtemp(prefix="amux-net-"))
    names = ["Hub.Example", "proxied.example:8443"]
    with network_hub(folder / "a", listen="127.0.0.1:0", names=names) as hub:
        yield Loopback(hub)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def machines(as_root: None) -> Iterator[Machines]:  # noqa: ARG001
    made = Machines()
    try:
        with made:
            yield made
    except (subprocess.CalledProcessError, FileNotFoundError):
        made.__exit__()
        cannot("network namespaces cannot be made here")


@pytest.fixture
def far(machines: Machines, folder: Path) -> Iterator[Far]:
    """Give a Hub with TLS, and a client on each of two other machines."""
    authority = Authority(folder)
    cert, key = authority.issue("hub.example", "10.209.0.1", "10.209.1.1")
    configure(
        folder / "hub",
        listen=f"0.0.0.0:{PORT}",
        tls_cert=str(cert),
        tls_key=str(key),
        names=["10.209.0.1", "10.209.1.1"],
    )
    hub = RunningHub(folder / "hub").enable()
    try:
        hub.start(launcher=["ip", "netns", "exec", machines.hub, *AMUX, "hub", "serve"])
        clients = []
        for number, namespace in enumerate(machines.clients):
            home = folder / f"client{number}"
            token = token_file(folder, person(hub), f"token{number}")
            configure(
                home,
                url=f"https://10.209.{number}.1:{PORT}",
                token_file=str(token),
                ca_file=str(authority.ca_file),
            )
            clients.append(Client(namespace, home))
        yield Far(hub, (clients[0], clients[1]))
    finally:
        hub.kill()
