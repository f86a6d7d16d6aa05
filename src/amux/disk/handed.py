"""Directories and files that root makes for another uid, through handles only.

Rule 1: the way to them is root's: from `/` down every directory is ours or root's, and nobody else
        can rename what is in it. What another uid owns is never a step of a path here.
Rule 2: a file is made new, written, and only then handed over; nothing that exists is followed,
        opened, changed or given away.
Rule 3: what is removed is removed from handles as well, however deep somebody nested it: what
        lies below is first moved up to a directory that only root can write.
"""

import errno
import os
import stat
from contextlib import suppress

from amux.disk.tree import Folder

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
PASSABLE = 0o711  # others may go through, and see no name
_ATTEMPTS = 3  # at a directory that somebody fills while it is emptied


class NotTrustedError(Exception):
    """A directory on the way could be swapped by somebody else, or is none."""


def trusted(path: str, *, makes: bool) -> Folder:
    """Open a directory to which nobody but root and we can change the way.

    With `makes` what is missing is made. Raises `NotTrustedError`, which names the step, or
    `OSError`.
    """
    fd = os.open("/", _DIRECTORY)
    try:
        _require_ours(fd, "/")
        at = ""
        for name in os.path.realpath(path).split("/"):
            if not name:
                continue
            at += f"/{name}"
            below = _below(fd, name, at, makes=makes)
            os.close(fd)
            fd = below
            _require_ours(fd, at)
    except BaseException:
        os.close(fd)
        raise
    return Folder(fd)


def make_folder(folder: Folder, name: str, *, mode: int, uid: int = -1, gid: int = -1) -> Folder:
    """Make a directory, and hand it over; whatever the umask is, it has the mode that is given."""
    os.mkdir(name, 0o700, dir_fd=folder.fd)
    fd = os.open(name, _DIRECTORY, dir_fd=folder.fd)
    try:
        os.fchown(fd, uid, gid)
        os.fchmod(fd, mode)
    except BaseException:
        os.close(fd)
        raise
    return Folder(fd)


def make_file(
    folder: Folder, name: str, data: bytes, *, mode: int, uid: int = -1, gid: int = -1
) -> None:
    """Make a file, whole, and hand it over; refuses what stands there already."""
    fd = os.open(name, _NEW, 0o600, dir_fd=folder.fd)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fchown(fd, uid, gid)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def replace_file(
    folder: Folder, name: str, data: bytes, *, mode: int, uid: int = -1, gid: int = -1
) -> None:
    """Put another file in the place of one; whoever has the old one open keeps that."""
    make_file(folder, f".{name}.new", data, mode=mode, uid=uid, gid=gid)
    os.rename(f".{name}.new", name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)


def require_usable(path: str, *, needs_bytes: int) -> None:
    """Look whether a directory could be made there and programs be put in it; makes nothing.

    Raises `NotTrustedError`, which says what is in the way, or `OSError`.
    """
    at = os.path.realpath(path)
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    with trusted(at, makes=False) as folder:
        found = os.fstatvfs(folder.fd)
    if found.f_flag & os.ST_NOEXEC:
        raise NotTrustedError(f"nothing can be executed below {at} (noexec)")
    if found.f_flag & os.ST_RDONLY:
        raise NotTrustedError(f"nothing can be written below {at}")
    if found.f_bavail * found.f_frsize < needs_bytes or (found.f_files and found.f_ffree < 32):
        raise NotTrustedError(f"the disk of {at} is full")


def remove(folder: Folder, name: str) -> bool:
    """Remove a directory of `folder` with all that is in it; True where nothing is left."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=folder.fd)
    except FileNotFoundError:
        return True
    except (NotADirectoryError, OSError) as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.unlink(name, dir_fd=folder.fd)
        return True
    with Folder(fd) as top:
        os.fchown(fd, os.geteuid(), -1)
        os.fchmod(fd, 0o700)
        for _ in range(_ATTEMPTS):
            _empty(top)
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder.fd)
                return True
    return False


def own_file(path: str, *, max_bytes: int) -> bytes:
    """Read a file of ours, alone in having its bytes, no step to it a link or somebody else's.

    Raises `NotTrustedError`, which says what is wrong, or `OSError`.
    """
    place, _, name = os.path.abspath(path).rpartition("/")
    if os.path.realpath(place or "/") != (place or "/"):
        raise NotTrustedError("a link leads to it")
    with trusted(place or "/", makes=False) as folder:
        try:
            fd = os.open(name, _SOURCE, dir_fd=folder.fd)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotTrustedError("it is a link") from error
            raise
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise NotTrustedError("it is no ordinary file")
            if status.st_uid != os.geteuid():
                raise NotTrustedError("it belongs to another user")
            if status.st_nlink != 1:
                raise NotTrustedError("it has another name")
            if status.st_mode & _OTHERS_WRITE:
                raise NotTrustedError("others may write it")
            if status.st_size > max_bytes:
                raise NotTrustedError("it is too large")
            return os.read(fd, max_bytes + 1)
        finally:
            os.close(fd)


def _below(fd: int, name: str, at: str, *, makes: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=fd)
    except FileNotFoundError:
        if not makes:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotTrustedError(f"{at} is no directory") from error
        raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=fd)
        made = os.open(name, _DIRECTORY, dir_fd=fd)
        os.fchmod(made, PASSABLE)
        return made
    return os.open(name, _DIRECTORY, dir_fd=fd)


def _require_ours(fd: int, at: str) -> None:
    status = os.fstat(fd)
    if status.st_uid not in (0, os.geteuid()):
        raise NotTrustedError(f"{at} belongs to another user")
    # With the sticky bit nobody can rename or remove what is not theirs.
    if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise NotTrustedError(f"{at} can be written by others")


def _empty(top: Folder) -> None:
    """Empty a directory without ever going deeper than one level below it."""
    count = 0
    while names := list(top.names()):
        is_stuck = True
        for name in names:
            with suppress(FileNotFoundError):
                count, is_gone = _dissolve(top, name, count)
                is_stuck = is_stuck and not is_gone
        if is_stuck:
            return


def _dissolve(top: Folder, name: str, count: int) -> tuple[int, bool]:
    """Remove one name; of a directory that is full, move up what is in it first."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=top.fd)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise
        os.unlink(name, dir_fd=top.fd)
        return count, True
    with Folder(fd) as inner:
        if os.fstat(fd).st_dev != top.device:
            return count, False  # somebody mounted something; it is not ours to empty
        os.fchown(fd, os.geteuid(), -1)  # whoever still lives makes nothing new here
        os.fchmod(fd, 0o700)
        for below in list(inner.names()):
            seen = inner.look(below)
            if seen is not None and seen.kind == "folder":
                count += 1
                os.rename(below, f".{count}", src_dir_fd=fd, dst_dir_fd=top.fd)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(below, dir_fd=fd)
    try:
        os.rmdir(name, dir_fd=top.fd)
    except OSError:
        return count, False
    return count, True
