"""What a block of code does to files, as the kernel tells it: inotify on a directory and all below.

It sees what leaves no trace: a file made and removed again, a mode set to what it was.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400
_CHANGES = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF
)
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def changes(top: Path) -> Iterator[list[str]]:
    """Give the list that, after the block, names each change below `top` as the kernel told it."""
    found: list[str] = []
    fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert fd >= 0
    places: dict[int, str] = {}
    try:
        for folder, _, _ in os.walk(top):
            watch = _libc.inotify_add_watch(fd, os.fsencode(folder), _CHANGES)
            assert watch >= 0
            places[watch] = folder
        yield found
        with contextlib.suppress(BlockingIOError):
            while data := os.read(fd, 65536):
                found += _told(data, places)
    finally:
        os.close(fd)


def _told(data: bytes, places: dict[int, str]) -> Iterator[str]:
    at = 0
    while at < len(data):
        watch, mask, _, size = struct.unpack_from("iIII", data, at)
        name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode()
        yield f"{mask:#x} {places.get(watch)}/{name}"
        at += 16 + size
