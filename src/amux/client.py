"""Calling the Hub: one request, one answer, or a refusal that says what happened.

Rule 1: a write whose answer was lost is `outcome_unknown`, a read is `unavailable` (M28).
Rule 2: nothing is retried here; a write least of all.
Rule 3: one connection a call, so that a restart of the Hub breaks nothing but the call in flight.
Rule 4: no redirection is followed and no proxy asked: a token goes to the Hub or nowhere.

Speaks HTTP/1.1 itself: `http.client` would cost each start of the command line 36 ms.
"""

import json
import socket
import time
from types import ModuleType

from amux import __version__
from amux.core.address import Address, Connection
from amux.core.text import to_json
from amux.errors import AmuxError, Internal, OutcomeUnknown, Unavailable, from_body
from amux.wire.tools import BINDING_HEADER, CALLS, TARGETS, VERSION_HEADER, Call

WAIT_SECONDS = 5.0  # for an answer of the Hub (M28)
HEAD_MAX_BYTES = 16 * 1024  # our own Hub answers with a few hundred
BODY_MAX_BYTES = 4 * 1024 * 1024  # the longest list of an administrator has a tenth of this


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
    """One Hub, reached by its Unix socket or by TCP; `tls` is the module for `https`."""

    def __init__(
        self,
        where: Connection | str,
        tls: ModuleType | None = None,
        *,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._to = Connection(Address.local(where)) if isinstance(where, str) else where
        self._tls = tls
        self._wait_seconds = wait_seconds

    def ask(self, name: str, arguments: dict[str, object] | None = None) -> Answer:
        """Make one call of the table of calls; raises the refusal that the Hub answered with."""
        return self._post(CALLS[name], TARGETS[name], arguments or {})

    def _post(self, call: Call, target: str, arguments: dict[str, object]) -> Answer:
        body = to_json(arguments)
        request = self._head(target, len(body)).encode("ascii") + body
        deadline = time.monotonic() + self._wait_seconds
        try:
            connection = self._connected(deadline)
        except OSError as error:
            raise self._not_sent(error) from error
        with connection:
            unsent: OSError | None = None
            try:
                _until(deadline, connection).sendall(request)
            except OSError as error:
                # Not all of the request left, so the Hub cannot have acted on it; but it may have
                # answered before it read everything, with a refusal.
                unsent = error
            try:
                status, version, text = _read_answer(connection, deadline)
            except (OSError, ValueError) as error:
                if unsent is not None:
                    raise self._not_sent(unsent) from unsent
                raise _not_answered(call) from error
        if status == 200:
            return Answer(text, version)
        raise _refusal(status, text)

    def _head(self, target: str, length: int) -> str:
        token, binding = self._to.token, self._to.binding
        return (
            f"POST {target} HTTP/1.1\r\nHost: {self._to.address.authority}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
            f"Amux-Version: {__version__}\r\n"
            + (f"Authorization: Bearer {token}\r\n" if token else "")
            + (f"{BINDING_HEADER}: {binding}\r\n" if binding else "")
            + "Connection: close\r\n\r\n"
        )

    def _connected(self, deadline: float) -> socket.socket:
        """Connect, and have the other end prove who it is where it is far away."""
        address = self._to.address
        if address.socket_path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            connection = socket.create_connection(
                (address.host, address.port), timeout=_left(deadline)
            )
        try:
            _until(deadline, connection)
            if address.socket_path:
                connection.connect(address.socket_path)
            if address.is_tls and self._tls is not None:
                found: socket.socket = self._tls.wrapped(connection, address.host, self._to.ca_file)
                return found
            if address.is_tls:
                raise Internal("no TLS was given for https")
        except BaseException:
            connection.close()
            raise
        return connection

    def _not_sent(self, error: OSError) -> AmuxError:
        # No errno: the path is longer than a socket's may be. A Hub of such a root records where
        # its socket is, so that no Hub has run there yet, and nobody listens.
        cause = "FileNotFoundError" if _is_too_long(error) else type(error).__name__
        if self._to.may_start:
            hint = "start it with `amux hub start`"
            return Unavailable("the Hub is out of reach", hint=hint, cause=cause)
        # Without `cause`: nobody may take this for a Hub that is to be started here (M54).
        return Unavailable(
            "the Hub is out of reach",
            hint=f"see that it runs, and that {self._to.address.text} is where",
            reason=cause,
        )


def _is_too_long(error: OSError) -> bool:
    return error.errno is None and not isinstance(error, TimeoutError)


def _read_answer(connection: socket.socket, deadline: float) -> tuple[int, str, str]:
    """Read status, the Hub's release and the body; `ValueError` where the answer is cut."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _more(connection, deadline)
        if len(received) > HEAD_MAX_BYTES + BODY_MAX_BYTES:
            raise ValueError("no end of head")
    status_line, *lines = received[:end].decode("latin-1").split("\r\n")
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    length = int(fields["content-length"]) if "content-length" in fields else 0
    if end > HEAD_MAX_BYTES or not 0 <= length <= BODY_MAX_BYTES:
        raise ValueError("the answer is too long")
    body = received[end + 4 :]
    while len(body) < length:
        body += _more(connection, deadline)
    return _status(status_line), fields.get(VERSION_HEADER, ""), body.decode("utf-8")


def _status(line: str) -> int:
    _, _, rest = line.partition(" ")
    return int(rest[:3])


def _more(connection: socket.socket, deadline: float) -> bytes:
    chunk = _until(deadline, connection).recv(65536)
    if not chunk:
        raise ValueError("the answer is cut")
    return chunk


def _until(deadline: float, connection: socket.socket) -> socket.socket:
    """Have the next step of a connection end by the deadline of the whole call."""
    connection.settimeout(_left(deadline))
    return connection


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the whole call took too long")
    return left


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
