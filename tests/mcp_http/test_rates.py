"""How much at once: `/mcp` counts each call of a credential, and says when to ask again."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from amux import compose, config
from amux.core.identity import Actor, Caller
from amux.surface.mcp_http import Endpoint
from tests.support.hub import RunningHub
from tests.support.mcp_http import Remote, shown
from tests.support.network import bound

Message = MutableMapping[str, Any]


@pytest.mark.slow
@pytest.mark.requirement("M76")
def test_a_delegated_credential_that_writes_without_end_is_told_when_to_go_on(
    hub: RunningHub, port: int
) -> None:
    remote = Remote(port, *bound(hub, "s-writes"))

    def write(number: int) -> tuple[str, str | None]:
        reply = remote.reply(
            "memory_upsert", path=f"w/{number}.md", content="", expected_revision="absent"
        )
        text, is_refusal = shown(reply)
        code = json.loads(text)["error"]["code"] if is_refusal else "ok"
        return code, reply.headers.get("retry-after")

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(write, range(200)))
    refused = {after for code, after in found if code == "rate_limited"}
    assert refused == {"1"}
    written = [after for code, after in found if code == "ok"]
    assert len(written) >= 60  # the burst
    assert set(written) == {None}
    # What a credential may not do any more another still may.
    other = Remote(port, *bound(hub, "s-writes-too"))
    write_one = {"path": "w/other.md", "content": "", "expected_revision": "absent"}
    assert other.code("memory_upsert", **write_one) == "ok"


class Held:
    """An endpoint on a real Hub whose reads are held until they are let go."""

    def __init__(self, home: Path) -> None:
        self._stack = ExitStack()
        settings = config.load({"AMUX_HOME": str(home)})
        root = self._stack.enter_context(compose.owned(settings))
        hub = self._stack.enter_context(
            compose.hub(
                settings,
                root,
                clock=time.monotonic,
                now=lambda: datetime.now(UTC),
                socket_path="",
                stop=lambda: None,
                fail=lambda: None,
            )
        )
        # Not the owner's socket: who comes by that is counted by nobody.
        owner = hub.enter(Caller(uid=os.geteuid(), surface="rpc"))
        made = hub.administration.call(owner, "token_create", {"kind": "person"})
        self.actor = hub.enter(Caller(uid=None, token=str(made["token"]), surface="mcp"))
        self.begun = 0
        self.let_go = asyncio.Event()
        handlers: dict[str, Callable[..., Awaitable[dict[str, object]]]] = {
            "search": self._hold, "get": self._hold,
        }  # fmt: skip
        self.endpoint = Endpoint(
            hub, handlers=handlers, clock=time.monotonic, random_bytes=os.urandom
        )

    def close(self) -> None:
        self._stack.close()

    async def _hold(self, _actor: Actor, _given: object) -> dict[str, object]:
        self.begun += 1
        await self.let_go.wait()
        return {"held": True}

    async def ask(self, method: str, **params: object) -> tuple[dict[str, Any], dict[bytes, bytes]]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json"), (b"accept", b"application/json")]
        asgi_scope = {
            "type": "http", "method": "POST", "path": "/mcp", "query_string": b"",
            "headers": headers,
        }  # fmt: skip
        await self.endpoint(self.actor, asgi_scope, receive, send)
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        return json.loads(answer), dict(sent[0]["headers"])

    async def begin(self, count: int, tool: str, **arguments: object) -> list[asyncio.Task[Any]]:
        """Begin calls, and return when all of them are held."""
        before = self.begun
        tasks = [
            asyncio.create_task(self.ask("tools/call", name=tool, arguments=arguments))
            for _ in range(count)
        ]
        deadline = time.monotonic() + 15
        while self.begun < before + count:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)
        return tasks


def code(answer: dict[str, Any]) -> str:
    result = answer["result"]
    text = json.loads(result["content"][0]["text"])
    return str(text["error"]["code"]) if result["isError"] else "ok"


@pytest.mark.requirement("M76")
def test_a_third_search_and_a_ninth_call_at_once_are_refused_whatever_they_ask(
    folder: Path,
) -> None:
    async def scenario(held: Held) -> None:
        searches = await held.begin(2, "memory_search", query="x")
        answer, headers = await held.ask(
            "tools/call", name="memory_search", arguments={"query": "x"}
        )
        assert (code(answer), headers[b"retry-after"]) == ("rate_limited", b"1")
        gets = await held.begin(6, "memory_get", path="a.md")
        answer, headers = await held.ask(
            "tools/call", name="memory_get", arguments={"path": "a.md"}
        )
        assert (code(answer), headers[b"retry-after"]) == ("rate_limited", b"1")
        answer, headers = await held.ask("tools/list")
        assert answer["error"]["data"]["error"]["code"] == "rate_limited"
        assert headers[b"retry-after"] == b"1"
        held.let_go.set()
        for answer, headers in await asyncio.gather(*searches, *gets):
            assert code(answer) == "ok"
            assert b"retry-after" not in headers
        answer, _ = await held.ask("tools/call", name="memory_search", arguments={"query": "x"})
        assert code(answer) == "ok"

    async def whole() -> None:
        held = Held(folder)
        try:
            async with asyncio.timeout(60):
                await scenario(held)
        finally:
            held.close()

    asyncio.run(whole())
