"""The form in which texts are compared: NFKC with full case folding, as UTF-8 bytes.

Rule 1: `fold(x)` is NFKC(casefold(NFKC(x))). A document and a term go through this one function,
        so a term is a plain substring of a document or it is not there (M36).
Rule 2: no character becomes a line end and none disappears, so lines keep their numbers.
Rule 3: whole scopes are folded while somebody waits. What folding would leave alone is found
        out by cheap tests, and only the lines that need it are normalised.
Rule 4: nothing takes long. Sorting a run of combining marks is quadratic in `unicodedata`, so
        runs of marks and symbols are cut every `_RUN` characters; no written text has such runs.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from amux.core.text import is_boundary

PIECE = 8192  # bytes folded in one go: well under a millisecond, but for text made to be slow
_LOOK_BACK = 1024  # bytes in which a safe place to cut a long line is looked for
_RUN = 64

_ASCII = bytes(range(0x80))
# Bytes of UTF-8 that say nothing about case: all that continues a character, and the leads of
# ranges without cased letters (after NFKC) or marks that join a letter of ASCII.
_SILENT = bytes((*range(0xC3), *range(0xE3, 0xEA), *range(0xEB, 0xF0), *range(0xF1, 0x100)))
# Leads that mostly say nothing: quotation marks, Hangul, emoji. These second bytes do.
_CASED = {
    0xE2: re.compile(rb"\xe2[\x84\x86\xb0-\xb3]"),
    0xEA: re.compile(rb"\xea[\x99-\xae]"),
    0xF0: re.compile(rb"\xf0[\x90\x91\x96\x9e]"),
}
# Chinese is written with full-width commas. They are frequent, so they are replaced as bytes:
# normalising their lines would cost ten times as much. The third byte tells the character.
_WIDE = re.compile(rb"\xef\xbc([\x81-\xbf])")
_NARROW = {bytes((byte,)): bytes((byte - 0x60,)) for byte in range(0x81, 0xC0)}
_COMMON = (("…", "..."), ("\u3000", " "), ("\u00a0", " "), ("～", "~"))
_LONG_RUN = re.compile(rf"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){{{_RUN}}}")


def fold(data: bytes) -> bytes:
    """Bring UTF-8 bytes into the form in which they are compared."""
    if data.isascii():
        return data.lower()
    data = _narrow(data)
    # Without ASCII the test is short. It leaves marks where they were relative to each other,
    # and those that join a letter of ASCII count as case.
    wide = data.translate(None, _ASCII)
    if not _has_case(wide) and unicodedata.is_normalized("NFKC", wide.decode("utf-8")):
        return data.lower()
    text = _normal(data.decode("utf-8"))
    return _normal(text.casefold()).encode("utf-8")


def pieces(data: bytes) -> Iterator[bytes]:
    """Cut UTF-8 bytes where folding does not look across.

    The forms of the pieces, joined, are the form of the whole.
    """
    begin = 0
    while len(data) - begin > PIECE:
        stop = data.rfind(b"\n", begin, begin + PIECE) + 1
        if stop <= begin:
            stop = _cut(data, begin + PIECE)
        yield data[begin:stop]
        begin = stop
    yield data[begin:]


def _cut(data: bytes, last: int) -> int:
    """Find the last place at which a long line may be cut."""
    for at in range(last, last - _LOOK_BACK, -1):
        if is_boundary(data, at) and _starts(data[at : at + 4].decode("utf-8", errors="ignore")[0]):
            return at
    while not is_boundary(data, last):  # marks only; see rule 4
        last -= 1
    return last


def _starts(character: str) -> bool:
    """Tell whether a character stays apart from all that stands before it."""
    # What joins backwards is a mark, or a vowel or final of Hangul, perhaps in a compatible form.
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] != "M" and not "\u1160" <= first <= "\u11ff"


def _narrow(data: bytes) -> bytes:
    """Replace full-width punctuation, digits and capitals."""
    parts = _WIDE.split(data)
    if len(parts) == 1:
        return data
    parts[1::2] = map(_NARROW.__getitem__, parts[1::2])
    return b"".join(parts)


def _has_case(data: bytes) -> bool:
    """Tell whether normal text may hold cased letters, or marks, beyond ASCII."""
    for lead in set(data.translate(None, _SILENT)):
        pattern = _CASED.get(lead)
        if pattern is None or pattern.search(data):
            return True
    return False


def _normal(text: str) -> str:
    """Give NFKC."""
    if unicodedata.is_normalized("NFKC", text):
        return text
    for wide, narrow in _COMMON:
        text = text.replace(wide, narrow)
    cuts = [0, *(run.end() for run in _LONG_RUN.finditer(text)), len(text)]
    return "".join(_normal_lines(text[a:b]) for a, b in pairwise(cuts))


def _normal_lines(text: str) -> str:
    """Give NFKC, looking at each line: most need nothing."""
    if unicodedata.is_normalized("NFKC", text):
        return text
    return "\n".join(
        line if unicodedata.is_normalized("NFKC", line) else unicodedata.normalize("NFKC", line)
        for line in text.split("\n")
    )
