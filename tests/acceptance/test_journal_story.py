"""Two agents and one task, through MCP: what the one leaves, the other finds and ends (JA43)."""

from pathlib import Path

import pytest

from tests.support.journal_story import tell
from tests.support.workspaces import tree

CALLS_MAX = 14
ARGUMENTS_MAX_BYTES = 5_120


@pytest.mark.requirement("JA43")
def test_what_one_agent_leaves_another_finds_and_ends(tmp_path: Path) -> None:
    base = tmp_path / "billing"
    cost = tell(base, tmp_path / "amux")
    assert cost.calls <= CALLS_MAX
    assert cost.bytes <= ARGUMENTS_MAX_BYTES
    days = [name for name in tree(base / ".devcodex/.memory") if name.endswith(".md")]
    assert any("claude-code" in name for name in days)
    assert any("codex/" in name for name in days)
