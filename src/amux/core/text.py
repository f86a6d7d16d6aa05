"""Budgets in bytes: how long a value is as JSON, and where text may be cut.

Rule 1: budgets count the serialised UTF-8 bytes with non-ASCII unescaped (M17).
Rule 2: a cut is always at a character.
Rule 3: lines end at LF only (M31); every other separator is content.
"""

import json

# Made once: `json.dumps` would make one a call, which takes longer than most of our values.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
MAX_ESCAPED = 6  # one byte of text is at most six of JSON: a control character as \\u00XX


def to_json(value: object) -> bytes:
    """Spell a value as compact JSON with non-ASCII unescaped: the bytes that budgets count."""
    return _ENCODER.encode(value).encode("utf-8")


def json_length(text: str) -> int:
    """Count the bytes of a text inside a JSON string, its quotes left out."""
    return len(to_json(text)) - 2


def fit(text: str, max_bytes: int) -> str:
    """Cut a text at the last character whose JSON form still fits in `max_bytes`."""
    if len(text) * MAX_ESCAPED <= max_bytes or json_length(text) <= max_bytes:
        return text
    low, high = 0, min(len(text), max(0, max_bytes))
    while low < high:
        middle = (low + high + 1) // 2
        if json_length(text[:middle]) <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def line_count(data: bytes) -> int:
    """Count lines: empty content has none, and a last line needs no LF."""
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


def is_boundary(data: bytes, offset: int) -> bool:
    """Tell whether an offset lies between two characters of UTF-8 bytes (the end is one)."""
    return offset == len(data) or (0 <= offset < len(data) and data[offset] & 0xC0 != 0x80)
