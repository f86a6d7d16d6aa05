"""A file is the old one or the new one, and one fsync serves many."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.disk.tree import Folder, Root


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    opened = Root.open(str(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def folder(root: Root) -> Iterator[Folder]:
    opened = root.folder("")
    assert opened is not None
    with opened:
        yield opened


@pytest.mark.requirement("M20")
def test_replace_puts_a_file_whole_and_leaves_no_temporary(root: Root, tmp_path: Path) -> None:
    atomic.replace(root, "settings.json", b"one")
    atomic.replace(root, "settings.json", b"two")
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]
    assert (tmp_path / "settings.json").read_bytes() == b"two"
    assert (tmp_path / "settings.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("M20", "M23")
@pytest.mark.parametrize("call", ["create", "write", "fsync", "rename"])
def test_a_replace_that_fails_leaves_the_old_file_and_no_temporary(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    atomic.replace(root, "a", b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(atomic, call, fail)
    with pytest.raises(OSError, match="full"):
        atomic.replace(root, "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.requirement("M20")
def test_short_writes_are_looped(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "write", lambda fd, data: os.write(fd, data[:3]))
    atomic.replace(root, "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


@pytest.mark.requirement("M20")
def test_a_replace_syncs_the_bytes_before_the_rename_and_the_name_after(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    rename, fsync = atomic.rename, atomic.fsync

    def note_rename(folder: Folder, source: str, target: str) -> None:
        steps.append(("rename", target))
        rename(folder, source, target)

    def note_fsync(fd: int) -> None:
        steps.append(("fsync", "folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file"))
        fsync(fd)

    monkeypatch.setattr(atomic, "rename", note_rename)
    monkeypatch.setattr(atomic, "fsync", note_fsync)
    atomic.replace(root, "a", b"1")
    assert steps == [("fsync", "file"), ("rename", "a"), ("fsync", "folder")]


@pytest.mark.requirement("M12", "M20")
def test_a_replace_never_writes_through_a_link(root: Root, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"untouched")
    (tmp_path / "a").symlink_to("victim")
    atomic.replace(root, "a", b"new")
    assert (tmp_path / "victim").read_bytes() == b"untouched"
    assert not (tmp_path / "a").is_symlink()
    (tmp_path / "log").symlink_to("victim")
    with pytest.raises(OSError, match="symbolic"):
        atomic.append(root, "log", b"line\n")
    assert (tmp_path / "victim").read_bytes() == b"untouched"


@pytest.mark.requirement("M20")
def test_append_adds_to_the_end_and_remove_takes_away(root: Root, tmp_path: Path) -> None:
    atomic.append(root, "log", b"one\n")
    atomic.append(root, "log", b"two\n", durable=False)
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    atomic.remove(root, "log")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        atomic.replace(root, "none/a", b"")


@pytest.mark.requirement("M20")
def test_only_our_own_names_are_temporaries(folder: Folder) -> None:
    assert atomic.is_temporary(atomic.stage(folder, b""))
    for name in (".amux-", ".amux-0123456789abcdeg", ".amux-0123456789ABCDEF", "a.md",
                 ".amux-0123456789abcdef.md", "x.amux-0123456789abcdef"):  # fmt: skip
        assert not atomic.is_temporary(name)


@pytest.mark.requirement("M9")
def test_where_the_kernel_cannot_exchange_it_says_so(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    assert atomic.exchange(folder, "a", "b")
    assert (tmp_path / "a").read_bytes() == b"2"
    with pytest.raises(FileExistsError):
        atomic.rename_new(folder, "a", "b")
    monkeypatch.setattr(atomic, "_EXCHANGE", 1 << 20)  # a flag that no kernel knows
    monkeypatch.setattr(atomic, "_NOREPLACE", 1 << 20)
    assert not atomic.exchange(folder, "a", "b")
    atomic.rename_new(folder, "a", "b")
    assert (tmp_path / "b").read_bytes() == b"2"


class SlowDisk:
    """An fsync that waits at a gate, and counts."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.count = 0
        self.failure: OSError | None = None

    def fsync(self, fd: int) -> None:
        del fd
        self.count += 1
        self.begun.release()
        assert self.gate.acquire(timeout=10)
        if self.failure:
            raise self.failure


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    slow = SlowDisk()
    monkeypatch.setattr(atomic, "fsync", slow.fsync)
    return slow


def settle_all(
    syncs: atomic.DirectorySyncs, marks: list[atomic.Mark], outcomes: list[str]
) -> list[threading.Thread]:
    def settle(mark: atomic.Mark) -> None:
        try:
            syncs.settle(mark)
            outcomes.append("durable")
        except OSError as error:
            outcomes.append(errno.errorcode[error.errno])

    threads = [threading.Thread(target=settle, args=(mark,)) for mark in marks]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.requirement("M20")
def test_one_fsync_serves_every_change_that_came_before_it_began_and_no_later_one(
    folder: Folder, disk: SlowDisk
) -> None:
    syncs = atomic.DirectorySyncs()
    outcomes: list[str] = []
    threads = settle_all(syncs, [syncs.mark(folder)], outcomes)
    assert disk.begun.acquire(timeout=10)
    later = [syncs.mark(folder) for _ in range(15)]  # while the first fsync runs
    threads += settle_all(syncs, later, outcomes)
    disk.gate.release()
    assert disk.begun.acquire(timeout=10)  # the first one does not count for them
    assert outcomes.count("durable") <= 1
    disk.gate.release()
    for thread in threads:
        thread.join(10)
    assert outcomes == ["durable"] * 16
    assert disk.count == 2
    assert not syncs._lines


@pytest.mark.requirement("M23")
def test_a_failed_fsync_fails_all_that_waited_and_is_never_asked_again(
    folder: Folder, disk: SlowDisk
) -> None:
    syncs = atomic.DirectorySyncs()
    outcomes: list[str] = []
    disk.failure = OSError(errno.EIO, "lost")
    threads = settle_all(syncs, [syncs.mark(folder) for _ in range(3)], outcomes)
    disk.gate.release()
    for thread in threads:
        thread.join(10)
    disk.failure = None  # the kernel has forgotten what it lost
    disk.gate.release()
    for thread in settle_all(syncs, [syncs.mark(folder)], outcomes):
        thread.join(10)
    assert outcomes == ["EIO"] * 4
    assert disk.count == 1


@pytest.mark.requirement("J63")
def test_where_the_disk_can_be_asked_to_empty_its_cache_it_is_and_only_once(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    plain: list[int] = []
    answers: list[OSError | None] = [None, OSError(errno.EOPNOTSUPP, ""), OSError(errno.EIO, "")]

    def ask(_: int, what: int) -> int:
        asked.append(what)
        answer = answers[len(asked) - 1]
        if answer is not None:
            raise answer
        return 0

    monkeypatch.setattr(atomic, "FULL_FSYNC", 51)
    monkeypatch.setattr(atomic.fcntl, "fcntl", ask)
    monkeypatch.setattr(atomic.os, "fsync", plain.append)
    atomic.fsync(root.fd)
    assert (asked, plain) == ([51], [])
    atomic.fsync(root.fd)
    assert (asked, plain) == ([51, 51], [root.fd])
    with pytest.raises(OSError, match=r"\[Errno 5\]"):
        atomic.fsync(root.fd)
    assert plain == [root.fd]
