"""Documents as files: what only files can get wrong."""

import errno
import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.identity import GLOBAL, Scope
from amux.core.path import DocPath
from amux.disk import atomic
from amux.disk.tree import Folder
from amux.errors import (
    AmuxError,
    Busy,
    Corrupt,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    NotSaved,
    OutcomeUnknown,
    PermissionDenied,
    QuotaExceeded,
    RevisionConflict,
    Unavailable,
)
from amux.memory.document import Missing, Present
from amux.memory.files import Files
from amux.memory.store import View

ABSENT = revision.ABSENT
FAR = 10.0  # seconds; a test that waits so long has failed


def at(text: str) -> DocPath:
    return DocPath.parse(text)


def tree(top: Path) -> set[str]:
    return {path.relative_to(top).as_posix() for path in top.rglob("*")}


def refreshed(view: View) -> View:
    for _ in view.refresh():
        pass
    return view


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture(params=[False, True], ids=["openat2", "stepwise"])
def store(request: pytest.FixtureRequest, place: Path) -> Iterator[Files]:
    made = Files(str(place), stepwise=request.param)
    yield made
    made.close()


@pytest.mark.requirement("M1", "M4")
def test_reading_makes_nothing_and_writing_makes_private_files(store: Files, place: Path) -> None:
    someone = Scope("principal:Ünï 1")
    for scope in (GLOBAL, someone):
        assert store.read(scope, at("a/b.md")) == Missing()
        assert store.usage(scope) == (0, 0)
        assert refreshed(store.view(scope)).is_complete
        assert store.broken(scope) == []
        assert store.remove(scope, at("a/b.md"), ABSENT) == ABSENT
    assert tree(place) == set()
    store.put(GLOBAL, at("a/b.md"), b"1", ABSENT)
    store.put(someone, at("MEMORY.md"), b"2", ABSENT)
    home = "users/" + hashlib.sha256("Ünï 1".encode()).hexdigest()
    assert tree(place) == {
        "global",
        "global/a",
        "global/a/b.md",
        "users",
        home,
        f"{home}/MEMORY.md",
    }
    for path in place.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


@pytest.mark.requirement("M14")
def test_the_revision_is_what_sha256sum_says(store: Files, place: Path) -> None:
    put = store.put(GLOBAL, at("a.md"), "偏好\r\n".encode(), ABSENT)
    assert put.revision == hashlib.sha256((place / "global/a.md").read_bytes()).hexdigest()


@pytest.mark.requirement("M29")
def test_identical_bytes_do_not_touch_the_file(store: Files, place: Path) -> None:
    put = store.put(GLOBAL, at("a.md"), b"same", ABSENT)
    before = (place / "global/a.md").stat()
    store.put(GLOBAL, at("a.md"), b"same", put.revision)
    after = (place / "global/a.md").stat()
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)


@pytest.mark.requirement("M20")
def test_a_forget_removes_what_it_empties_and_no_more(store: Files, place: Path) -> None:
    one = store.put(GLOBAL, at("a/b/c/one.md"), b"1", ABSENT)
    store.put(GLOBAL, at("a/two.md"), b"2", ABSENT)
    store.remove(GLOBAL, at("a/b/c/one.md"), one.revision)
    assert tree(place) == {"global", "global/a", "global/a/two.md"}
    store.remove(GLOBAL, at("a/two.md"), revision.of(b"2"))
    assert tree(place) == {"global"}


@pytest.mark.requirement("M23")
def test_a_start_sweeps_its_own_temporaries_and_nothing_else(place: Path) -> None:
    top = place / "global" / "a"
    top.mkdir(parents=True)
    for name in (".amux-0123456789abcdef", ".amux-x", "a.tmp", ".amux-0123456789abcdef.md"):
        (top / name).touch()
    (top / ".amux-fedcba9876543210").symlink_to("a.tmp")
    (place / ".amux-00112233445566aa").touch()
    Files(str(place)).close()
    assert tree(place) == {
        "global", "global/a", "global/a/.amux-x", "global/a/a.tmp",
        "global/a/.amux-0123456789abcdef.md", "global/a/.amux-fedcba9876543210",
    }  # fmt: skip


# --- files that are no documents (M8, row 8) ---

HOSTILE = {
    "link.md": "link",
    "folder-link/x.md": "link",
    "hard.md": "hard_link",
    "fifo.md": "not_regular",
    "socket.md": "not_regular",
    "sparse.md": "too_large",
    "latin.md": "not_utf8",
    "zero.md": "nul",
}


@pytest.fixture
def hostile(place: Path, tmp_path: Path) -> Path:
    top, outside = place / "global", tmp_path / "outside"
    top.mkdir(parents=True)
    outside.mkdir()
    (outside / "x.md").write_bytes(b"SECRET")
    (top / "link.md").symlink_to(outside / "x.md")
    (top / "folder-link").symlink_to(outside)
    (top / "hard.md").hardlink_to(outside / "x.md")
    os.mkfifo(top / "fifo.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(top / "socket.md"))
    with (top / "sparse.md").open("wb") as sparse:
        sparse.truncate(1 << 30)
    (top / "latin.md").write_bytes(b"caf\xe9")
    (top / "zero.md").write_bytes(b"a\0b")
    (top / os.fsdecode(b"odd\xff.md")).write_bytes(b"1")
    (top / "notes.txt").write_bytes(b"1")
    (top / "good.md").write_bytes(b"fine")
    return top


@pytest.mark.requirement("M8", "M12", "row-8", "bug-25")
def test_a_file_that_breaks_a_rule_is_never_read_written_or_removed(
    hostile: Path, store: Files
) -> None:
    before = tree(hostile)
    for name, reason in HOSTILE.items():
        calls: list[Callable[[], object]] = [
            lambda name=name: store.read(GLOBAL, at(name)),
            lambda name=name: store.put(GLOBAL, at(name), b"new", ABSENT),
            lambda name=name: store.remove(GLOBAL, at(name), ABSENT),
        ]
        for call in calls:
            with pytest.raises(Corrupt) as refused:
                call()
            assert refused.value.details["reason"] == reason, name
    assert tree(hostile) == before
    assert (hostile.parents[1] / "outside/x.md").read_bytes() == b"SECRET"
    assert store.read(GLOBAL, at("good.md")) == Present(b"fine")


@pytest.mark.requirement("M8", "row-8", "bug-6")
def test_a_view_skips_and_counts_what_is_no_document(hostile: Path, store: Files) -> None:
    view = refreshed(store.view(GLOBAL))
    assert set(view.documents) == {"good.md", "latin.md", "zero.md"}  # their bytes are not read yet
    assert [view.read(path) for path in sorted(view.documents)] == [b"fine", None, None]
    assert view.skipped == 8
    assert view.is_complete
    assert view.read("link.md") is None
    assert store.usage(GLOBAL).documents == len(list(hostile.iterdir()))
    assert store.usage(GLOBAL).bytes > 1 << 30


@pytest.mark.requirement("M8")
def test_check_lists_each_with_its_reason_and_discards_by_the_name_it_listed(
    hostile: Path, store: Files
) -> None:
    listed = {item.path: item.reason for item in store.broken(GLOBAL)}
    expected = {
        **HOSTILE, "folder-link": "link", "odd\\xff.md": "odd_name", "notes.txt": "odd_name",
    }  # fmt: skip
    del expected["folder-link/x.md"]
    assert listed == expected
    for name in listed:
        store.discard(GLOBAL, name)
        with pytest.raises(NotFound):
            store.discard(GLOBAL, name)
    assert tree(hostile) == {"good.md"}
    assert (hostile.parents[1] / "outside/x.md").read_bytes() == b"SECRET"


@pytest.mark.slow
@pytest.mark.requirement("M8", "row-8")
def test_nine_thousand_stray_entries_stall_nothing(place: Path) -> None:
    top = place / "global"
    top.mkdir(parents=True)
    for number in range(9000):
        (top / f"stray-{number}").touch()
    (top / "a.md").write_bytes(b"there")
    store = Files(str(place))
    view = store.view(GLOBAL)
    longest = 0.0
    steps = iter(view.refresh())
    while True:
        began = time.thread_time()
        if next(steps, view) is view:
            break
        longest = max(longest, time.thread_time() - began)
    assert not view.is_complete
    assert longest < 0.05  # of its own time; a millisecond, and room for a slow machine
    assert store.read(GLOBAL, at("a.md")) == Present(b"there")
    with pytest.raises(QuotaExceeded):
        store.put(GLOBAL, at("b.md"), b"1", ABSENT)
    store.put(GLOBAL, at("a.md"), b"1", revision.of(b"there"))
    store.close()


@pytest.mark.requirement("M16")
def test_an_entry_that_a_person_made_too_large_is_served_and_can_be_made_smaller(
    store: Files, place: Path
) -> None:
    large = b"x" * 5000
    (place / "global").mkdir()
    (place / "global/MEMORY.md").write_bytes(large)
    assert store.read(GLOBAL, at("MEMORY.md")) == Present(large)
    assert store.broken(GLOBAL) == [("MEMORY.md", "entry_too_large")]
    with pytest.raises(LimitExceeded):
        store.put(GLOBAL, at("MEMORY.md"), large[1:], revision.of(large))
    store.put(GLOBAL, at("MEMORY.md"), b"short", revision.of(large))
    assert store.broken(GLOBAL) == []


@pytest.mark.requirement("M18", "row-4")
def test_a_scope_put_over_its_quota_on_disk_may_only_shrink(store: Files, place: Path) -> None:
    store.put(GLOBAL, at("a.md"), b"1234", ABSENT)
    with (place / "global/large.bin").open("wb") as large:
        large.truncate(17 << 20)
    with pytest.raises(QuotaExceeded):
        store.put(GLOBAL, at("a.md"), b"12345", revision.of(b"1234"))
    store.put(GLOBAL, at("a.md"), b"123", revision.of(b"1234"))
    store.put(GLOBAL, at("empty.md"), b"", ABSENT)
    (place / "global/large.bin").unlink()
    store.put(GLOBAL, at("a.md"), b"12345", revision.of(b"123"))


# --- editors (M9, row 15) ---


def in_place(file: Path) -> None:
    file.write_bytes(b"edited")


def by_rename(file: Path) -> None:
    (file.parent / "swap").write_bytes(b"edited")
    (file.parent / "swap").rename(file)


@pytest.mark.requirement("M9", "row-15", "bug-2")
@pytest.mark.parametrize("edit", [in_place, by_rename])
def test_an_edit_between_check_and_rename_is_never_overwritten(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path], None]
) -> None:
    there = store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    exchange = atomic.exchange

    def edited_first(folder: Folder, one: str, other: str) -> bool:
        monkeypatch.undo()
        edit(place / "global/a.md")
        return exchange(folder, one, other)

    monkeypatch.setattr(atomic, "exchange", edited_first)
    with pytest.raises(RevisionConflict) as refused:
        store.put(GLOBAL, at("a.md"), b"two", there.revision)
    assert refused.value.details["observed"] == revision.of(b"edited")
    assert (place / "global/a.md").read_bytes() == b"edited"
    assert tree(place) == {"global", "global/a.md"}
    assert store.pending(GLOBAL) is None


@pytest.mark.requirement("M9", "row-15")
def test_a_file_that_appears_between_check_and_create_stays(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename_new = atomic.rename_new

    def edited_first(folder: Folder, source: str, target: str) -> None:
        in_place(place / "global/a.md")
        rename_new(folder, source, target)

    monkeypatch.setattr(atomic, "rename_new", edited_first)
    with pytest.raises(RevisionConflict) as refused:
        store.put(GLOBAL, at("a.md"), b"two", ABSENT)
    assert refused.value.details["observed"] == revision.of(b"edited")
    assert tree(place) == {"global", "global/a.md"}


@pytest.mark.requirement("M9")
def test_a_file_removed_between_check_and_replace_is_a_conflict(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    exchange = atomic.exchange

    def removed_first(folder: Folder, one: str, other: str) -> bool:
        (place / "global/a.md").unlink()
        return exchange(folder, one, other)

    monkeypatch.setattr(atomic, "exchange", removed_first)
    with pytest.raises(RevisionConflict) as refused:
        store.put(GLOBAL, at("a.md"), b"two", there.revision)
    assert refused.value.details["observed"] == ABSENT
    assert tree(place) == {"global"} or tree(place) == set()


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("last", [b"saved again", None])
def test_an_editor_that_saves_again_while_its_bytes_are_given_back_has_the_last_word(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch, last: bytes | None
) -> None:
    there = store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    file = place / "global/a.md"
    exchange = atomic.exchange
    calls = []

    def raced(folder: Folder, one: str, other: str) -> bool:
        calls.append(other)
        if len(calls) == 1:
            by_rename(file)
        if len(calls) == 2 and last is None:
            file.unlink()
        if len(calls) == 2 and last is not None:
            (place / "global/swap").write_bytes(last)
            (place / "global/swap").rename(file)
        return exchange(folder, one, other)

    monkeypatch.setattr(atomic, "exchange", raced)
    with pytest.raises(RevisionConflict):
        store.put(GLOBAL, at("a.md"), b"two", there.revision)
    assert file.read_bytes() == (last or b"edited")
    assert tree(place) == {"global", "global/a.md"}


@pytest.mark.requirement("M9")
def test_a_kernel_that_cannot_exchange_replaces_all_the_same(
    store: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_renameat2", lambda *_: False)
    first = store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    store.put(GLOBAL, at("a.md"), b"two", first.revision)
    assert store.read(GLOBAL, at("a.md")) == Present(b"two")


@pytest.mark.requirement("M12")
def test_a_folder_swapped_for_a_link_while_a_write_is_on_its_way_changes_nothing_outside(
    store: Files, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = store.put(GLOBAL, at("a/b.md"), b"one", ABSENT)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.md").write_bytes(b"one")
    stage = atomic.stage

    def swapped_after(folder: Folder, data: bytes) -> str:
        name = stage(folder, data)
        (place / "global/a").rename(place / "global/old")
        (place / "global/a").symlink_to(tmp_path / "outside")
        return name

    monkeypatch.setattr(atomic, "stage", swapped_after)
    with pytest.raises(Corrupt):
        store.put(GLOBAL, at("a/b.md"), b"two", there.revision)
    assert tree(tmp_path / "outside") == {"b.md"}
    assert (tmp_path / "outside/b.md").read_bytes() == b"one"
    assert tree(place / "global/old") == {"b.md"}
    assert (place / "global/old/b.md").read_bytes() == b"one"


# --- refusals of the disk (M23) ---

STEPS = ["make_folder", "create", "write", "fsync", "rename_new"]
SAID = [
    (number, kind)
    for kind, numbers in (
        (NotSaved, (errno.ENOSPC, errno.EDQUOT, errno.EIO)),
        (PermissionDenied, (errno.EACCES, errno.EPERM, errno.EROFS)),
    )
    for number in numbers
]


@pytest.mark.requirement("M23", "row-17")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("number", "kind"), SAID)
def test_a_create_that_the_disk_refuses_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, kind: type[AmuxError]
) -> None:
    store = Files(str(place))

    def fail(*_: object) -> None:
        raise OSError(number, "refused")

    with monkeypatch.context() as patched:
        patched.setattr(atomic, step, fail)
        with pytest.raises(kind) as refused:
            store.put(GLOBAL, at("a/b/c.md"), b"new", ABSENT)
    if kind is PermissionDenied:
        assert refused.value.details["reason"] == "root_not_writable"
    assert not [path for path in place.rglob("*") if path.is_file()]
    assert not (place / "global/a").exists()
    if step != "fsync":  # a directory that was not synced is never believed to be
        store.put(GLOBAL, at("a/b/c.md"), b"new", ABSENT)
    assert store.is_failed == (step == "fsync")
    store.close()


@pytest.mark.requirement("M23", "row-17")
@pytest.mark.parametrize("step", ["create", "write", "fsync", "exchange"])
@pytest.mark.parametrize(("number", "kind"), SAID)
def test_a_replace_that_the_disk_refuses_leaves_the_old_document(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int,
    kind: type[AmuxError],
) -> None:  # fmt: skip
    there = store.put(GLOBAL, at("a/b.md"), b"old", ABSENT)

    def fail(*_: object) -> None:
        raise OSError(number, "refused")

    with monkeypatch.context() as patched:
        patched.setattr(atomic, step, fail)
        with pytest.raises(kind):
            store.put(GLOBAL, at("a/b.md"), b"new", there.revision)
        assert store.read(GLOBAL, at("a/b.md")) == Present(b"old")
    assert tree(place) == {"global", "global/a", "global/a/b.md"}
    assert store.pending(GLOBAL) is None
    assert store.put(GLOBAL, at("a/b.md"), b"new", there.revision).changed


def fail_folder_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = atomic.fsync

    def fail(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "lost")
        fsync(fd)

    monkeypatch.setattr(atomic, "fsync", fail)


@pytest.mark.requirement("M23", "M24")
@pytest.mark.parametrize("verb", ["create", "replace", "remove"])
def test_what_fails_after_the_rename_is_unknown_and_ends_all_writing(
    place: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    failures: list[int] = []
    store = Files(str(place), on_failure=lambda: failures.append(1))
    there = store.put(GLOBAL, at("a.md"), b"old", ABSENT)
    other = store.put(GLOBAL, at("other.md"), b"other", ABSENT)
    fail_folder_fsync(monkeypatch)
    path, calls = at("new.md" if verb == "create" else "a.md"), {
        "create": lambda: store.put(GLOBAL, at("new.md"), b"new", ABSENT),
        "replace": lambda: store.put(GLOBAL, at("a.md"), b"new", there.revision),
        "remove": lambda: store.remove(GLOBAL, at("a.md"), there.revision),
    }  # fmt: skip
    with pytest.raises(OutcomeUnknown):
        calls[verb]()
    assert store.is_failed
    assert failures == [1]
    monkeypatch.undo()  # the disk is well again, and is not believed
    with pytest.raises(Unavailable):
        store.put(GLOBAL, at("other.md"), b"more", other.revision)
    with pytest.raises(Unavailable):
        store.remove(Scope("principal:x"), at("other.md"), other.revision)
    ticket = store.pending(GLOBAL, path)
    assert ticket is not None
    with pytest.raises(Unavailable):
        _ = ticket.is_settled
    assert store.pending(GLOBAL, at("other.md")) is None
    assert store.read(GLOBAL, at("other.md")) == Present(b"other")
    assert failures == [1]
    store.close()


@pytest.mark.requirement("M23")
def test_a_refused_write_leaves_no_folder_behind(
    store: Files, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(GLOBAL, at("keep.md"), b"1", ABSENT)
    stage = atomic.stage

    def beaten(folder: Folder, data: bytes) -> str:
        name = stage(folder, data)
        (place / "global/a/B.md").touch()
        return name

    monkeypatch.setattr(atomic, "stage", beaten)
    with pytest.raises(InvalidArgument):
        store.put(GLOBAL, at("a/b.md"), b"1", ABSENT)
    monkeypatch.undo()
    assert tree(place) == {"global", "global/keep.md", "global/a", "global/a/B.md"}
    for path, data in (("b/c.txt/d.md", b"x" * (64 * 1024 + 1)), ("keep.md/x.md", b"")):
        with pytest.raises(AmuxError):
            store.put(GLOBAL, at(path), data, ABSENT)
    with pytest.raises(RevisionConflict):
        store.put(GLOBAL, at("c/d.md"), b"", "0" * 64)
    assert tree(place) == {"global", "global/keep.md", "global/a", "global/a/B.md"}


# --- waiting (M24, M25, M26) ---


class Gate:
    """Fsyncs of directories wait here while it is shut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()
        fsync = atomic.fsync

        def wait(fd: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{fd}"):
                self.reached.release()
                assert self.open.wait(FAR)
            fsync(fd)

        monkeypatch.setattr(atomic, "fsync", wait)


@pytest.mark.requirement("M24", "M25")
def test_a_renamed_document_is_pending_and_what_would_show_it_waits(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Files(str(place), wait_seconds=0.1)
    one = store.put(GLOBAL, at("a.md"), b"one", ABSENT).revision
    gone = store.put(GLOBAL, at("gone.md"), b"gone", ABSENT).revision
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor() as pool:
        writer = pool.submit(store.put, GLOBAL, at("a.md"), b"two", one)
        assert gate.reached.acquire(timeout=FAR)
        remover = pool.submit(store.remove, GLOBAL, at("gone.md"), gone)
        while store.pending(GLOBAL, at("gone.md")) is None:
            assert not remover.done()
        ticket = store.pending(GLOBAL, at("a.md"))
        whole = store.pending(GLOBAL)
        assert ticket is not None
        assert whole is not None
        assert not ticket.is_settled
        assert not whole.is_settled
        assert store.pending(GLOBAL, at("b.md")) is None
        assert store.pending(Scope("principal:x")) is None
        two = revision.of(b"two")
        for call in (
            lambda: store.put(GLOBAL, at("a.md"), b"three", one),  # a conflict tells the revision
            lambda: store.put(GLOBAL, at("a.md"), b"two", two),  # so does doing nothing
            lambda: store.remove(GLOBAL, at("a.md"), one),
            lambda: store.remove(GLOBAL, at("gone.md"), gone),  # and so does `already absent`
        ):
            began = time.monotonic()
            with pytest.raises(Busy):
                call()
            assert 0.09 < time.monotonic() - began < 2
        gate.open.set()
        assert writer.result(FAR).revision == two
        assert remover.result(FAR) == gone
    assert ticket.is_settled
    assert whole.is_settled
    assert store.pending(GLOBAL) is None
    store.close()


@pytest.mark.requirement("M24", "M26")
def test_a_conflict_is_told_once_the_winner_is_durable(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Files(str(place))
    one = store.put(GLOBAL, at("a.md"), b"one", ABSENT).revision
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor() as pool:
        winner = pool.submit(store.put, GLOBAL, at("a.md"), b"two", one)
        assert gate.reached.acquire(timeout=FAR)
        loser = pool.submit(store.put, GLOBAL, at("a.md"), b"three", one)
        with pytest.raises(TimeoutError):
            loser.result(0.1)
        gate.open.set()
        with pytest.raises(RevisionConflict) as refused:
            loser.result(FAR)
        assert refused.value.details["observed"] == winner.result(FAR).revision
    store.close()


@pytest.mark.requirement("M25")
def test_a_scope_whose_disk_hangs_does_not_hold_up_another(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Files(str(place), wait_seconds=0.1)
    other = Scope("principal:other")
    there = store.put(other, at("a.md"), b"one", ABSENT).revision
    store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    entered, leave = threading.Event(), threading.Event()
    exchange = atomic.exchange

    def hang(folder: Folder, one: str, two: str) -> bool:
        entered.set()
        assert leave.wait(FAR)
        return exchange(folder, one, two)

    with ThreadPoolExecutor() as pool:
        with monkeypatch.context() as patched:
            patched.setattr(atomic, "exchange", hang)
            slow = pool.submit(store.put, GLOBAL, at("a.md"), b"two", revision.of(b"one"))
            assert entered.wait(FAR)
        store.put(other, at("a.md"), b"two", there)
        with pytest.raises(Busy):
            store.put(GLOBAL, at("b.md"), b"one", ABSENT)
        assert not (place / "global/b.md").exists()
        assert store.read(GLOBAL, at("a.md")) == Present(b"one")  # a read never waits for it
        leave.set()
        assert slow.result(FAR).changed
    store.close()


@pytest.mark.slow
@pytest.mark.requirement("M26")
def test_of_writers_with_one_revision_exactly_one_wins_and_the_others_learn_whose(
    store: Files, place: Path
) -> None:
    expected = ABSENT
    with ThreadPoolExecutor(4) as pool:
        for number in range(100):
            barrier = threading.Barrier(4)
            observed: list[object] = []

            def race(
                writer: int, number: int = number, expected: str = expected,
                barrier: threading.Barrier = barrier, observed: list[object] = observed,
            ) -> str | None:  # fmt: skip
                barrier.wait(FAR)
                data = b"%d by %d" % (number, writer)
                try:
                    return store.put(GLOBAL, at("a/b.md"), data, expected).revision
                except RevisionConflict as conflict:
                    observed.append(conflict.details["observed"])
                    return None

            won = [told for told in pool.map(race, range(4)) if told]
            assert len(won) == 1
            assert observed == won * 3
            if number % 3:
                expected = won[0]
            else:
                store.remove(GLOBAL, at("a/b.md"), won[0])
                expected = ABSENT
    assert not [path for path in tree(place) if ".amux" in path]


@pytest.mark.slow
@pytest.mark.requirement("M20", "M26")
def test_writers_and_forgetters_of_one_folder_do_not_trip_over_each_other(
    store: Files, place: Path
) -> None:
    def churn(worker: int) -> None:
        path = at(f"a/b/{worker}.md")
        for number in range(80):
            put = store.put(GLOBAL, path, b"%d" % number, ABSENT)
            assert store.remove(GLOBAL, path, put.revision) == put.revision

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(churn, range(6)))
    # A folder may stay when the last forget met a writer's temporary; documents may not.
    assert not [path for path in place.rglob("*") if path.is_file()]
    assert store.usage(GLOBAL) == (0, 0)


@pytest.mark.slow
@pytest.mark.requirement("M18", "M26")
def test_writers_racing_for_the_last_places_never_pass_the_quota(
    store: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amux.memory.limits.SCOPE_MAX_DOCUMENTS", 5)
    monkeypatch.setattr("amux.memory.limits.SCOPE_MAX_BYTES", 700)

    def write(worker: int) -> int:
        kept = 0
        for number in range(20):
            path = at(f"{worker}/{number}.md")
            try:
                put = store.put(GLOBAL, path, b"x" * 200, ABSENT)
            except QuotaExceeded:
                continue
            kept += 1
            assert store.usage(GLOBAL).documents <= 3
            store.remove(GLOBAL, path, put.revision)
        return kept

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) > 8
    assert store.usage(GLOBAL) == (0, 0)


# --- speed (row 18) ---

DELAY_SECONDS = 0.003


def delay_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(fd: int) -> None:
        time.sleep(DELAY_SECONDS)
        os.fsync(fd)

    monkeypatch.setattr(atomic, "fsync", slow)


def bare(top: Path, name: str, data: bytes) -> None:
    fd = os.open(top / f"{name}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, data)
    atomic.fsync(fd)
    os.close(fd)
    (top / f"{name}.new").rename(top / name)
    fd = os.open(top, os.O_RDONLY)
    atomic.fsync(fd)
    os.close(fd)


@pytest.mark.slow
@pytest.mark.requirement("M20", "row-18")
def test_sixteen_writers_share_their_waits_for_a_slow_disk(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Files(str(place))
    for worker in range(16):
        store.put(GLOBAL, at(f"{worker}.md"), b"x" * 2048, ABSENT)
    delay_fsync(monkeypatch)
    began = time.perf_counter()
    for number in range(30):
        bare(tmp_path, "a", b"%2048d" % number)
    one_at_a_time = 30 / (time.perf_counter() - began)

    def write(worker: int) -> None:
        expected = revision.of(b"x" * 2048)
        for number in range(30):
            data = b"%2048d" % number
            expected = store.put(GLOBAL, at(f"{worker}.md"), data, expected).revision

    began = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    together = 16 * 30 / (time.perf_counter() - began)
    assert together > 6 * one_at_a_time
    store.close()


@pytest.mark.slow
@pytest.mark.requirement("M20")
def test_a_lone_writer_pays_little_more_than_the_disk(
    store: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay_fsync(monkeypatch)
    ours, bares = [], []
    expected = store.put(GLOBAL, at("a.md"), b"x" * 2048, ABSENT).revision
    for number in range(40):
        data = b"%2048d" % number
        began = time.perf_counter()
        bare(tmp_path, "a", data)
        between = time.perf_counter()
        expected = store.put(GLOBAL, at("a.md"), data, expected).revision
        ours.append(time.perf_counter() - between)
        bares.append(between - began)
    assert sorted(ours)[20] < 1.3 * sorted(bares)[20]
