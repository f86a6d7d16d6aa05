"""Locks of the kernel on files that anybody may delete: who holds one, and whether it still counts.

Rule 1: flock, on a handle that no child inherits: it dies with its process. No pid, no time and
        no content of a file is ever asked, and nobody removes a lock to get it (J25).
Rule 2: a lock counts as long as its path names the file that was locked. A file that was deleted
        and made anew is another lock.
Rule 3: a lock that excludes nobody is none: that is tried out each time, on a second handle.
"""

import errno
import fcntl
import os
import time
from contextlib import suppress

from amux.disk import regular
from amux.disk.ground import Ground
from amux.disk.tree import Folder

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = _OPEN | os.O_CREAT | os.O_EXCL
# J25: 5 to 25 ms, by chance. Who has just come pauses longer than who has waited: among a dozen
# waiters with equal chances, one of a hundred would wait in vain for two seconds.
_PAUSE_MIN_SECONDS = 0.005
_FRESH_SECONDS, _FRESH_SPREAD_SECONDS = 0.012, 0.008  # on top of it, at first
_PATIENT_SECONDS = 1.2  # after that long nothing is on top any more
_SPREAD_SECONDS = 0.001  # so that two who came together do not stay together


# Who has just had the lock finds it free before any waiter looks again, call after call. So where
# this process has lately had to wait itself, it lets the others look first.
_LATELY_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 0.025


class LockUnsupportedError(OSError):
    """The file system knows no flock that excludes."""


class Flock:
    """One lock, held until it is released or the process ends."""

    __slots__ = ("_fd", "_key", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._key = _key(os.fstat(fd))
        self.path = path

    @property
    def counts(self) -> bool:
        """Tell whether the path still names the file that is locked (rule 2)."""
        return self._fd >= 0 and self._key == _key_at(self.path)

    def locks(self, fd: int) -> bool:
        """Tell whether another handle is one of the same file."""
        return self._key == _key(os.fstat(fd))

    def release(self) -> None:
        """Let somebody else have it; a second time does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def exclusive(ground: Ground, folder: Folder, name: str, path: str) -> Flock | None:
    """Try to lock a file for us alone, and make it if it is missing; None while others hold it.

    `path` is where the file must still be found by name, below the ground.

    Raises:
        LockUnsupportedError: by rule 3.
    """
    fd = _opened(ground, folder, name)
    return _locked(fd, ground.where(path), fcntl.LOCK_EX) if fd is not None else None


def shared(ground: Ground, folder: Folder, name: str, path: str) -> Flock | None:
    """Try to lock a file together with others, and make it if it is missing (T10)."""
    fd = _opened(ground, folder, name)
    return _locked(fd, ground.where(path), fcntl.LOCK_SH) if fd is not None else None


def probe(ground: Ground, path: str) -> Flock | None:
    """Try to lock for us alone the file that `path` names now, and make none (T10).

    None says that somebody holds it, or that no file is there: `exists` tells which.
    """
    place, _, name = path.rpartition("/")
    folder = ground.open_folder(place)
    if folder is None:
        return None
    with folder:
        try:
            fd = os.open(name, _OPEN, dir_fd=folder.fd)
        except FileNotFoundError:
            return None
    return _locked(fd, ground.where(path), fcntl.LOCK_EX)


def exists(ground: Ground, path: str) -> bool:
    """Tell whether anything stands at the path of a lock."""
    return _key_at(ground.where(path)) is not None


class Manners:
    """What one process remembers of its own waiting, to be fair to who waits now."""

    __slots__ = ("_released", "_waited")

    def __init__(self) -> None:
        self._waited = self._released = float("-inf")

    def before_asking(self, wait_ms: int) -> None:
        """Let others go first, if this process has just had the lock and others want it."""
        now = time.monotonic()
        is_wanted = now - self._waited < _LATELY_SECONDS
        if is_wanted and now - self._released < _LONGEST_PAUSE_SECONDS:
            chance = int.from_bytes(os.urandom(2), "big") / 0xFFFF
            spread = _LONGEST_PAUSE_SECONDS - _PAUSE_MIN_SECONDS
            time.sleep(min(wait_ms / 1000, _PAUSE_MIN_SECONDS + chance * spread))

    def waited(self) -> None:
        """Note that somebody else had the lock."""
        self._waited = time.monotonic()

    def released(self) -> None:
        """Note that the lock was had, and is let go."""
        self._released = time.monotonic()


class Patience:
    """How long a lock is tried for, at moments that nobody can foresee."""

    __slots__ = ("_begun", "_end")

    def __init__(self, wait_ms: int) -> None:
        self._begun = time.monotonic()
        self._end = self._begun + wait_ms / 1000

    def pause(self) -> bool:
        """Wait a moment; False once the time is over."""
        now = time.monotonic()
        left = self._end - now
        if left <= 0:
            return False
        freshness = max(0.0, 1 - (now - self._begun) / _PATIENT_SECONDS)
        chance = int.from_bytes(os.urandom(2), "big") / 0xFFFF
        spread = freshness * _FRESH_SPREAD_SECONDS
        pause = (
            _PAUSE_MIN_SECONDS + freshness * _FRESH_SECONDS + chance * max(spread, _SPREAD_SECONDS)
        )
        time.sleep(min(left, pause))
        return True


def flock(fd: int, how: int) -> None:
    """Ask the kernel for a lock."""
    fcntl.flock(fd, how | fcntl.LOCK_NB)


def _opened(ground: Ground, folder: Folder, name: str) -> int | None:
    """Open or make a file to lock; None where it comes and goes meanwhile."""
    if regular.facts(folder, name) is not None:  # a fifo or a device is no lock
        with suppress(FileNotFoundError):
            return os.open(name, _OPEN, dir_fd=folder.fd)
    try:
        fd = os.open(name, _MAKE, 0o600, dir_fd=folder.fd)
    except FileExistsError:
        return None
    if ground.uid == 0 and ground.owner:
        os.fchown(fd, ground.owner, ground.gid)
    return fd


def _locked(fd: int, path: str, how: int) -> Flock | None:
    try:
        flock(fd, how)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError as error:
        os.close(fd)
        raise LockUnsupportedError(error.errno, "no lock is to be had here") from error
    lock = Flock(fd, path)
    try:
        if lock.counts and (how == fcntl.LOCK_SH or _excludes(lock)):
            return lock
    except BaseException:
        lock.release()
        raise
    lock.release()
    return None


def _excludes(lock: Flock) -> bool:
    """Try the lock that we hold on another handle: it must be refused."""
    try:
        fd = os.open(lock.path, _OPEN)
    except FileNotFoundError:  # deleted since
        return False
    try:
        flock(fd, fcntl.LOCK_SH)
        is_same = lock.locks(fd)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    if is_same:
        raise LockUnsupportedError(errno.ENOLCK, "the lock excludes nobody")
    return False


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _key_at(path: str) -> tuple[int, int] | None:
    try:
        return _key(os.stat(path, follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None
