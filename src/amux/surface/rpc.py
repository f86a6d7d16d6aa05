"""The Hub's RPC: HTTP/1.1 over its Unix sockets and TCP.

Rule 1: a call is decoded against the table of calls, made, and encoded; nothing else happens here.
Rule 2: one handler turns every refusal into its row of the error table; everything that is
        not a refusal is a bug, and gets an incident id that names a line of the log.
Rule 3: who calls is what the kernel says of the peer, or a token; a request names nobody (M63).
Rule 4: an application of plain ASGI: a table of a dozen calls needs no framework, and a Hub
        that imports none is ready 60 ms earlier (decision 0007).
Rule 5: whom a request is for is looked at first, before who calls and what is asked (M76).
Rule 6: a refusal that comes before the body was read is heard all the same: what is on its way is
        taken in, within limits, before the connection is closed.
Rule 7: reads run on the loop, step by step; writes in threads, so that an fsync stalls nobody.
Rule 8: a face that has a path of its own is handed its requests when it is known who calls.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from amux import __version__
from amux.core import revision
from amux.core.hosts import Hosts
from amux.core.identity import Actor, Caller
from amux.core.path import DocPath, PathPrefix
from amux.core.strict import decode
from amux.core.text import to_json
from amux.disk.tree import shown
from amux.errors import (
    AmuxError,
    Code,
    Internal,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from amux.hub.rates import failure_delay
from amux.hub.service import Hub
from amux.memory import limits
from amux.memory.document import Range
from amux.memory.search import Query
from amux.memory.service import Steps
from amux.wire import openapi
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
U = TypeVar("U")
Plain = dict[str, object]
Given = dict[str, str | int | bool]
Handler = Callable[[Actor, Given], Awaitable[Plain]]
# The shapes of ASGI itself (`asgi_scope`: the glossary's scope is a partition of documents).
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
# Has something run in another thread, which raises nothing.
Run: TypeAlias = Callable[[Callable[[], None]], None]
# Another face behind the same door: it answers, or refuses before it has begun to.
Face: TypeAlias = Callable[[Actor, Message, Receive, Send], Awaitable[None]]

# Seconds: a lock is soon free, a full disk is not.
RETRY_AFTER = {
    Code.BUSY: b"1",
    Code.NOT_SAVED: b"5",
    Code.UNAVAILABLE: b"1",
    Code.RATE_LIMITED: b"1",
}
TOLD_MAX = 128  # characters of a path in the log: the longest of ours has 30
BODY_SECONDS = 10.0  # twice what a client of ours waits for an answer
DRAIN_SECONDS = 1.0  # for what was sent to somebody who has refused already
OPENAPI = "/v1/openapi.json"
_LOG = logging.getLogger("amux.rpc")


class Application:
    """The ASGI application: one route a call of the table, and the faces beside it."""

    def __init__(
        self,
        hub: Hub,
        *,
        hosts: Hosts,
        handlers: Mapping[str, Handler],
        faces: Mapping[str, Face],
        new_incident: Callable[[], str],
    ) -> None:
        self._hub = hub
        self._hosts = hosts
        self._faces = faces
        self._new_incident = new_incident
        self._failures = 0
        self._routes = {TARGETS[name]: (call, handlers[name]) for name, call in CALLS.items()}

    async def __call__(self, asgi_scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or have the face answer whose path it is."""
        body = _Body(receive)
        path = asgi_scope["path"]
        try:
            self._hosts.require(_all(asgi_scope, b"host"), _all(asgi_scope, b"origin"))
            face = self._faces.get(path)
            surface = "rpc" if face is None else path[1:]
            actor = await self._enter(_caller(asgi_scope, surface))
            if face is not None:
                await face(actor, asgi_scope, body.receive, send)
                return
            found: Plain | AmuxError = await self._answer(actor, asgi_scope, body)
        except AmuxError as refusal:
            _LOG.info("%s refused: %s", _told(path), refusal.code)
            found = refusal
        except Exception:
            incident = self._new_incident()
            _LOG.exception("incident %s in %s", incident, _told(path))
            found = Internal(
                "the Hub made a mistake",
                hint="report it with the lines of run/hub.log that name the incident",
                incident=incident,
            )
        await _reply(send, found, body)

    async def _answer(self, actor: Actor, asgi_scope: Message, body: "_Body") -> Plain:
        if (asgi_scope["method"], asgi_scope["path"]) == ("GET", OPENAPI):
            return openapi.document()
        call, handler = self._route(asgi_scope["method"], asgi_scope["path"])
        given = arguments(call, decode(await body.read(asgi_scope)))
        with self._hub.counted(actor, is_search=call is SEARCH):
            return await handler(actor, given)

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


class Calls:
    """Each call of the table: values out of arguments, then the use case."""

    def __init__(self, hub: Hub, run: Run) -> None:
        self._hub = hub
        self._run = run
        self._learning: asyncio.Task[None] | None = None

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
        found = await _driven(self._hub.search(actor, query, prefix, limit))
        if self._learning is None or self._learning.done():
            self._learning = asyncio.create_task(_driven(self._hub.learn()))
        return found.plain()

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
        upsert = partial(self._hub.upsert, allow_secret_like=bool(given.get("allow_secret_like")))
        return (await self._in_thread(upsert, actor, path, data, expected)).plain()

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
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._run(partial(_answer_from_thread, loop, answer, partial(call, *given)))
        return await answer


def _answer_from_thread(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T], call: Callable[[], T]
) -> None:
    """Make a call, and tell the loop how it ended."""
    try:
        tell = partial(_tell, answer, answer.set_result, call())
    except BaseException as error:  # it is for whoever asked
        tell = partial(_tell, answer, answer.set_exception, error)
    with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
        loop.call_soon_threadsafe(tell)


def _tell(answer: asyncio.Future[T], told: Callable[[U], None], what: U) -> None:
    if not answer.done():  # who asked may be gone
        told(what)


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


class _Body:
    """The body of one request, read once and within its limits."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_whole = False

    async def receive(self) -> Message:
        """Take the next piece, for whoever reads it."""
        message = await self._receive()
        self.is_whole = not message.get("more_body", False)
        return message

    async def read(self, asgi_scope: Message) -> bytes:
        """Give the bytes; refuses another type, too many, and too slow ones (M45, M76)."""
        headers = dict(asgi_scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise InvalidArgument(
                "the body is not application/json", hint="set Content-Type: application/json"
            )
        if int(headers.get(b"content-length", b"0")) > limits.BODY_MAX_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not self.is_whole:
                    body += await self._more()
                    if len(body) > limits.BODY_MAX_BYTES:
                        raise _too_large()
        except TimeoutError as error:
            raise Unavailable(
                f"the request did not arrive within {BODY_SECONDS:g} s",
                hint="nothing was changed; send it again",
            ) from error
        return bytes(body)

    async def drain(self) -> None:
        """Take in what is on its way, for a moment, so that an answer is not lost over it."""
        taken = 0
        with suppress(TimeoutError, InvalidArgument):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.is_whole and taken <= limits.BODY_MAX_BYTES:
                    taken += len(await self._more())

    async def _more(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise InvalidArgument("the body ended early")  # nobody is there to read this
        chunk: bytes = message.get("body", b"")
        return chunk


async def _reply(send: Send, found: Plain | AmuxError, body: _Body) -> None:
    """Send an answer or a refusal, and hang up on a body that nobody reads."""
    refusal = found if isinstance(found, AmuxError) else None
    data = to_json(found.body() if isinstance(found, AmuxError) else found)
    headers = [
        (b"content-type", b"application/json"),
        (VERSION_HEADER.encode("ascii"), __version__.encode("ascii")),
        (b"content-length", b"%d" % len(data)),
    ]
    if refusal is not None and refusal.code in RETRY_AFTER:
        headers.append((b"retry-after", _retry_after(refusal)))
    if isinstance(refusal, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    must_drain = refusal is not None and not body.is_whole
    if must_drain:
        headers.append((b"connection", b"close"))
    status = refusal.http_status if refusal is not None else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": must_drain})
    if must_drain:
        await body.drain()
        await send({"type": "http.response.body"})


def _caller(asgi_scope: Message, surface: str) -> Caller:
    """Gather what is known of who calls: the kernel's word, a token, a binding."""
    kind, uid = asgi_scope["client"] or ("", 0)
    authorization = _single(asgi_scope, b"authorization")
    scheme, _, token = (authorization or b"").partition(b" ")
    binding = _single(asgi_scope, BINDING_HEADER.encode("ascii"))
    if authorization is not None and scheme.lower() != b"bearer":
        raise Unauthenticated("the authorization is no bearer token")
    return Caller(
        uid=uid if kind == "unix" else None,
        token=token.strip().decode("latin-1") if authorization is not None else None,
        binding=binding.decode("latin-1") if binding is not None else None,
        surface=surface,
    )


def _single(asgi_scope: Message, name: bytes) -> bytes | None:
    """Find a header; two of one name are refused: somebody on the way may have read the other."""
    found = _all(asgi_scope, name)
    if len(found) > 1:
        raise InvalidArgument("a header stands twice", argument=name.decode("ascii"))
    return found[0] if found else None


def _all(asgi_scope: Message, name: bytes) -> list[bytes]:
    return [value for key, value in asgi_scope["headers"] if key == name]


def _retry_after(refusal: AmuxError) -> bytes:
    """Spell the whole seconds after which to ask again."""
    wanted = refusal.details.get("retry_after")
    if isinstance(wanted, int | float):
        return b"%d" % math.ceil(wanted)
    return RETRY_AFTER[refusal.code]


def _told(path: str) -> str:
    """Spell a path that anybody may have made up, so that a log shows it and it alone."""
    return shown(path[:TOLD_MAX])


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
