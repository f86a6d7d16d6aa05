"""Which texts cannot hold a term, known without reading them.

Rule 1: never a false no. Of a text the triples of bytes that begin at even places are noted, five
        bits of each byte. Wherever a term stands, its own even triples or its odd ones are among
        them; a text that lacks one of the first and one of the second does not hold the term.
Rule 2: a yes says little: the text itself is asked then.
Rule 3: a text is noted once, and never taken out. Who keeps a sieve begins a new one when most
        of what the old one knows is gone.
"""

import sys
from array import array
from collections.abc import Iterator
from itertools import islice

TERM_MIN_BYTES = 4  # the shortest that has an even triple and an odd one
_BITS = 5
_COLUMNS = 1 << 3 * _BITS
_PIECE = 4096  # bytes noted in one go: about a quarter of a millisecond
_BATCH = 1024  # columns changed in one go
_LOW = (1 << _BITS) - 1
# As numbers of 16 bits, a byte beside the next: the low bits of the first, of the next, and of the
# one after that, each where the triple's number has them.
_FIRST, _SECOND, _THIRD = (
    int.from_bytes((_LOW << shift * _BITS).to_bytes(2, "little") * (_PIECE // 2), "little")
    for shift in range(3)
)


class Sieve:
    """Notes of texts, each with a number of its own, from 1 on."""

    def __init__(self) -> None:
        self._columns = [0] * _COLUMNS
        self._count = 0

    @property
    def count(self) -> int:
        """Tell how many numbers were given."""
        return self._count

    def note(self, form: bytes) -> Iterator[int]:
        """Note a text, a step at a time; each gives 0, the last one the text's number."""
        found: set[int] = set()
        for begin in range(0, len(form), _PIECE):
            found.update(_triples(form[begin : begin + _PIECE + 2]))
            yield 0
        self._count += 1
        number = self._count
        mark = 1 << number
        columns = self._columns
        left = iter(found)
        while batch := list(islice(left, _BATCH)):
            for triple in batch:
                columns[triple] |= mark
            yield 0
        yield number

    def candidates(self, needle: bytes) -> bytes | None:
        """Give a byte for each number: 0 where that text cannot hold a term, else 1.

        The first byte, which is no text's, is 1. None says that the term is too short to tell.
        """
        if len(needle) < TERM_MIN_BYTES:
            return None
        found = self._with_all(needle, 0) | self._with_all(needle, 1) | 1
        marks = f"{found:0{self._count + 1}b}".encode()
        return marks[::-1].translate(_FROM_DIGITS)

    def _with_all(self, needle: bytes, begin: int) -> int:
        """Give the marks of the texts that have each second triple of a term."""
        marks = -1
        for at in range(begin, len(needle) - 2, 2):
            marks &= self._columns[_triple(needle, at)]
        return marks


_FROM_DIGITS = bytes.maketrans(b"01", b"\0\1")


def _triples(piece: bytes) -> "array[int]":
    """Give the numbers of the triples at even places, all at once: bytes as one long number."""
    number = int.from_bytes(piece, "little")
    shifted = (
        (number & _FIRST) | (number >> 8 - _BITS & _SECOND) | (number >> 16 - 2 * _BITS & _THIRD)
    )
    length = (min(len(piece), _PIECE) + 1) // 2 * 2
    found = array("H", (shifted & (1 << 8 * length) - 1).to_bytes(length, "little"))
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _triple(text: bytes, at: int) -> int:
    return text[at] & _LOW | (text[at + 1] & _LOW) << _BITS | (text[at + 2] & _LOW) << 2 * _BITS
