"""The journal's tools in `tools/list`: where they are offered, and for how long."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from amux.core.text import to_json
from amux.journal.call.tools import CHILD, DEFAULT, EVERY
from tests.support.mcp_fake import FakeHub, status
from tests.support.mcp_lines import McpProcess, environment
from tests.support.workspaces import layout, project
from tests.surface.mcp.test_start import FORBIDDEN, LINES

MEMORY = ["memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue"]


def listed(home: Path, where: Path, *words: str, **env: str) -> list[str]:
    with McpProcess(home, *words, cwd=where, **env) as mcp:
        mcp.initialize()
        return mcp.tools()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    project(tmp_path / "here", ".")
    (tmp_path / "here" / ".devcodex").mkdir()
    return tmp_path / "here"


@pytest.mark.requirement("J70", "M55")
def test_both_sets_are_offered_where_a_workspace_is(home: Path, workspace: Path) -> None:
    below = workspace / "src" / "deep"
    below.mkdir(parents=True)
    assert listed(home, below) == [*MEMORY, *DEFAULT]


@pytest.mark.requirement("J70", "M55")
def test_only_memorys_are_offered_elsewhere(home: Path, tmp_path: Path) -> None:
    project(tmp_path, ".")  # row 4: a repository in which nobody has set a workspace up
    assert listed(home, tmp_path) == MEMORY


@pytest.mark.requirement("J70")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--tools", "memory"), MEMORY),
        (("--tools", "journal"), ["result_continue", *DEFAULT]),
        (("--tools", "both"), [*MEMORY, *DEFAULT]),
        (("--tools", "all"), [*MEMORY, *EVERY]),
        (("--tools", "none"), []),
    ],
)
def test_a_set_that_is_told_overrides(
    home: Path, tmp_path: Path, workspace: Path, words: tuple[str, ...], wanted: list[str]
) -> None:
    for where in (workspace, tmp_path):
        assert listed(home, where, *words) == wanted


@pytest.mark.requirement("J70", "J12")
def test_the_workspace_is_the_one_that_the_environment_names(
    home: Path, tmp_path: Path, workspace: Path
) -> None:
    assert listed(home, tmp_path, AMUX_WORKSPACE=str(workspace)) == [*MEMORY, *DEFAULT]
    assert listed(home, workspace, AMUX_WORKSPACE=str(tmp_path)) == MEMORY


@pytest.mark.requirement("J70", "J13")
def test_a_broken_layout_hides_nothing(home: Path, workspace: Path) -> None:
    layout(workspace, "{")  # the calls say what is wrong with it
    assert listed(home, workspace) == [*MEMORY, *DEFAULT]


@pytest.mark.requirement("J70")
def test_the_list_is_the_same_for_the_life_of_a_process(home: Path, tmp_path: Path) -> None:
    with McpProcess(home, cwd=tmp_path) as mcp:
        mcp.initialize()
        first = mcp.tools()
        (tmp_path / ".devcodex").mkdir()
        assert mcp.tools() == first == MEMORY
        answer = mcp.request("tools/call", {"name": "memory_status", "arguments": {}})
        assert answer["error"]["code"] == -32602  # an unlisted tool is unknown


@pytest.mark.requirement("J70", "JA44")
def test_a_childs_process_offers_no_writer_but_the_one_for_evidence(
    home: Path, workspace: Path
) -> None:
    lease = f"cwl-{'0' * 32}@{workspace}/.devcodex"
    for words in ((), ("--tools", "all")):
        found = listed(home, workspace, *words, AMUX_CHILD_LEASE=lease)
        assert found == ["result_continue", *CHILD]


@pytest.mark.requirement("JA44", "J70")
def test_what_the_wire_carries_is_as_small_as_the_table_says(home: Path, workspace: Path) -> None:
    with McpProcess(home, "--tools", "journal", cwd=workspace) as mcp:
        mcp.initialize()
        tools = mcp.request("tools/list")["result"]["tools"]
    assert len(to_json([tool for tool in tools if tool["name"] in DEFAULT])) <= 9 * 1024
    json.dumps(tools)


@pytest.mark.requirement("J1")
def test_a_start_with_the_journal_loads_nothing_that_is_slow(home: Path, workspace: Path) -> None:
    with FakeHub(home, status=status(effective=True)):
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "amux", "mcp"],
            input=b"".join(LINES.splitlines(keepends=True)[:3]),
            capture_output=True,
            env=environment(home),
            cwd=workspace,
            timeout=15,
            check=True,
        )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(answers[1]["result"]["tools"]) == 5 + 12
    loaded = {
        line.rpartition("|")[2].strip()
        for line in ended.stderr.decode().splitlines()
        if line.startswith("import time:")
    }
    assert "amux.journal.call.tools" in loaded
    assert not loaded & {*FORBIDDEN, "datetime", "ctypes"}
    assert "amux.journal.desk" not in loaded
