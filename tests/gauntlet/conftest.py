"""One Hub for all reported bugs: each works in a folder of its own."""

from collections.abc import Iterator

import pytest

from tests.support.faces import Faces, running_faces


@pytest.fixture(scope="session")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    with running_faces(tmp_path_factory.mktemp("faces") / "home") as found:
        yield found


@pytest.fixture
def folder(faces: Faces) -> str:
    return faces.new_folder()
