"""What keeps documents, as a protocol: one suite of tests, every implementation.

Rule 1: the store compares; everybody else passes `expected` along (rule 3 of the house).
Rule 2: a write returns after it is durable, or raises and says what is on disk.
Rule 3: `announced` returns when the audit trail holds the intent; it is called before the first
        change that somebody could see, beside what else is slow.
Rule 4: reading never writes. `View` is one reader's knowledge of a scope and belongs to one
        thread; it is how a search sees every change, also one made behind the Hub's back (M9).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from amux.core.identity import Scope
from amux.core.path import DocPath
from amux.memory.document import Document


def nothing() -> None:
    """Do nothing: nobody announces this write."""


class Stamp(NamedTuple):
    """What tells that a file changed without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Usage(NamedTuple):
    """What a scope holds, files that are no documents included (M8)."""

    documents: int
    bytes: int


class Broken(NamedTuple):
    """A file under a scope that is no document, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Put:
    """A durable write: the revision now on disk, and whether the file was touched."""

    revision: str
    changed: bool


class Ticket(Protocol):
    """A write between its rename and the fsync that makes it durable (M24)."""

    @property
    def is_settled(self) -> bool:
        """Tell whether the outcome is known; raises `Unavailable` where the fsync failed."""
        ...


class View(Protocol):
    """What a scope holds, as one reader knows it; not safe for two threads."""

    @property
    def documents(self) -> Mapping[str, Stamp]:
        """Logical path -> stamp, of files that look like documents; none is over 64 KiB."""
        ...

    @property
    def skipped(self) -> int:
        """Count the files that are no documents, as far as can be told without reading them."""
        ...

    @property
    def is_complete(self) -> bool:
        """Tell whether the directory walk did not have to stop at its limit of entries."""
        ...

    def refresh(self) -> Iterator[None]:
        """Bring `documents` up to date, in steps of at most 1 ms."""
        ...

    def read(self, path: str) -> bytes | None:
        """Give the bytes now on disk, or None where there is no document any more."""
        ...


class DocumentStore(Protocol):
    """Documents of all scopes."""

    def read(self, scope: Scope, path: DocPath) -> Document:
        """Read what is on disk now, pending or not; `corrupt` where a file is no document."""
        ...

    def pending(self, scope: Scope, path: DocPath | None = None) -> Ticket | None:
        """Give the ticket of what is not yet durable at a path, or in the whole scope."""
        ...

    def view(self, scope: Scope, *, is_watching: bool = True) -> View:
        """Open a new view of a scope; one that watches nothing keeps nothing open."""
        ...

    def usage(self, scope: Scope) -> Usage:
        """Count what the quota counts."""
        ...

    def put(
        self,
        scope: Scope,
        path: DocPath,
        data: bytes,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> Put:
        """Replace or create a document if its revision on disk is `expected` (M19-M26)."""
        ...

    def remove(
        self,
        scope: Scope,
        path: DocPath,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> str:
        """Remove a document at `expected`; answer what was there, or `absent` (M21)."""
        ...

    def broken(self, scope: Scope) -> list[Broken]:
        """List the files that are no documents, each with its reason (M8)."""
        ...

    def discard(self, scope: Scope, path: str) -> None:
        """Remove one file that `broken` lists, by the name that it lists; `not_found` otherwise."""
        ...
