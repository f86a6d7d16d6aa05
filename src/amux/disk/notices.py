"""The kernel's notifications about directories (inotify), read without waiting.

Rule 1: what cannot be had is None or False, never an error: the caller then looks for itself.
Rule 2: a directory is watched by its handle, so that a link put in its place is not.
"""

import ctypes
import os
import struct
import sys
from typing import NamedTuple

from amux.disk.tree import Folder

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW = 0x4000
_ONLYDIR = 0x01000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR
_HEAD = struct.Struct("iIII")
_READ_BYTES = 64 * 1024  # about a thousand notices in one call

_libc = ctypes.CDLL(None, use_errno=True)


class Notice(NamedTuple):
    """Something happened to a name in a watched directory."""

    watch: int
    name: str


class Notices:
    """A queue of notices, and the directories that feed it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def open(cls) -> "Notices | None":
        """Open an empty queue; None where the system has none to give."""
        if sys.platform != "linux":
            return None
        fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(fd) if fd >= 0 else None

    def close(self) -> None:
        """Give the queue back."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        # A scan of a scope may be dropped while a search still goes on with it; its queue goes
        # when the last of them does.
        self.close()

    def add(self, folder: Folder) -> int | None:
        """Watch an open directory; None where the kernel refuses."""
        path = f"/proc/self/fd/{folder.fd}".encode()
        watch: int = _libc.inotify_add_watch(self._fd, path, ctypes.c_uint32(_MASK))
        return watch if watch >= 0 else None

    def remove(self, watch: int) -> None:
        """Stop watching; it is no matter if the directory is gone already."""
        _libc.inotify_rm_watch(self._fd, watch)

    def read(self) -> tuple[list[Notice], bool]:
        """Take what has come, without waiting; the second is True if notices were lost."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return [], False
        notices: list[Notice] = []
        lost = False
        at = 0
        while at < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = data[at : at + length].rstrip(b"\0")
            at += length
            lost = lost or bool(mask & _OVERFLOW)
            if name:
                notices.append(Notice(watch, os.fsdecode(name)))
        return notices, lost
