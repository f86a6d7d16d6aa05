"""A fake Hub and a command line on the same root."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.fake_hub import FakeHub, fake_hub


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def hub(home: Path) -> Iterator[FakeHub]:
    with fake_hub(home) as found:
        yield found


@pytest.fixture
def amux(home: Path) -> Command:
    return Command(home, AMUX_NO_AUTOSTART="1")
