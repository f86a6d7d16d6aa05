"""A Hub that listens, for many tests, and a client with a person's token."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hub import RunningHub
from tests.support.mcp_http import Remote
from tests.support.network import network_hub, person, port_of


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for a socket."""
    found = Path(tempfile.mkdtemp(prefix="amux-mcp-"))
    yield found
    shutil.rmtree(found)


@pytest.fixture(scope="package")
def hub() -> Iterator[RunningHub]:
    home = Path(tempfile.mkdtemp(prefix="amux-mcp-"))
    with network_hub(home, listen="127.0.0.1:0") as started:
        yield started
    shutil.rmtree(home)


@pytest.fixture(scope="package")
def port(hub: RunningHub) -> int:
    return port_of(hub)


@pytest.fixture(scope="package")
def remote(hub: RunningHub, port: int) -> Remote:
    return Remote(port, person(hub))
