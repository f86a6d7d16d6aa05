"""A value of the Hub that outlives its process: one JSON file, replaced whole.

Rule 1: a broken file stops the start with its place named; it is never replaced by defaults.
Rule 2: a change is on disk before it is in force, and changes come one after the other. One
        whose durability failed is in force, and told as `outcome_unknown`.
"""

import errno
import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from amux.core.strict import decode
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import AmuxError, Corrupt, LimitExceeded, NotSaved, OutcomeUnknown

T = TypeVar("T")
Kinds: TypeAlias = Mapping[str, type | tuple[type, ...]]

MAX_BYTES = 16 * 1024 * 1024  # ten thousand tokens are 4 MiB; a larger file is not ours


class Saved(Generic[T]):
    """One value and its file; read from disk once, at the start."""

    def __init__(
        self,
        root: Root,
        path: str,
        *,
        parse: Callable[[object], T],
        plain: Callable[[T], object],
        default: T,
    ) -> None:
        self._root = root
        self._path = path
        self._plain = plain
        self._lock = threading.Lock()
        self._value = _read(root, path, parse, default)

    @property
    def value(self) -> T:
        """Give the value in force."""
        return self._value

    def change(self, transition: Callable[[T], T]) -> T:
        """Make a change durable, then put it in force; a refusal of it changes nothing."""
        with self._lock:
            changed = transition(self._value)
            if changed != self._value:
                self._put(changed)
            return changed

    def _put(self, changed: T) -> None:
        data = _spell(self._plain(changed)).encode("utf-8")
        if len(data) > MAX_BYTES:  # it could not be read again
            raise LimitExceeded(f"{self._path} would be too large", max_bytes=MAX_BYTES)
        try:
            atomic.replace(self._root, self._path, data)
        except atomic.SyncFailedError as error:
            self._value = changed
            raise OutcomeUnknown(
                f"{self._path} was written, but not for certain",
                hint="look again after the Hub's next start",
            ) from error
        except OSError as error:
            raise NotSaved(
                f"{self._path} was not written; nothing changed",
                hint="make room on the disk, and let its owner write AMUX_HOME",
                cause=errno.errorcode.get(error.errno or 0, "unknown"),
            ) from error
        self._value = changed


def _read(root: Root, path: str, parse: Callable[[object], T], default: T) -> T:
    try:
        data = root.read(path, max_bytes=MAX_BYTES)
        # A folder of this name is no file that was never saved.
        if data is None and root.look(path) is None:
            return default
        return parse(decode(data or b""))
    except (AmuxError, ValueError) as error:
        raise Corrupt(
            f"{path} is broken: {error}",
            hint="restore it from a backup or mend it by hand; amux replaces it by nothing",
            reason="saved",
            file=path,
        ) from error


def _spell(plain: object) -> str:
    """Spell it for a person to mend by hand: a row a line, as the fast encoder cannot."""
    if isinstance(plain, dict):
        rows = [f"{json.dumps(name)}: {_spell_rows(value)}" for name, value in plain.items()]
        return "{\n" + ",\n".join(rows) + "\n}\n"
    return _spell_rows(plain) + "\n"


def _spell_rows(plain: object) -> str:
    if isinstance(plain, list) and plain:
        rows = [json.dumps(row, ensure_ascii=False) for row in plain]
        return "[\n " + ",\n ".join(rows) + "\n]"
    return json.dumps(plain, ensure_ascii=False)


def record(
    found: object, kinds: Mapping[str, type | tuple[type, ...]], what: str
) -> dict[str, object]:
    """Check that something is an object of exactly these fields; `ValueError` names what is not."""
    if not isinstance(found, dict) or set(found) != set(kinds):
        raise ValueError(f"{what} does not have exactly the fields {', '.join(kinds)}")
    for name, kind in kinds.items():
        value = found[name]
        # To Python true is a number too; here it is not.
        is_truth = isinstance(value, bool) and kind is not bool
        if is_truth or not isinstance(value, kind):
            raise ValueError(f"{name} of {what} has the wrong type")
    return found


def moment(text: object) -> datetime | None:
    """Read a time as it is saved; `ValueError` where it is none, or names no time zone."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise ValueError("a time is malformed") from error
    if read.tzinfo is None:
        raise ValueError("a time names no time zone")
    return read


def spelled(moment: datetime | None) -> str | None:
    """Spell a time as it is saved."""
    return None if moment is None else moment.isoformat()


def pairs(found: object) -> list[tuple[str, object]]:
    """Give the pairs of what `record` has found to be an object."""
    return [(str(name), value) for name, value in found.items()] if isinstance(found, dict) else []


def rows(found: object) -> list[object]:
    """Give the rows of what `record` has found to be a list."""
    return list(found) if isinstance(found, list) else []
