"""A home whose Hubs come and go, and are all gone at the end of a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kill.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    yield found
    found.end()
