"""A value of the Hub that outlives its process: one JSON file, replaced whole.

Rule 1: a broken file stops the start with its place named; it is never replaced by defaults.
Rule 2: a change is on disk before it is in force, and changes come one after the other.
"""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from amux.core.strict import decode
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import AmuxError, Corrupt

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
        data = root.read(path, max_bytes=MAX_BYTES)
        self._value = default if data is None else _parsed(path, data, parse)

    @property
    def value(self) -> T:
        """Give the value in force."""
        return self._value

    def change(self, transition: Callable[[T], T]) -> T:
        """Make a change durable, then put it in force; a refusal of it changes nothing."""
        with self._lock:
            changed = transition(self._value)
            if changed != self._value:
                text = json.dumps(self._plain(changed), ensure_ascii=False, indent=1)
                atomic.replace(self._root, self._path, text.encode("utf-8") + b"\n")
                self._value = changed
            return changed


def _parsed(path: str, data: bytes, parse: Callable[[object], T]) -> T:
    try:
        return parse(decode(data))
    except (AmuxError, ValueError) as error:
        raise Corrupt(
            f"{path} is broken: {error}",
            hint="restore it from a backup or mend it by hand; amux replaces it by nothing",
            reason="saved",
            file=path,
        ) from error


def record(
    found: object, kinds: Mapping[str, type | tuple[type, ...]], what: str
) -> dict[str, object]:
    """Check that something is an object of exactly these fields; `ValueError` names what is not."""
    if not isinstance(found, dict) or set(found) != set(kinds):
        raise ValueError(f"{what} does not have exactly the fields {', '.join(kinds)}")
    for name, kind in kinds.items():
        if not isinstance(found[name], kind):
            raise ValueError(f"{name} of {what} has the wrong type")
    return found


def moment(text: object) -> datetime | None:
    """Read a time as it is saved; `ValueError` where it is none, or names no time zone."""
    if text is None:
        return None
    read = datetime.fromisoformat(str(text))
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
