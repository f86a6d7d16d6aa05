"""One spelling for one value, and its digest (J5).

Rule 1: equal values have equal bytes: keys sorted by code point, no white space, only the escapes
        that JSON demands, integers only.
Rule 2: a digest names content: lower-case hex SHA-256 of bytes, of text as UTF-8, or of the
        canonical JSON of any other value.
"""

import json
from collections.abc import Mapping
from hashlib import sha256

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]

ABSENT = "absent"  # stands where a digest would, for a file that is not there


def encode(value: object) -> bytes:
    """Spell a value as canonical JSON in UTF-8.

    Raises:
        ValueError: a lone surrogate, a float, or a key that is no text.
    """
    _check(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def parsed(data: bytes) -> Json:
    """Read JSON that may be anybody's; None for what is none, or holds a key twice or a float."""
    try:
        value: Json = json.loads(data, object_pairs_hook=_once, parse_float=_no_float)
    except (ValueError, RecursionError):
        return None
    return value


def digest(value: object) -> str:
    """Give the SHA-256, in 64 lower-case hex digits, of bytes, a text, or a value's encoding.

    >>> digest("abc") == digest(b"abc")
    True
    """
    if isinstance(value, str):
        value = value.encode("utf-8")
    return sha256(value if isinstance(value, bytes) else encode(value)).hexdigest()


def digest_without(record: Mapping[str, object], *fields: str) -> str:
    """Give the digest of a record that carries its own in one of these fields."""
    return digest({key: value for key, value in record.items() if key not in fields})


def _check(value: object) -> None:
    # By exact types first: records have thousands of values, and are digested often.
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return
    if kind is dict or isinstance(value, Mapping):
        for key, inner in value.items():  # type: ignore[attr-defined]
            if not isinstance(key, str):
                raise ValueError("a key of canonical JSON is text")
            _check(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check(inner)
    elif not isinstance(value, str | int):
        raise ValueError(f"canonical JSON has no {kind.__name__}")


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key of canonical JSON stands once")
    return found


def _no_float(text: str) -> Json:
    raise ValueError(f"canonical JSON has no {text:.10}")
