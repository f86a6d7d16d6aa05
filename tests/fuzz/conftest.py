"""One Hub for all fuzzers: it must outlive them."""

from collections.abc import Iterator

import pytest

from tests.support.faces import Faces, running_faces


@pytest.fixture(scope="session")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    with running_faces(tmp_path_factory.mktemp("fuzz") / "home") as found:
        yield found
        assert found.hub.process is not None
        assert found.hub.process.poll() is None
        assert b"incident" not in found.hub.log
