"""`amux.pyz` is the agent's side, the same bytes each time, and needs nothing installed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import pyz


@pytest.mark.requirement("row-13")
def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.pyz", "b.pyz"):
        pyz.build(tmp_path / name)
    assert (tmp_path / "a.pyz").read_bytes() == (tmp_path / "b.pyz").read_bytes()


@pytest.mark.requirement("row-13")
def test_it_holds_the_agents_side_only(tmp_path: Path) -> None:
    pyz.build(tmp_path / "amux.pyz")
    names = set(zipfile.ZipFile(tmp_path / "amux.pyz").namelist())
    assert {"amux/app.py", "amux/client.py", "amux/surface/mcp/server.py"} <= names
    assert not [name for name in names if name.startswith("amux/hub/")]
    assert not names & {"amux/serve.py", "amux/surface/rpc.py", "amux/memory/files.py"}


@pytest.mark.slow
@pytest.mark.requirement("row-13")
@pytest.mark.parametrize("words", [["--version"], ["help"], ["man"], ["mcp", "entry"]])
def test_it_runs_without_site_packages(tmp_path: Path, words: list[str]) -> None:
    pyz.build(tmp_path / "amux.pyz")
    done = subprocess.run(
        [sys.executable, "-S", "-I", tmp_path / "amux.pyz", *words],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
@pytest.mark.requirement("row-13", "J1")
def test_the_journal_and_its_tasks_need_nothing_but_the_file(tmp_path: Path) -> None:
    pyz.build(tmp_path / "amux.pyz")
    (tmp_path / "here" / ".git").mkdir(parents=True)
    admit = ("--instruction", "fix it", "--task-kind", "bugs", "--display-name", "A task")
    for words in (
        ("journal", "write", "--content", "text", "--row", "did it"),
        ("journal", "summary"),
        ("task", "admit", *admit, "--overview", "what it is about"),
        ("task", "show", "--task", "A task"),
        ("workspace", "doctor"),
    ):
        done = subprocess.run(
            [sys.executable, "-S", "-I", tmp_path / "amux.pyz", *words],
            cwd=tmp_path / "here",
            env={"HOME": str(tmp_path), "AMUX_SESSION": "s", "AMUX_AGENT": "codex"},
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        assert json.loads(done.stdout)
