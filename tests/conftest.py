"""What every test has: a clean environment of amux, and Hypothesis without surprises."""

import os

import hypothesis
import pytest

from tests.support.rights import cannot

# A person's own Hub must neither be seen nor touched by a test, nor started by accident.
for name in [name for name in os.environ if name.startswith("AMUX_")]:
    del os.environ[name]
# Every start of a child would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Deadlines are about speed, and two workers share two cores with everything else.
hypothesis.settings.register_profile("amux", deadline=None, print_blob=True)
hypothesis.settings.load_profile("amux")


@pytest.fixture(scope="session")
def as_root() -> None:
    """Have a test run as root: only root can act as other users and make networks."""
    if os.geteuid() != 0:
        cannot("only root can act as other users and make networks")
