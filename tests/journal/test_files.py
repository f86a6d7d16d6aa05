"""The write route: J63 and its receipt, J64."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.disk import atomic, commit, regular
from amux.errors import AmuxError, Code
from amux.journal.moment import Moment
from amux.journal.refusals import refuse
from amux.journal.store import files
from amux.journal.store.files import Edited
from tests.support.rights import cannot
from tests.support.roots import DAY, NOW, SECONDS, adding, canonical_bytes, place_in, tree, write

OLD = b"# old\n"
LONG_AGO = 1_500_000_000_000_000_000
STRANGER = 54_321


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """Give a day that stands there since long ago."""
    path = tmp_path / ".devcodex" / DAY
    path.parent.mkdir(parents=True)
    path.write_bytes(OLD)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


def refused(tmp_path: Path, edit: files.Edit[None], *, is_view: bool = False) -> AmuxError:
    with pytest.raises(AmuxError) as caught:
        write(place_in(tmp_path), DAY, edit, is_view=is_view)
    return caught.value


def reason(refusal: AmuxError) -> tuple[Code, object]:
    return refusal.code, refusal.details["reason"]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.requirement("J63", "J64")
def test_a_new_file_is_created_for_its_owner_alone_with_all_its_directories(
    tmp_path: Path,
) -> None:
    done = write(place_in(tmp_path), DAY, adding(b"one\n"))
    path = tmp_path / ".devcodex" / DAY
    assert path.read_bytes() == b"one\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert done.receipt == {
        "schemaVersion": "MemoryFileTransactionReceiptV1",
        "transactionId": done.receipt["transactionId"],
        "file": DAY,
        "route": "create",
        "beforeDigest": "absent",
        "afterDigest": sha(b"one\n"),
        "beforeBytes": 0,
        "afterBytes": 4,
        "conflict": None,
        "durability": {"fileFlush": True, "directoryFlush": True, "readback": True},
        "startedAt": "2026-03-14T01:20:00.250Z",
        "completedAt": "2026-03-14T01:20:00.250Z",
    }
    for folder in path.relative_to(tmp_path).parents:
        if folder.name:
            assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


@pytest.mark.requirement("J63", "J64")
def test_a_file_is_replaced_with_its_mode(tmp_path: Path, day: Path) -> None:
    day.chmod(0o644)
    inode = day.stat().st_ino
    done = write(place_in(tmp_path), DAY, adding(b"more\n"))
    assert day.read_bytes() == OLD + b"more\n"
    assert day.stat().st_ino != inode
    assert stat.S_IMODE(day.stat().st_mode) == 0o644
    assert (done.route, done.receipt["beforeDigest"]) == ("replace", sha(OLD))
    assert (done.receipt["beforeBytes"], done.receipt["afterBytes"]) == (6, 11)


@pytest.mark.usefixtures("as_root")
@pytest.mark.requirement("J63")
def test_uid_0_keeps_a_files_owner_and_gives_new_ones_to_the_trees(
    tmp_path: Path, day: Path
) -> None:
    for path in (tmp_path / ".devcodex", *(tmp_path / ".devcodex").rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    os.chown(day, STRANGER + 1, STRANGER + 2)
    write(place_in(tmp_path), DAY, adding(b"more\n"))
    write(place_in(tmp_path), ".memory/SUMMARY.md", adding(b"# new\n"))
    for path in (tmp_path / ".devcodex").rglob("*"):
        wanted = (STRANGER + 1, STRANGER + 2) if path == day else (STRANGER, STRANGER)
        assert (path.stat().st_uid, path.stat().st_gid) == wanted, path


@pytest.mark.requirement("J63", "J64")
def test_nothing_to_do_writes_nothing_and_says_so(tmp_path: Path, day: Path) -> None:
    before = day.stat()
    done = write(place_in(tmp_path), DAY, adding(b""))
    after = day.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert done.receipt["route"] == "no-op"
    assert done.receipt["beforeDigest"] == done.receipt["afterDigest"] == sha(OLD)
    nothing = write(place_in(tmp_path), ".memory/none.md", adding(b""))
    assert (nothing.route, nothing.receipt["afterDigest"]) == ("no-op", "absent")
    assert not (tmp_path / ".devcodex/.memory/none.md").exists()


@pytest.mark.requirement("J63", "J64")
def test_nothing_to_do_is_said_of_durable_bytes_only(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert day.exists()
    write(place_in(tmp_path), ".memory/other.md", adding(b"x"))
    synced: list[str] = []

    def note(fd: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    monkeypatch.setattr(atomic, "fsync", note)
    write(place_in(tmp_path), DAY, adding(b""))
    assert synced == [
        "20260314.md", tmp_path.name, ".devcodex", ".memory", "clients", "codex", "tasks",
    ]  # fmt: skip


@pytest.mark.requirement("J63")
def test_a_refusal_of_the_edit_changes_nothing(tmp_path: Path, day: Path) -> None:
    def no(old: bytes | None) -> Edited[None]:
        assert old in (OLD, None)
        raise refuse("MEMORY_SESSION_NOT_FOUND", "no such section")

    assert day.exists()
    write(place_in(tmp_path), ".memory/other.md", adding(b"x"))
    before = canonical_bytes(tmp_path)
    assert reason(refused(tmp_path, no)) == (Code.NOT_FOUND, "MEMORY_SESSION_NOT_FOUND")
    with pytest.raises(AmuxError):
        write(place_in(tmp_path), "bugs/x/.memory/sessions.md", no)
    assert canonical_bytes(tmp_path) == before


def edits_outside(times: int, change: Callable[[int], None]) -> files.Edit[None]:
    """Give an edit during which somebody else changes the file, a few times."""
    count = 0

    def edit(old: bytes | None) -> Edited[None]:
        nonlocal count
        count += 1
        if count <= times:
            change(count)
        return Edited((old or b"") + b"ours\n", None)

    return edit


@pytest.mark.requirement("J63", "J64")
def test_one_change_from_outside_is_met_by_doing_all_again(tmp_path: Path, day: Path) -> None:
    theirs = OLD + b"theirs\n"
    done = write(place_in(tmp_path), DAY, edits_outside(1, lambda _: void(day.write_bytes(theirs))))
    assert day.read_bytes() == theirs + b"ours\n"
    assert done.receipt["conflict"] == {
        "schemaVersion": "MemoryTransactionConflictReceiptV2",
        "status": "reconciled",
        "observedDigest": sha(theirs),
    }
    assert done.receipt["beforeDigest"] == sha(theirs)


def void(_: object) -> None:
    """Drop a value."""


@pytest.mark.requirement("J63")
def test_a_second_change_from_outside_is_a_conflict(tmp_path: Path, day: Path) -> None:
    edit = edits_outside(2, lambda count: void(day.write_bytes(b"theirs %d\n" % count)))
    assert reason(refused(tmp_path, edit)) == (Code.REVISION_CONFLICT, "MEMORY_FILE_CAS_MISMATCH")
    assert day.read_bytes() == b"theirs 2\n"
    assert os.listdir(day.parent) == [day.name]


@pytest.mark.requirement("J63")
def test_a_view_is_not_done_again(tmp_path: Path, day: Path) -> None:
    edit = edits_outside(1, lambda _: void(day.write_bytes(b"theirs\n")))
    refusal = refused(tmp_path, edit, is_view=True)
    assert reason(refusal) == (Code.REVISION_CONFLICT, "MEMORY_FILE_CAS_MISMATCH")
    assert day.read_bytes() == b"theirs\n"


@pytest.mark.requirement("J63")
@pytest.mark.parametrize("how", ["created", "removed", "replaced"])
def test_a_file_that_comes_or_goes_meanwhile_is_a_change(tmp_path: Path, how: str) -> None:
    path = tmp_path / ".devcodex" / DAY
    path.parent.mkdir(parents=True)
    if how != "created":
        path.write_bytes(OLD)

    def change(_: int) -> None:
        if how == "replaced":
            (path.parent / "new").write_bytes(OLD)
            (path.parent / "new").rename(path)
        elif how == "removed":
            path.unlink()
        else:
            path.write_bytes(b"theirs\n")

    done = write(place_in(tmp_path), DAY, edits_outside(1, change))
    wanted = {"created": b"theirs\nours\n", "removed": b"ours\n", "replaced": OLD + b"ours\n"}
    assert path.read_bytes() == wanted[how]
    assert done.receipt["conflict"] is not None


@pytest.mark.requirement("J63")
def test_a_change_within_one_tick_of_the_clock_is_found_by_its_bytes(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All that a look tells stays as it was: only the bytes differ.
    os.utime(day, ns=(NOW.epoch_ms * 1_000_000,) * 2)
    looks = regular.facts(*folder_of(day))
    theirs = b"# OLD\n"
    real = regular.read

    def read(folder: regular.Folder, name: str, *, max_bytes: int) -> regular.Found | None:
        found = real(folder, name, max_bytes=max_bytes)
        return found and found._replace(facts=frozen(found.facts))

    def frozen(seen: regular.Facts) -> regular.Facts:
        assert looks is not None
        return looks if seen.inode == looks.inode else seen

    seen_as = regular.facts
    monkeypatch.setattr(regular, "read", read)
    monkeypatch.setattr(regular, "facts", lambda *at: (seen := seen_as(*at)) and frozen(seen))

    def change(_: int) -> None:
        with day.open("r+b") as file:
            file.write(theirs)

    done = write(place_in(tmp_path), DAY, edits_outside(1, change))
    assert day.read_bytes() == theirs + b"ours\n"
    assert done.receipt["conflict"] is not None


def folder_of(path: Path) -> tuple[regular.Folder, str]:
    return regular.Folder(os.open(path.parent, os.O_RDONLY)), path.name


@pytest.mark.requirement("J63")
def test_a_hard_link_elsewhere_keeps_its_bytes(tmp_path: Path, day: Path) -> None:
    notes = tmp_path / "notes"
    notes.hardlink_to(day)
    write(place_in(tmp_path), DAY, adding(b"ours\n"))
    assert day.read_bytes() == OLD + b"ours\n"
    assert notes.read_bytes() == OLD


@pytest.mark.requirement("J63")
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "device"])
def test_what_is_no_regular_file_is_refused_and_left(tmp_path: Path, day: Path, kind: str) -> None:
    day.unlink()
    outside = tmp_path / "outside"
    outside.write_bytes(OLD)
    match kind:
        case "link":
            day.symlink_to(outside)
        case "fifo":
            os.mkfifo(day)
        case "folder":
            day.mkdir()
        case _:
            if os.geteuid():
                cannot("only uid 0 makes devices")
            os.mknod(day, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    refusal = refused(tmp_path, adding(b"ours\n"))
    assert reason(refusal) == (Code.CORRUPT, "MEMORY_FILE_NOT_REGULAR")
    assert outside.read_bytes() == OLD
    assert os.listdir(day.parent) == [day.name]


@pytest.mark.requirement("J63")
def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SOURCE_MAX_BYTES", 10)
    refusal = refused(tmp_path, adding(b"12345"))
    assert reason(refusal) == (Code.LIMIT_EXCEEDED, "MEMORY_SOURCE_TOO_LARGE")
    day.write_bytes(b"12345678901")
    refusal = refused(tmp_path, adding(b""))
    assert reason(refusal) == (Code.LIMIT_EXCEEDED, "MEMORY_SOURCE_TOO_LARGE")


@pytest.mark.requirement("J63")
def test_what_a_crash_left_is_swept_and_nothing_else(tmp_path: Path, day: Path) -> None:
    left = day.with_name(f".{day.name}.amux-0123456789abcdef.tmp")
    left.write_bytes(b"half")
    others = [
        day.with_name(name)
        for name in (
            ".20260314.md.amux-0123456789abcde.tmp", ".20260314.md.tmp",
            "20260314.md.amux-0123456789abcdef.tmp",
        )
    ]  # fmt: skip
    for path in others:
        path.write_bytes(b"theirs")
    folder = day.with_name(".x.amux-0123456789abcdef.tmp")
    folder.mkdir()
    write(place_in(tmp_path), DAY, adding(b""))
    assert not left.exists()
    assert folder.is_dir()
    assert [path.read_bytes() for path in others] == [b"theirs"] * 3


# --- a disk that fails ---------------------------------------------------------------------------

Step = tuple[object, str]
BEFORE: list[Step] = [
    (regular, "read"), (atomic, "create"), (atomic, "write"), (atomic, "fsync"),
    (atomic, "rename"), (atomic, "rename_free"), (atomic, "make_folder"),
    (commit, "set_mode"), (commit, "give"),
]  # fmt: skip
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


class Faults:
    """Counts the calls of the disk that change something, and lets one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.fail_at = -1
        self.number = errno.EIO
        for owner, name in BEFORE:
            real = getattr(owner, name)
            monkeypatch.setattr(owner, name, self._wrapped(name, real))

    def _wrapped(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **more: object) -> object:
            self.calls.append(name)
            if len(self.calls) - 1 == self.fail_at:
                raise OSError(self.number, "the test broke it")
            return real(*given, **more)

        return call


@pytest.mark.requirement("J63")
@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES]
)
def test_each_call_that_fails_before_the_rename_leaves_the_old_file_and_no_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_new: bool
) -> None:
    path = tmp_path / ".devcodex" / DAY
    write(place_in(tmp_path), ".memory/other.md", adding(b"x"))
    if not is_new:
        write(place_in(tmp_path), DAY, adding(OLD))
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
        path.chmod(0o640)
    before = {k: v for k, v in canonical_bytes(tmp_path).items() if v != "/"}
    ours = (b"" if is_new else OLD) + b"ours\n"
    faults = Faults(monkeypatch)
    faults.number = number
    outcomes: dict[str, set[object]] = {}
    faults.fail_at = 0
    while True:
        faults.calls.clear()
        is_written = True
        try:
            write(place_in(tmp_path), DAY, adding(b"ours\n"))
        except AmuxError as refusal:
            is_written = refusal.code is Code.OUTCOME_UNKNOWN
            outcomes.setdefault(faults.calls[faults.fail_at], set()).add(refusal.details["reason"])
        now = {k: v for k, v in canonical_bytes(tmp_path).items() if v != "/"}
        assert not list(tmp_path.rglob("*.tmp"))
        if is_written:
            assert now == {**before, f".devcodex/{DAY}": ours}
            path.unlink()
            if not is_new:
                path.write_bytes(OLD)
                os.utime(path, ns=(LONG_AGO, LONG_AGO))
                path.chmod(0o640)
        else:
            assert now == before
        if faults.fail_at >= len(faults.calls):
            break
        faults.fail_at += 1
    definite = "MEMORY_DISK_FULL" if number in FULL else "MEMORY_STORE_READ_ONLY"
    assert outcomes["create"] == outcomes["write"] == {definite}
    assert outcomes["rename_free" if is_new else "rename"] == {definite}
    # The first fsyncs come before the rename, the last one after; so does the first read.
    assert outcomes["fsync"] == {definite, "MEMORY_FILE_READBACK_MISMATCH"}
    assert outcomes["read"] == {definite, "MEMORY_FILE_READBACK_MISMATCH"}


@pytest.mark.requirement("J63")
def test_a_rename_that_failed_and_happened_is_an_unknown_outcome(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = atomic.rename

    def torn(*given: object) -> None:
        rename(*given)  # type: ignore[arg-type]
        raise OSError(errno.EIO, "the test broke it")

    monkeypatch.setattr(atomic, "rename", torn)
    refusal = refused(tmp_path, adding(b"ours\n"))
    assert reason(refusal) == (Code.OUTCOME_UNKNOWN, "MEMORY_FILE_READBACK_MISMATCH")
    assert day.read_bytes() == OLD + b"ours\n"


@pytest.mark.requirement("J63")
def test_other_bytes_at_the_read_back_are_told(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = commit.flush

    def late(folder: commit.Folder) -> None:
        flush(folder)
        day.write_bytes(b"theirs\n")

    write(place_in(tmp_path), ".memory/other.md", adding(b"x"))
    monkeypatch.setattr(commit, "flush", late)
    refusal = refused(tmp_path, adding(b"ours\n"))
    assert reason(refusal) == (Code.OUTCOME_UNKNOWN, "MEMORY_FILE_READBACK_MISMATCH")


@pytest.mark.requirement("J63")
def test_a_short_write_is_gone_on_with(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atomic.write
    monkeypatch.setattr(atomic, "write", lambda fd, data: real(fd, data[:3]))
    write(place_in(tmp_path), DAY, adding(b"ours and more\n"))
    assert day.read_bytes() == OLD + b"ours and more\n"


@pytest.mark.requirement("J63")
def test_where_the_kernel_cannot_rename_without_replacing_a_hard_link_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "rename_free", lambda *_: False)
    path = tmp_path / ".devcodex" / DAY
    write(place_in(tmp_path), DAY, adding(b"one\n"))
    assert (path.read_bytes(), path.stat().st_nlink) == (b"one\n", 1)
    path.unlink()
    done = write(
        place_in(tmp_path),
        DAY,
        edits_outside(1, lambda _: void(path.write_bytes(b"theirs\n"))),
    )
    assert path.read_bytes() == b"theirs\nours\n"
    assert done.receipt["conflict"] is not None
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.requirement("J63", "J25")
def test_a_lock_that_is_gone_right_before_the_rename_starts_the_call_over_once(
    tmp_path: Path, day: Path
) -> None:
    lock = tmp_path / ".devcodex/.runtime-state/memory.lock"
    done = write(place_in(tmp_path), DAY, edits_outside(1, lambda _: lock.unlink()))
    assert day.read_bytes() == OLD + b"ours\n"
    assert done.receipt["conflict"] is None
    refusal = refused(tmp_path, edits_outside(2, lambda _: lock.unlink()))
    assert reason(refusal) == (Code.BUSY, "MEMORY_TRANSACTION_LOCKED")
    assert day.read_bytes() == OLD + b"ours\n"
    assert os.listdir(day.parent) == [day.name]


@pytest.mark.requirement("J63", "J25")
def test_a_lock_that_goes_while_the_file_is_compared_is_seen_right_before_the_rename(
    tmp_path: Path, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / ".devcodex/.runtime-state/memory.lock"
    look, edits = regular.facts, 0

    def late(folder: regular.Folder, name: str) -> regular.Facts | None:
        if name == day.name and any(commit.temporaries(folder)) and edits == 1:
            lock.unlink(missing_ok=True)
        return look(folder, name)

    def edit(old: bytes | None) -> Edited[None]:
        nonlocal edits
        edits += 1
        return Edited((old or b"") + b"ours\n", None)

    monkeypatch.setattr(regular, "facts", late)
    write(place_in(tmp_path), DAY, edit)
    assert edits == 2  # the call started over
    assert day.read_bytes() == OLD + b"ours\n"


@pytest.mark.requirement("J23")
def test_the_runtime_state_is_made_by_the_first_writer(tmp_path: Path) -> None:
    write(place_in(tmp_path, "billing"), DAY, adding(b"x"))
    assert (tmp_path / ".devcodex/.gitignore").read_bytes() == b".runtime-state/\n"
    state = tmp_path / ".devcodex/billing/.runtime-state"
    assert (state / ".gitignore").read_bytes() == b"*\n"
    assert (state / "memory.lock").read_bytes() == b""
    made = (state / "root.json").read_bytes()
    assert made.startswith(b'{"createdAt":"2026-03-14T01:20:00.250Z","rootId":"')
    assert made.endswith(b'","schemaVersion":"AmuxRootV1"}\n')
    before = tree(tmp_path)
    write(place_in(tmp_path, "billing"), DAY, adding(b""), now=Moment.at(SECONDS + 60))
    assert tree(tmp_path) == before
