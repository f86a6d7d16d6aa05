"""A scope in memory, for tests of searching: the same promises as a View on disk."""

from collections.abc import Callable, Iterator
from itertools import count

from amux.memory.document import is_content
from amux.memory.store import Stamp


class FakeView:
    """Documents in a dictionary; a walk looks at them one by one, as one on disk does."""

    def __init__(self, documents: dict[str, bytes] | None = None) -> None:
        self._data: dict[str, bytes] = {}
        self._stamps: dict[str, Stamp] = {}
        self._tick = count(1)
        self.documents: dict[str, Stamp] = {}
        self.skipped = 0
        self.is_complete = True
        self.names_a_step = 1
        self.reads: list[str] = []
        self.before_read: Callable[[str], None] | None = None
        for path, data in (documents or {}).items():
            self.put(path, data)

    def put(self, path: str, data: bytes | str) -> None:
        """Write a document behind everybody's back."""
        data = data if isinstance(data, bytes) else data.encode("utf-8")
        tick = next(self._tick)
        self._data[path] = data
        self._stamps[path] = Stamp(len(data), tick, tick, tick)

    def remove(self, path: str) -> None:
        """Remove a document behind everybody's back."""
        del self._data[path]
        del self._stamps[path]

    def refresh(self) -> Iterator[None]:
        """Look at each name in turn; what changed behind is not seen."""
        for path in [path for path in self.documents if path not in self._stamps]:
            del self.documents[path]
        for number, path in enumerate(sorted(self._stamps)):
            if path in self._stamps:
                self.documents[path] = self._stamps[path]
            if number % self.names_a_step == 0:
                yield

    def read(self, path: str) -> bytes | None:
        """Give the bytes as they are now."""
        if self.before_read:
            self.before_read(path)
        self.reads.append(path)
        data = self._data.get(path)
        return data if data is not None and is_content(data) else None
