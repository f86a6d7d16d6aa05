"""The MCP server on standard input and output.

Rule 1: `initialize` is answered before anybody asks the Hub (M56).
Rule 2: nothing but protocol is written to standard output, whole lines under one lock.
Rule 3: what may wait for the Hub runs beside the conversation: a hung Hub blocks no ping.
Rule 4: no notification is ever sent (M59), and no server request either.
Rule 5: when input ends, what was asked may be answered for 0.8 s, then the process ends (M58).
"""

import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from amux import __version__
from amux.errors import AmuxError, Busy, Internal
from amux.runtime.context import Context, Input
from amux.surface.mcp import message
from amux.surface.mcp.message import Id, Refused, Request
from amux.surface.mcp.offer import Offer, refused
from amux.surface.mcp.workers import Workers
from amux.wire.tools import INSTRUCTIONS, SERVER_NAME

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
END_SECONDS = 0.8  # of the one second that M58 gives
CALLS_MAX = 8  # at once; the Hub takes no more from one client
CALLS_WAITING_MAX = 64  # beyond, an agent asks more than it can read
CALL_WAIT_SECONDS = 1.0  # for one of the eight: with the Hub's 5 s, an answer within 6 s
LISTS_WAITING_MAX = 16  # all get the same answer within half a second
SKIP_BYTES = 64 * 1024  # of a line that is too long, held at once
INTERRUPTED = 130


class Stopped(Exception):
    """The process was told to end, or nobody reads its answers any more."""


def serve(context: Context, tools: str | None) -> int:
    """Serve MCP until input ends, output closes or a signal comes; give the exit status."""
    server = Server(context, Offer(context, tools))
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _stop) if is_main else None
    try:
        server.run()
    except Stopped:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)
    return 0


class Server:
    """One conversation."""

    def __init__(self, context: Context, offer: Offer) -> None:
        self._context = context
        self._offer = offer
        self._client = ""  # who calls, as it introduced itself
        # The raw stream: a thread that hangs in a write must hold no lock that the end needs.
        self._write: Callable[[bytes], object] = getattr(
            context.stdout, "raw", context.stdout
        ).write
        self._writing = threading.Lock()
        self._is_over = False
        self._reader = threading.current_thread()
        clock = context.clock
        self._calls = Workers(threads_max=CALLS_MAX, queue_max=CALLS_WAITING_MAX, clock=clock)
        self._lists = Workers(threads_max=1, queue_max=LISTS_WAITING_MAX, clock=clock)

    def run(self) -> None:
        """Answer every line; `Stopped` where the output is closed."""
        for line in lines(self._context.stdin):
            self.take(line)
        deadline = self._context.clock() + END_SECONDS
        for workers in (self._lists, self._calls):
            workers.wait_idle(max(0.0, deadline - self._context.clock()))
        self._is_over = True

    def take(self, line: bytes | None) -> None:
        """Answer one line, now or later; None is a line that was too long to keep."""
        try:
            if line is None:
                raise Refused(message.UNREADABLE, "the line is too long")
            request = message.read(line)
            if request is not None and request.id is not None:
                self._dispatch(request)
        except Refused as refusal:
            self._send(message.error(refusal.id, refusal.code, refusal.message))

    def _dispatch(self, request: Request) -> None:
        match request.method:
            case "initialize":
                self._send(message.result(request.id, self._introduce(request)))
                self._offer.ask_once()
            case "ping":
                self._send(message.result(request.id, {}))
            case "tools/list":
                if not self._lists.put(lambda _: self._list(request.id)):
                    raise Refused(message.INTERNAL, "too many lists at once", request.id)
            case message.CALL:
                self._call(request)
            case _:
                raise Refused(message.UNKNOWN_METHOD, "unknown method", request.id)

    def _introduce(self, request: Request) -> dict[str, object]:
        asked = request.params.get("protocolVersion")
        client = request.params.get("clientInfo")
        name = client.get("name") if isinstance(client, dict) else None
        self._client = name if isinstance(name, str) else ""
        introduction: dict[str, object] = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER_NAME, "version": __version__},
        }
        if self._offer.has_memory:
            introduction["instructions"] = INSTRUCTIONS
        return introduction

    def _list(self, id: Id) -> None:  # noqa: A002 - its name in JSON-RPC
        self._send(message.result(id, {"tools": self._offer.listed()}))

    def _call(self, request: Request) -> None:
        if request.refusal is not None:
            self._send(_answer(request.id, refused(request.refusal), is_refusal=True))
            return
        name = request.params.get("name")
        if not isinstance(name, str) or not self._offer.knows(name):
            raise Refused(message.INVALID_PARAMS, "unknown tool", request.id)
        given = request.params.get("arguments", {})
        if not self._calls.put(lambda waited: self._settle(request.id, name, given, waited)):
            self._send(_answer(request.id, refused(_busy()), is_refusal=True))

    def _settle(self, id: Id, name: str, given: object, waited: float) -> None:  # noqa: A002
        try:
            if waited > CALL_WAIT_SECONDS:
                raise _busy()
            text, is_refusal = self._offer.call(name, given, client=self._client)
        except AmuxError as refusal:
            text, is_refusal = refused(refusal), True
        except Exception as error:  # the one blanket of this process
            text, is_refusal = refused(self._confess(error)), True
        self._send(_answer(id, text, is_refusal=is_refusal))

    def _confess(self, error: Exception) -> Internal:
        """Log where a bug struck, never what it held, and make the refusal that names the line."""
        incident = self._context.random_bytes(4).hex()
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_qualname}:{place.tb_lineno}" if place else "nowhere"
        self._offer.notice(f"incident {incident}: {type(error).__name__} in {where}")
        return Internal(
            "amux made a mistake",
            hint="report the line of this incident on standard error",
            incident=incident,
        )

    def _send(self, line: bytes) -> None:
        """Write one whole line; a closed output ends the conversation."""
        try:
            with self._writing:
                while line and not self._is_over:
                    # None: somebody made the pipe non-blocking and it is full for now.
                    count = self._write(line)
                    line = line[count if isinstance(count, int) else 0 :]
        except (OSError, ValueError):
            self._is_over = True
            self._end()

    def _end(self) -> None:
        if threading.current_thread() is self._reader:
            raise Stopped
        if self._reader is threading.main_thread() and self._reader.ident is not None:
            # The reader sleeps in a read that nothing else would end.
            signal.pthread_kill(self._reader.ident, signal.SIGTERM)


def lines(stream: Input) -> Iterator[bytes | None]:
    """Give the lines of a stream, and None for each that is longer than a message may be."""
    while line := stream.readline(message.LINE_MAX_BYTES + 1):
        if len(line) <= message.LINE_MAX_BYTES or line.endswith(b"\n"):
            yield line
            continue
        del line  # a megabyte that nobody needs while the rest is skipped
        while (more := stream.readline(SKIP_BYTES)) and not more.endswith(b"\n"):
            pass
        yield None


def _answer(id: Id, text: str, *, is_refusal: bool) -> bytes:  # noqa: A002 - its name in JSON-RPC
    found: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    if is_refusal:
        found["isError"] = True
    return message.result(id, found)


def _busy() -> Busy:
    return Busy("too many calls at once", hint="wait for an answer, then ask again")


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped
