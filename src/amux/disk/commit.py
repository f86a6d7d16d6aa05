"""One file replaced whole, in the steps that a writer takes under its lock (J63).

Rule 1: a temporary beside the target, with the target's mode and owner, all bytes, fsync; then
        one rename, which never replaces where a new file is made; then an fsync of the directory.
Rule 2: a temporary's name is one that nobody else makes; the next writer removes what a crash left.
Rule 3: a failed fsync is never asked again and believed.
Rule 4: each system call that changes something is a function, here or in `atomic`, and a test
        replaces it there.
"""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from amux.disk import atomic
from amux.disk.regular import Facts
from amux.disk.tree import Folder

_TEMPORARY = re.compile(r"\..+\.amux-[0-9a-f]{16}\.tmp", re.DOTALL)
_NEW_FILE_MODE = 0o600
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_temporary(name: str) -> bool:
    """Tell whether a name is one that only `stage` makes."""
    return _TEMPORARY.fullmatch(name) is not None


def stage(
    folder: Folder, name: str, data: bytes, *, like: Facts | None, owner: tuple[int, int] | None
) -> str:
    """Write a temporary beside `name`, durable but for its name, and tell its name.

    It has the mode and owner of `like`; without that it is a new file for `owner` alone, None
    being us. On an exception none is left behind.
    """
    temporary = f".{name}.amux-{os.urandom(8).hex()}.tmp"
    fd = atomic.create(folder, temporary)
    try:
        try:
            _dress(fd, like, owner)
            atomic.write_all(fd, data)
            atomic.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        atomic.discard(folder, temporary)
        raise
    return temporary


@contextmanager
def staged(
    files: Sequence[tuple[Folder, str, bytes]], *, owner: tuple[int, int] | None
) -> Iterator[list[str]]:
    """Write temporaries of several new files, all durable but for their names; give those.

    All are written before the first is synced, so that the disk is waited for once. Those that the
    block does not rename are removed.
    """
    opened: list[int] = []
    names = [f".{name}.amux-{os.urandom(8).hex()}.tmp" for _, name, _ in files]
    try:
        try:
            for (folder, _, data), temporary in zip(files, names, strict=True):
                fd = atomic.create(folder, temporary)
                opened.append(fd)
                _dress(fd, None, owner)
                atomic.write_all(fd, data)
            for fd in opened:
                atomic.fsync(fd)
        finally:
            for fd in opened:
                os.close(fd)
        yield names
    except BaseException:
        for (folder, _, _), temporary in zip(files, names, strict=True):
            discard(folder, temporary)
        raise


def put_new(folder: Folder, temporary: str, name: str) -> None:
    """Give a temporary a name that is free; FileExistsError where it is taken."""
    if not atomic.rename_free(
        folder, temporary, name
    ):  # a kernel or file system without it: two steps, and still no replacing
        link(folder, temporary, name)
        atomic.unlink(folder, temporary)


def put_over(folder: Folder, temporary: str, name: str) -> None:
    """Give a temporary the name of a file that is there."""
    atomic.rename(folder, temporary, name)


def discard(folder: Folder, temporary: str) -> None:
    """Remove a temporary that is not needed; where that fails, the next writer sweeps it."""
    atomic.discard(folder, temporary)


def flush(folder: Folder) -> None:
    """Make the names in a directory durable."""
    atomic.fsync(folder.fd)


def flush_file(folder: Folder, name: str) -> None:
    """Make durable what stands in a file, whoever wrote it."""
    fd = os.open(name, _READ, dir_fd=folder.fd)
    try:
        atomic.fsync(fd)
    finally:
        os.close(fd)


def sweep(folder: Folder, of: str = "") -> None:
    """Remove the temporaries that a crash left in a directory, or those of one name.

    Only the one writer of the directory, or of the name, may.
    """
    for name in list(folder.names()):
        if is_temporary(name) and name.startswith(f".{of}.amux-" if of else "."):
            seen = folder.look(name)
            if seen is not None and seen.kind == "file":
                atomic.discard(folder, name)


def temporaries(folder: Folder) -> list[str]:
    """Name the temporaries in a directory."""
    return sorted(name for name in folder.names() if is_temporary(name))


def remove(folder: Folder, name: str) -> None:
    """Remove a file, durably; one that is gone is no error."""
    with suppress(FileNotFoundError):
        atomic.unlink(folder, name)
    atomic.fsync(folder.fd)


def link(folder: Folder, source: str, target: str) -> None:
    """Give a file a second name, which must be free."""
    os.link(source, target, src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)


def give(fd: int, uid: int, gid: int) -> None:
    """Give an open file to somebody."""
    os.fchown(fd, uid, gid)


def set_mode(fd: int, mode: int) -> None:
    """Set what may be done with an open file."""
    os.fchmod(fd, mode)


def is_full(error: OSError) -> bool:
    """Tell whether the disk has no room for it, by bytes, by files or by quota."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def name_of(error: OSError) -> str:
    """Name what the system said, such as ENOSPC."""
    return errno.errorcode.get(error.errno or 0, "unknown")


def is_forbidden(error: OSError) -> bool:
    """Tell whether it may not be written."""
    return error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}


def _dress(fd: int, like: Facts | None, owner: tuple[int, int] | None) -> None:
    is_now = os.fstat(fd)
    wanted = (like.uid, like.gid) if like else owner
    if wanted is not None and wanted != (is_now.st_uid, is_now.st_gid):
        give(fd, *wanted)  # before the mode: it takes bits of the mode away
    mode = like.mode if like else _NEW_FILE_MODE
    if os.fstat(fd).st_mode & 0o7777 != mode:
        set_mode(fd, mode)
