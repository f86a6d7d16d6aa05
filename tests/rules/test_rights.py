"""A proof that a machine cannot make is missed in CI, not skipped."""

import re
from pathlib import Path

import pytest

from tests.support.rights import cannot

ROOT = Path(__file__).parents[2]


def test_what_cannot_be_proved_is_a_failure_in_ci_and_a_skip_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        cannot("no network can be made here")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception):
        cannot("no network can be made here")


def test_no_test_skips_itself_for_want_of_root() -> None:
    wanting = re.compile(r"skipif\([^)]*(?:geteuid|getuid|UID)")
    found = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("*.py")
        if wanting.search(file.read_text(encoding="utf-8"))
    ]
    assert found == []
