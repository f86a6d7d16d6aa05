"""Switches: off by default, saved at once, and never guessed from a broken file."""

from pathlib import Path

import pytest

from amux.disk.tree import Root
from amux.errors import InvalidArgument
from amux.hub import settings
from amux.hub.saved import Saved
from amux.hub.settings import Settings, changed


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "hub").mkdir()
    return Root.open(str(tmp_path))


@pytest.mark.requirement("M6")
def test_memory_is_off_and_shared_where_nothing_was_ever_saved(root: Root) -> None:
    assert settings.opened(root).value == Settings(memory_enabled=False, isolation_policy="shared")


@pytest.mark.requirement("M6")
def test_what_is_saved_is_what_the_next_start_reads(root: Root) -> None:
    file: Saved[Settings] = settings.opened(root)
    file.change(lambda known: changed(known, "memory.enabled", "true"))
    file.change(lambda known: changed(known, "isolation.policy", "per_principal"))
    assert settings.opened(root).value == file.value
    assert file.value == Settings(memory_enabled=True, isolation_policy="per_principal")


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory.enabled", "yes"),
        ("memory.enabled", "True"),
        ("memory.enabled", ""),
        ("memory.enabled", "shared"),
        ("isolation.policy", "private"),
        ("isolation.policy", "true"),
        ("memory.disabled", "true"),
        ("", "true"),
    ],
)
def test_an_unknown_switch_or_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument):
        changed(Settings(), name, value)
