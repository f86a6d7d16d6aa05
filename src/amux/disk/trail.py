"""A log that is only appended to: whole lines, a reserve for a full disk, bounded by rotation.

Rule 1: one line, one write; a line that was only begun is taken back, and one that a crash tore
        is closed before the next.
Rule 2: room for more lines is allocated before the end of the file, so that a full disk still
        takes some; lines that can be spared leave it to those that cannot (M74).
Rule 3: at its size the file is renamed and a new one begun; a line never spans two files.
Rule 4: durable is what a mark was settled for; several writers share one fsync.
"""

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

from amux.disk import atomic
from amux.disk.tree import Folder, Handle, Root

_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = _OPEN | os.O_EXCL
_KEEP_SIZE = 1  # fallocate(2): room beyond the end, the size stays
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NEAR_BYTES = 64 * 1024  # read through rather than halved any further
_libc = ctypes.CDLL(None, use_errno=True)


class Trail:
    """One log beneath a root and its older parts; safe for threads."""

    def __init__(
        self, root: Root, path: str, *, max_bytes: int, parts_kept: int, reserve_bytes: int
    ) -> None:
        place, _, self._name = path.rpartition("/")
        folder = root.folder(place)
        if folder is None:
            raise FileNotFoundError(place)
        self._folder: Folder = folder
        self._max_bytes = max_bytes
        self._parts_kept = parts_kept
        self._reserve_bytes = reserve_bytes
        self._lock = threading.Lock()
        self._syncs = atomic.DirectorySyncs()
        self._retired: Handle | None = None
        self._file = Handle(os.open(self._name, _OPEN, 0o600, dir_fd=folder.fd))
        self._size = os.fstat(self._file.fd).st_size
        self._is_torn = self._size > 0 and os.pread(self._file.fd, 1, self._size - 1) != b"\n"
        self._reserved = 0
        self._is_full = False
        self._failure: OSError | None = None
        # A file must still be there, under its name, when a line in it is called durable.
        with suppress(OSError):
            self._fsync(folder)
        self._reserve()

    def append(self, line: bytes, *, is_spare: bool = False) -> None:
        """Add a line, its LF included; raises `OSError` where the disk does not take it.

        One that can be spared is not taken on a full disk, whatever is in reserve.
        """
        with self._lock:
            self._append(line, is_spare=is_spare)

    def append_marked(self, line: bytes) -> atomic.Mark:
        """Add a line and give the mark that makes it durable; every mark must be settled."""
        with self._lock:
            self._require_sound()
            self._append(line, is_spare=False)
            return self._syncs.mark(self._file)

    def hasten(self, mark: atomic.Mark) -> None:
        """Begin to make the marked line durable; how that ends is told to who settles it."""
        self._syncs.hasten(mark)

    def settle(self, mark: atomic.Mark) -> None:
        """Return when the marked line is durable, or raise what the fsync raised."""
        self._syncs.settle(mark)
        self._require_sound()

    def release(self, mark: atomic.Mark) -> None:
        """Give back a mark whose line need not be durable."""
        self._syncs.release(mark)

    def lines(self, part: int, is_before: Callable[[bytes], bool] | None = None) -> Iterator[bytes]:
        """Give the whole lines of a part; 0 is the present one, the highest the oldest.

        With `is_before`, which must hold for a beginning of the trail and for nothing after it,
        most of that beginning is not read. Some of its lines may still be given.
        """
        try:
            fd = os.open(self._part(part), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._folder.fd)
        except FileNotFoundError:
            return
        with os.fdopen(fd, "rb") as file:
            if is_before is not None:
                _skip(file, is_before)
            for line in file:
                if line.endswith(b"\n"):
                    yield line

    def close(self) -> None:
        """Give the handles back."""
        for handle in (self._file, self._retired, self._folder):
            if handle is not None:
                handle.close()

    def _append(self, line: bytes, *, is_spare: bool) -> None:
        if self._size and self._size + len(line) > self._max_bytes:
            # Where a full disk takes no new file, the old one goes on: it has the reserve.
            with suppress(OSError):
                self._rotate()
        if is_spare and self._is_full and not self._reserve():
            raise OSError(errno.ENOSPC, "what is left is for lines that must be written")
        try:
            atomic.write_all(self._file.fd, b"\n" + line if self._is_torn else line)
        except OSError:
            self._take_back()
            raise
        self._size += len(line) + self._is_torn
        self._is_torn = False
        self._reserve()

    def _take_back(self) -> None:
        """Remove what was begun of a line; where even that fails, the next line closes it."""
        self._reserved = 0
        try:
            os.ftruncate(self._file.fd, self._size)
        except OSError:
            self._is_torn = True
            self._size = os.fstat(self._file.fd).st_size

    def _require_sound(self) -> None:
        if self._failure is not None:
            raise OSError(self._failure.errno, "an earlier fsync failed")

    def _fsync(self, file: Handle) -> None:
        """Sync on behalf of all; a failure is remembered, since no later success undoes it."""
        try:
            atomic.fsync(file.fd)
        except OSError as error:
            self._failure = error
            raise

    def _reserve(self) -> bool:
        """Keep at least half the reserve allocated before the end; False on a full disk."""
        if self._size + self._reserve_bytes // 2 <= self._reserved:
            return True
        self._is_full = not _allocate(self._file, self._size, self._reserve_bytes)
        if not self._is_full:
            self._reserved = self._size + self._reserve_bytes
        return not self._is_full

    def _rotate(self) -> None:
        """Begin a new file; the writers of the old one may still settle their marks on it."""
        temporary = f".amux-{os.urandom(8).hex()}"
        fresh = Handle(os.open(temporary, _NEW, 0o600, dir_fd=self._folder.fd))
        try:
            if not _allocate(fresh, 0, self._reserve_bytes):
                raise OSError(errno.ENOSPC, "no room for the reserve of a new part")
            self._fsync(self._file)
            for part in range(self._parts_kept - 1, -1, -1):
                if self._folder.look(self._part(part)) is not None:
                    atomic.rename(self._folder, self._part(part), self._part(part + 1))
            atomic.rename(self._folder, temporary, self._name)
        except BaseException:
            fresh.close()
            atomic.discard(self._folder, temporary)
            raise
        if self._retired is not None:
            self._retired.close()
        self._retired, self._file, self._size = self._file, fresh, 0
        self._reserved, self._is_full, self._is_torn = self._reserve_bytes, False, False
        self._fsync(self._folder)

    def _part(self, number: int) -> str:
        stem, _, ending = self._name.rpartition(".")
        return f"{stem}.{number}.{ending}" if number else self._name


def _allocate(file: Handle, start: int, length: int) -> bool:
    """Allocate room beyond the end of a file; False where the disk is full.

    A platform or file system that cannot is no reason to stop: it has no reserve then.
    """
    if sys.platform != "linux":
        return True
    if not _libc.fallocate(file.fd, _KEEP_SIZE, ctypes.c_long(start), ctypes.c_long(length)):
        return True
    return ctypes.get_errno() not in _FULL


def _skip(file: BinaryIO, is_before: Callable[[bytes], bool]) -> None:
    """Go to a line start near the end of what is before, by halving."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()  # the rest of a line
        place = file.tell()
        line = file.readline()
        if place < high and line.endswith(b"\n") and is_before(line):
            low = place
        else:
            high = middle
    file.seek(low)
