"""The one strict JSON decoder, for RPC, client, settings and the MCP server on stdio.

Rule 1: no key twice, no NaN or Infinity, no unpaired surrogate, bounded depth.
Rule 2: a decoder either gives a value or refuses; it never guesses.
"""

import json
import re
from collections.abc import Mapping

from amux.errors import InvalidArgument

MAX_DEPTH = 32  # our deepest shape has 4 levels; deeper input is an attack or a mistake
# The closing quote is optional: an unclosed string must not be tried anew from each quote in it.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def decode(text: bytes | str) -> object:
    """Read one JSON value, or refuse it as `invalid_argument`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        _require_shallow(text)
        value: object = _DECODER.decode(text)
        if "\\u" in text:
            # Only an escape can make an unpaired surrogate: UTF-8 itself has none.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError as error:
        raise InvalidArgument("the text is not Unicode", hint="send UTF-8") from error
    except ValueError as error:
        raise InvalidArgument("the text is not JSON", hint="send one JSON value") from error
    return value


def _object(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidArgument("a key stands twice", argument=key[:64])
        found[key] = value
    return found


def _no_constant(text: str) -> object:
    raise InvalidArgument(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:  # 1e999 is an infinity in a number's clothes
        raise InvalidArgument("a number is too large")
    return value


# Made once: `json.loads` would make one a call.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite
)


def _require_shallow(text: str) -> None:
    """Refuse deep nesting before the parser recurses into it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise InvalidArgument(f"the value is nested deeper than {MAX_DEPTH} levels")
