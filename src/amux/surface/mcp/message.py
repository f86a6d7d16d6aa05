"""JSON-RPC 2.0 as lines of text: what came in, and what goes out.

Rule 1: a line is a request, a notification, or answered with an error; it is never a crash.
Rule 2: a line is strict JSON. One that only a lenient reader can read (a key twice, NaN, too
        deep, no Unicode) is refused where the caller can see it: as the answer of the tool if it
        calls one, else as an invalid request with its id, else as an unreadable line.
Rule 3: arrays of messages are refused whole; the newest protocol versions have none.
Rule 4: a notification is never answered, and neither is an answer (this server asks nothing).
"""

import json

from amux.core.strict import decode
from amux.core.text import to_json
from amux.errors import InvalidArgument

LINE_MAX_BYTES = 1024 * 1024  # twice the largest body that the Hub reads

UNREADABLE = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603

CALL = "tools/call"

Id = str | int | None


class Request:
    """One request or, where `id` is None, one notification."""

    __slots__ = ("id", "method", "params", "refusal")

    def __init__(
        self,
        id: Id,  # noqa: A002 - its name in JSON-RPC
        method: str,
        params: dict[str, object],
        refusal: InvalidArgument | None = None,
    ) -> None:
        self.id = id
        self.method = method
        self.params = params
        self.refusal = refusal  # the line was not strict JSON: the answer of the tool it calls


class Refused(Exception):
    """A line that has no answer but an error."""

    def __init__(self, code: int, message: str, id: Id = None) -> None:  # noqa: A002 - as above
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id


def read(line: bytes) -> Request | None:
    """Read one line: a request, None where nothing is to be answered, or `Refused`."""
    try:
        value = decode(line)
    except InvalidArgument as refusal:
        return _read_leniently(line, refusal)
    if not isinstance(value, dict):
        raise Refused(INVALID_REQUEST, "a message is one JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    found = value.get("id")
    if "id" in value and not _is_id(found):
        raise Refused(INVALID_REQUEST, "an id is a string or an integer")
    method = value.get("method")
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise Refused(INVALID_REQUEST, "this is no JSON-RPC 2.0 message", found)
    params = value.get("params", {})
    if not isinstance(params, dict):
        if found is None:
            return None
        raise Refused(INVALID_PARAMS, "params are an object", found)
    return Request(found, method, params)


def result(id: Id, value: object) -> bytes:  # noqa: A002 - as above
    """Spell the answer of a request."""
    return to_json({"jsonrpc": "2.0", "id": id, "result": value}) + b"\n"


def error(id: Id, code: int, message: str) -> bytes:  # noqa: A002 - as above
    """Spell the refusal of a message."""
    body = {"code": code, "message": message}
    return to_json({"jsonrpc": "2.0", "id": id, "error": body}) + b"\n"


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _read_leniently(line: bytes, refusal: InvalidArgument) -> Request | None:
    """Find whom to tell that a line is not strict JSON (rule 2)."""
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        raise Refused(UNREADABLE, refusal.message) from refusal
    # Objects are tuples of pairs here, so that a key that stands twice can be seen.
    pairs = found if isinstance(found, tuple) else ()
    ids = [value for key, value in pairs if key == "id"]
    methods = [value for key, value in pairs if key == "method"]
    if len(ids) != 1 or len(methods) != 1 or not _is_id(ids[0]) or not _is_unicode(ids[0]):
        raise Refused(UNREADABLE, refusal.message) from refusal
    if methods[0] != CALL:
        raise Refused(INVALID_REQUEST, refusal.message, ids[0]) from refusal
    return Request(ids[0], CALL, {}, refusal)


def _is_unicode(value: object) -> bool:
    try:
        to_json(value)
    except UnicodeError:
        return False
    return True
