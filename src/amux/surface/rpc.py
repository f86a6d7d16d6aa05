"""The Hub's RPC: HTTP/1.1 over its Unix socket.

Rule 1: a call is decoded against the table of calls, made, and encoded; nothing else happens here.
Rule 2: one handler turns every refusal into its row of the error table; everything that is
        not a refusal is a bug, and gets an incident id that names a line of the log.
Rule 3: who calls is what the kernel says of the peer, never what the request says (M63).
Rule 4: an application of plain ASGI: a table of a dozen calls needs no framework, and a Hub
        that imports none is ready 60 ms earlier (decision 0007).
Rule 5: reads run on the loop, step by step; writes in threads, so that an fsync stalls nobody.
"""

import asyncio
import logging
import math
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeAlias, TypeVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from amux import __version__
from amux.core import revision
from amux.core.identity import Actor, Caller
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
    Unauthenticated,
)
from amux.hub.rates import failure_delay
from amux.hub.service import Hub
from amux.memory import limits
from amux.memory.document import Range
from amux.memory.search import Query
from amux.memory.service import Steps
from amux.wire.strict import arguments
from amux.wire.tools import (
    ADMIN_CALLS,
    BINDING_CALLS,
    BINDING_HEADER,
    CALLS,
    SEARCH,
    TARGETS,
    VERSION_HEADER,
    Call,
)

T = TypeVar("T")
Plain = dict[str, object]
Given = dict[str, str | int | bool]
Handler = Callable[[Actor, Given], Awaitable[Plain]]
# The shapes of ASGI itself (`asgi_scope`: the glossary's scope is a partition of documents).
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

# Seconds: a lock is soon free, a full disk is not.
RETRY_AFTER = {
    Code.BUSY: b"1",
    Code.NOT_SAVED: b"5",
    Code.UNAVAILABLE: b"1",
    Code.RATE_LIMITED: b"1",
}
_LOG = logging.getLogger("amux.rpc")


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol that knows the uid at the other end of a Unix socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember who connected: the credentials are those at `connect()`."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.client = ("unix", struct.unpack("3i", packed)[1])


class Application:
    """The ASGI application: one route a call of the table."""

    def __init__(self, hub: Hub, *, threads: Executor, new_incident: Callable[[], str]) -> None:
        self._hub = hub
        self._new_incident = new_incident
        self._failures = 0
        handlers = _Calls(hub, threads).handlers()
        self._routes = {TARGETS[name]: (call, handlers[name]) for name, call in CALLS.items()}

    async def __call__(self, asgi_scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        status, plain, refusal = await self._answer(asgi_scope, receive)
        headers = [
            (b"content-type", b"application/json"),
            (VERSION_HEADER.encode("ascii"), __version__.encode("ascii")),
        ]
        if refusal is not None and refusal.code in RETRY_AFTER:
            headers.append((b"retry-after", _retry_after(refusal)))
        body = to_json(plain)
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, asgi_scope: Message, receive: Receive
    ) -> tuple[int, Plain, AmuxError | None]:
        path = asgi_scope["path"]
        try:
            headers = dict(asgi_scope["headers"])
            actor = await self._enter(_caller(asgi_scope, headers))
            call, handler = self._route(asgi_scope["method"], path)
            given = arguments(call, decode(await _body(headers, receive)))
            with self._hub.counted(actor, is_search=call is SEARCH):
                return 200, await handler(actor, given), None
        except AmuxError as refusal:
            _LOG.info("%r refused: %s", path, refusal.code)
            return refusal.http_status, refusal.body(), refusal
        except Exception:
            incident = self._new_incident()
            _LOG.exception("incident %s in %r", incident, path)
            bug = Internal(
                "the Hub made a mistake",
                hint="report it with the lines of run/hub.log that name the incident",
                incident=incident,
            )
            return bug.http_status, bug.body(), bug

    async def _enter(self, caller: Caller) -> Actor:
        """Find out who calls; who fails again and again waits for the answer (M76)."""
        try:
            actor = self._hub.enter(caller)
        except Unauthenticated:
            self._failures += 1
            await asyncio.sleep(failure_delay(self._failures))
            raise
        if caller.token is not None:
            self._failures = 0
        return actor

    def _route(self, method: str, path: str) -> tuple[Call, Handler]:
        found = self._routes.get(path)
        if found is None:
            raise NotFound("there is no such call", hint="see docs/memory.md for the calls")
        if method != "POST":
            raise InvalidArgument("a call is a POST", argument="method")
        return found


class _Calls:
    """Each call of the table: values out of arguments, then the use case."""

    def __init__(self, hub: Hub, threads: Executor) -> None:
        self._hub = hub
        self._threads = threads

    def handlers(self) -> dict[str, Handler]:
        """Give the handler of each call by its name."""
        found: dict[str, Handler] = {
            "search": self._search,
            "get": self._get,
            "upsert": self._upsert,
            "forget": self._forget,
            "list": self._list,
            "check": self._check,
            "discard": self._discard,
        }
        for name in (*ADMIN_CALLS, *BINDING_CALLS):
            found[name] = partial(self._administer, name)
        return found

    async def _search(self, actor: Actor, given: Given) -> Plain:
        query = Query.parse(str(given["query"]))
        prefix = PathPrefix.parse(str(given.get("path_prefix", "")))
        limit = _limit(int(given.get("limit", limits.HITS_DEFAULT)))
        return (await _driven(self._hub.search(actor, query, prefix, limit))).plain()

    async def _get(self, actor: Actor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        part = Range(
            start_line=int(given.get("start_line", 0)),
            end_line=int(given.get("end_line", 0)),
            offset=int(given.get("offset", 0)),
        )
        return (await _driven(self._hub.get(actor, path, part))).plain()

    async def _upsert(self, actor: Actor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        expected = revision.parse(str(given["expected_revision"]))
        data = str(given["content"]).encode("utf-8")
        return (await self._in_thread(self._hub.upsert, actor, path, data, expected)).plain()

    async def _forget(self, actor: Actor, given: Given) -> Plain:
        path = DocPath.parse(str(given["path"]))
        expected = revision.parse(str(given["expected_revision"]))
        return (await self._in_thread(self._hub.forget, actor, path, expected)).plain()

    async def _list(self, actor: Actor, given: Given) -> Plain:
        prefix = PathPrefix.parse(str(given.get("path_prefix", "")))
        return (await _driven(self._hub.list(actor, prefix, str(given.get("cursor", ""))))).plain()

    async def _check(self, actor: Actor, _given: Given) -> Plain:
        return (await self._in_thread(self._hub.check, actor)).plain()

    async def _discard(self, actor: Actor, given: Given) -> Plain:
        path = str(given["path"])
        await self._in_thread(self._hub.discard, actor, path)
        return {"path": path, "removed": True}

    async def _administer(self, name: str, actor: Actor, given: Given) -> Plain:
        return await self._in_thread(self._hub.administration.call, actor, name, given)

    async def _in_thread(self, call: Callable[..., T], *given: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(call, *given)
        )


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


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Read a body within its limit, before anything else happens (M45)."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise InvalidArgument(
            "the body is not application/json", hint="set Content-Type: application/json"
        )
    if int(headers.get(b"content-length", b"0")) > limits.BODY_MAX_BYTES:
        raise _too_large()
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidArgument("the body ended early")  # nobody is there to read this
        body += message.get("body", b"")
        if len(body) > limits.BODY_MAX_BYTES:
            raise _too_large()
        if not message.get("more_body", False):
            return bytes(body)


def _caller(asgi_scope: Message, headers: dict[bytes, bytes]) -> Caller:
    """Gather what is known of who calls: the kernel's word, a token, a binding."""
    kind, uid = asgi_scope["client"] or ("", 0)
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    binding = headers.get(BINDING_HEADER.encode("ascii"))
    if b"authorization" in headers and scheme.lower() != b"bearer":
        raise Unauthenticated("the authorization is no bearer token")
    return Caller(
        uid=uid if kind == "unix" else None,
        token=token.strip().decode("latin-1") if b"authorization" in headers else None,
        binding=binding.decode("latin-1") if binding is not None else None,
    )


def _retry_after(refusal: AmuxError) -> bytes:
    """Spell the whole seconds after which to ask again."""
    wanted = refusal.details.get("retry_after")
    if isinstance(wanted, int | float):
        return b"%d" % math.ceil(wanted)
    return RETRY_AFTER[refusal.code]


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
