"""What a machine may not let a test do: a skip for a person, with the reason, a failure in CI."""

import os
from typing import NoReturn

import pytest


def cannot(reason: str) -> NoReturn:
    """End a test that this machine does not let do its work."""
    if os.environ.get("CI") == "true":  # there a skipped proof would be none, and nobody would see
        pytest.fail(f"{reason}, and CI must")
    pytest.skip(reason)
