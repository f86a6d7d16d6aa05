"""The story that docs/tasks.md tells is run as it stands, from its first line to its last."""

import json
from pathlib import Path

import pytest

from scripts import machines
from tests.docs.shell import Shell
from tests.docs.test_commands import ROOT, SHELL_BLOCK

PAGE = ROOT / "docs" / "tasks.md"


@pytest.mark.slow
def test_the_story_of_a_task_is_true(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.cwd / ".git").mkdir()
    blocks = SHELL_BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    done = shell.run("set -e\n" + "".join(blocks))
    assert done.returncode == 0, (done.stdout, done.stderr)
    shown, listed = map(json.loads, done.stdout.splitlines())
    assert shown["owner"]["agent"] == "pi"
    assert [task["status"] for task in listed["tasks"]] == ["active"]
    assert (shell.cwd / "late.json").read_text(encoding="utf-8").count("lease_lost") == 1
    receipt = json.loads((shell.cwd / "finished.json").read_text(encoding="utf-8"))
    roles = {one["role"] for one in receipt["receipt"]["evidence"]}
    assert roles == {"ecr", "report", "memory", "completion"}


@pytest.mark.parametrize("name", machines.MACHINES)
def test_a_diagram_has_an_arrow_for_each_row_of_its_table(name: str) -> None:
    lines = machines.diagram(name).splitlines()
    assert lines[:2] == ["```mermaid", "stateDiagram-v2"]
    assert len(lines[2:-1]) == len(list(machines.MACHINES[name]()))
