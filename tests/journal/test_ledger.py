import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux.disk import atomic, commit
from amux.errors import AmuxError, Corrupt
from amux.journal.ledger import meta, record
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.meta import Meta, Seen
from amux.journal.ledger.state import RuntimeState
from amux.journal.store import root
from amux.journal.store.root import Held, Place, hold, opened

ROOT = "0" * 64
OTHER = "1" * 64
AT = "2026-03-14T01:20:00.000Z"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(base=str(tmp_path), steps=(".devcodex",), uid=os.geteuid())


def writing(place: Place, act: Callable[[Ledger], object]) -> object:
    return hold(place, wait_ms=1000, act=lambda held: act(Ledger(RuntimeState.of(held))))


def reading(place: Place, act: Callable[[Ledger], object]) -> object:
    with opened(place) as ground:
        return act(Ledger(RuntimeState(ground)))


@pytest.fixture
def held(place: Place) -> Iterator[Held]:
    """Hold a root beyond one call, as only a test does."""
    found = root._tried(place)
    assert found is not None
    yield found
    found.release()


def folder(place: Place) -> Path:
    return Path(place.base) / ".devcodex/.runtime-state/ledger"


def tree(place: Place) -> dict[str, bytes]:
    base = Path(place.base)
    return {
        str(path.relative_to(base)): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file()
    }


@pytest.mark.requirement("T5", "T6")
def test_a_record_is_made_changed_and_read_back_as_a_file(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        one = ledger.change(None, record.first("task", "k", {"n": 1}))
        two = ledger.change(one, one.successor({"n": 2}))
        assert (two.seq, two.previous) == (2, one.digest)

    writing(place, act)
    path = folder(place) / "task/k.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder(place).stat().st_mode & 0o777 == 0o700
    found = reading(place, lambda ledger: ledger.read("task", "k"))
    assert isinstance(found, record.Record)
    assert found.render() == path.read_bytes()
    assert found.body == {"n": 2}


@pytest.mark.requirement("T7")
def test_reading_makes_nothing_and_needs_no_lock(place: Place, held: Held) -> None:
    ledger = Ledger(RuntimeState.of(held))
    ledger.change(None, record.first("task", "k", {"n": 1}))
    before = tree(place)
    assert reading(place, lambda other: other.read("task", "none")) is None
    assert reading(place, lambda other: other.keys("child")) == []
    assert reading(place, lambda other: [one.key for one in other.every("task")]) == ["k"]
    assert tree(place) == before


@pytest.mark.requirement("T7")
def test_a_tree_without_a_ledger_has_no_records(tmp_path: Path) -> None:
    nowhere = Place(base=str(tmp_path / "none"), steps=(".devcodex",), uid=os.geteuid())
    assert reading(nowhere, lambda ledger: ledger.read("task", "k")) is None
    assert reading(nowhere, lambda ledger: ledger.count()) == 0


@pytest.mark.requirement("T6", "TA34")
@pytest.mark.parametrize("what", ["replaced", "removed", "damaged"])
def test_a_record_that_changes_behind_the_lock_is_not_overwritten(
    place: Place, held: Held, what: str
) -> None:
    ledger = Ledger(RuntimeState.of(held))
    decided_on = ledger.change(None, record.first("task", "k", {"n": 1}))
    path = folder(place) / "task/k.json"
    foreign = decided_on.successor({"n": "theirs"}).render()
    match what:
        case "replaced":
            path.write_bytes(foreign)
        case "removed":
            path.unlink()
        case _:
            path.write_bytes(b"{}")
    before = tree(place)
    with pytest.raises(AmuxError) as refused:
        ledger.change(decided_on, decided_on.successor({"n": 2}))
    assert refused.value.code == "internal"
    assert refused.value.details["reason"] == "TASK_LEDGER_CAS_LOST"
    assert tree(place) == before


@pytest.mark.requirement("T6")
def test_a_record_that_appears_meanwhile_is_not_overwritten(held: Held) -> None:
    ledger = Ledger(RuntimeState.of(held))
    theirs = ledger.change(None, record.first("task", "k", {"n": "theirs"}))
    with pytest.raises(AmuxError) as refused:
        ledger.change(None, record.first("task", "k", {"n": 1}))
    assert refused.value.details["reason"] == "TASK_LEDGER_CAS_LOST"
    assert ledger.read("task", "k") == theirs


@pytest.mark.requirement("T6")
def test_a_record_that_never_changes_is_made_once(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        one = ledger.create("ingress", "i", {"n": 1})
        assert ledger.create("ingress", "i", {"n": 1}) == one
        with pytest.raises(AmuxError) as refused:
            ledger.create("ingress", "i", {"n": 2})
        assert refused.value.details["reason"] == "TASK_LEDGER_CAS_LOST"
        assert ledger.read("ingress", "i") == one

    writing(place, act)


@pytest.mark.requirement("T6")
def test_a_record_that_is_not_what_was_written_is_told(
    place: Place, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = commit.flush

    def torn(at: object) -> None:
        flush(at)  # type: ignore[arg-type]
        (folder(place) / "task/k.json").write_bytes(b"torn")

    monkeypatch.setattr(commit, "flush", torn)
    with pytest.raises(AmuxError) as refused:
        Ledger(RuntimeState.of(held)).change(None, record.first("task", "k", {"n": 1}))
    assert refused.value.code == "outcome_unknown"
    assert refused.value.details["reason"] == "TASK_WRITE_CONTEXT_READBACK_MISMATCH"


@pytest.mark.requirement("T6")
@pytest.mark.parametrize("what", ["half", "noise", "empty", "folder", "fifo", "link", "copied"])
def test_only_calls_that_need_a_damaged_record_are_refused(place: Place, what: str) -> None:
    writing(place, lambda ledger: ledger.change(None, record.first("task", "a", {"n": 1})))
    writing(place, lambda ledger: ledger.change(None, record.first("task", "b", {"n": 1})))
    path = folder(place) / "task/a.json"
    whole = path.read_bytes()
    path.unlink()
    match what:
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "noise":
            path.write_bytes(os.urandom(200))
        case "empty":
            path.write_bytes(b"")
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to(folder(place) / "task/b.json")
        case _:
            path.write_bytes((folder(place) / "task/b.json").read_bytes())
    for use in (reading, writing):
        with pytest.raises(Corrupt) as refused:
            use(place, lambda ledger: ledger.read("task", "a"))
        assert refused.value.details["reason"] == "MEMORY_LEDGER_CORRUPT"
        assert refused.value.details["record"] == "task/a.json"
    assert reading(place, lambda ledger: [one.key for one in ledger.every("task")]) == ["b"]
    writing(place, lambda ledger: ledger.read("task", "b"))


@pytest.mark.requirement("T6")
def test_the_next_writer_sweeps_what_a_crash_left(place: Place) -> None:
    writing(place, lambda ledger: ledger.change(None, record.first("task", "a", {"n": 1})))
    left = folder(place) / "task/.a.json.amux-0123456789abcdef.tmp"
    left.write_bytes(b"half")
    theirs = folder(place) / "task/notes.txt"
    theirs.write_bytes(b"mine")
    writing(place, lambda ledger: ledger.change(None, record.first("task", "b", {"n": 1})))
    assert not left.exists()
    assert theirs.exists()
    assert reading(place, lambda ledger: ledger.keys("task")) == ["a", "b"]


@pytest.mark.requirement("TA11")
def test_a_ledger_behind_a_link_is_refused(place: Place, tmp_path: Path) -> None:
    writing(place, lambda ledger: ledger.change(None, record.first("task", "a", {"n": 1})))
    outside = tmp_path / "outside"
    (folder(place) / "task").rename(outside)
    (folder(place) / "task").symlink_to(outside)
    before = tree(place)
    for use in (reading, writing):
        with pytest.raises(Corrupt) as refused:
            use(place, lambda ledger: ledger.read("task", "a"))
        assert refused.value.details["reason"] == "MEMORY_PATH_REPARSE_BLOCKED"
    assert tree(place) == before


@pytest.mark.requirement("T6")
def test_a_full_disk_leaves_the_old_record(
    place: Place, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(RuntimeState.of(held))
    one = ledger.change(None, record.first("task", "k", {"n": 1}))
    before = tree(place)

    def full(*_: object) -> int:
        raise OSError(28, "no space left")

    for name in ("write", "fsync", "rename", "create"):
        with monkeypatch.context() as patched:
            patched.setattr(atomic, name, full)
            with pytest.raises(AmuxError) as refused:
                ledger.change(one, one.successor({"n": 2}))
        assert refused.value.details["reason"] == "MEMORY_DISK_FULL"
        assert tree(place) == before


@pytest.mark.requirement("T8")
def test_the_generation_rises_when_the_root_changes_or_meta_is_lost(place: Place) -> None:
    assert writing(place, lambda ledger: meta.settle(ledger, ROOT, AT)) == Meta(ROOT, 1)
    assert writing(place, lambda ledger: meta.settle(ledger, ROOT, AT)) == Meta(ROOT, 1)
    assert reading(place, lambda ledger: meta.read(ledger, ROOT)) == Meta(ROOT, 1)
    assert reading(place, lambda ledger: meta.read(ledger, OTHER)) is None
    assert writing(place, lambda ledger: meta.settle(ledger, OTHER, AT)) == Meta(OTHER, 2)
    body: dict[str, object] = {"runtimeGeneration": 7}
    writing(place, lambda ledger: ledger.change(None, record.first("task", "t", body)))
    writing(place, lambda ledger: ledger.change(None, record.first("route", "r", {})))
    assert writing(place, lambda ledger: meta.settle(ledger, OTHER, AT)) == Meta(OTHER, 2)
    (folder(place) / "meta.json").unlink()
    assert writing(place, lambda ledger: meta.settle(ledger, OTHER, AT)) == Meta(OTHER, 8)
    assert reading(place, lambda ledger: ledger.keys("route")) == []
    assert writing(place, lambda ledger: meta.revoke(ledger, OTHER, AT)) == Meta(OTHER, 9)


@pytest.mark.requirement("T8")
def test_a_damaged_meta_record_is_refused_until_a_person_removes_it(place: Place) -> None:
    writing(place, lambda ledger: meta.settle(ledger, ROOT, AT))
    path = folder(place) / "meta.json"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(Corrupt) as refused:
        writing(place, lambda ledger: meta.settle(ledger, ROOT, AT))
    assert refused.value.details["record"] == "meta.json"
    path.unlink()
    assert writing(place, lambda ledger: meta.settle(ledger, ROOT, AT)) == Meta(ROOT, 1)


@pytest.mark.requirement("T8")
def test_a_state_before_one_that_was_seen_is_refused() -> None:
    seen = Seen()
    seen.note(ROOT, "t", (1, 5))
    seen.note(ROOT, "t", (1, 5))
    seen.note(OTHER, "t", (1, 2))
    seen.note(ROOT, "u", (1, 1))
    for pair in ((1, 4), (0, 9)):
        with pytest.raises(AmuxError) as refused:
            seen.note(ROOT, "t", pair)
        assert refused.value.code == "lease_lost"
        assert refused.value.details["reason"] == "TASK_LEDGER_REWOUND"
    seen.note(ROOT, "t", (2, 1))
