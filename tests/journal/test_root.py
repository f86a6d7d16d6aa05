"""An active root: named for good, held by one, opened by anybody (J19, J23 to J26), and windows."""

import os
import shutil
from pathlib import Path

import pytest

from amux.core import canonical
from amux.errors import AmuxError, Code
from amux.journal.ledger.state import RuntimeState
from amux.journal.store import root, window
from amux.journal.store.root import Held, opened
from tests.support.roots import DAY, NOW, held, place_in, tree


def name_of(base: Path) -> str | None:
    with opened(place_in(base)) as ground:
        return root.root_id(ground)


def made(base: Path) -> str:
    return held(
        place_in(base),
        lambda one: root.prepare(one, now=NOW, random_bytes=os.urandom),
    )


@pytest.mark.requirement("J24", "J75")
def test_a_root_is_named_by_place_project_and_a_random_id() -> None:
    assert (
        root.identity("/w/.devcodex/billing", "billing", "0" * 32)
        == "24dd0334b1e83eb4fe64debbebef1e8efd795c60cdf207293a2fd36fe97b142e"
    )
    others = {
        root.identity("/w2/.devcodex/billing", "billing", "0" * 32),
        root.identity("/w/.devcodex/billing", "web", "0" * 32),
        root.identity("/w/.devcodex/billing", "billing", "1" * 32),
    }
    assert len(others) == 3


@pytest.mark.requirement("J23", "J24")
def test_a_root_keeps_its_id_until_it_is_stripped_of_it(tmp_path: Path) -> None:
    assert name_of(tmp_path) is None
    first = made(tmp_path)
    assert len(first) == 32
    assert made(tmp_path) == first == name_of(tmp_path)
    (tmp_path / ".devcodex/.runtime-state/root.json").unlink()
    assert name_of(tmp_path) is None
    assert made(tmp_path) != first


@pytest.mark.requirement("J23")
@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff", b'{"rootId":"zz","schemaVersion":"AmuxRootV1"}\n']
)
def test_a_damaged_id_is_told_and_left(tmp_path: Path, data: bytes) -> None:
    made(tmp_path)
    path = tmp_path / ".devcodex/.runtime-state/root.json"
    path.write_bytes(data)
    assert name_of(tmp_path) == made(tmp_path) == ""
    assert path.read_bytes() == data


@pytest.mark.requirement("J3", "J19")
def test_opening_for_a_read_makes_nothing(tmp_path: Path) -> None:
    with opened(place_in(tmp_path)) as ground:
        assert ground is None
        assert window.read(ground, DAY).source() == {
            "path": DAY, "exists": False, "bytes": 0, "modifiedAt": None, "identity": None,
        }  # fmt: skip
        assert window.names(ground, ".memory/clients") == []
    assert tree(tmp_path) == {}


@pytest.mark.requirement("J25")
def test_a_second_holder_is_refused_in_time_and_another_root_is_not(tmp_path: Path) -> None:
    def inside(_: Held) -> None:
        with pytest.raises(AmuxError) as caught:
            held(place_in(tmp_path), lambda _: None, wait_ms=0)
        assert caught.value.code is Code.BUSY
        assert caught.value.details["reason"] == "MEMORY_TRANSACTION_LOCKED"
        held(place_in(tmp_path, "billing"), lambda _: None, wait_ms=0)

    held(place_in(tmp_path), inside)
    held(place_in(tmp_path), lambda _: None, wait_ms=0)


@pytest.mark.requirement("J25")
def test_a_workspace_whose_file_system_has_no_lock_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amux.disk.flock.flock", lambda *_: None)
    with pytest.raises(AmuxError) as caught:
        held(place_in(tmp_path), lambda _: None)
    assert caught.value.code is Code.UNAVAILABLE
    assert caught.value.details["reason"] == "MEMORY_LOCK_UNSUPPORTED"


@pytest.mark.requirement("J25")
def test_a_tree_that_is_made_anew_while_its_lock_is_waited_for_is_locked_anew(
    tmp_path: Path,
) -> None:
    def inside(one: Held) -> None:
        shutil.rmtree(tmp_path / ".devcodex")
        held(place_in(tmp_path), lambda _: None, wait_ms=0)  # nobody holds that one
        with pytest.raises(root.LockGoneError):
            one.require()

    held(place_in(tmp_path), inside)


@pytest.mark.requirement("J55", "J57")
def test_a_window_is_the_end_of_a_file_and_proves_only_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / ".devcodex/é.md"
    path.parent.mkdir()
    data = b"0123456789" * 10
    path.write_bytes(data)
    os.utime(path, ns=(1_773_451_200_123_999_999,) * 2)
    with opened(place_in(tmp_path)) as ground:
        whole = window.read(ground, "é.md")
        cut = window.read(ground, "é.md", max_bytes=99)
    assert (whole.data, whole.start, whole.total, whole.is_cut) == (data, 0, 100, False)
    assert whole.source() == {
        "path": "é.md",
        "exists": True,
        "bytes": 100,
        "modifiedAt": "2026-03-14T01:20:00.123Z",
        "identity": {
            "schemaVersion": "ContentIdentityV1", "algorithm": "sha256", "sourceKey": "é.md",
            "contractVersion": 1, "digest": canonical.digest(data), "bytes": 100,
        },
    }  # fmt: skip
    assert (cut.data, cut.start, cut.total, cut.is_cut) == (data[1:], 1, 100, True)
    assert (cut.sha256, cut.identity(), cut.source()["identity"]) == (None, None, None)
    assert (whole.cursor_source, cut.cursor_source) == (canonical.digest(data), "absent")
    assert window.identity("e\u0301.md", "x", 0)["sourceKey"] == "é.md"


@pytest.mark.requirement("T6", "J23")
def test_the_runtime_state_is_changed_by_who_holds_the_root_and_by_nobody_else(
    tmp_path: Path,
) -> None:
    def act(one: Held) -> None:
        state = RuntimeState.of(one)
        assert state.create("ledger/task/a.json", b"1")
        assert not state.create("ledger/task/a.json", b"2")
        seen: list[bytes | None] = []
        state.replace(
            "ledger/task/a.json",
            b"3",
            lambda: seen.append(state.read("ledger/task/a.json", max_bytes=9)),
        )
        assert seen == [b"1"]
        assert state.names("ledger/task") == ["a.json"]
        (tmp_path / ".devcodex/.runtime-state/memory.lock").unlink()
        with pytest.raises(root.LockGoneError):
            state.replace("ledger/task/a.json", b"4", lambda: None)
        with pytest.raises(root.LockGoneError):
            state.remove("ledger/task/a.json")

    place = place_in(tmp_path)
    held(place, act)
    with opened(place) as ground:
        reading = RuntimeState(ground)
        assert reading.read("ledger/task/a.json", max_bytes=9) == b"3"
        with pytest.raises(RuntimeError):
            reading.create("x", b"")
