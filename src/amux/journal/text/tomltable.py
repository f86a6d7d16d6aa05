"""One table at the end of a person's TOML file: appended, brought up to date, taken out (J21).

Rule 1: text is appended, and the same text is taken out; nothing else of the file is written anew.
Rule 2: whatever is changed is parsed before and after: only our table came or went.
Rule 3: our text is found by its digest; a person's change of it makes it theirs.
"""

import tomllib
from collections.abc import Iterator

from amux.core import canonical

MAX_BYTES = 1024 * 1024  # a file of settings has a thousandth of this
_MAX_LINES = 16  # our table has four


def parse(data: bytes) -> dict[str, object] | None:
    """Read a file; None for one that does not parse."""
    if len(data) > MAX_BYTES:
        return None
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def get(data: bytes, *keys: str) -> object:
    """Give the value beneath these keys; None where none is, or the file does not parse."""
    at: object = parse(data)
    for key in keys:
        if not isinstance(at, dict) or key not in at:
            return None
        at = at[key]
    return at


def appended(data: bytes, table: str, keys: tuple[str, ...]) -> tuple[bytes, str] | None:
    """Append a table's text; gives the new bytes, and the digest of what was appended.

    None where the file does not parse, has the table, or could not hold it.
    """
    before = parse(data)
    if before is None or get(data, *keys) is not None:
        return None
    newline = "\r\n" if data.partition(b"\n")[0].endswith(b"\r") else "\n"
    # One line break before it, whether or not the last line had one: it goes with the text.
    block = ((newline if data else "") + table.replace("\n", newline)).encode("utf-8")
    after = data + block
    now = parse(after)
    if now is None or _dropped(now, keys) != _dropped(before, keys) or get(after, *keys) is None:
        return None
    return after, canonical.digest(block)


def replaced(data: bytes, table: str, keys: tuple[str, ...], digest: str) -> tuple[bytes, str]:
    """Put this release's text where ours stands; gives the new bytes and its digest.

    Raises:
        LookupError: ours is not there, or a person changed it.
    """
    start, end, _ = _found(data, keys, digest)
    newline = "\r\n" if b"\r\n" in data[start:end] else "\n"
    lead = newline if data[start:end].startswith((b"\n", b"\r\n")) else ""
    block = (lead + table.replace("\n", newline)).encode("utf-8")
    return data[:start] + block + data[end:], canonical.digest(block)


def removed(data: bytes, keys: tuple[str, ...], digest: str) -> bytes:
    """Take our text out.

    Raises:
        LookupError: it is not there, or a person changed it.
    """
    return _found(data, keys, digest)[2]


def _found(data: bytes, keys: tuple[str, ...], digest: str) -> tuple[int, int, bytes]:
    """Find our text by its digest, and what the file is without it.

    Nothing of a person's stands in our table, or it counts as changed.
    """
    now = parse(data)
    if now is None:
        raise LookupError("it does not parse")
    for start, end in _spans(data, f"[{'.'.join(keys)}]".encode()):
        if canonical.digest(data[start:end]) != digest:
            continue
        # The line break before it is ours, but for one that others' text has come to need.
        lead = data[start:end].partition(b"[")[0]
        for rest in (data[:start] + data[end:], data[:start] + lead + data[end:]):
            left = parse(rest)
            if left is None or get(rest, *keys) is not None:
                continue
            if _dropped(left, keys) == _dropped(now, keys):
                return start, end, rest
    raise LookupError("it is not as it was written")


def _spans(data: bytes, header: bytes) -> Iterator[tuple[int, int]]:
    """Give the pieces that may be our text: from its header on, some lines."""
    at = data.find(header)
    while at >= 0:
        leads = [at - len(lead) for lead in (b"\r\n", b"\n", b"") if data[:at].endswith(lead)]
        end = at
        for _ in range(_MAX_LINES):
            line_end = data.find(b"\n", end)
            if line_end < 0:
                break
            end = line_end + 1
            yield from ((start, end) for start in leads)
        at = data.find(header, at + 1)


def _dropped(value: dict[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    """Take the table out of a parsed file, and the tables that only it made be there."""
    first, *rest = keys
    if not rest:
        return {key: one for key, one in value.items() if key != first}
    inner = value.get(first)
    if not isinstance(inner, dict):
        return value
    below = _dropped(inner, tuple(rest))
    if not below:
        return {key: one for key, one in value.items() if key != first}
    return {**value, first: below}
