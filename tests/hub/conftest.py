"""The Hub's rooms on a folder of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rooms import BOB, Rooms


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rooms]:
    """A Hub under per_principal that knows bob by his uid."""
    found = Rooms(tmp_path / "home", policy="per_principal")
    found.known("bob", BOB)
    yield found
    found.close()
