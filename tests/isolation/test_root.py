"""What tests of isolation do where there is no root: they say so, and fail in CI."""

import os

import pytest

from tests.support import users


@pytest.mark.requirement("run-10")
@pytest.mark.parametrize(("value", "outcome"), [("true", "Failed"), ("", "Skipped")])
def test_without_root_a_test_of_users_is_skipped_and_fails_in_ci(
    value: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("CI", value)
    with pytest.raises(BaseException, match="only root") as caught:
        users.require_root()
    assert type(caught.value).__name__ == outcome
