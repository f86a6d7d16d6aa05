"""`amux mcp` in a process of its own, driven by lines: no SDK between the test and the bytes."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

WAIT_SECONDS = 15.0


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        # An agent's shell sets neither; unbuffered streams would hide what ours must flush.
        if not name.startswith(("AMUX_", "PYTHONDONTWRITE", "PYTHONUNBUFFERED"))
    }
    return kept | {"AMUX_HOME": str(home), "AMUX_NO_AUTOSTART": "1"} | more


class McpProcess:
    """One `amux mcp`, its answers collected by a thread so that every wait has an end."""

    def __init__(
        self,
        home: Path,
        *words: str,
        output: int = subprocess.PIPE,
        launcher: tuple[str, ...] = (),
        cwd: Path | None = None,
        **env: str,
    ) -> None:
        self.born = time.monotonic()
        self.process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "amux", "mcp", *words],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.PIPE,
            env=environment(home, **env),
            cwd=cwd,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._kept: list[dict[str, object]] = []
        self._next = 0
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)

    def send(self, line: bytes | dict[str, object] | list[object]) -> None:
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, seconds: float = WAIT_SECONDS) -> dict[str, object]:
        """Give the next message, whatever it is; it must be one line of JSON-RPC."""
        line = self._lines.get(timeout=seconds)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, id: int | str | None, seconds: float = WAIT_SECONDS) -> dict[str, object]:  # noqa: A002
        """Give the answer of one request; others that come first are kept for their askers."""
        deadline = time.monotonic() + seconds
        while True:
            for message in self._kept:
                if message.get("id") == id:
                    self._kept.remove(message)
                    return message
            self._kept.append(self.receive(max(0.0, deadline - time.monotonic())))

    def ask(self, method: str, params: dict[str, object] | None = None) -> int:
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method}
        self.send(request if params is None else request | {"params": params})
        return self._next

    def request(
        self,
        method: str,
        params: dict[str, object] | None = None,
        seconds: float = WAIT_SECONDS,
    ) -> dict[str, object]:
        return self.answer(self.ask(method, params), seconds)

    def initialize(self, version: str = "2025-11-25", client: str = "test") -> dict[str, object]:
        introduction = self.request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": client, "version": "0"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return introduction["result"]

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]

    def call(
        self, name: str, seconds: float = WAIT_SECONDS, /, **arguments: object
    ) -> tuple[str, bool]:
        """Call a tool: the text of its one block, and whether it is a refusal."""
        answer = self.request("tools/call", {"name": name, "arguments": arguments}, seconds)
        return block(answer)

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def finish(self, seconds: float = WAIT_SECONDS) -> tuple[int, bytes]:
        """Close the input and wait: exit status and what stood on standard error."""
        self.end_input()
        status = self.process.wait(seconds)
        assert self.process.stderr is not None
        return status, self.process.stderr.read()

    def __enter__(self) -> "McpProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def block(answer: dict[str, object]) -> tuple[str, bool]:
    result = answer["result"]
    (content,) = result["content"]
    assert content["type"] == "text"
    assert "structuredContent" not in result
    return content["text"], result.get("isError", False)


def code(text: str) -> str:
    """Give the code of a refusal that stands in a tool's text: one line, one body."""
    assert "\n" not in text
    return json.loads(text)["error"]["code"]
