"""A log that is only appended to: whole lines, a reserve for a full disk, bounded by rotation.

Rule 1: one line, one write; a line that was only begun is taken back, and one that a crash tore
        is closed at the next opening.
Rule 2: room for more lines is allocated before the end of the file, so that a full disk still
        takes some (M74).
Rule 3: at its size the file is renamed and a new one begun; a line never spans two files.
Rule 4: durable is what a mark was settled for; several writers share one fsync.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator

from amux.disk import atomic
from amux.disk.tree import Folder, Handle, Root

_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_KEEP_SIZE = 1  # fallocate(2): room beyond the end, the size stays
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
        self._file, self._size = self._open()
        self._reserved = 0
        if self._size and os.pread(self._file.fd, 1, self._size - 1) != b"\n":
            atomic.write_all(self._file.fd, b"\n")
            self._size += 1
        self._reserve()

    def append(self, line: bytes) -> None:
        """Add a line, its LF included; raises `OSError` where the disk does not take it."""
        with self._lock:
            self._append(line)

    def append_marked(self, line: bytes) -> atomic.Mark:
        """Add a line and give the mark that makes it durable; every mark must be settled."""
        with self._lock:
            self._append(line)
            return self._syncs.mark(self._file)

    def settle(self, mark: atomic.Mark) -> None:
        """Return when the marked line is durable, or raise what the fsync raised."""
        self._syncs.settle(mark)

    def release(self, mark: atomic.Mark) -> None:
        """Give back a mark whose line need not be durable."""
        self._syncs.release(mark)

    def lines(self, part: int) -> Iterator[bytes]:
        """Give the whole lines of a part; 0 is the present one, the highest the oldest."""
        try:
            fd = os.open(self._part(part), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._folder.fd)
        except FileNotFoundError:
            return
        with os.fdopen(fd, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line

    def close(self) -> None:
        """Give the handles back."""
        for handle in (self._file, self._retired, self._folder):
            if handle is not None:
                handle.close()

    def _append(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._max_bytes:
            self._rotate()
        try:
            atomic.write_all(self._file.fd, line)
        except OSError:
            os.ftruncate(self._file.fd, self._size)
            self._reserved = self._size
            raise
        self._size += len(line)
        self._reserve()

    def _reserve(self) -> None:
        """Keep at least half the reserve allocated before the end; a full disk may refuse it."""
        if sys.platform != "linux" or self._size + self._reserve_bytes // 2 <= self._reserved:
            return
        length = ctypes.c_long(self._reserve_bytes)
        if not _libc.fallocate(self._file.fd, _KEEP_SIZE, ctypes.c_long(self._size), length):
            self._reserved = self._size + self._reserve_bytes

    def _rotate(self) -> None:
        """Begin a new file; the writers of the old one may still settle their marks on it."""
        atomic.fsync(self._file.fd)
        for part in range(self._parts_kept - 1, -1, -1):
            if self._folder.look(self._part(part)) is not None:
                atomic.rename(self._folder, self._part(part), self._part(part + 1))
        if self._retired is not None:
            self._retired.close()
        self._retired = self._file
        self._file, self._size = self._open()
        self._reserved = 0
        atomic.fsync(self._folder.fd)

    def _part(self, number: int) -> str:
        stem, _, ending = self._name.rpartition(".")
        return f"{stem}.{number}.{ending}" if number else self._name

    def _open(self) -> tuple[Handle, int]:
        handle = Handle(os.open(self._name, _OPEN, 0o600, dir_fd=self._folder.fd))
        return handle, os.fstat(handle.fd).st_size
