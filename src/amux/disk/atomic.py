"""Changing files so that a crash leaves the old bytes or the new ones.

Rule 1: one way: a temporary beside the target, all bytes, fsync, rename, fsync of the directory.
Rule 2: a failed fsync is never asked again and believed: the kernel forgets what it lost.
Rule 3: one fsync of a directory acknowledges every change in it that came before it began, so
        that many writers wait for the disk together instead of one after the other.
Rule 4: each system call that changes something is a function here, and a test replaces it here.
"""

import ctypes
import errno
import fcntl
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from amux.disk.tree import Folder, Handle, Root

_TEMPORARY = re.compile(r"\.amux-[0-9a-f]{16}")
# Of this process, and of this temporary: eight digits each, as chance would give.
_OWN, _NUMBERS = os.urandom(4).hex(), count()
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOG_FILE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_NOREPLACE, _EXCHANGE = 1, 2
# The file system, or the kernel, does not know the flag.
_UNKNOWN_FLAG = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY}
# macOS: there fsync alone leaves the bytes in the disk's cache.
FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)

_libc = ctypes.CDLL(None, use_errno=True)


def is_temporary(name: str) -> bool:
    """Tell whether a name is one that only this module makes."""
    return _TEMPORARY.fullmatch(name) is not None


def replace(root: Root, path: str, data: bytes) -> None:
    """Put `data` at `path`, whole or not at all.

    On return the bytes and their name survive power loss. On any exception before the rename
    the old bytes are still there, and no temporary is left behind; after it `SyncFailedError` says
    that the new bytes are there, but not for certain.
    """
    with _parent(root, path) as (folder, name):
        temporary = stage(folder, data)
        try:
            rename(folder, temporary, name)
        except BaseException:
            discard(folder, temporary)
            raise
        sync_folder(folder)


def remove(root: Root, path: str) -> None:
    """Remove the file at `path`; on return its absence survives power loss."""
    with _parent(root, path) as (folder, name):
        unlink(folder, name)
        fsync(folder.fd)


def append(root: Root, path: str, data: bytes, *, durable: bool = True) -> None:
    """Add `data` to the end of a file, which is made if missing."""
    with _parent(root, path) as (folder, name):
        is_new = folder.look(name) is None
        fd = os.open(name, _LOG_FILE, 0o600, dir_fd=folder.fd)
        try:
            write_all(fd, data)
            if durable:
                fsync(fd)
        finally:
            os.close(fd)
        if durable and is_new:
            fsync(folder.fd)


def stage(folder: Handle, data: bytes) -> str:
    """Write a temporary into the target's directory, durable but for its name.

    On an exception no temporary is left behind.
    """
    name = f".amux-{_OWN}{next(_NUMBERS):08x}"
    fd = create(folder, name)
    try:
        try:
            write_all(fd, data)
            fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        discard(folder, name)
        raise
    return name


def discard(folder: Handle, temporary: str) -> None:
    """Remove a temporary that is not needed; where that fails, the next start sweeps it."""
    with suppress(OSError):
        unlink(folder, temporary)


def sweep(folder: Folder) -> None:
    """Remove the temporaries that a crash left in a directory; only names that we alone make."""
    for name in list(folder.names()):
        if not is_temporary(name):
            continue
        seen = folder.look(name)
        if seen and seen.kind == "file":
            discard(folder, name)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte: a single write may be short, on a full disk above all."""
    rest = memoryview(data)
    while rest:
        rest = rest[write(fd, rest) :]


class SyncFailedError(OSError):
    """A directory could not be made durable."""


def sync_folder(folder: Handle) -> None:
    """Make the names in a directory durable, or raise `SyncFailedError`."""
    try:
        fsync(folder.fd)
    except OSError as error:
        raise SyncFailedError(error.errno, error.strerror) from error


class DirectorySyncs:
    """Shares the fsyncs of directories between the writers that wait for them."""

    def __init__(self) -> None:
        self._table = threading.Lock()
        # By identity, not by path: a path may mean another directory a moment later. While a
        # writer waits it holds the directory open, so that its number is not given out again.
        self._lines: dict[tuple[int, int], _Line] = {}

    def mark(self, folder: Handle) -> "Mark":
        """Note a change just made in a directory; every mark must be settled."""
        key = (folder.device, folder.inode)
        with self._table:
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line()
            line.waiting += 1
            line.issued += 1
            return Mark(folder=folder, key=key, line=line, number=line.issued)

    def hasten(self, mark: "Mark") -> None:
        """Begin with what settling a mark would wait for; the mark is still to be settled."""
        with suppress(OSError):
            _settle(mark)

    def settle(self, mark: "Mark") -> None:
        """Return when the marked change is durable, or raise what the fsync raised."""
        try:
            _settle(mark)
        finally:
            self.release(mark)

    def release(self, mark: "Mark") -> None:
        """Give back a mark whose change need not be durable."""
        with self._table:
            mark.line.waiting -= 1
            # A line that failed stays: its directory is never again believed to be synced.
            if not mark.line.waiting and mark.line.failure is None:
                self._lines.pop(mark.key, None)


class _Line:
    """The writers of one directory."""

    __slots__ = ("failure", "is_running", "issued", "synced", "turn", "waiting")

    def __init__(self) -> None:
        self.turn = threading.Condition()
        self.waiting = 0
        self.issued = 0
        self.synced = 0
        self.is_running = False
        self.failure: OSError | None = None


class Mark:
    """The place of one change in the line of its directory."""

    __slots__ = ("folder", "key", "line", "number")

    def __init__(self, *, folder: Handle, key: tuple[int, int], line: _Line, number: int) -> None:
        self.folder = folder
        self.key = key
        self.line = line
        self.number = number


def _settle(mark: Mark) -> None:
    line = mark.line
    with line.turn:
        while line.is_running and line.synced < mark.number and line.failure is None:
            line.turn.wait()
        if line.failure is not None:
            raise OSError(line.failure.errno, "an earlier fsync failed")
        if line.synced >= mark.number:
            return
        line.is_running = True
        begun = line.issued  # marks that come from here on need another one
    failure: OSError | None = None
    try:
        fsync(mark.folder.fd)
    except OSError as error:
        failure = error
    with line.turn:
        line.is_running = False
        line.failure = failure
        line.synced = line.synced if failure else begun
        line.turn.notify_all()
    if failure:
        raise failure


def create(folder: Handle, name: str) -> int:
    """Open a new file for writing, for us alone."""
    return os.open(name, _NEW_FILE, 0o600, dir_fd=folder.fd)


def write(fd: int, data: memoryview) -> int:
    """Write some bytes; tell how many."""
    return os.write(fd, data)


def fsync(fd: int) -> None:
    """Make an open file or directory durable, through the disk's own cache where that is asked."""
    if FULL_FSYNC is None:
        os.fsync(fd)
        return
    try:
        fcntl.fcntl(fd, FULL_FSYNC)
    except OSError as error:
        if error.errno not in _UNKNOWN_FLAG:
            raise
        os.fsync(fd)  # a file system that does not know it was asked nothing yet


def rename(folder: Handle, source: str, target: str) -> None:
    """Rename over whatever the target is."""
    os.rename(source, target, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)


def rename_new(folder: Handle, source: str, target: str) -> None:
    """Rename onto a free name; FileExistsError where it is taken.

    Where the kernel cannot tell, this is `rename`.
    """
    if not _renameat2(folder, source, target, _NOREPLACE):
        rename(folder, source, target)


def rename_free(folder: Handle, source: str, target: str) -> bool:
    """Rename onto a free name; FileExistsError where it is taken, False where nobody can tell."""
    return _renameat2(folder, source, target, _NOREPLACE)


def exchange(folder: Handle, one: str, other: str) -> bool:
    """Exchange two names in one step; False where the kernel cannot."""
    return _renameat2(folder, one, other, _EXCHANGE)


def unlink(folder: Handle, name: str) -> None:
    """Remove a name that is no directory."""
    os.unlink(name, dir_fd=folder.fd)


def make_folder(folder: Handle, name: str) -> None:
    """Make a directory, for us alone."""
    os.mkdir(name, 0o700, dir_fd=folder.fd)


def remove_folder(folder: Handle, name: str) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=folder.fd)


def _renameat2(folder: Handle, source: str, target: str, flag: int) -> bool:
    if sys.platform != "linux":
        return False
    names = os.fsencode(source), os.fsencode(target)
    try:
        failed = _libc.renameat2(folder.fd, names[0], folder.fd, names[1], ctypes.c_uint(flag))
    except AttributeError:  # a C library older than the call
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN_FLAG:
        return False
    raise OSError(number, os.strerror(number), target)


@contextmanager
def _parent(root: Root, path: str) -> Iterator[tuple[Folder, str]]:
    place, _, name = path.rpartition("/")
    folder = root.folder(place)
    if folder is None:
        raise FileNotFoundError(errno.ENOENT, "no such directory", place)
    with folder:
        yield folder, name
