"""Regular files, read without ever waiting for one and without touching what is none.

Rule 1: a name is looked at before it is opened, so that no device is touched; it is opened without
        blocking and without following a link, and judged again by its handle.
Rule 2: what was read says what the file was when it was opened: whoever compares that later finds
        out a change in between.
"""

import errno
import os
import stat
from typing import NamedTuple

from amux.disk.tree import Folder

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


class NotRegularError(OSError):
    """A name is there, and no regular file."""


class TooLargeError(OSError):
    """A file is larger than was asked for."""


class Facts(NamedTuple):
    """What tells one state of a file from another."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    uid: int
    gid: int


class Found(NamedTuple):
    """Bytes of a file, and what it was when it was opened."""

    data: bytes
    start: int
    """Where in the file the bytes begin."""
    facts: Facts


def facts(folder: Folder, name: str) -> Facts | None:
    """Look at a regular file; None where nothing is."""
    try:
        status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return _facts(status, name)


def read(folder: Folder, name: str, *, max_bytes: int) -> Found | None:
    """Read a file whole; None where nothing is.

    Raises:
        NotRegularError: something else is there.
        TooLargeError: it has more than `max_bytes`.
    """
    fd = _open(folder, name)
    if fd is None:
        return None
    try:
        seen = _facts(os.fstat(fd), name)
        if seen.size > max_bytes:
            raise TooLargeError(errno.EFBIG, "the file is too large", name)
        data = _bytes(fd, max_bytes + 1)
    finally:
        os.close(fd)
    if len(data) > max_bytes:  # it grew since it was looked at
        raise TooLargeError(errno.EFBIG, "the file is too large", name)
    return Found(data, 0, seen)


def read_end(folder: Folder, name: str, *, max_bytes: int) -> Found | None:
    """Read the last `max_bytes` of a file, all of a smaller one; None where nothing is."""
    fd = _open(folder, name)
    if fd is None:
        return None
    try:
        seen = _facts(os.fstat(fd), name)
        start = max(0, seen.size - max_bytes)
        if start:
            os.lseek(fd, start, os.SEEK_SET)
        return Found(_bytes(fd, min(seen.size, max_bytes)), start, seen)
    finally:
        os.close(fd)


def read_start(folder: Folder, name: str, *, max_bytes: int) -> Found | None:
    """Read the first `max_bytes` of a file, all of a smaller one; None where nothing is."""
    fd = _open(folder, name)
    if fd is None:
        return None
    try:
        return Found(_bytes(fd, max_bytes), 0, _facts(os.fstat(fd), name))
    finally:
        os.close(fd)


def _open(folder: Folder, name: str) -> int | None:
    if facts(folder, name) is None:
        return None
    try:
        return os.open(name, _READ, dir_fd=folder.fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.ENODEV}:
            raise NotRegularError(error.errno, "not a regular file", name) from error
        raise


def _bytes(fd: int, most: int) -> bytes:
    blocks: list[bytes] = []
    while most > 0 and (block := os.read(fd, min(_BLOCK_BYTES, most))):
        blocks.append(block)
        most -= len(block)
    return b"".join(blocks)


def _facts(status: os.stat_result, name: str) -> Facts:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(errno.EINVAL, "not a regular file", name)
    return Facts(
        device=status.st_dev, inode=status.st_ino, size=status.st_size,
        mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns,
        mode=stat.S_IMODE(status.st_mode), uid=status.st_uid, gid=status.st_gid,
    )  # fmt: skip
