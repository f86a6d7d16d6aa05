"""What tests of real agents share: a scripted model, a place of their own, a Hub."""

from collections.abc import Iterator

import pytest

from tests.support.agents import Place
from tests.support.hub import RunningHub, running_hub
from tests.support.model_server import ModelServer


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Give a model without scripts; a test adds its own to `model.scripts`."""
    with ModelServer({}) as server:
        yield server


@pytest.fixture
def place(model: ModelServer) -> Iterator[Place]:
    """Give a home and a working directory that ask this model."""
    made = Place(model.url)
    yield made
    made.remove()


@pytest.fixture
def hub(place: Place) -> Iterator[RunningHub]:
    """Give a Hub with memory on; its root is not below the home of the agents."""
    with running_hub(place.root / "root") as started:
        yield started
