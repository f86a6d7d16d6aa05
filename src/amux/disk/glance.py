"""Looks at directories that a person chose: what stands at a name, whose it is, a small file.

Rule 1: it is light, because each start of an agent's server takes such looks; nothing is changed.
Rule 2: a look does not follow a link; what may not be looked at is not there.
"""

import errno
import os
import stat
from collections.abc import Iterator

_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Glance:
    """What one look told."""

    __slots__ = ("kind", "uid")

    def __init__(self, kind: str, uid: int) -> None:
        self.kind = kind
        """`file`, `folder`, `link` or `other`."""
        self.uid = uid


def look(path: str) -> Glance | None:
    """Look at a name; None where nothing is to be seen."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # ValueError: no file has a NUL in its name
        return None
    mode = status.st_mode
    kind = (
        "file" if stat.S_ISREG(mode)
        else "folder" if stat.S_ISDIR(mode)
        else "link" if stat.S_ISLNK(mode)
        else "other"
    )  # fmt: skip
    return Glance(kind, status.st_uid)


def read(path: str, *, max_bytes: int) -> bytes | None:
    """Read a regular file; None where no name is; at most one byte more than `max_bytes`.

    Raises:
        OSError: it is a link, no regular file, or may not be read.
    """
    try:
        fd = os.open(path, _READ_FILE)
    except FileNotFoundError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        data = b""
        while len(data) <= max_bytes and (block := os.read(fd, max_bytes + 1 - len(data))):
            data += block
        return data
    finally:
        os.close(fd)


def folders_or_cut(path: str, *, limit: int) -> tuple[list[str], bool]:
    """Name the directories in one, in order, and tell whether there are names beyond the limit."""
    found: list[str] = []
    read = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if read == limit:
                    return sorted(found), True
                read += 1
                if _is_folder(entry):
                    found.append(entry.name)
    except OSError:  # not `suppress`: this module is on the path of each start
        pass
    return sorted(found), False


def upwards(path: str) -> Iterator[str]:
    """Give a directory and each above it, up to the root."""
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def real(path: str) -> str:
    """Resolve each link of a path, also where its end does not exist."""
    return os.path.realpath(path)


def within(path: str, base: str) -> str | None:
    """Give what leads from `base` to `path`, both resolved; None where it lies outside."""
    if path == base:
        return ""
    start = base if base.endswith("/") else base + "/"
    return path[len(start) :] if path.startswith(start) else None


def under(base: str, below: str) -> str:
    """Join a path below a directory to it; an empty one is the directory itself."""
    return os.path.join(base, below) if below else base


def last(path: str) -> str:
    """Give the last name of a path."""
    return os.path.basename(path)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
