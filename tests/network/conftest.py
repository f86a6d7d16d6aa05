"""Homes with a path short enough for a socket, and one Hub on a loopback port for many tests."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hub import RunningHub
from tests.support.network import network_hub, person, port_of


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
