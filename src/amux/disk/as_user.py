"""Touching files with another user's rights, and no more than these (Linux).

Rule 1: the kernel judges: what the user may not read or write, is not read or written for him,
        whatever links he laid.
Rule 2: a thread of its own takes on the rights, and ends; every other thread stays what it is.
Rule 3: where a right cannot be given up, nothing is done.
"""

import ctypes
import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

# The C library's own would change all threads (setgroups(2), "C library/kernel differences").
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "armv7l": 206, "i686": 206}
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


def call(uid: int, gid: int, groups: Sequence[int], function: "Callable[[], T]") -> "T":
    """Call a function that touches files, with the rights of a user; gives or raises what it does.

    Raises `PermissionError` where the rights cannot be taken on.
    """
    given: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            _become(uid, gid, groups)
            given.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=work, name="as-user")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return given[0]


def read(path: str, *, max_bytes: int) -> bytes:
    """Read an ordinary file; at most one byte more than `max_bytes`, which tells too much."""
    fd = os.open(path, _FILE)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("it is no ordinary file")
        os.set_blocking(fd, True)
        found = bytearray()
        while len(found) <= max_bytes and (block := os.read(fd, max_bytes + 1 - len(found))):
            found += block
        return bytes(found)
    finally:
        os.close(fd)


def make(path: str, data: bytes) -> None:
    """Make a private file in a directory, which is made if missing.

    Raises `FileExistsError` where something stands there: nothing is replaced.
    """
    place, _, name = path.rpartition("/")
    make_folder(place)
    at = os.open(place, _DIRECTORY)
    try:
        fd = os.open(name, _NEW, 0o600, dir_fd=at)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)
    finally:
        os.close(at)


def make_folder(path: str) -> None:
    """Make a private directory and what is missing above it; one that is there stays as it is."""
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))  # not `os.makedirs`, which leaves those to the umask
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


def is_there(path: str) -> bool:
    """Tell whether something is there; a link counts."""
    return os.path.lexists(path)


def unlink(path: str) -> None:
    """Remove a file or a link; what is already gone is no error."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def is_home(path: str, uid: int) -> bool:
    """Tell whether a directory is a user's own, and nobody's else to write."""
    try:
        status = os.stat(f"{path}/.")
    except OSError:
        return False
    return status.st_uid == uid and not status.st_mode & stat.S_IWOTH


def can_enter(path: str) -> bool:
    """Tell whether a process of the user could stand in a directory."""
    try:
        return stat.S_ISDIR(os.stat(f"{path}/.").st_mode)
    except OSError:
        return False


def _become(uid: int, gid: int, groups: Sequence[int]) -> None:
    if sys.platform != "linux" or os.uname().machine not in _SETGROUPS:
        raise PermissionError("the rights of another user cannot be taken on here")
    listed = (ctypes.c_uint32 * max(1, len(groups)))(*groups)
    number = ctypes.c_long(_SETGROUPS[os.uname().machine])
    if _libc.syscall(number, ctypes.c_long(len(groups)), listed) != 0:
        raise PermissionError(ctypes.get_errno(), "the groups cannot be given up")
    _libc.setfsgid(ctypes.c_uint32(gid))
    _libc.setfsuid(ctypes.c_uint32(uid))
    # They tell only what was before: asked a second time, with nobody's id, they tell what is.
    nobody = ctypes.c_uint32(0xFFFFFFFF)
    if _libc.setfsuid(nobody) != uid or _libc.setfsgid(nobody) != gid:
        raise PermissionError("the rights of the user were not taken on")
