"""When the SDK is loaded, what that costs, and what its log lines do not say."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from amux.core.identity import Actor
from amux.errors import Unavailable
from amux.surface import deferred, mcp_http
from amux.surface.deferred import Deferred
from tests.support.hub import RunningHub, running_hub
from tests.support.mcp_http import NEWEST, Remote
from tests.support.network import network_hub, person, port_of

Message = MutableMapping[str, Any]
IDLE_MAX_KIB = 80 * 1024
SOMEBODY = Actor(
    alias="unix:1", principal="p", kind="person", verbs=("read",), surface="mcp", is_owner=False
)


def has_loaded(hub: RunningHub) -> bool:
    assert hub.process is not None
    maps = Path(f"/proc/{hub.process.pid}/maps").read_text(encoding="utf-8")
    return "pydantic_core" in maps


def resident_kib(hub: RunningHub) -> int:
    assert hub.process is not None
    status = Path(f"/proc/{hub.process.pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.requirement("M55")
def test_a_hub_that_nobody_asks_loads_no_sdk_and_with_it_stays_small(folder: Path) -> None:
    with running_hub(folder) as hub:
        hub.ask("search", query="x")
        assert not has_loaded(hub)
        remote = Remote(0, socket_path=hub.config.socket_path)
        assert remote.code("memory_get", path="MEMORY.md") == "ok"  # the first request waits
        assert has_loaded(hub)
        assert resident_kib(hub) < IDLE_MAX_KIB


@pytest.mark.slow
@pytest.mark.requirement("M55")
def test_a_hub_on_a_network_loads_it_before_anybody_asks_and_answers_meanwhile(
    folder: Path,
) -> None:
    with network_hub(folder, listen="127.0.0.1:0") as hub:
        wait_until(lambda: has_loaded(hub))
        assert hub.ask("get", path="MEMORY.md")["exists"] is False
        assert Remote(port_of(hub), person(hub)).rpc("tools/list").status == 200


async def nothing(*_: object) -> None:
    return None


def ask(face: Deferred) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    asyncio.run(face(SOMEBODY, {}, receive, nothing))


def test_a_face_is_loaded_once_however_many_ask_at_once() -> None:
    loads = []

    async def scenario() -> None:
        face = Deferred(lambda: loads.append(1) or nothing)  # type: ignore[func-returns-value]
        await asyncio.gather(*(face(SOMEBODY, {}, nothing, nothing) for _ in range(20)))  # type: ignore[arg-type]

    asyncio.run(scenario())
    assert loads == [1]


def test_a_load_that_failed_is_tried_anew() -> None:
    tries = []

    def load() -> deferred.Face:
        tries.append(1)
        if len(tries) == 1:
            raise ImportError
        return nothing

    async def scenario() -> None:
        face = Deferred(load)
        with pytest.raises(ImportError):
            await face(SOMEBODY, {}, nothing, nothing)  # type: ignore[arg-type]
        await face(SOMEBODY, {}, nothing, nothing)  # type: ignore[arg-type]

    asyncio.run(scenario())
    assert len(tries) == 2


def test_waiting_for_a_load_has_an_end_and_who_comes_later_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deferred, "LOAD_SECONDS", 0.05)
    go = threading.Event()

    def load() -> deferred.Face:
        assert go.wait(15)
        return nothing

    async def scenario() -> None:
        face = Deferred(load)
        with pytest.raises(Unavailable):
            await face(SOMEBODY, {}, nothing, nothing)  # type: ignore[arg-type]
        go.set()
        deadline = time.monotonic() + 15
        while True:
            try:
                await face(SOMEBODY, {}, nothing, nothing)  # type: ignore[arg-type]
            except Unavailable:
                assert time.monotonic() < deadline
            else:
                return

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.requirement("M73", "M75")
def test_what_a_client_sends_and_the_sdk_dislikes_is_in_no_log(folder: Path) -> None:
    marker = "geheim-7f3a"
    hub = RunningHub(folder).enable()
    assert hub.cli("hub", "start").returncode == 0
    try:
        remote = Remote(0, socket_path=hub.config.socket_path)
        broken = f'{{"jsonrpc":"2.0","id":[{marker!r}],"method":"{marker}"}}'.encode()
        for body in (marker.encode(), broken, b'{"jsonrpc":"2.0","method":"' + marker.encode()):
            for version in ("2025-11-25", NEWEST, marker):
                remote.post(body, **{"MCP-Protocol-Version": version})
        remote.rpc("tools/call", {"name": marker, "arguments": {marker: marker}})
        remote.rpc("tools/call", {"name": "memory_search", "arguments": {"query": marker}})
        remote.rpc("tools/call", {"name": "memory_search", "arguments": {marker: marker}})
        remote.rpc("notifications/cancelled", {"requestId": marker, "reason": marker})
        remote.rpc("tools/list", {"cursor": [marker]}, Mcp_Session_Id=marker)
        remote.rpc("tools/list", Authorization=f"Bearer {marker}")
    finally:
        hub.cli("hub", "stop")
    for file in folder.rglob("*"):
        if file.is_file():
            assert marker.encode() not in file.read_bytes(), file


def test_the_sdk_complains_by_place_and_kind_only(caplog: pytest.LogCaptureFixture) -> None:
    mcp_http._hush(logging.getLogger("mcp"))
    caplog.set_level(logging.INFO)
    try:
        raise ValueError("secret words")
    except ValueError:
        logging.getLogger("mcp.server.somewhere").exception("more secret %s", "words")
    assert "mcp.server.somewhere" in caplog.text
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
