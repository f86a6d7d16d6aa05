"""Each row of the acceptance table has a Hub, and a disk, of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faces import Faces, faces_of, running_faces
from tests.support.faulty_disk import FaultyDisk
from tests.support.hub import RunningHub


@pytest.fixture
def faces(tmp_path: Path) -> Iterator[Faces]:
    with running_faces(tmp_path / "home") as found:
        yield found


@pytest.fixture
def disk(tmp_path: Path) -> FaultyDisk:
    return FaultyDisk(tmp_path)


@pytest.fixture
def faulty(tmp_path: Path, disk: FaultyDisk) -> Iterator[Faces]:
    """A Hub whose disk obeys the test."""
    hub = RunningHub(tmp_path / "home").enable()
    try:
        hub.start(launcher=disk.launcher)
        with faces_of(hub) as found:
            yield found
    finally:
        hub.kill()
