"""Calling the Hub: one request, one answer, or a refusal that says what happened.

Rule 1: a write whose answer was lost is `outcome_unknown`, a read is `unavailable` (M28).
Rule 2: nothing is retried here; a write least of all.
Rule 3: one connection a call, so that a restart of the Hub breaks nothing but the call in flight.

Speaks HTTP/1.1 itself: `http.client` would cost each start of the command line 36 ms.
"""

import json
import socket

from amux import __version__
from amux.core.text import to_json
from amux.errors import AmuxError, Internal, OutcomeUnknown, Unavailable, from_body
from amux.wire.tools import CALLS, TARGETS, VERSION_HEADER, Call

WAIT_SECONDS = 5.0  # for an answer of the Hub (M28)
HEAD_MAX_BYTES = 16 * 1024  # our own Hub answers with a few hundred


class Answer:
    """What the Hub said: the JSON text as it was sent, and the Hub's release."""

    __slots__ = ("hub_version", "text")

    def __init__(self, text: str, hub_version: str) -> None:
        self.text = text
        self.hub_version = hub_version

    def value(self) -> dict[str, object]:
        """Read the JSON."""
        found = json.loads(self.text)
        return found if isinstance(found, dict) else {}


class Client:
    """One Hub, reached by its Unix socket."""

    def __init__(self, socket_path: str, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._socket_path = socket_path
        self._wait_seconds = wait_seconds

    def ask(self, name: str, arguments: dict[str, object] | None = None) -> Answer:
        """Make one call of the table of calls; raises the refusal that the Hub answered with."""
        return self._post(CALLS[name], TARGETS[name], arguments or {})

    def _post(self, call: Call, target: str, arguments: dict[str, object]) -> Answer:
        body = to_json(arguments)
        head = (
            f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nAmux-Version: {__version__}\r\n"
            "Connection: close\r\n\r\n"
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self._wait_seconds)
            try:
                connection.connect(self._socket_path)
            except OSError as error:
                raise _not_sent(error) from error
            try:
                connection.sendall(head.encode("ascii") + body)
            except BrokenPipeError:
                # The Hub may have answered before it read everything, with a refusal.
                pass
            except OSError as error:
                # Not all of the request left, so the Hub cannot have acted on it.
                raise _not_sent(error) from error
            try:
                status, version, text = _read_answer(connection)
            except (OSError, ValueError) as error:
                raise _not_answered(call) from error
        if status == 200:
            return Answer(text, version)
        raise _refusal(status, text)


def _read_answer(connection: socket.socket) -> tuple[int, str, str]:
    """Read status, the Hub's release and the body; `ValueError` where the answer is cut."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _more(connection)
        if len(received) > HEAD_MAX_BYTES:
            raise ValueError("no end of head")
    status_line, *lines = received[:end].decode("latin-1").split("\r\n")
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    length = int(fields["content-length"]) if "content-length" in fields else 0
    body = received[end + 4 :]
    while len(body) < length:
        body += _more(connection)
    return int(status_line.split(" ")[1]), fields.get(VERSION_HEADER, ""), body.decode("utf-8")


def _more(connection: socket.socket) -> bytes:
    chunk = connection.recv(65536)
    if not chunk:
        raise ValueError("the answer is cut")
    return chunk


def _not_sent(error: OSError) -> AmuxError:
    return Unavailable(
        "the Hub is out of reach",
        hint="start it with `amux hub start`",
        cause=type(error).__name__,
    )


def _not_answered(call: Call) -> AmuxError:
    if call.is_write:
        return OutcomeUnknown(
            "the request was sent and its answer was lost",
            hint="read the document again: its revision tells whether the write happened",
        )
    return Unavailable("the Hub did not answer in time", hint="look at `amux hub status`")


def _refusal(status: int, text: str) -> AmuxError:
    try:
        refusal = from_body(json.loads(text))
    except ValueError:
        refusal = None
    return refusal or Internal(f"the Hub answered with HTTP status {status} and no refusal")
