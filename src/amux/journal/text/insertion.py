"""New text into old bytes: where the newlines come from (J4, J63 step 2).

Rule 1: old bytes are never re-encoded, reordered or dropped; an insertion only adds.
Rule 2: new lines end as the file's first line does; an unterminated last line is closed first.
Rule 3: a block is kept apart by one blank line, a row is not; nothing is put before the first.
"""

from amux.core.value import Value

BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"


class Insertion(Value):
    """A file with something added: the whole, and where the new text stands in it."""

    data: bytes
    start: int
    end: int
    grown: int
    """Bytes that were added, the blank lines around the text included."""


def decode(data: bytes) -> tuple[str, bool]:
    """Read bytes as UTF-8: the text without a leading BOM, and whether any byte was bad."""
    data = data.removeprefix(BOM)
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), True


def newline_of(data: bytes) -> bytes:
    """Tell how lines end in a file: as its first one does."""
    first = data.find(b"\n")
    return b"\r\n" if first > 0 and data[first - 1 : first] == b"\r" else b"\n"


def is_closed(data: bytes) -> bool:
    """Tell whether the last line has its newline; no bytes have no line."""
    return data.endswith(b"\n") or data in (b"", BOM)


def close(data: bytes) -> bytes:
    """End an unterminated last line."""
    return data if is_closed(data) else data + newline_of(data)


def insert(data: bytes, at: int, text: str, *, is_block: bool = True) -> Insertion:
    """Put text at the start of a line of a closed file; a block apart from its neighbours."""
    newline = newline_of(data)
    block = text if text.endswith("\n") or not text else text + "\n"
    added = block.encode("utf-8")
    if newline != b"\n":
        added = added.replace(b"\n", newline)
    before, after = data[:at], data[at:]
    lead = newline if is_block and not ends_blank(before) else b""
    trail = newline if is_block and after and not ends_blank(added) else b""
    start = at + len(lead)
    return Insertion(
        data=before + lead + added + trail + after,
        start=start,
        end=start + len(added),
        grown=len(lead) + len(added) + len(trail),
    )


def ends_blank(before: bytes) -> bool:
    """Tell whether nothing, or a blank line, stands last in closed bytes."""
    if before in (b"", BOM):
        return True
    line = before[before.rfind(b"\n", 0, len(before) - 1) + 1 :]
    return not line.removeprefix(BOM).strip(_BLANKS)
