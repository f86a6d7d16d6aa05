"""Who holds a root, and who may write next.

Rule 1: the kernel's lock is the truth and dies with its process; nothing is ever stolen.
Rule 2: the lock file is never removed: two processes could hold two files of one name.
Rule 3: what stands in the file is only for the message of whoever comes second.
Rule 4: every wait inside a process has an end, and ends in `busy`.
"""

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import Busy

_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_MAX_BYTES = 4096  # a note is one line about a process
# A new holder has the lock a moment before its note stands there; until then it is the last one's.
_NOTE_LOOKS, _NOTE_PAUSE_SECONDS = 40, 0.005


class Holder:
    """The lock of a root, held until it is released or the process ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, root: Root, path: str, note: dict[str, object]) -> "Holder":
        """Take the lock at `path` and leave a note in it; refuse as `busy` who comes second.

        The note should have `pid`; a refusal carries it in its details.
        """
        place, _, name = path.rpartition("/")
        folder = root.folder(place)
        if folder is None:
            raise FileNotFoundError(place)
        with folder:
            while True:
                fd = os.open(name, _LOCK_FILE, 0o600, dir_fd=folder.fd)
                try:
                    _lock(fd)
                    seen = folder.look(name)
                    # Somebody may have replaced the file between the open and the lock; then
                    # this is the lock of a file that nobody else will ever find.
                    if seen is None or seen.inode != os.fstat(fd).st_ino:
                        os.close(fd)
                        continue
                    _leave_note(fd, note)
                except BaseException:
                    os.close(fd)
                    raise
                return cls(fd)

    def release(self) -> None:
        """Let somebody else hold it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Exclusion:
    """One writer at a time inside this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()

    @contextmanager
    def held(self, deadline: float) -> Iterator[None]:
        """Hold it while the block runs; refuse as `busy` when it is not had by `deadline`."""
        if not self._lock.acquire(timeout=max(0.0, deadline - self._clock())):
            raise Busy("another write of this scope takes too long", hint="retry in a moment")
        try:
            yield
        finally:
            self._lock.release()


def _lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Busy(
            "another process holds this root", hint="ask it, or end it first", **_note(fd)
        ) from error


def _note(fd: int) -> dict[str, object]:
    """Read who holds the lock, once that is somebody who lives; else what stands there."""
    note: dict[str, object] = {}
    for _ in range(_NOTE_LOOKS):
        note = _read_note(fd)
        if _is_alive(note.get("pid")):
            break
        time.sleep(_NOTE_PAUSE_SECONDS)
    return note


def _read_note(fd: int) -> dict[str, object]:
    try:
        note = json.loads(os.pread(fd, _NOTE_MAX_BYTES, 0))
    except ValueError:  # its holder is just writing it
        return {}
    return {"pid": note["pid"]} if isinstance(note, dict) and "pid" in note else {}


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _leave_note(fd: int, note: dict[str, object]) -> None:
    os.ftruncate(fd, 0)
    atomic.write_all(fd, json.dumps(note).encode("utf-8"))
