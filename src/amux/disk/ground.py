"""A directory of the user's and all below it: walked step by step, never through a link.

Rule 1: each step is opened from the handle of the one before, without following a link; a link or
        what is no directory is refused, whoever made it and whenever (J19).
Rule 2: each step below the base belongs to us. Uid 0 may work in anybody's tree, and gives what
        it makes there to the one whose tree it is.
Rule 3: a directory that is made is durable before anything is put into it.
"""

import errno
import os
from collections.abc import Sequence
from types import TracebackType

from amux.disk import atomic
from amux.disk.tree import Folder

_BASE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_STEP = _BASE | os.O_NOFOLLOW


class BlockedError(OSError):
    """A link, or what is no directory, stands where a directory should be."""


class ForeignOwnerError(OSError):
    """A directory belongs to another user."""


class Ground:
    """A directory, open, with the way that leads to it; each path below it is walked anew."""

    __slots__ = ("_base", "_steps", "folder", "gid", "owner", "uid")

    def __init__(
        self, base: str, steps: Sequence[str], folder: Folder, *, uid: int, owner: int, gid: int
    ) -> None:
        self._base = base
        self._steps = tuple(steps)
        self.folder = folder
        self.uid = uid
        """Who works here: the effective uid."""
        self.owner = owner
        """Whose tree it is: the owner of the first step."""
        self.gid = gid

    @classmethod
    def open(cls, base: str, steps: Sequence[str], *, uid: int) -> "Ground | None":
        """Open the directory that lies `steps` below `base`; None where there is none.

        Raises:
            BlockedError, ForeignOwnerError: by the rules above; the base itself is trusted.
        """
        return cls._reach(base, steps, uid=uid, is_made=False)

    @classmethod
    def make(cls, base: str, steps: Sequence[str], *, uid: int) -> "Ground":
        """Open it and make what is missing below `base`, durably, for its owner alone."""
        found = cls._reach(base, steps, uid=uid, is_made=True)
        if found is None:  # removed while we walked
            raise FileNotFoundError(errno.ENOENT, "the directory is gone")
        return found

    @classmethod
    def _reach(cls, base: str, steps: Sequence[str], *, uid: int, is_made: bool) -> "Ground | None":
        try:
            at = Folder(os.open(base, _BASE))
        except (FileNotFoundError, NotADirectoryError):
            return None
        owner = os.fstat(at.fd)  # of what we make where nothing is: the base's
        for number, name in enumerate(steps):
            with at:
                below = _below(at, name, uid)
                if below is None and is_made:
                    below = _made(at, name, uid, owner.st_uid, owner.st_gid)
            if below is None:
                return None
            at = below
            if number == 0:
                owner = os.fstat(at.fd)
        return cls(base, steps, at, uid=uid, owner=owner.st_uid, gid=owner.st_gid)

    def __enter__(self) -> "Ground":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Give the handle back; a second time does nothing."""
        self.folder.close()

    def where(self, path: str = "") -> str:
        """Spell the whole path of what lies at `path`; to tell, and to look again by name."""
        return "/".join((self._base.rstrip("/"), *self._steps, *([path] if path else [])))

    def open_folder(self, path: str) -> Folder | None:
        """Open a directory below, the empty path being this one; None where there is none."""
        at = Folder(os.dup(self.folder.fd))
        for name in path.split("/") if path else ():
            with at:
                below = _below(at, name, self.uid)
            if below is None:
                return None
            at = below
        return at

    def make_folder(self, path: str) -> Folder:
        """Open a directory below and make what is missing of the way, durably."""
        at = Folder(os.dup(self.folder.fd))
        for name in path.split("/") if path else ():
            with at:
                below = _below(at, name, self.uid) or _made(
                    at, name, self.uid, self.owner, self.gid
                )
            at = below
        return at

    def sync_way(self, path: str) -> None:
        """Make durable that each directory on the way to `path` is there, the base included.

        Whoever made one of them may have been killed before it was.
        """
        at = os.open(self._base, _BASE)
        try:
            for name in (*self._steps, *(path.split("/") if path else ())):
                atomic.fsync(at)
                below = os.open(name, _STEP, dir_fd=at)
                os.close(at)
                at = below
        finally:
            os.close(at)


def _below(at: Folder, name: str, uid: int) -> Folder | None:
    try:
        found = Folder(os.open(name, _STEP, dir_fd=at.fd))
    except FileNotFoundError:
        return None
    except PermissionError:
        # Another user's directory that we may not even enter is refused for its owner.
        if uid and os.stat(name, dir_fd=at.fd, follow_symlinks=False).st_uid != uid:
            raise ForeignOwnerError(errno.EPERM, "the directory is another user's", name) from None
        raise
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise BlockedError(error.errno, "not a directory, or a link", name) from error
        raise
    if uid and os.fstat(found.fd).st_uid != uid:
        found.close()
        raise ForeignOwnerError(errno.EPERM, "the directory is another user's", name)
    return found


def _made(at: Folder, name: str, uid: int, owner: int, gid: int) -> Folder:
    try:
        atomic.make_folder(at, name)
    except FileExistsError:  # somebody was quicker
        pass
    else:
        with Folder(os.open(name, _STEP, dir_fd=at.fd)) as made:
            if uid == 0 and owner:
                os.fchown(made.fd, owner, gid)
            if os.fstat(made.fd).st_mode & 0o7777 != 0o700:  # an odd umask
                os.fchmod(made.fd, 0o700)
    atomic.fsync(at.fd)
    found = _below(at, name, uid)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "the directory is gone", name)
    return found
