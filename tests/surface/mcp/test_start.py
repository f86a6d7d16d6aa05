"""The start of `amux mcp`: what it loads, and how long an agent waits for the tools."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.mcp_fake import FakeHub, says, status
from tests.support.mcp_lines import McpProcess, environment

# Each costs 4 to 50 ms, in every session of every agent.
FORBIDDEN = {
    *("argparse", "asyncio", "concurrent.futures", "dataclasses", "email", "hashlib", "http"),
    *("http.client", "inspect", "logging", "pathlib", "random", "secrets", "ssl", "subprocess"),
    *("tempfile", "tomllib", "typing", "urllib", "uuid", "mcp", "pydantic", "anyio"),
}
LINES = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":'
    b'{"name":"memory_get","arguments":{"path":"a.md"}}}\n'
)


@pytest.mark.requirement("M55", "bug-21")
def test_a_conversation_with_a_running_hub_loads_nothing_that_is_slow(home: Path) -> None:
    with FakeHub(home, status=status(effective=True), get=says("x" * 7000)):
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "amux", "mcp"],
            input=LINES,
            capture_output=True,
            env=environment(home),
            timeout=15,
            check=True,
        )
    assert ended.stdout.count(b"\n") == 3
    loaded = {
        line.rpartition("|")[2].strip()
        for line in ended.stderr.decode().splitlines()
        if line.startswith("import time:")
    }
    assert "amux.surface.mcp.memory" in loaded
    # runpy, which `-m` needs and the installed script does not, is no part of the start.
    assert not loaded & FORBIDDEN


@pytest.mark.slow
@pytest.mark.requirement("M56", "bug-21")
def test_the_tools_are_listed_within_four_bare_starts_of_python(home: Path) -> None:
    bare, listed = [], []
    with FakeHub(home, status=status(effective=True)):
        for _ in range(15):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True, env=environment(home))
            bare.append(time.perf_counter() - start)
            start = time.perf_counter()
            with McpProcess(home) as mcp:
                mcp.ask("initialize", {"protocolVersion": "2025-11-25"})
                assert len(mcp.tools()) == 5
                listed.append(time.perf_counter() - start)
    # Pairs, and the better half: two other workers may have the cores.
    ratios = sorted(one / other for one, other in zip(listed, bare, strict=True))
    assert statistics.median(ratios[:8]) <= 4.0, (bare, listed)
