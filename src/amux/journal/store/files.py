"""The one way in which a file of a workspace is written (J63), and the receipt of it (J64).

Rule 1: under the root's lock: look, decide by a pure function, write beside, compare with what was
        looked at, rename, read back. Nobody else's bytes are ever overwritten.
Rule 2: a change by others in between is met once by doing all again, unless a view is rendered;
        the second time, and for a view, it refuses.
Rule 3: before the rename a failure leaves the old bytes and no temporary; after it, the answer is
        that the outcome is not known.
Rule 4: a receipt tells of the disk. An answer of "nothing to do" rests on bytes that may have been
        written by a call that was killed, so it makes them durable first.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from amux.core import canonical
from amux.core.value import Value
from amux.disk import commit, regular
from amux.disk.regular import Facts
from amux.disk.tree import Folder
from amux.journal.moment import Moment
from amux.journal.store import trouble
from amux.journal.store.root import Held

T = TypeVar("T")

SOURCE_MAX_BYTES = 64 * 1024 * 1024  # J63 step 1
YOUNG_NS = 50_000_000  # a file system's clock may tick that slowly: two changes, one mtime
TRANSACTION_ID_BYTES = 8
RECEIPT_SCHEMA = "MemoryFileTransactionReceiptV1"
CONFLICT_SCHEMA = "MemoryTransactionConflictReceiptV2"
NO_OP, CREATE, REPLACE = "no-op", "create", "replace"


class Edited(Value, Generic[T], kw_only=False):
    """What a pure function makes of a file: its new bytes, and whatever else it found out."""

    data: bytes
    value: T


Edit = Callable[[bytes | None], Edited[T]]
"""Old bytes, None for no file, to new bytes; or a refusal, and then nothing is written."""


class Snapshot(Value):
    """A file as it was looked at: step 1."""

    data: bytes | None
    facts: Facts | None
    digest: str
    is_young: bool

    @property
    def size(self) -> int:
        """Count its bytes; no file has none."""
        return len(self.data or b"")


class Written(Value, Generic[T]):
    """A file after step 7."""

    path: str
    route: str
    value: T
    data: bytes
    facts: Facts | None
    """None only where a no-op found no file and made none."""
    before: Snapshot
    digest: str
    receipt: dict[str, object]


class Writer:
    """The writer of one call: its hold on the root, its moment and its transaction's names."""

    __slots__ = ("_held", "_now", "_random_bytes")

    def __init__(self, held: Held, *, now: Moment, random_bytes: Callable[[int], bytes]) -> None:
        self._held = held
        self._now = now
        self._random_bytes = random_bytes

    def look(self, path: str) -> bytes | None:
        """Give the bytes that an edit would get now; None for no file."""
        place, _, name = path.rpartition("/")
        with trouble.told(path):
            return self._look(place, name).data

    def require_writable(self, path: str) -> None:
        """Let a file refuse that could not be written to: no regular one, or too large."""
        place, _, name = path.rpartition("/")
        with trouble.told(path):
            folder = self._held.ground.open_folder(place)
            if folder is None:
                return
            with folder:
                seen = regular.facts(folder, name)
            if seen is not None and seen.size > SOURCE_MAX_BYTES:
                raise regular.TooLargeError

    def write(self, path: str, edit: Edit[T], *, is_view: bool = False) -> Written[T]:
        """Bring one file of the active root from its old bytes to its new ones."""
        place, _, name = path.rpartition("/")
        reconciled: str | None = None
        while True:
            with trouble.told(path):
                before = self._look(place, name)
            edited = edit(before.data)
            if len(edited.data) > SOURCE_MAX_BYTES:
                raise trouble.of(regular.TooLargeError(), path)
            if edited.data == (before.data or b""):
                return self._nothing(path, before, edited.value, reconciled)
            with trouble.told(path):
                is_done = self._commit(path, before, edited.data)
            if is_done:
                return self._done(path, before, edited, reconciled)
            if is_view or reconciled is not None:
                raise trouble.conflict(path)
            with trouble.told(path):
                reconciled = self._look(place, name).digest

    def _look(self, place: str, name: str) -> Snapshot:
        folder = self._held.ground.open_folder(place)
        found = None
        if folder is not None:
            with folder:
                found = regular.read(folder, name, max_bytes=SOURCE_MAX_BYTES)
        if found is None:
            return Snapshot(data=None, facts=None, digest=canonical.ABSENT, is_young=False)
        # The moment of the call is earlier than now: a file that is young now is younger then.
        age_ns = self._now.epoch_ms * 1_000_000 - found.facts.mtime_ns
        return Snapshot(
            data=found.data, facts=found.facts, digest=canonical.digest(found.data),
            is_young=age_ns < YOUNG_NS,
        )  # fmt: skip

    def _commit(self, path: str, before: Snapshot, data: bytes) -> bool:
        """Take steps 4 to 6; False where others changed the file meanwhile."""
        place, _, name = path.rpartition("/")
        ground = self._held.ground
        owner = (ground.owner, ground.gid) if ground.uid == 0 else None
        with ground.make_folder(place) as folder:
            commit.sweep(folder)
            temporary = commit.stage(folder, name, data, like=before.facts, owner=owner)
            try:
                if before.facts is None:
                    ground.sync_way(place)
                self._held.require()  # without it what others did is no change, but their turn
                if not self._is_unchanged(folder, name, before):
                    commit.discard(folder, temporary)
                    return False
                self._held.require()
                if before.facts is None:
                    commit.put_new(folder, temporary, name)
                else:
                    commit.put_over(folder, temporary, name)
            except FileExistsError:  # made by others in the last moment
                commit.discard(folder, temporary)
                return False
            except OSError as error:
                if self._has_moved(folder, name, before):
                    raise trouble.unknown(path, error) from error
                commit.discard(folder, temporary)
                self._held.require()  # its temporary was swept by who has the lock now
                raise
            except BaseException:
                commit.discard(folder, temporary)
                raise
            try:
                commit.flush(folder)
            except OSError as error:
                raise trouble.unknown(path, error) from error
        return True

    def _is_unchanged(self, folder: Folder, name: str, before: Snapshot) -> bool:
        """Take step 5: compare the file with the snapshot, by its bytes if it was young."""
        if before.facts is not None and before.is_young:
            found = regular.read(folder, name, max_bytes=SOURCE_MAX_BYTES)
            if found is None or found.data != before.data:
                return False
        return _same(regular.facts(folder, name), before.facts)

    @staticmethod
    def _has_moved(folder: Folder, name: str, before: Snapshot) -> bool:
        """Tell whether a rename that failed may have happened all the same."""
        try:
            return not _same(regular.facts(folder, name), before.facts)
        except OSError:
            return True

    def _done(
        self, path: str, before: Snapshot, edited: Edited[T], reconciled: str | None
    ) -> Written[T]:
        """Take step 7: what stands there now, by its name, is what was planned."""
        place, _, name = path.rpartition("/")
        try:
            folder = self._held.ground.open_folder(place)
            if folder is None:
                raise trouble.unknown(path)
            with folder:
                found = regular.read(folder, name, max_bytes=SOURCE_MAX_BYTES)
        except OSError as error:
            raise trouble.unknown(path, error) from error
        planned = canonical.digest(edited.data)
        if found is None or canonical.digest(found.data) != planned:
            raise trouble.unknown(path)
        route = CREATE if before.facts is None else REPLACE
        return Written(
            path=path, route=route, value=edited.value, data=edited.data, facts=found.facts,
            before=before, digest=planned,
            receipt=self._receipt(path, route, before, planned, len(edited.data), reconciled),
        )  # fmt: skip

    def _nothing(self, path: str, before: Snapshot, value: T, reconciled: str | None) -> Written[T]:
        """Answer that all is there already, once it is durable."""
        place, _, name = path.rpartition("/")
        ground = self._held.ground
        with trouble.told(path):
            folder = ground.open_folder(place)
            if folder is not None:
                with folder:
                    commit.sweep(folder)
                    if before.facts is not None:
                        commit.flush_file(folder, name)
                    ground.sync_way(place)
                    commit.flush(folder)
        return Written(
            path=path, route=NO_OP, value=value, data=before.data or b"", facts=before.facts,
            before=before, digest=before.digest,
            receipt=self._receipt(path, NO_OP, before, before.digest, before.size, reconciled),
        )  # fmt: skip

    def _receipt(
        self, path: str, route: str, before: Snapshot, after: str, size: int, reconciled: str | None
    ) -> dict[str, object]:
        return {
            "schemaVersion": RECEIPT_SCHEMA,
            "transactionId": f"tx-{self._random_bytes(TRANSACTION_ID_BYTES).hex()}",
            "file": path,
            "route": route,
            "beforeDigest": before.digest,
            "afterDigest": after,
            "beforeBytes": before.size,
            "afterBytes": size,
            "conflict": None
            if reconciled is None
            else {
                "schemaVersion": CONFLICT_SCHEMA,
                "status": "reconciled",
                "observedDigest": reconciled,
            },
            "durability": {"fileFlush": True, "directoryFlush": True, "readback": True},
            "startedAt": self._now.iso,
            "completedAt": self._now.iso,
        }


def _same(seen: Facts | None, before: Facts | None) -> bool:
    if seen is None or before is None:
        return seen is before
    return seen[:5] == before[:5]
