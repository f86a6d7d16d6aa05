"""A home of its own for each test, with a path short enough for a socket."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="amux-mcp-"))
    yield folder
    shutil.rmtree(folder)
