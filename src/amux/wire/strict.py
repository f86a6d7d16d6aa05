"""The one strict JSON decoder, for RPC, client and the MCP server on stdio.

Rule 1: no key twice, no NaN or Infinity, no unpaired surrogate, bounded depth.
Rule 2: an object of arguments is closed: an unknown, missing or wrongly typed one is named (M48).
"""

import json
import re
from collections.abc import Mapping

from amux.errors import InvalidArgument
from amux.wire.tools import Call

MAX_DEPTH = 32  # our deepest shape has 4 levels; deeper input is an attack or a mistake
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def decode(text: bytes | str) -> object:
    """Read one JSON value, or refuse it as `invalid_argument`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        _require_shallow(text)
        value: object = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse_constant
        )
        if "\\u" in text:
            # Only an escape can make an unpaired surrogate: UTF-8 itself has none.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError as error:
        raise InvalidArgument("the text is not Unicode", hint="send UTF-8") from error
    except ValueError as error:
        raise InvalidArgument("the text is not JSON", hint="send one JSON value") from error
    return value


def arguments(call: Call, given: object) -> dict[str, str | int | bool]:
    """Check an object of arguments against the table of calls, or refuse it naming the argument."""
    if not isinstance(given, dict):
        raise InvalidArgument(f"{call.name} takes an object of arguments")
    known = {argument.name: argument for argument in call.arguments}
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument(
                "unknown argument",
                hint="known are " + ", ".join(known),
                argument=name[:64],
            )
        _require_kind(name, value, known[name].kind)
    for argument in call.arguments:
        if argument.is_required and argument.name not in given:
            raise InvalidArgument("an argument is missing", argument=argument.name)
    return given


def _require_kind(name: str, value: object, kind: str) -> None:
    matches = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
    }
    if not matches[kind]:
        raise InvalidArgument(f"an argument is not of type {kind}", argument=name)


def _object(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidArgument("a key stands twice", argument=key[:64])
        found[key] = value
    return found


def _refuse_constant(text: str) -> object:
    raise InvalidArgument(f"{text} is not a JSON number")


def _require_shallow(text: str) -> None:
    """Refuse deep nesting before the parser recurses into it."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise InvalidArgument(f"the value is nested deeper than {MAX_DEPTH} levels")
