"""The Hub's RPC: HTTP/1.1 over its Unix socket.

Rule 1: a call is decoded against the table of calls, made, and encoded; nothing else happens here.
Rule 2: one handler turns every refusal into its row of the error table; everything that is
        not a refusal is a bug, and gets an incident id that names a line of the log.
Rule 3: who calls is what the kernel says of the peer, never what the request says (M63).
Rule 4: reads run on the loop, step by step; writes in threads, so that an fsync stalls nobody.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from amux import __version__
from amux.core import revision
from amux.core.identity import OVERFLOW_UID, PeerActor
from amux.core.path import DocPath, PathPrefix
from amux.core.strict import decode
from amux.core.text import to_json
from amux.errors import (
    AmuxError,
    Code,
    Internal,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PermissionDenied,
)
from amux.hub.service import Hub
from amux.memory import limits
from amux.memory.document import Range
from amux.memory.search import Query
from amux.memory.service import Steps
from amux.wire.strict import arguments
from amux.wire.tools import ADMIN_CALLS, MEMORY_CALLS, VERSION_HEADER, Call

T = TypeVar("T")
Plain = dict[str, object]
Given = dict[str, str | int | bool]
Handler = Callable[[PeerActor, Given], Awaitable[Plain]]

RETRY_AFTER = {Code.BUSY: "1", Code.NOT_SAVED: "5", Code.UNAVAILABLE: "1"}
_LOG = logging.getLogger("amux.rpc")


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol that knows the uid at the other end of a Unix socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember who connected: the credentials are those at `connect()`."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.client = ("unix", struct.unpack("3i", packed)[1])


def build(hub: Hub, *, threads: Executor, new_incident: Callable[[], str]) -> Starlette:
    """Make the application: one route a call of the table."""
    calls = _Calls(hub, threads)
    routes = [
        Route(f"/v1/{room}/{name}", _endpoint(call, handler, new_incident), methods=["POST"])
        for room, table, handlers in (
            ("memory", MEMORY_CALLS, calls.memory()),
            ("admin", ADMIN_CALLS, calls.admin()),
        )
        for (name, call), handler in zip(table.items(), handlers, strict=True)
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _no_route})


class _Calls:
    """Each call of the table: values out of arguments, then the use case."""

    def __init__(self, hub: Hub, threads: Executor) -> None:
        self._hub = hub
        self._threads = threads

    def memory(self) -> tuple[Handler, ...]:
        """Give the handlers in the order of the table."""
        return (
            self._search, self._get, self._upsert, self._forget,
            self._list, self._check, self._discard,
        )  # fmt: skip

    def admin(self) -> tuple[Handler, ...]:
        """Give the handlers in the order of the table."""
        return (self._settings, self._status, self._stop)

    async def _search(self, actor: PeerActor, given: Given) -> Plain:
        query = Query.parse(str(given["query"]))
        prefix = PathPrefix.parse(str(given.get("path_prefix", "")))
        limit = _limit(int(given.get("limit", limits.HITS_DEFAULT)))
        return (await _driven(self._hub.search(actor, query, prefix, limit))).plain()

    async def _get(self, actor: PeerActor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        part = Range(
            start_line=int(given.get("start_line", 0)),
            end_line=int(given.get("end_line", 0)),
            offset=int(given.get("offset", 0)),
        )
        return (await _driven(self._hub.get(actor, path, part))).plain()

    async def _upsert(self, actor: PeerActor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        expected = revision.parse(str(given["expected_revision"]))
        data = str(given["content"]).encode("utf-8")
        return (await self._in_thread(self._hub.upsert, actor, path, data, expected)).plain()

    async def _forget(self, actor: PeerActor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        expected = revision.parse(str(given["expected_revision"]))
        return (await self._in_thread(self._hub.forget, actor, path, expected)).plain()

    async def _list(self, actor: PeerActor, given: Given) -> Plain:
        prefix = PathPrefix.parse(str(given.get("path_prefix", "")))
        return (await _driven(self._hub.list(actor, prefix, str(given.get("cursor", ""))))).plain()

    async def _check(self, actor: PeerActor, _given: Given) -> Plain:
        return (await self._in_thread(self._hub.check, actor)).plain()

    async def _discard(self, actor: PeerActor, given: Given) -> Plain:
        path = str(given["path"])
        await self._in_thread(self._hub.discard, actor, path)
        return {"path": path, "removed": True}

    async def _settings(self, actor: PeerActor, given: Given) -> Plain:
        return await self._in_thread(self._hub.set, actor, str(given["name"]), str(given["value"]))

    async def _status(self, actor: PeerActor, _given: Given) -> Plain:
        return self._hub.status(actor)

    async def _stop(self, actor: PeerActor, _given: Given) -> Plain:
        return self._hub.stop(actor)

    async def _in_thread(self, call: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(call, *given)
        )


def _endpoint(
    call: Call, handler: Handler, new_incident: Callable[[], str]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            actor = _actor(request)
            given = arguments(call, decode(await _body(request)))
            return _reply(200, await handler(actor, given))
        except AmuxError as refusal:
            _LOG.info("%s refused: %s", call.name, refusal.code)
            return _refuse(refusal)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        except Exception:
            incident = new_incident()
            _LOG.exception("incident %s in %s", incident, call.name)
            return _refuse(
                Internal(
                    "the Hub made a mistake",
                    hint="report it with the lines of run/hub.log that name the incident",
                    incident=incident,
                )
            )

    return endpoint


async def _driven(steps: Steps[T]) -> T:
    """Run a read step by step, serving other calls in between."""
    try:
        while True:
            await asyncio.sleep(next(steps))
    except StopIteration as stop:
        found: T = stop.value
        return found
    finally:
        steps.close()


async def _body(request: Request) -> bytes:
    """Read a body within its limit, before anything else happens (M45)."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidArgument(
            "the body is not application/json", hint="set Content-Type: application/json"
        )
    if int(request.headers.get("content-length") or 0) > limits.BODY_MAX_BYTES:
        raise _too_large()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.BODY_MAX_BYTES:
            raise _too_large()
    return bytes(body)


def _actor(request: Request) -> PeerActor:
    client = request.client
    if client is None or client.host != "unix" or client.port == OVERFLOW_UID:
        raise PermissionDenied("the caller's identity is not known")
    return PeerActor(client.port)


def _limit(value: int) -> int:
    if not 1 <= value <= limits.HITS_MAX:
        raise InvalidArgument(
            f"limit is 1 to {limits.HITS_MAX}", argument="limit", max=limits.HITS_MAX
        )
    return value


def _too_large() -> LimitExceeded:
    return LimitExceeded(
        f"a request body may have {limits.BODY_MAX_BYTES} bytes",
        hint="split the document by topic",
        max_bytes=limits.BODY_MAX_BYTES,
    )


async def _no_route(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    if status == 405:
        return _refuse(InvalidArgument("a call is a POST", argument="method"))
    return _refuse(NotFound("there is no such call", hint="see docs/memory.md for the calls"))


def _refuse(refusal: AmuxError) -> Response:
    reply = _reply(refusal.http_status, refusal.body())
    if refusal.code in RETRY_AFTER:
        reply.headers["Retry-After"] = RETRY_AFTER[refusal.code]
    return reply


def _reply(status: int, plain: Plain) -> Response:
    return Response(
        to_json(plain),
        status_code=status,
        media_type="application/json",
        headers={VERSION_HEADER: __version__},
    )
