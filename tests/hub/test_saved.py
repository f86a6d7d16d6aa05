"""What the Hub keeps: whole on disk, or a start that is refused with the place named."""

import contextlib
import copy
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.strict import decode
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import AmuxError, Corrupt, LimitExceeded, NotSaved, OutcomeUnknown
from amux.hub import bindings, credentials, saved, settings
from tests.support.hub import RunningHub
from tests.support.rooms import BOB, Rooms

FILES: dict[str, Callable[[Root], saved.Saved[object]]] = {
    "settings.json": settings.opened,
    "identity.json": credentials.opened,
    "bindings.json": bindings.opened,
}
every_file = pytest.mark.parametrize("name", FILES)
BAD = [b"", b" ", b"{", b"[]]", b"null", b"{}", b"[1]", b"true", b"\xff\xfe", b"\0" * 64, b'""']


@pytest.fixture
def home(hub: Rooms) -> Path:
    """A root whose three files all hold something."""
    hub.token()
    hub.token("service", "bob", acts_for="local")
    hub.bind(hub.actor(BOB))
    hub.bind(hub.actor(), "s2", verbs="read")
    return hub.home


def reopen(home: Path, name: str) -> object:
    root = Root.open(str(home))
    try:
        return FILES[name](root).value
    finally:
        root.close()


def test_what_was_saved_is_what_is_read(hub: Rooms, home: Path) -> None:
    assert reopen(home, "identity.json") == hub.identity.value
    assert reopen(home, "bindings.json") == hub.bindings.value
    assert reopen(home, "settings.json") == hub.settings.value


@pytest.mark.requirement("M6", "M64", "M66")
@every_file
def test_a_file_cut_anywhere_is_corrupt_with_its_place_and_stays(home: Path, name: str) -> None:
    file = home / "hub" / name
    whole = file.read_bytes()
    for data in [*BAD, *(whole[:cut] for cut in range(0, len(whole.rstrip()) - 1, 7))]:
        if name == "bindings.json" and data == b"[]":
            continue
        file.write_bytes(data)
        with pytest.raises(Corrupt) as refused:
            reopen(home, name)
        assert f"hub/{name}" in refused.value.message
        assert refused.value.details["file"] == f"hub/{name}"
        assert file.read_bytes() == data


@pytest.mark.requirement("M64")
@every_file
def test_a_file_swapped_for_another_or_for_no_file_is_corrupt(home: Path, name: str) -> None:
    file = home / "hub" / name
    others = [(home / "hub" / other).read_bytes() for other in FILES if other != name]
    for data in others:
        file.write_bytes(data)
        with pytest.raises(Corrupt):
            reopen(home, name)
    file.unlink()
    (home / "elsewhere").write_bytes(others[0])
    for make in (
        file.mkdir,
        lambda: file.symlink_to(home / "elsewhere"),
        lambda: file.hardlink_to(home / "elsewhere"),
    ):
        make()
        with pytest.raises(Corrupt):
            reopen(home, name)
        file.rmdir() if file.is_dir() else file.unlink()


def mutations(value: object) -> list[object]:
    """Edit each field of a JSON value as a hand might: gone, another type, another name."""
    found: list[object] = []

    def visit(node: object, path: list[object]) -> None:
        children = (
            node.items() if isinstance(node, dict)
            else enumerate(node) if isinstance(node, list) else ()
        )  # fmt: skip
        for key, child in list(children):
            visit(child, [*path, key])
        if path:
            for other in (None, 7, -1, True, "", "x", [], {}, [[]], [{}], ["x"], {"x": 1}, 1e300):
                edited = copy.deepcopy(value)
                at = edited
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = other
                found.append(edited)
            edited = copy.deepcopy(value)
            at = edited
            for step in path[:-1]:
                at = at[step]
            if isinstance(at, dict):
                at["more"] = at.pop(path[-1])
                found.append(edited)

    visit(value, [])
    return found


@pytest.mark.requirement("M64", "M66", "M6")
@every_file
def test_a_file_edited_by_hand_is_read_exactly_or_refused(home: Path, name: str) -> None:
    """No edit crashes the parser, and none is read as something that it does not say."""
    parse = {"settings.json": settings, "identity.json": credentials, "bindings.json": bindings}
    module = parse[name]
    whole = json.loads((home / "hub" / name).read_bytes())
    refused = 0
    for edited in mutations(whole):
        try:
            value = module.parse(edited)
        except (AmuxError, ValueError):
            refused += 1
            continue
        spelled = getattr(module, "plain", None) or saved_settings
        assert spelled(value) == edited
    assert refused > 20 or name == "settings.json"


def saved_settings(value: settings.Settings) -> object:
    return {
        "memory_enabled": value.memory_enabled,
        "isolation_policy": value.isolation_policy,
    }


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_refused_as_what_they_are(data: bytes) -> None:
    for module in (settings, credentials, bindings):
        with contextlib.suppress(AmuxError, ValueError):
            module.parse(decode(data))


@pytest.mark.requirement("M64")
def test_a_key_twice_is_corrupt_and_not_the_last_one(home: Path) -> None:
    file = home / "hub/identity.json"
    file.write_bytes(file.read_bytes().replace(b'"bob": true', b'"bob": false, "bob": true'))
    with pytest.raises(Corrupt):
        reopen(home, "identity.json")


@pytest.mark.requirement("M64")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"unix:1001": "bob"', b'"unix:1001": "mallory"'),  # nobody of that name
        (b'"unix:1001": "bob"', b'"unix:0": "bob"'),
        (b'"unix:1001": "bob"', b'"unix:65534": "bob"'),
        (b'"unix:1001": "bob"', b'"unix:01001": "bob"'),
        (b'"unix:1001": "bob"', b'"token:abc": "bob"'),
        (b'"local": true', b'"local": false'),
        (b'"local": true', b'"elsewhere": true'),
        (b'"bob": true', b'"BOB": true'),
        (b'"bob": true', b'"bob": 1'),
        (b'"acts_for": "local"', b'"acts_for": "mallory"'),
        (b'"kind": "service"', b'"kind": "agent"'),  # without session and binding
        (b'"kind": "agent"', b'"kind": "person"'),  # with them
        (b'"verbs": ["read"]', b'"verbs": ["read", "mint"]'),
        (b'"parent": "unix:1001"', b'"parent": null'),
        (b"+00:00", b""),
    ],
)
def test_an_identity_that_contradicts_itself_is_corrupt(home: Path, old: bytes, new: bytes) -> None:
    file = home / "hub/identity.json"
    whole = file.read_bytes()
    assert old in whole
    file.write_bytes(whole.replace(old, new))
    with pytest.raises(Corrupt):
        reopen(home, "identity.json")


@pytest.mark.requirement("M64", "M6")
@pytest.mark.slow
@every_file
def test_a_start_with_a_broken_file_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    hub = RunningHub(tmp_path / "home").enable()
    file = tmp_path / "home/hub" / name
    for data in (b"", b"{"):
        file.write_bytes(data)
        for words in (("hub", "serve"), ("system", "status"), ("principal", "list"), ("audit",)):
            done = hub.cli(*words)
            refusal = json.loads(done.stderr.splitlines()[-1])["error"]
            assert (done.returncode, refusal["code"]) == (1, "corrupt"), words
            assert f"hub/{name}" in refusal["message"]
        assert file.read_bytes() == data


# --- changing them ---


@pytest.mark.requirement("M64")
def test_a_disk_that_does_not_take_a_change_leaves_the_old_value_in_force(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (hub.home / "hub/identity.json").read_bytes()
    for step in ("create", "write", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic, step, fails)
            with pytest.raises(NotSaved):
                hub.people.add("carol")
        assert (hub.home / "hub/identity.json").read_bytes() == before
        assert "carol" not in hub.identity.value.principals
        assert not list(hub.home.rglob(".amux-*"))


def fails(*_: object) -> None:
    raise OSError(28, "injected")


@pytest.mark.requirement("M64")
def test_a_change_that_is_not_certainly_durable_is_told_so_and_in_force(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "sync_folder", not_synced)
    token = hub.token
    with pytest.raises(OutcomeUnknown):
        token()
    (found,) = hub.identity.value.tokens
    with pytest.raises(OutcomeUnknown):
        hub.people.revoke_token(found)
    monkeypatch.undo()
    assert not hub.identity.value.tokens[found].is_live(hub.now)
    assert reopen(hub.home, "identity.json") == hub.identity.value


def not_synced(*_: object) -> None:
    raise atomic.SyncFailedError(5, "injected")


@pytest.mark.requirement("M64")
def test_a_value_that_could_not_be_read_again_is_not_written(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (hub.home / "hub/identity.json").read_bytes()
    monkeypatch.setattr(saved, "MAX_BYTES", len(before) + 5)
    with pytest.raises(LimitExceeded):
        hub.people.add("carol")
    assert (hub.home / "hub/identity.json").read_bytes() == before


@pytest.mark.requirement("M64")
def test_what_a_person_can_mend_stands_a_row_a_line(home: Path) -> None:
    lines = (home / "hub/identity.json").read_text().splitlines()
    assert sum('"kind"' in line for line in lines) == 4
    assert all(line.count('"kind"') <= 1 for line in lines)
    rows = (home / "hub/bindings.json").read_text().splitlines()[1:-1]
    random.Random(1).shuffle(rows)
    assert all(json.loads(row.rstrip(",")) for row in rows)
