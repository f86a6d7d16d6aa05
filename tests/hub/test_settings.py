"""Switches: off by default, saved at once, and never guessed from a broken file."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.identity import GLOBAL, PeerActor
from amux.disk.tree import Root
from amux.errors import Corrupt, InvalidArgument, MemoryDisabled, PermissionDenied
from amux.hub import settings
from amux.hub.access import Access, scope_of
from amux.hub.settings import Settings, SettingsFile, changed


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    (tmp_path / "hub").mkdir()
    return SettingsFile(Root.open(str(tmp_path)))


@pytest.mark.requirement("M6")
def test_memory_is_off_and_shared_where_nothing_was_ever_saved(file: SettingsFile) -> None:
    assert file.load() == Settings(memory_enabled=False, isolation_policy="shared")


@pytest.mark.requirement("M6")
def test_what_is_saved_is_what_is_loaded(file: SettingsFile) -> None:
    saved = changed(changed(file.load(), "memory.enabled", "true"), "isolation.policy", "shared")
    file.save(saved)
    assert file.load() == saved == Settings(memory_enabled=True)


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory.enabled", "yes"),
        ("memory.enabled", "True"),
        ("memory.enabled", ""),
        ("isolation.policy", "private"),
        ("memory.disabled", "true"),
        ("", "true"),
    ],
)
def test_an_unknown_switch_or_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument):
        changed(Settings(), name, value)


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"memory_enabled": true}',
        b'{"memory_enabled": "true", "isolation_policy": "shared"}',
        b'{"memory_enabled": true, "isolation_policy": "none"}',
        b'{"memory_enabled": true, "isolation_policy": "shared", "more": 1}',
        b'{"memory_enabled": false, "memory_enabled": true, "isolation_policy": "shared"}',
        b"\xff\xfe",
    ],
)
def test_a_broken_file_is_corrupt_and_left_as_it_is(
    file: SettingsFile, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "hub/settings.json").write_bytes(data)
    with pytest.raises(Corrupt) as refused:
        file.load()
    assert "hub/settings.json" in refused.value.message
    assert (tmp_path / "hub/settings.json").read_bytes() == data


@pytest.mark.requirement("M6")
@given(st.binary(max_size=200))
def test_any_bytes_are_settings_or_corrupt_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(Corrupt):
        assert settings.parse(settings.render(settings.parse(data))) == settings.parse(data)


@pytest.mark.requirement("M63")
def test_only_the_owner_of_the_root_is_admitted_and_as_local() -> None:
    access = Access(owner_uid=1000, effective=Settings(memory_enabled=True))
    grant = access.data(PeerActor(1000))
    assert (grant.principal, grant.scope, grant.is_administrator) == ("local", GLOBAL, True)
    for uid in (0, 1001, 65534):
        with pytest.raises(PermissionDenied):
            access.data(PeerActor(uid))
        with pytest.raises(PermissionDenied):
            access.administrator(PeerActor(uid))


@pytest.mark.requirement("M7")
def test_while_memory_is_off_data_is_refused_and_administration_is_not() -> None:
    access = Access(owner_uid=1000, effective=Settings())
    with pytest.raises(MemoryDisabled) as refused:
        access.data(PeerActor(1000))
    assert "amux system config set memory.enabled true" in refused.value.hint
    assert access.administrator(PeerActor(1000)).principal == "local"


@pytest.mark.requirement("M6", "M4")
def test_the_scope_follows_policy_and_principal_alone() -> None:
    assert scope_of("shared", "local") == GLOBAL
    assert scope_of("per_principal", "local").name == "principal:local"
