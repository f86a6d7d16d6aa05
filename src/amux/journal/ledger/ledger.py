"""The ledger of one root: records as files, replaced whole, compared before (T5 to T8).

Rule 1: reading takes no lock and writes nothing; one read gives a record as some commit left it.
Rule 2: a change is made under the root's lock: decided, read again, renamed, read back. The rename
        is the commit; whoever else changed the record meanwhile is not overwritten.
Rule 3: a record that is no record is refused by name, to the calls that need it and only those.
Rule 4: nothing here is derived from names or times of files, and nothing is repaired.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from amux.errors import AmuxError, Corrupt
from amux.journal.ledger import record
from amux.journal.ledger.record import Record
from amux.journal.refusals import refuse

FOLDER = "ledger"
KINDS = ("session", "ingress", "use", "task", "child", "route")
MAX_RECORDS = 20_000
# What the floor says of a file that holds no record: another kind of file, or an unreadable one.
_OF_THE_FILE = {
    "MEMORY_FILE_NOT_REGULAR", "MEMORY_SOURCE_TOO_LARGE", "MEMORY_STORE_READ_ONLY",
    "MEMORY_DISK_FULL",
}  # fmt: skip
_ENDING = ".json"
RECORD_MAX_BYTES = 4 * 1024 * 1024  # a child plan with all that its children handed in is largest


class State(Protocol):
    """The runtime state of a root, opened without links; what the ledger needs of it."""

    def read(self, path: str, *, max_bytes: int) -> bytes | None:
        """Read a file whole; None where none is. Takes no lock."""

    def names(self, path: str) -> list[str]:
        """Name what lies in a directory; nothing where none is."""

    def written_before(self, path: str, epoch_ms: int) -> list[str]:
        """Name the files of a directory that were written before a moment, as the disk says."""

    def create(self, path: str, data: bytes) -> bool:
        """Make a file, whole and durable, or tell that the name is taken; under the lock."""

    def replace(self, path: str, data: bytes, before: Callable[[], None]) -> None:
        """Replace a file, durably; `before` runs right before the rename; under the lock."""

    def remove(self, path: str) -> None:
        """Remove a file, durably; one that is gone is no error; under the lock."""


class Ledger:
    """The records of one root. What changes one is called under the root's lock only."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[tuple[str, str], Record] = {}

    def read(self, kind: str, key: str) -> Record | None:
        """Read a record, or None where none is; refuses one that is damaged."""
        data = self._bytes(kind, key)
        if data is None:
            return None
        known = self._known.get((kind, key))
        if known is not None and known.data == data:  # read again, and still the same bytes
            return known
        found = record.parse(data, kind, key)
        self._known[kind, key] = found
        return found

    def keys(self, kind: str) -> list[str]:
        """Name the records of a kind, in order."""
        return _keys(self._state.names(f"{FOLDER}/{kind}"))

    def old_keys(self, kind: str, epoch_ms: int) -> list[str]:
        """Name the records of a kind that were last written before a moment.

        That is no evidence of anything but where it is worth looking.
        """
        return _keys(self._state.written_before(f"{FOLDER}/{kind}", epoch_ms))

    def every(self, kind: str) -> Iterator[Record]:
        """Read all records of a kind but those that are damaged."""
        for key in self.keys(kind):
            try:
                found = self.read(kind, key)
            except Corrupt:
                continue
            if found is not None:
                yield found

    def count(self) -> int:
        """Count the records, damaged ones too: they take room."""
        return sum(len(self.keys(kind)) for kind in KINDS)

    def create(self, kind: str, key: str, body: Mapping[str, object]) -> Record:
        """Make a record that never changes; an equal one that is there already is given."""
        made = record.first(kind, key, body)
        if not self._state.create(_path(kind, key), made.render()):
            found = self.read(kind, key)
            if found != made:
                raise _lost(kind, key)
        return self._read_back(made)

    def change(self, before: Record | None, made: Record) -> Record:
        """Put the successor of a record in its place, and give it as read back (T6).

        `before` is what was decided on, None where there was no record.
        """
        kind, key = made.kind, made.key
        if before is None:
            if not self._state.create(_path(kind, key), made.render()):
                raise _lost(kind, key)
        else:
            self._state.replace(
                _path(kind, key), made.render(), lambda: self._require_unchanged(before)
            )
        return self._read_back(made)

    def remove(self, kind: str, key: str) -> None:
        """Remove a record."""
        self._state.remove(_path(kind, key))

    def _require_unchanged(self, before: Record) -> None:
        try:
            present = self.read(before.kind, before.key)
        except Corrupt as error:
            raise _lost(before.kind, before.key) from error
        if present is None or (present.seq, present.digest) != (before.seq, before.digest):
            raise _lost(before.kind, before.key)

    def _read_back(self, made: Record) -> Record:
        if self._bytes(made.kind, made.key) != made.render():
            raise refuse(
                "TASK_WRITE_CONTEXT_READBACK_MISMATCH",
                "a record is not what was written",
                hint="resolve the task to see what stands, before anything is tried again",
                record=made.name,
            )
        self._known[made.kind, made.key] = made
        return made

    def _bytes(self, kind: str, key: str) -> bytes | None:
        try:
            return self._state.read(_path(kind, key), max_bytes=RECORD_MAX_BYTES)
        except AmuxError as error:
            if error.details.get("reason") in _OF_THE_FILE:
                raise record.corrupt(kind, key, "file") from error
            raise


def _keys(names: Iterable[str]) -> list[str]:
    keys = (name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))
    return sorted(key for key in keys if record.is_key(key))


def _path(kind: str, key: str) -> str:
    return f"{FOLDER}/{record.file_name(kind, key)}"


def _lost(kind: str, key: str) -> AmuxError:
    return refuse(
        "TASK_LEDGER_CAS_LOST",
        "somebody changed the record behind the lock",
        hint="resolve the task again: what stands there now is left as it is",
        record=record.file_name(kind, key),
    )
