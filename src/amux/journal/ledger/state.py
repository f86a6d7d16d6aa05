"""The runtime state of a root as records and live files need it: the seam of the ledger (T6, T10).

Rule 1: paths are below `.runtime-state`. Reading takes no lock and makes nothing.
Rule 2: what changes a byte asks first that the lock still counts, right before the rename.
Rule 3: a live file is locked together with others by who lives, and alone by who asks whether
        anybody does; nothing but the lock is evidence.
"""

import re
from collections.abc import Callable
from contextlib import suppress

from amux.disk import commit, flock, regular
from amux.disk.flock import Flock, Patience
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.store import trouble
from amux.journal.store.root import STATE, Held

_DIGEST = re.compile(r"[0-9a-f]{64}")
LIVE = "live"
LIVE_WAIT_MS = 2_000  # somebody who asks whether we live holds the lock for a moment


class RuntimeState:
    """The runtime state of one root: read by anybody, changed by who holds the root."""

    __slots__ = ("_ground", "_held")

    def __init__(self, ground: Ground | None, held: Held | None = None) -> None:
        self._ground = ground
        self._held = held

    @classmethod
    def of(cls, held: Held) -> "RuntimeState":
        """Give the state of a root that is held."""
        return cls(held.ground, held)

    def read(self, path: str, *, max_bytes: int) -> bytes | None:
        """Read a file whole; None where none is. Takes no lock."""
        place, _, name = _below(path).rpartition("/")
        with trouble.told(path):
            folder = self._ground.open_folder(place) if self._ground else None
            if folder is None:
                return None
            with folder:
                found = regular.read(folder, name, max_bytes=max_bytes)
        return found.data if found else None

    def names(self, path: str) -> list[str]:
        """Name what lies in a directory; nothing where none is."""
        with trouble.told(path):
            folder = self._ground.open_folder(_below(path)) if self._ground else None
            if folder is None:
                return []
            with folder:
                return sorted(name for name in folder.names() if not commit.is_temporary(name))

    def written_before(self, path: str, epoch_ms: int) -> list[str]:
        """Name the files of a directory that were written before a moment, as the disk says."""
        with trouble.told(path):
            folder = self._ground.open_folder(_below(path)) if self._ground else None
            if folder is None:
                return []
            with folder:
                return sorted(
                    name
                    for name in folder.names()
                    if (seen := folder.look(name)) is not None
                    and seen.mtime_ns < epoch_ms * 1_000_000
                )

    def create(self, path: str, data: bytes) -> bool:
        """Make a file, whole and durable, or tell that the name is taken; under the lock."""
        return self._put(path, data, is_new=True, before=_nothing)

    def replace(self, path: str, data: bytes, before: Callable[[], None]) -> None:
        """Replace a file, durably; `before` runs right before the rename; under the lock."""
        self._put(path, data, is_new=False, before=before)

    def remove(self, path: str) -> None:
        """Remove a file, durably; one that is gone is no error; under the lock."""
        held = self._writer()
        place, _, name = _below(path).rpartition("/")
        with trouble.told(path):
            folder = held.ground.open_folder(place)
            if folder is None:
                return
            with folder:
                held.require()
                commit.remove(folder, name)

    def live(self, session_digest: str) -> Flock:
        """Lock a session's live file together with others, and keep it until it is released."""
        held = self._writer()
        path = _below(f"{LIVE}/{session_digest}")
        patience = Patience(LIVE_WAIT_MS)
        while True:
            with (
                trouble.told(path),
                suppress(FileNotFoundError),
                held.ground.make_folder(_below(LIVE)) as folder,
            ):
                lock = flock.shared(held.ground, folder, session_digest, path)
                if lock is not None:
                    return lock
            if not patience.pause():
                raise trouble.locked()

    def is_live(self, session_digest: str) -> bool:
        """Tell whether some process holds a session's live file, by trying to lock it alone.

        To be asked under the root's lock: nobody comes to life between the answer and its use.
        """
        path = _below(f"{LIVE}/{session_digest}")
        with trouble.told(path):
            if self._ground is None:
                return False
            lock = flock.probe(self._ground, path)
            if lock is not None:
                lock.release()
                return False
            return flock.exists(self._ground, path)

    def bury(self, session_digest: str) -> bool:
        """Remove a live file that nobody holds; tell whether it is gone. Under the lock."""
        held = self._writer()
        path = _below(f"{LIVE}/{session_digest}")
        with trouble.told(path):
            lock = flock.probe(held.ground, path)
            if lock is None:
                return not flock.exists(held.ground, path)
            try:
                folder = held.ground.open_folder(_below(LIVE))
                if folder is not None:
                    with folder:
                        held.require()
                        commit.remove(folder, session_digest)
            finally:
                lock.release()
        return True

    def bury_others(self, session_digest: str) -> None:
        """Remove the live files of sessions that no process holds. Under the lock.

        What is odd there is left to the call that needs it.
        """
        for name in self.names(LIVE):
            if name != session_digest and _DIGEST.fullmatch(name):
                with suppress(AmuxError):
                    self.bury(name)

    def _put(self, path: str, data: bytes, *, is_new: bool, before: Callable[[], None]) -> bool:
        held = self._writer()
        ground = held.ground
        place, _, name = _below(path).rpartition("/")
        owner = (ground.owner, ground.gid) if ground.uid == 0 else None
        with trouble.told(path), ground.make_folder(place) as folder:
            commit.sweep(folder)
            like = None if is_new else regular.facts(folder, name)
            temporary = commit.stage(folder, name, data, like=like, owner=owner)
            try:
                if is_new:  # what is replaced was made by a call that had done this
                    ground.sync_way(place)
                before()
                held.require()
                if is_new:
                    commit.put_new(folder, temporary, name)
                else:
                    commit.put_over(folder, temporary, name)
            except FileExistsError:
                commit.discard(folder, temporary)
                commit.flush(folder)  # whoever made it may not have come so far
                return False
            except BaseException:
                commit.discard(folder, temporary)
                held.require()  # a temporary that is gone was swept by who has the lock now
                raise
            try:
                commit.flush(folder)
            except OSError as error:
                raise trouble.unknown(path, error) from error
        return True

    def _writer(self) -> Held:
        if self._held is None:
            raise RuntimeError("a read changes nothing")
        return self._held


def _below(path: str) -> str:
    return f"{STATE}/{path}" if path else STATE


def _nothing() -> None:
    """Do nothing before a rename."""
