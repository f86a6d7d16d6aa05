"""Files that a person names, or that amux makes outside its root: no documents among them.

Rule 1: what is made here is private from its birth, and never follows or replaces anything.
Rule 2: reading has a limit; what is removed is what was listed, links themselves included.
"""

import fcntl
import os
import stat
from collections.abc import Iterator

PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600


def read(path: str | bytes, *, max_bytes: int) -> bytes:
    """Read a file or a pipe; at most one byte more than `max_bytes`, which tells too much."""
    with open(path, "rb") as file:
        return file.read(max_bytes + 1)


def make_private(directory: str, name: str, data: bytes) -> str:
    """Make a folder of our own in `directory`, and in it a private file; gives the file's path."""
    os.mkdir(directory, PRIVATE_DIR)
    # A document's name is UTF-8, whatever the locale thinks of names of files.
    path = os.path.join(os.fsencode(directory), name.encode("utf-8"))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with open(fd, "wb") as file:
        file.write(data)
    return os.fsdecode(path)


def keep_private(path: str) -> None:
    """Make a file private again: editors may have replaced it by one that is not."""
    os.chmod(path, PRIVATE_FILE)


def walk(path: str) -> Iterator[str]:
    """Give everything at and beneath a path, contents first; links are not followed."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        for name in sorted(os.listdir(path)):
            yield from walk(os.path.join(path, name))
    yield path


def is_directory(path: str) -> bool:
    """Tell whether a directory, and no link to one, is there."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def is_socket(path: str) -> bool:
    """Tell whether a socket is there."""
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def may_others_write(path: str) -> bool:
    """Tell whether somebody else than root and we decides what stands in a file."""
    found = os.stat(path)
    return found.st_uid not in (0, os.geteuid()) or bool(found.st_mode & 0o022)


def shown(name: bytes) -> str:
    """Read a path as the system spells it."""
    return os.fsdecode(name)


def remove(path: str) -> None:
    """Remove one file, link or empty directory; what is already gone is no error."""
    try:
        if is_directory(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return


def names(directory: str, prefix: str) -> list[str]:
    """List what of ours, by name and owner, stands in a directory that others use too."""
    found = []
    try:
        entries = sorted(os.listdir(directory))
    except OSError:
        return []
    for name in entries:
        path = os.path.join(directory, name)
        if name.startswith(prefix) and _owner(path) == os.geteuid():
            found.append(path)
    return found


def find_program(name: str, search_path: str) -> str | None:
    """Find a program as a shell does; None where there is none that may be run."""
    if "/" in name:
        places = [os.path.abspath(os.path.expanduser(name))]
    else:
        places = [os.path.abspath(os.path.join(one, name)) for one in search_path.split(":") if one]
    for path in places:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def identity(path: str) -> str:
    """Name what a file is now: another file, or a change of it, has another name."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def names_in(directory: str) -> list[str]:
    """List what stands in a directory, as paths; nothing where there is none to read."""
    try:
        return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
    except OSError:
        return []


def is_locked(path: str) -> bool:
    """Tell whether some process holds the lock of a file."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def absolute(path: str) -> str:
    """Give a path from the root; where we stand is asked once."""
    return os.path.abspath(path)


def exists(path: str) -> bool:
    """Tell whether something is there; a link counts, wherever it leads."""
    return os.path.lexists(path)


def own_pid() -> int:
    """Name this process, as the note of a lock does."""
    return os.getpid()


def join(directory: str, *names_below: str) -> str:
    """Join a path."""
    return os.path.join(directory, *names_below)


def _owner(path: str) -> int:
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:
        return -1  # gone while we looked: nobody's
