"""The folded text of one scope, in path order and laid out for searching.

Rule 1: a text is the folded path, a line end, and the folded content: one substring test
        answers for both. No term holds a line end, so no match runs over it.
Rule 2: a shelf is one walk's listing. It never changes but for texts that come in; a later
        walk makes a new shelf, and searches that hold the old one end on it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from amux.core.path import PathPrefix
from amux.memory import limits, windows
from amux.memory.sieve import Sieve
from amux.memory.store import Stamp
from amux.memory.title import Title
from amux.memory.windows import Window

_EACH = 64  # what a comparison costs beside its bytes, as bytes


@dataclass(slots=True, kw_only=True, eq=False)  # compared by identity, in C
class Text:
    """One file as it was read: its folded text; without a revision it is no document.

    Once a sieve knows it, it has the sieve's number for it; nothing else ever changes.
    """

    stamp: Stamp
    revision: str
    title: Title
    form: bytes
    head: bytes
    windows: tuple[Window, ...]
    sieve: Sieve | None = None
    number: int = 0

    @property
    def size(self) -> int:
        """Count the bytes that are kept."""
        return len(self.form) + len(self.head)


@dataclass(frozen=True, slots=True)
class Deck:
    """Texts of consecutive documents, as columns for `map`.

    `firsts[d]` is the first window of document d, and `stops` are the ends of blocks: windows
    that together are about as long as one may be. `long` are the documents of many windows.
    """

    texts: list[Text]
    heads: list[bytes]
    windows: list[Window]
    firsts: list[int]
    stops: list[int]
    long: list[int]

    def numbers(self, sieve: Sieve) -> list[int]:
        """Give the sieve's number for the text of each window, 0 for a text that it has none of."""
        each = [text.number if text.sieve is sieve else 0 for text in self.texts]
        for index in reversed(self.long):
            each[index : index + 1] = each[index : index + 1] * (
                self.firsts[index + 1] - self.firsts[index]
            )
        return each

    def merge(self, column: bytearray, count: int) -> bytearray:
        """Turn one byte a window into one byte a document, for the first `count` documents."""
        row, at = bytearray(), 0
        for index in self.long[: bisect_left(self.long, count)]:
            first, end = self.firsts[index], self.firsts[index + 1]
            row += column[at:first]
            row.append(1 in column[first:end])
            at = end
        row += column[at : self.firsts[count]]
        return row


class Shelf:
    """What one walk of the scope has found, and the texts of it that were read so far.

    What is `kept` has the stamps of `documents`.
    """

    def __init__(
        self,
        documents: Mapping[str, Stamp],
        kept: Mapping[str, Text],
        *,
        skipped: int,
        is_complete: bool,
    ) -> None:
        self.paths = sorted(documents)
        self.stamps = [documents[path] for path in self.paths]
        self.skipped = skipped
        self.is_complete = is_complete
        self.texts: list[Text | None] = [kept.get(path) for path in self.paths]
        self._missing = self.texts.count(None)
        self._sizes = [0, *accumulate(stamp.size for stamp in self.stamps)]
        self._deck: Deck | None = None

    def covered(self, prefix: PathPrefix) -> tuple[int, int]:
        """Give the range of the documents whose paths begin with a prefix."""
        length = len(prefix.text)
        return (
            bisect_left(self.paths, prefix.text),
            bisect_right(self.paths, prefix.text, key=lambda path: path[:length]),
        )

    def legal(self, begin: int, end: int) -> int:
        """Give the end of what one search may read from `begin` on (limits of files and bytes)."""
        most = bisect_right(self._sizes, self._sizes[begin] + limits.SCAN_MAX_BYTES) - 1
        return min(end, begin + limits.SCAN_MAX_FILES, most)

    def ready(self, begin: int, end: int) -> int:
        """Give the end of the texts from `begin` on that are all here."""
        if not self._missing:  # so it is nearly always
            return end
        try:
            return self.texts.index(None, begin, end)
        except ValueError:
            return end

    def place(self, index: int, text: Text | None) -> None:
        """Put a text in, or take it out."""
        self._missing += (text is None) - (self.texts[index] is None)
        self.texts[index] = text
        self._deck = None

    def index(self, path: str) -> int | None:
        """Find a document by its path."""
        index = bisect_left(self.paths, path)
        return index if index < len(self.paths) and self.paths[index] == path else None

    def deck(self, begin: int, end: int) -> Deck:
        """Lay out documents whose texts are all here; the whole scope's layout is kept."""
        if (begin, end) != (0, len(self.paths)):
            return lay_out([text for text in self.texts[begin:end] if text])
        if self._deck is None:
            self._deck = lay_out([text for text in self.texts if text])
        return self._deck


def lay_out(texts: Sequence[Text]) -> Deck:
    """Make columns of texts."""
    deck = Deck([], [], [], [0], [], [])
    size = 0
    for text in texts:
        for window in text.windows:
            size += len(window) + _EACH
            if size > windows.BLOCK and deck.windows:
                deck.stops.append(len(deck.windows))
                size = len(window) + _EACH
            deck.windows.append(window)
        if len(text.windows) > 1:
            deck.long.append(len(deck.texts))
        deck.texts.append(text)
        deck.heads.append(text.head)
        deck.firsts.append(len(deck.windows))
    deck.stops.append(len(deck.windows))
    return deck
