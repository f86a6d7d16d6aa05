"""The Hub's MCP endpoint for remote clients: Streamable HTTP, spoken by the official SDK.

Rule 1: there are no sessions: each request comes authenticated, and each call, the next page of
        an answer included, is admitted anew (M57, M63).
Rule 2: a tool answers here as it does on stdio: one text block, in pages where it is over 6 KiB;
        a refusal is the answer of the tool, the one body on one line (M48).
Rule 3: pages are kept for a credential and whom it works for: nobody else ever sees one.
Rule 4: nothing is sent that was not asked for, and there is no stream that could carry it (M59).
Rule 5: what the SDK logs is told without its words: they may hold what a client sent.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from amux import __version__
from amux.core.identity import Actor
from amux.core.text import to_json
from amux.errors import AmuxError, Internal, InvalidArgument, LimitExceeded, Unavailable
from amux.hub.service import Hub
from amux.memory.limits import BODY_MAX_BYTES, PAGED_KEEP_SECONDS
from amux.wire.pages import Pages
from amux.wire.strict import arguments
from amux.wire.tools import (
    CONTINUE,
    INSTRUCTIONS,
    SEARCH,
    SERVER_NAME,
    TOOLS,
    VERSION_HEADER,
    Call,
    listing,
    noted,
    schema,
)

Plain = dict[str, object]
Given = dict[str, str | int | bool]
Handler = Callable[[Actor, Given], Awaitable[Plain]]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Context: TypeAlias = ServerRequestContext[Any, Any]

CALL = "tools/call"
BODY_SECONDS = 10.0  # for half a megabyte; who sends slower holds a place that others want
READERS_MAX = 256  # credentials that read pages at once: half a megabyte each at most
LIST_KEPT_MS = 60 * 60 * 1000  # the tools change with a release only, whoever asks
ACTOR = "amux.actor"  # where the ASGI scope of a request says who asks
RETRY_AFTER = "amux.retry_after"  # and where its answer says when to ask again
_LOG = logging.getLogger("amux.mcp_http")


class Endpoint:
    """The face at `/mcp`: a request in, an answer out, and nothing kept but pages."""

    def __init__(
        self,
        hub: Hub,
        *,
        handlers: Mapping[str, Handler],
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._tools = _Tools(hub, handlers=handlers, clock=clock, random_bytes=random_bytes)
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._running: asyncio.Task[None] | None = None
        _hush(logging.getLogger("mcp"))

    async def __call__(
        self, actor: Actor, asgi_scope: Message, receive: Receive, send: Send
    ) -> None:
        """Answer one request of a caller who is known."""
        if asgi_scope["method"] != "POST":
            # No stream to listen on and no session to end: a client then does without.
            await send(_start(405, [(b"allow", b"POST"), (b"content-length", b"0")]))
            await send({"type": "http.response.body", "body": b""})
            return
        body = await _body(dict(asgi_scope["headers"]), receive)
        # The blanks around a value are none of it; the SDK compares values and keeps them.
        headers = [(name, value.strip(b" \t")) for name, value in asgi_scope["headers"]]
        noted: Message = {**asgi_scope, "headers": headers, ACTOR: actor, RETRY_AFTER: None}
        manager = await self._started()
        await manager.handle_request(noted, _replayed(body, receive), _signed(noted, send))

    async def _started(self) -> StreamableHTTPSessionManager:
        """Give the SDK's manager; one whose tasks have died is replaced."""
        if self._manager is None or self._running is None or self._running.done():
            self._manager = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._manager))
        return await asyncio.shield(self._manager)

    async def _run(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        manager = StreamableHTTPSessionManager(
            self._tools.server(),
            json_response=True,
            stateless=True,
            max_request_body_size=BODY_MAX_BYTES,
        )
        async with manager.run():
            started.set_result(manager)
            await asyncio.get_running_loop().create_future()  # until the loop ends


class _Tools:
    """The memory tools of all callers."""

    def __init__(
        self,
        hub: Hub,
        *,
        handlers: Mapping[str, Handler],
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._hub = hub
        self._handlers = handlers
        self._clock = clock
        self._random_bytes = random_bytes
        self._readers = _Readers(lambda: random_bytes(12).hex())
        self._listed = ListToolsResult(tools=[Tool.model_validate(tool) for tool in listing()])

    def server(self) -> Server[Any]:
        """Describe the tools to the SDK."""
        server: Server[Any] = Server(
            SERVER_NAME,
            version=__version__,
            instructions=INSTRUCTIONS,
            cache_hints={"tools/list": CacheHint(ttl_ms=LIST_KEPT_MS, scope="public")},
            # What the SDK compares headers with that repeat arguments; ours ask for none.
            get_tool_input_schema=lambda name: schema(TOOLS[name]) if name in TOOLS else None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        server.middleware[:] = [self._counted]
        return server

    async def _counted(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Count what is no call of a tool; those are counted where they can be refused as one."""
        if ctx.method == CALL or ctx.request_id is None:
            return await call_next(ctx)
        try:
            with self._hub.counted(_asked_by(ctx), is_search=False):
                return await call_next(ctx)
        except AmuxError as refusal:
            _note(ctx, refusal)
            raise MCPError(INTERNAL_ERROR, refusal.message, refusal.body()) from refusal

    async def _list(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return self._listed

    async def _call(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        call = TOOLS.get(params.name)
        if call is None:
            raise MCPError(INVALID_PARAMS, "unknown tool")
        actor = _asked_by(ctx)
        try:
            with self._hub.counted(actor, is_search=call is TOOLS[f"memory_{SEARCH.name}"]):
                return _block(await self._answer(actor, call, params.arguments or {}))
        except AmuxError as refusal:
            _LOG.info("%s refused: %s", params.name, refusal.code)
            _note(ctx, refusal)
            return _block(_spelled(refusal.body()), is_refusal=True)
        except Exception:
            incident = self._random_bytes(4).hex()
            _LOG.exception("incident %s in %s", incident, params.name)
            bug = Internal(
                "the Hub made a mistake",
                hint="report it with the lines of run/hub.log that name the incident",
                incident=incident,
            )
            return _block(_spelled(bug.body()), is_refusal=True)

    async def _answer(self, actor: Actor, call: Call, given: object) -> str:
        checked = arguments(call, _unicode(given))
        if call is CONTINUE:
            self._hub.resume(actor)
            pages = self._readers.of(actor, self._clock())
            return pages.resume(str(checked["continuation"]), self._clock())
        answer = noted(_spelled(await self._handlers[call.name](actor, checked)))
        return self._readers.of(actor, self._clock()).open(answer, self._clock())


class _Readers:
    """The pages of all callers, each for one credential and whom it works for."""

    def __init__(self, new_handle: Callable[[], str]) -> None:
        self._new_handle = new_handle
        # (alias, principal) -> (pages, when they were last asked for), longest ago first
        self._kept: OrderedDict[tuple[str, str | None], tuple[Pages, float]] = OrderedDict()

    def of(self, actor: Actor, now: float) -> Pages:
        """Give the pages of a caller; those that nobody has asked for in time are dropped."""
        key = (actor.alias, actor.principal)
        pages = self._kept.pop(key)[0] if key in self._kept else Pages(self._new_handle)
        self._kept[key] = (pages, now)
        while (oldest := next(iter(self._kept))) != key:
            is_over = now - self._kept[oldest][1] >= PAGED_KEEP_SECONDS
            if not is_over and len(self._kept) <= READERS_MAX:
                break
            del self._kept[oldest]
        return pages


class _Hushed(logging.Handler):
    """Tells where the SDK complained and of what kind, never what it said."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the place of a record and the class of its exception."""
        kind = record.exc_info[0] if record.exc_info else None
        of_kind = f": {kind.__name__}" if kind else ""
        _LOG.warning("the SDK complained in %s:%d%s", record.name, record.lineno, of_kind)


def _hush(logger: logging.Logger) -> None:
    logger.handlers = [_Hushed(logging.WARNING)]
    logger.propagate = False


def _asked_by(ctx: Context) -> Actor:
    actor: Actor = _scope(ctx)[ACTOR]
    return actor


def _note(ctx: Context, refusal: AmuxError) -> None:
    """Remember for the head of the answer when to ask again."""
    _scope(ctx)[RETRY_AFTER] = refusal.details.get("retry_after")


def _scope(ctx: Context) -> Message:
    """Give the request that a message came in."""
    if ctx.request is None:
        raise TypeError("the SDK has lost the request")
    asgi_scope: Message = ctx.request.scope
    return asgi_scope


def _block(text: str, *, is_refusal: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_refusal)


def _spelled(value: object) -> str:
    return to_json(value).decode("utf-8")


def _unicode(given: object) -> object:
    """Refuse an unpaired surrogate, which the SDK lets pass."""
    try:
        to_json(given)
    except UnicodeEncodeError as error:
        raise InvalidArgument("the text is not Unicode", hint="send UTF-8") from error
    return given


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Read a body within its limits of size and time."""
    if int(headers.get(b"content-length", b"0")) > BODY_MAX_BYTES:
        raise _too_large()
    body = bytearray()
    is_whole = False
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while not is_whole:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise InvalidArgument("the body ended early")  # nobody is there to read this
                body += message.get("body", b"")
                if len(body) > BODY_MAX_BYTES:
                    raise _too_large()
                is_whole = not message.get("more_body", False)
    except TimeoutError as error:
        raise Unavailable(
            f"the request did not arrive within {BODY_SECONDS:g} s",
            hint="nothing was changed; send it again",
        ) from error
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Hand a body that was read already to who reads next."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return parts.pop() if parts else await receive()

    return replay


def _signed(asgi_scope: Message, send: Send) -> Send:
    """Put our own headers on the SDK's answer."""

    async def signed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            after = asgi_scope[RETRY_AFTER]
            if isinstance(after, int | float):
                headers.append((b"retry-after", b"%d" % -(-after // 1)))
            message = _start(message["status"], headers)
        await send(message)

    return signed


def _start(status: int, headers: list[tuple[bytes, bytes]]) -> Message:
    version = (VERSION_HEADER.encode("ascii"), __version__.encode("ascii"))
    return {"type": "http.response.start", "status": status, "headers": [*headers, version]}


def _too_large() -> LimitExceeded:
    return LimitExceeded(
        f"a request body may have {BODY_MAX_BYTES} bytes",
        hint="split the document by topic",
        max_bytes=BODY_MAX_BYTES,
    )
