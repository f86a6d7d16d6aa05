"""Arguments of a call, checked against the table of calls, for RPC and the MCP server on stdio.

Rule 1: an object of arguments is closed: an unknown, missing or wrongly typed one is named (M48).
Rule 2: doubled keys are refused before, by the one decoder (`core/strict.py`).
"""

from amux.errors import InvalidArgument
from amux.wire.tools import Call

_KINDS = {"string": str, "integer": int, "boolean": bool}


def arguments(call: Call, given: object) -> dict[str, str | int | bool]:
    """Check an object of arguments against the table of calls, or refuse it naming the argument."""
    if not isinstance(given, dict):
        raise InvalidArgument(f"{call.name} takes an object of arguments")
    known = {argument.name: argument for argument in call.arguments}
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument(
                "unknown argument",
                hint="known are " + ", ".join(call.for_agents().names),
                argument=name[:64],
            )
        _require_kind(name, value, known[name].kind)
    for argument in call.arguments:
        if argument.is_required and argument.name not in given:
            raise InvalidArgument("an argument is missing", argument=argument.name)
    return given


def _require_kind(name: str, value: object, kind: str) -> None:
    if type(value) is not _KINDS[kind]:  # not `isinstance`: to Python, True is an integer
        raise InvalidArgument(f"an argument is not of type {kind}", argument=name)
