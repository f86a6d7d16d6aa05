"""What tests of isolation share: real users, a team's Hub."""

from collections.abc import Iterator

import pytest

from tests.support import users
from tests.support.model_server import ModelServer
from tests.support.team import Team, team
from tests.support.users import Other


@pytest.fixture(scope="session")
def others() -> Iterator[list[Other]]:
    """Make Alice and Bob, who are known to the Hub, and Eve, who is not."""
    with users.made("alice", "bob", "eve") as made:
        yield made


@pytest.fixture(scope="module")
def company(others: list[Other]) -> Iterator[Team]:
    """Give a team whose Hub keeps principals apart, for the tests of one module."""
    with team(others) as made:
        yield made.start()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Give a model without scripts."""
    with ModelServer({}) as server:
        yield server
