"""The official MCP clients against a real Hub, through `amux mcp` and at `/mcp`: one scenario."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.peers import UNKNOWN, At, peer
from tests.support.hub import RunningHub
from tests.support.mcp_lines import environment
from tests.support.network import network_hub, person, port_of

PEERS = [
    "python:session",
    "python:legacy",
    "python:auto",
    "sdk:legacy",
    "client:legacy",
    "client:auto",
    "inspector:legacy",
    "inspector:auto",
]
FIVE = ["memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue"]
CHINESE = '# 用户偏好\r\n\r\n缩进用四个空格，回答要简短。\u2028 e\u0301 😀 "引号" \\ \t\n'


@pytest.fixture(scope="module")
def hub() -> Iterator[RunningHub]:
    home = Path(tempfile.mkdtemp(prefix="amux-peers-"))
    with network_hub(home, listen="127.0.0.1:0") as started:
        yield started
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def token(hub: RunningHub) -> str:
    return person(hub)


@pytest.fixture(params=["stdio", "http"])
def at(request: pytest.FixtureRequest, hub: RunningHub, token: str) -> At:
    if request.param == "stdio":
        return At(environment(hub.home))
    return At(environment(hub.home), f"http://127.0.0.1:{port_of(hub)}/mcp", token)


@pytest.fixture(params=PEERS)
def client(request: pytest.FixtureRequest, at: At, tmp_path: Path) -> Iterator[Any]:
    with peer(request.param, at, tmp_path) as connected:
        connected.folder = f"{request.param.replace(':', '-')}-{'http' if at.url else 'stdio'}"
        yield connected


def answer(shown: tuple[str, bool]) -> dict[str, Any]:
    text, is_refusal = shown
    assert not is_refusal, text
    return dict(json.loads(text))


def refusal(shown: tuple[str, bool]) -> dict[str, Any]:
    text, is_refusal = shown
    assert is_refusal, text
    assert "\n" not in text
    return dict(json.loads(text)["error"])


@pytest.mark.slow
@pytest.mark.requirement("row-10", "M55", "M58", "M59", "M60")
def test_a_client_connects_and_lists_the_five_tools(client: Any) -> None:
    about = client.about()
    if about:
        assert about["server"]["name"] == "amux"
        assert "tools" in about["capabilities"]
        assert about["instructions"]
        # `auto` finds the newest revision where it is served: at `/mcp`.
        is_newest = client.folder == "python-auto-http"
        newest = "2026-07-28" if is_newest else "2025-11-25"
        assert about.get("version", newest) == newest
    tools = client.tools()
    assert [tool["name"] for tool in tools] == FIVE
    by_name = {tool["name"]: tool["annotations"] for tool in tools}
    assert by_name["memory_upsert"]["destructiveHint"] is False
    assert by_name["memory_forget"]["destructiveHint"] is True
    assert client.tools() == tools
    assert client.unknown_tool() == UNKNOWN
    assert list(client.strays) == []


@pytest.mark.slow
@pytest.mark.requirement("row-10", "M19", "M21", "M32", "M57")
def test_a_client_writes_reads_finds_replaces_and_forgets_a_document(client: Any) -> None:
    path = f"{client.folder}/偏好.md"
    missing = answer(client.call("memory_get", {"path": path}))
    assert (missing["exists"], missing["revision"]) == (False, "absent")

    first = answer(
        client.call(
            "memory_upsert", {"path": path, "content": CHINESE, "expected_revision": "absent"}
        )
    )
    assert first["revision"] == hashlib.sha256(CHINESE.encode()).hexdigest()
    found = answer(client.call("memory_get", {"path": path}))
    assert (found["content"], found["revision"]) == (CHINESE, first["revision"])

    hits = answer(
        client.call("memory_search", {"query": "四个空格", "path_prefix": f"{client.folder}/"})
    )["hits"]
    assert [hit["path"] for hit in hits] == [path]

    stale = refusal(
        client.call("memory_upsert", {"path": path, "content": "", "expected_revision": "absent"})
    )
    assert stale["code"] == "revision_conflict"
    assert stale["details"]["observed"] == first["revision"]

    second = answer(
        client.call(
            "memory_upsert",
            {"path": path, "content": "two\n", "expected_revision": first["revision"]},
        )
    )
    forgotten = answer(
        client.call("memory_forget", {"path": path, "expected_revision": second["revision"]})
    )
    assert forgotten["already_absent"] is False
    assert forgotten["kept"]
    assert answer(client.call("memory_get", {"path": path}))["exists"] is False


@pytest.mark.slow
@pytest.mark.requirement("row-10", "M48", "bug-17")
def test_a_client_shows_the_model_each_refusal(client: Any) -> None:
    for tool, arguments, code in (
        ("memory_search", {"query": "x", "project": "x"}, "invalid_argument"),
        ("memory_search", {"query": "x " * 300}, "limit_exceeded"),
        ("memory_get", {"path": "../x.md"}, "invalid_argument"),
        ("memory_get", {}, "invalid_argument"),
        (
            "memory_upsert",
            {"path": "MEMORY.md", "content": "x" * 2049, "expected_revision": "absent"},
            "limit_exceeded",
        ),
        ("result_continue", {"continuation": "gone.1"}, "not_found"),
    ):
        assert refusal(client.call(tool, arguments))["code"] == code


@pytest.mark.slow
@pytest.mark.requirement("row-10", "M57", "M17")
def test_a_client_reads_a_long_document_by_pages_and_offsets(client: Any) -> None:
    path = f"{client.folder}/long.md"
    content = "".join(f'第{n}行：“长文档” \t"quoted" 😀\n' for n in range(500))
    answer(
        client.call(
            "memory_upsert", {"path": path, "content": content, "expected_revision": "absent"}
        )
    )
    if client.folder in {"inspector-legacy-stdio", "inspector-auto-stdio"}:
        # Each of its calls is another `amux mcp`, and pages stay in theirs; the Hub's `/mcp` keeps
        # them for the credential.
        text, is_refusal = client.call("memory_get", {"path": path})
        assert not is_refusal
        continuation = json.loads(text)["continuation"]
        gone = client.call("result_continue", {"continuation": continuation})
        assert refusal(gone)["code"] == "not_found"
        return
    joined, offset, pages = "", 0, 0
    while offset is not None:
        arguments = {"path": path, "offset": offset} if offset else {"path": path}
        text, is_refusal = client.call("memory_get", arguments)
        whole = ""
        while '"continuation"' in text[:60]:
            assert not is_refusal
            assert len(text.encode()) <= 6144
            page = json.loads(text)
            whole += page["text"]
            pages += 1
            if page["continuation"] is None:
                text = whole
                break
            text, is_refusal = client.call(
                "result_continue", {"continuation": page["continuation"]}
            )
        cut = answer((text, is_refusal))
        joined += cut["content"]
        offset = cut["next_offset"] if cut["truncated"] else None
    assert joined == content
    assert pages > 2
