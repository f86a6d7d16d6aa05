"""What starts cost: the command line, the MCP server, the Hub; and what the Hub weighs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import Figure, paired
from bench.search import LEARN_SECONDS, TERMS, write_scope
from bench.wire import Wire
from tests.support.hub import RunningHub, running_hub

ROUNDS = 25
READY_SECONDS = 0.200
IDLE_MIB = 80
SEARCHED_MIB = 160
AMUX = str(Path(sys.prefix) / "bin" / "amux")
BARE = [sys.executable, "-c", "pass"]


def figures() -> Iterator[Figure]:
    """Measure whole processes, from their start."""
    with tempfile.TemporaryDirectory(prefix="amux-bench-") as folder:
        home = Path(folder) / "home"
        with running_hub(home) as hub:
            hub.ask("upsert", path="a.md", content="x" * 2048, expected_revision="absent")
            show = [AMUX, "memory", "show", "a.md"]
            ours, bare = paired(whole(hub, show), whole(hub, BARE), rounds=ROUNDS)
            yield Figure(
                name="amux memory show, whole process",
                ours=ours * 1000, peer=bare * 1000, unit="ms", bound=3.0,
                of="python -c pass of the same venv",
            )  # fmt: skip
            ours, bare = paired(listing(hub, [AMUX, "mcp"]), whole(hub, BARE), rounds=ROUNDS)
            yield Figure(
                name="amux mcp, start to tools/list",
                ours=ours * 1000, peer=bare * 1000, unit="ms", bound=4.0,
                of="python -c pass of the same venv",
            )  # fmt: skip
            workspace = Path(folder) / "workspace"
            (workspace / ".devcodex").mkdir(parents=True)
            here = {"AMUX_WORKSPACE": str(workspace)}
            ours, bare = paired(
                listing(hub, [AMUX, "mcp"], **here), whole(hub, BARE), rounds=ROUNDS
            )
            yield Figure(
                name="amux mcp with the journal, start to tools/list (JP10)",
                ours=ours * 1000, peer=bare * 1000, unit="ms", bound=3.0,
                of="python -c pass of the same venv",
            )  # fmt: skip
            sdk = [sys.executable, "-m", "bench.sdk_server"]
            ours, peer = paired(listing(hub, [AMUX, "mcp"]), listing(hub, sdk), rounds=7, warm_up=1)
            yield Figure(
                name="amux mcp, start to tools/list",
                ours=ours * 1000, peer=peer * 1000, unit="ms", bound=1 / 12,
                of="the official SDK's stdio server",
            )  # fmt: skip
            yield ready(hub)
        yield from weight(Path(folder) / "full")


def whole(hub: RunningHub, command: list[str]) -> Callable[[], object]:
    """Give a run of a whole process."""
    return lambda: subprocess.run(
        command, env=hub.environment, stdout=subprocess.DEVNULL, check=True
    )


def listing(hub: RunningHub, command: list[str], **more: str) -> Callable[[], object]:
    """Give a run of an MCP server from its start to its list of tools."""
    client = {"name": "bench", "version": "1"}
    initialize = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]

    def run() -> None:
        server = subprocess.Popen(
            command,
            env={**hub.environment, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        for line in lines:
            server.stdin.write(json.dumps(line).encode() + b"\n")
            server.stdin.flush()
            if line.get("id"):
                answer = json.loads(server.stdout.readline())
        run.ended.append(server)  # type: ignore[attr-defined]
        assert answer["result"]["tools"]

    run.ended = []  # type: ignore[attr-defined]

    def timed() -> None:
        while run.ended:  # type: ignore[attr-defined]
            server = run.ended.pop()  # type: ignore[attr-defined]
            server.kill()
            server.communicate()
        run()

    return timed


def ready(hub: RunningHub) -> Figure:
    """Measure from the start of a Hub's process to its first answer."""
    times = []
    for _ in range(9):
        hub.kill()
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "amux", "hub", "serve"],
            env=hub.environment,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                Wire(hub.config.socket_path).call("get", path="a.md")()
                break
            except OSError:
                time.sleep(0.001)
        times.append(time.perf_counter() - begun)
        process.kill()
        process.wait()
    return Figure(
        name="Hub ready for RPC",
        ours=sorted(times)[len(times) // 2] * 1000,
        peer=None,
        unit="ms",
        bound=READY_SECONDS * 1000,
        of="from the start of its process, median of 9",
    )


def weight(home: Path) -> Iterator[Figure]:
    """Measure what a Hub holds resident, idle and with a full scope searched."""
    write_scope(home / "memory" / "global", 16)
    with running_hub(home) as hub:
        assert hub.process is not None
        yield _resident(hub.process.pid, "idle", IDLE_MIB)
        wire = Wire(hub.config.socket_path)
        for terms in TERMS.values():
            for _ in range(3):
                wire.call("search", query=" ".join(terms))()
        time.sleep(LEARN_SECONDS)
        yield _resident(hub.process.pid, "a full scope searched", SEARCHED_MIB)


def _resident(pid: int, what: str, bound: int) -> Figure:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    mib = pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
    return Figure(
        name=f"Hub resident, {what}",
        ours=mib,
        peer=None,
        unit="MiB",
        bound=bound,
        of="16 MiB scope",
    )
