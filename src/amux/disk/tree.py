"""An open directory, and what lies beneath it, reached without ever following a link.

Rule 1: a directory beneath a root is opened from the root's handle, in one call that refuses
        links, mounts and `..` (openat2), or step by step with O_NOFOLLOW where the kernel lacks
        it. A check and a use that name the same thing twice would be a race.
Rule 2: a file is opened without blocking and judged by its handle: regular, one name, not too
        large. What it is now counts, not what it was when somebody looked.
Rule 3: names are bytes. Those that are not UTF-8 are kept by `surrogateescape` and shown by
        `shown`, so that no name can crash a walk or reach a terminal raw.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
import unicodedata
from collections import namedtuple
from collections.abc import Iterator

from amux.errors import Corrupt, PermissionDenied

_OPENAT2 = ctypes.c_long(437)  # the same number on every architecture since Linux 5.6
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 1, 2, 4, 8
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_RETRIES = 128  # EAGAIN means that something was renamed meanwhile; a storm of it must end
_READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BLOCK_BYTES = 64 * 1024

# File systems whose locks or renames do not promise what a local disk's do (statfs(2)).
_NETWORK_TYPES = {
    0x6969: "nfs", 0x517B: "smb", 0xFE534D42: "smb2", 0xFF534D42: "cifs", 0x01021997: "9p",
    0x65735546: "fuse", 0x73757245: "coda", 0x5346414F: "afs", 0x6B414653: "afs",
    0x00C36400: "ceph", 0x0BD00BD0: "lustre", 0x47504653: "gpfs", 0x19830326: "beegfs",
    0x7461636F: "ocfs2", 0x01161970: "gfs2", 0x564C: "ncp", 0x786F4256: "vboxsf",
}  # fmt: skip

_NO_STEPS = frozenset({"", ".", ".."})

_libc = ctypes.CDLL(None, use_errno=True)


TYPE_CHECKING = False  # importing `typing` for the real one would cost each start 3 ms
if TYPE_CHECKING:
    from typing import NamedTuple

    class Seen(NamedTuple):
        """What one look at a name told, links not followed."""

        kind: str
        """`file`, `folder`, `link` or `other`."""
        size: int
        mtime_ns: int
        ctime_ns: int
        inode: int
        links: int
else:
    Seen = namedtuple("Seen", "kind size mtime_ns ctime_ns inode links")


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


# Made once, and only ever read by the kernel.
_HOW_BYTES = ctypes.c_size_t(ctypes.sizeof(_How))
_HOW = {flags: ctypes.byref(_How(flags, 0, _RESOLVE)) for flags in (_READ_DIRECTORY, _READ_FILE)}


class Handle:
    """An open directory."""

    __slots__ = ("device", "fd", "inode")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        status = os.fstat(fd)
        self.device = status.st_dev
        self.inode = status.st_ino

    def close(self) -> None:
        """Give the handle back; a second time does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class Folder(Handle):
    """A directory opened for a while; every name that it takes is one component."""

    __slots__ = ()

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_same(self, other: "Folder") -> bool:
        """Tell whether both are one directory."""
        return (self.device, self.inode) == (other.device, other.inode)

    def look(self, name: str) -> Seen | None:
        """Look at a name without following or opening it; None where nothing is."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError:  # a directory that may be listed but not entered
            return Seen("other", 0, 0, 0, 0, 1)
        return _seen(status)

    def names(self) -> Iterator[str]:
        """Name what is here, in no order, as the directory is read."""
        with os.scandir(self.fd) as entries:
            for entry in entries:
                yield entry.name

    def folders(self) -> Iterator[str]:
        """Name the directories here, links to some not among them, in no order."""
        with os.scandir(self.fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name

    def read(self, name: str, *, max_bytes: int) -> bytes | None:
        """Read a file whole; None where no file of this name is.

        Refuses as `corrupt`, with the reason, what is no ordinary file of at most `max_bytes`.
        """
        try:
            fd = os.open(name, _READ_FILE, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _odd(error) from error
        try:
            return _read(fd, self.device, max_bytes)
        except OSError as error:  # a bad sector shows itself here, not at the open
            raise _odd(error) from error
        finally:
            os.close(fd)


class Root(Handle):
    """The directory that everything is kept beneath."""

    __slots__ = ("_has_openat2",)

    def __init__(self, fd: int, *, stepwise: bool = False) -> None:
        super().__init__(fd)
        self._has_openat2 = sys.platform == "linux" and not stepwise

    @classmethod
    def open(cls, path: str, *, stepwise: bool = False) -> "Root":
        """Open an existing directory; the way to it is trusted, links included.

        `stepwise` takes the way of kernels without openat2.
        """
        return cls(os.open(path, _READ_DIRECTORY), stepwise=stepwise)

    @classmethod
    def create(cls, path: str, *, stepwise: bool = False) -> "Root":
        """Open a directory and make what is missing of the way to it, durably, for us alone."""
        missing: list[str] = []
        at = os.path.abspath(path)
        while not os.path.isdir(at):
            missing.append(at)
            at = os.path.dirname(at)
        try:
            for step in reversed(missing):
                _make_durably(step)
        except PermissionError as error:
            raise PermissionDenied(
                "the root may not be written", reason="root_not_writable"
            ) from error
        return cls.open(path, stepwise=stepwise)

    def folder(self, path: str) -> Folder | None:
        """Open a directory beneath; None where no directory is.

        Refuses as `corrupt` a way that leads through a link or into another file system.
        """
        try:
            return Folder(self._open(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _odd(error) from error

    def read(self, path: str, *, max_bytes: int) -> bytes | None:
        """Read a file beneath whole, as `Folder.read` does."""
        try:
            fd = self._open(path, _READ_FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _odd(error) from error
        try:
            return _read(fd, self.device, max_bytes)
        except OSError as error:
            raise _odd(error) from error
        finally:
            os.close(fd)

    def look(self, path: str) -> Seen | None:
        """Look at a name beneath without following or opening it."""
        place, _, name = path.rpartition("/")
        folder = self.folder(place)
        if folder is None:
            return None
        with folder:
            return folder.look(name)

    def _open(self, path: str, flags: int = _READ_DIRECTORY) -> int:
        if not path:
            return os.open(".", flags, dir_fd=self.fd)
        steps = path.split("/")
        if not _NO_STEPS.isdisjoint(steps):
            raise OSError(errno.EXDEV, "not a plain path")
        if self._has_openat2:
            try:
                return _openat2(self.fd, path, flags)
            except OSError as error:
                # An old kernel, or a sandbox that refuses calls it does not know.
                if error.errno not in {errno.ENOSYS, errno.EPERM}:
                    raise
                self._has_openat2 = False
        return self._walk(steps, flags)

    def _walk(self, steps: list[str], flags: int) -> int:
        """Open step by step: each must be of this file system and no link."""
        at = os.dup(self.fd)
        try:
            for number, step in enumerate(steps, 1):
                below = _step(step, at, flags if number == len(steps) else _READ_DIRECTORY)
                os.close(at)
                at = below
                if os.fstat(at).st_dev != self.device:
                    raise OSError(errno.EXDEV, "another file system")
        except BaseException:
            os.close(at)
            raise
        return at


def why_not_ordinary(seen: Seen, *, max_bytes: int) -> str | None:
    """Name the first rule that what was seen breaks, or None for an ordinary file."""
    if seen.kind == "link":
        return "link"
    if seen.kind != "file":
        return "not_regular"
    if seen.links > 1:  # none at all: it was replaced since it was opened, and is still whole
        return "hard_link"
    return "too_large" if seen.size > max_bytes else None


def corrupt(reason: str) -> Corrupt:
    """Make the refusal of a file that breaks a rule."""
    return Corrupt(
        "a stored file breaks a rule of documents",
        hint="amux memory check lists such files and can remove them",
        reason=reason,
    )


def shown(name: str) -> str:
    """Spell a name of a file so that it can be printed; two names never look the same."""
    return "".join(
        character
        if character != "\\"
        and unicodedata.category(character)[0] != "C"
        and character not in "\u2028\u2029"
        else "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
        for character in name
    )


def network_type(path: str) -> str | None:
    """Name the network file system that a path lies on; None for a local or unknown one (M10)."""
    if sys.platform != "linux":
        return None
    answer = ctypes.create_string_buffer(512)
    if _libc.statfs(os.fsencode(path), answer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    (kind,) = struct.unpack_from("l", answer)
    return _NETWORK_TYPES.get(kind & 0xFFFFFFFF)


def _openat2(base: int, path: str, flags: int) -> int:
    name, how = os.fsencode(path), _HOW[flags]
    for _ in range(_RETRIES):
        fd: int = _libc.syscall(_OPENAT2, base, name, how, _HOW_BYTES)
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:
            raise OSError(number, os.strerror(number))
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _step(name: str, base: int, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=base)
    except NotADirectoryError:
        # A link says so too where a directory is asked for; the callers tell links apart.
        if stat.S_ISLNK(os.stat(name, dir_fd=base, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, "a link") from None
        raise


def _read(fd: int, device: int, max_bytes: int) -> bytes | None:
    """Read an open file whole if it is an ordinary one of a file system."""
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        return None
    reason = why_not_ordinary(_seen(status), max_bytes=max_bytes)
    if status.st_dev != device:
        reason = "other_file_system"
    if reason:
        raise corrupt(reason)
    data = os.read(fd, status.st_size + 1)
    while len(data) != status.st_size:  # it changes meanwhile
        if len(data) > max_bytes:
            raise corrupt("too_large")
        block = os.read(fd, _BLOCK_BYTES)
        if not block:
            break
        data += block
    return data


def _seen(status: os.stat_result) -> Seen:
    mode = status.st_mode
    kind = (
        "file" if stat.S_ISREG(mode)
        else "folder" if stat.S_ISDIR(mode)
        else "link" if stat.S_ISLNK(mode)
        else "other"
    )  # fmt: skip
    return Seen(
        kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_nlink
    )


def _odd(error: OSError) -> Exception:
    """Turn a failed open or read into the refusal that names the rule, or leave it as it is."""
    match error.errno:
        case errno.ELOOP:
            return corrupt("link")
        case errno.EXDEV:
            return corrupt("other_file_system")
        case errno.ENXIO | errno.ENODEV:  # a socket, a device without a driver
            return corrupt("not_regular")
        case errno.EACCES | errno.EPERM | errno.EIO:
            return corrupt("unreadable")
        case errno.ENAMETOOLONG:
            return corrupt("odd_name")
        case _:
            return error


def _make_durably(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    parent = os.open(os.path.dirname(path), _READ_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
