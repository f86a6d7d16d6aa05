"""Comparing the texts of a scope with the terms of a query, window by window.

Rule 1: between two looks at the clock no more is compared than half a millisecond lets, whatever
        the texts and the terms are.
Rule 2: what the sieve rules out is not compared; what it does not know is.
"""

from bisect import bisect_right
from itertools import compress, count, islice, repeat
from operator import contains

from amux.memory.pace import Pace, Steps
from amux.memory.shelf import Deck
from amux.memory.sieve import Sieve

_QUICK_SECONDS = 0.0001  # so little may be doubled without a step becoming long
_STRIDE_MAX = 8  # blocks, should all of them turn bad at once: four milliseconds, once


def match(
    deck: Deck, sieve: Sieve, needles: tuple[bytes, ...], rows: list[bytearray], pace: Pace
) -> Steps[int]:
    """Add to each row what a needle is in; give how many documents were compared with all."""
    columns = [_Column(deck, needle) for needle in needles]
    if any(numbers := deck.numbers(sieve)):
        for column in columns:
            column.sift(sieve, numbers)
            if pace.is_due():
                yield from pace.pause()
    done, at, stride = 0, 0, 1
    while at < len(deck.stops) and not pace.is_late():
        at = min(at + stride, len(deck.stops))
        stop = deck.stops[at - 1]
        slowest = 0.0
        for column in columns:
            if column.compare(done, stop):
                is_due = pace.is_due()
                slowest = max(slowest, pace.lap())
                if is_due:
                    yield from pace.pause()
        done = stop
        stride = _next_stride(stride, slowest)
    documents = bisect_right(deck.firsts, done) - 1
    for row, column in zip(rows, columns, strict=True):
        row += deck.merge(column.spread(done), documents)
        if pace.is_due():
            yield from pace.pause()
    return documents


class _Column:
    """In which windows a needle is, found out from the first on."""

    def __init__(self, deck: Deck, needle: bytes) -> None:
        self._deck = deck
        self._needle = needle
        self._marks: bytes | None = None
        """Which windows are compared, where that is not all of them."""
        self._found = bytearray()
        self._answers = map(contains, deck.windows, repeat(needle))

    def sift(self, sieve: Sieve, numbers: list[int]) -> None:
        """Leave out the windows of texts that the sieve rules out."""
        candidates = sieve.candidates(self._needle)
        if candidates is not None:
            self._marks = bytes(map(candidates.__getitem__, numbers))
            left = compress(self._deck.windows, self._marks)
            self._answers = map(contains, left, repeat(self._needle))

    def compare(self, begin: int, end: int) -> bool:
        """Go on to the window before `end`; say False where nothing was compared."""
        wanted = end - begin if self._marks is None else self._marks.count(1, begin, end)
        self._found.extend(islice(self._answers, wanted))
        return wanted > 0

    def spread(self, end: int) -> bytearray:
        """Give one byte a window, 1 where the needle is in it."""
        if self._marks is None:
            return self._found
        row = bytearray(end)
        for place in compress(compress(count(), self._marks), self._found):
            row[place] = 1
        return row


def _next_stride(stride: int, seconds: float) -> int:
    """Choose how many blocks to compare before the next look at the clock.

    Nearly every block takes microseconds, so that looking after each would cost more than the
    search; a term that is bad for its text takes half a millisecond, and is looked at each time.
    """
    if seconds < _QUICK_SECONDS:
        return min(2 * stride, _STRIDE_MAX)
    return stride if seconds < 2 * _QUICK_SECONDS else max(1, stride // 4)
