"""The official MCP conformance suite against a Hub's `/mcp`.

The suite sends no credential, so it comes through the owner's socket; what tokens and bindings do
at `/mcp` is told by tests/mcp_http.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.peers import HERE, node
from tests.support.network import network_hub
from tests.support.relay import relay

SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
EXPECTED = HERE / "conformance-expected-failures.yml"
LINE = re.compile(r"  - [a-z0-9-]+:[a-z0-9-]+ # \S.*")
# What of the suite holds for any server with tools; these run whole and none may be missing.
APPLICABLE = {
    "2025-06-18": {"server-initialize", "ping", "tools-list"},
    "2025-11-25": {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"},
    "2026-07-28": {"tools-list", "dns-rebinding-protection", "http-header-validation"},
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    home = Path(tempfile.mkdtemp(prefix="amux-conf-"))
    with relay() as way:
        names = [f"127.0.0.1:{way.port}", f"localhost:{way.port}"]
        with network_hub(home, names=names) as hub:
            way.lead(hub.config.socket_path)
            yield way.port
    shutil.rmtree(home)


def run(port: int, revision: str, results: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            node(), str(SUITE), "server", "--url", f"http://127.0.0.1:{port}/mcp", "--suite", "all",
            "--spec-version", revision, "--output-dir", str(results), *words,
        ],
        capture_output=True,
        timeout=150,
        check=False,
        encoding="utf-8",
    )  # fmt: skip


def failures(checks: list[dict[str, str]]) -> list[str]:
    return [check["id"] for check in checks if check["status"] == "FAILURE"]


@pytest.mark.slow
@pytest.mark.requirement("row-10", "M55", "M58", "M76")
@pytest.mark.parametrize("revision", APPLICABLE)
def test_the_suite_finds_what_is_expected_and_nothing_else(
    port: int, revision: str, tmp_path: Path
) -> None:
    done = run(port, revision, tmp_path, "--expected-failures", str(EXPECTED))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = {
        name: json.loads((folder / "checks.json").read_text(encoding="utf-8"))
        for name in APPLICABLE[revision]
        for folder in tmp_path.glob(f"server-{name}-2*")
    }
    assert set(found) == APPLICABLE[revision]
    for name, checks in found.items():
        assert checks, name
        assert not failures(checks), name


def test_each_expected_failure_stands_with_its_reason() -> None:
    text = EXPECTED.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("  - ")]
    assert rows
    assert [row for row in rows if not LINE.fullmatch(row)] == []
    assert len({row.split(" # ")[0] for row in rows}) == len(rows)
