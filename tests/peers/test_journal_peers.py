"""The official MCP clients against the journal's tools of `amux mcp`: listed, called, refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amux.journal.call.tools import DEFAULT, NOTE
from tests.peers.peers import At, InspectorPeer, peer
from tests.peers.test_peers import FIVE, PEERS, answer, refusal
from tests.support.mcp_lines import environment
from tests.support.workspaces import project, tree

TEXT = '缩进用四个空格\u2028 e\u0301 😀 "引号" \\ \t — ' + "x" * 7_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    project(tmp_path / "here", ".")
    (tmp_path / "here" / ".devcodex").mkdir()
    return tmp_path / "here"


@pytest.fixture(params=PEERS)
def client(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> Iterator[Any]:
    # No Hub runs here and none may be started: the journal needs none.
    env = environment(tmp_path / "amux", AMUX_WORKSPACE=str(workspace), AMUX_AGENT="codex")
    with peer(request.param, At(env), tmp_path) as connected:
        yield connected


@pytest.mark.slow
@pytest.mark.requirement("J1", "J70", "J8", "M57")
def test_a_client_lists_the_journals_tools_and_calls_them(client: Any, workspace: Path) -> None:
    keeps_its_process = not isinstance(client, InspectorPeer)
    shown = {tool["name"]: tool for tool in client.tools()}
    assert list(shown) == [*FIVE, *DEFAULT]
    assert shown["memory_status"]["annotations"]["readOnlyHint"] is True
    assert shown["memory_session_write"]["annotations"]["destructiveHint"] is False

    refused = refusal(client.call("memory_summary_query", {}))
    assert refused["code"] == "invalid_argument"
    if keeps_its_process:
        assert refused["details"]["reason"] == "CONTEXT_BINDING_REQUIRED"

    receipt = answer(
        client.call("memory_session_write", {"title": "标题", "content": TEXT, "row": "做完了"})
    )
    assert receipt["opened"] is True
    status = answer(client.call("memory_status", {}))
    assert status["latestRows"][0]["summary"] == "做完了"
    assert status["note"] == NOTE
    (day,) = [name for name in tree(workspace) if name.endswith(".md") and "/tasks/" in name]
    assert TEXT in (workspace / day).read_text(encoding="utf-8")

    if keeps_its_process:
        page = answer(client.call("memory_session_query", {}))
        whole = page["text"]
        while page["continuation"]:
            page = answer(client.call("result_continue", {"continuation": page["continuation"]}))
            whole += page["text"]
        assert TEXT in json.loads(whole)["matches"][0]["content"]
