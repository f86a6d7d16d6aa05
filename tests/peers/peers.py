"""Official MCP clients, each behind the same few calls, so that one scenario drives them all.

None of them shares a line of code with `amux mcp`: what they accept is what agents accept. The
Python SDK is on both ends at `/mcp`; there the others are the judges.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

import anyio.from_thread
import mcp
import mcp.client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

HERE = Path(__file__).parent
SERVER = [sys.executable, "-m", "amux", "mcp"]
UNKNOWN = -32602


class At:
    """Where a server is: `amux mcp` in an environment, or a Hub's `/mcp` for a token."""

    def __init__(self, environment: dict[str, str], url: str = "", token: str = "") -> None:
        self.environment = environment
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"}

    @property
    def target(self) -> list[str]:
        return [self.url] if self.url else SERVER


class Peer(Protocol):
    """What the scenario asks of a client."""

    def about(self) -> dict[str, Any]: ...

    def tools(self) -> list[dict[str, Any]]: ...

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Give the text of the one block, and whether it is a refusal."""
        ...

    def unknown_tool(self) -> int:
        """Call a tool that there is none of; give the error code."""
        ...


def node() -> str:
    """Give the Node that `make peers` chose; a missing one is a failure, never a skip."""
    chosen = HERE / "node_modules" / ".node"
    assert chosen.is_file(), "the official clients are not installed: run `make peers`"
    return chosen.read_text().strip()


def _one_block(result: dict[str, Any]) -> tuple[str, bool]:
    (block,) = result["content"]
    assert block["type"] == "text"
    assert result.get("structuredContent") is None
    return block["text"], bool(result.get("isError"))


class PythonPeer:
    """The Python SDK: `ClientSession`, or `Client` in one of its modes."""

    def __init__(self, mode: str, at: At) -> None:
        self._mode = mode
        self._at = at
        self._stack = ExitStack()
        self.strays: list[object] = []

    def __enter__(self) -> "PythonPeer":
        self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._client = self._stack.enter_context(
            self._portal.wrap_async_context_manager(self._connected())
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.asynccontextmanager
    async def _connected(self) -> Any:
        async def stray(message: object) -> None:
            self.strays.append(message)

        async with contextlib.AsyncExitStack() as stack:
            if self._at.url:
                http = await stack.enter_async_context(
                    create_mcp_http_client(headers=self._at.headers)
                )
                transport: Any = streamable_http_client(self._at.url, http_client=http)
            else:
                transport = stdio_client(
                    StdioServerParameters(
                        command=SERVER[0], args=SERVER[1:], env=self._at.environment
                    )
                )
            if self._mode == "session":
                read, write = await stack.enter_async_context(transport)
                session = await stack.enter_async_context(
                    mcp.ClientSession(read, write, message_handler=stray)
                )
                self._about = await session.initialize()
                yield session
            else:
                yield await stack.enter_async_context(
                    mcp.Client(transport, mode=self._mode, message_handler=stray)
                )

    def about(self) -> dict[str, Any]:
        if self._mode == "session":
            return {
                "version": self._about.protocol_version,
                "server": self._about.server_info.model_dump(exclude_none=True),
                "capabilities": self._about.capabilities.model_dump(exclude_none=True),
                "instructions": self._about.instructions,
            }
        return {
            "version": self._client.protocol_version,
            "server": self._client.server_info.model_dump(exclude_none=True),
            "capabilities": self._client.server_capabilities.model_dump(exclude_none=True),
            "instructions": self._client.instructions,
        }

    def tools(self) -> list[dict[str, Any]]:
        listed = self._portal.call(self._client.list_tools)
        return [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools]

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        result = self._portal.call(self._client.call_tool, name, arguments)
        return _one_block(result.model_dump(by_alias=True))

    def unknown_tool(self) -> int:
        try:
            self._portal.call(self._client.call_tool, "no_such_tool", {})
        except mcp.MCPError as error:
            return error.code
        raise AssertionError("an unknown tool was called")


class TypeScriptPeer:
    """The TypeScript SDK, v1 or v2, in a Node of its own."""

    def __init__(self, kind: str, mode: str, at: At) -> None:
        self._process = subprocess.Popen(
            [node(), str(HERE / "peer.mjs"), kind, mode, *at.target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=at.environment | {"PEER_HEADERS": json.dumps(at.headers)},
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> "TypeScriptPeer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=20)

    @property
    def strays(self) -> list[object]:
        return list(self._ask("strays")["ok"])

    def about(self) -> dict[str, Any]:
        return dict(self._ask("about")["ok"])

    def tools(self) -> list[dict[str, Any]]:
        return list(self._ask("list")["ok"])

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        return _one_block(self._ask("call", {"name": name, "arguments": arguments})["ok"])

    def unknown_tool(self) -> int:
        failed = self._ask("call", {"name": "no_such_tool", "arguments": {}})["failed"]
        return int(failed["code"])

    def _ask(self, verb: str, params: object = None) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"verb": verb, "params": params}) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))


class InspectorPeer:
    """MCP Inspector's command line: a process and a connection for each call."""

    strays: tuple[object, ...] = ()

    def __init__(self, era: str, at: At, scratch: Path) -> None:
        self._era = era
        self._target = at.target
        # It writes settings and secrets of its own under HOME.
        self._environment = at.environment | {"HOME": str(scratch)}
        if at.url:
            self._given = [f"{name}: {value}" for name, value in at.headers.items()]
            self._option = "--header"
        else:
            self._given = [
                f"{name}={value}"
                for name, value in at.environment.items()
                if name.startswith(("AMUX_", "PYTHONPATH"))
            ]
            self._option = "-e"

    def __enter__(self) -> "InspectorPeer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def about(self) -> dict[str, Any]:
        return {}

    def tools(self) -> list[dict[str, Any]]:
        # --strict: schemas that other clients could not use are an error too.
        done = self._run("--method", "tools/list", "--strict")
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout)["tools"])

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        spelled = json.dumps(arguments, ensure_ascii=False)
        done = self._run("--method", "tools/call", "--tool-name", name, "--tool-args-json", spelled)
        text, is_refusal = _one_block(json.loads(done.stdout))
        assert done.returncode == (5 if is_refusal else 0), done.stderr
        return text, is_refusal

    def unknown_tool(self) -> int:
        done = self._run(
            "--method", "tools/call", "--tool-name", "no_such_tool", "--tool-args-json", "{}"
        )
        assert done.returncode != 0
        # It looks the name up in the list, and does not call.
        assert json.loads(done.stderr)["error"]["code"] == "tool_not_found"
        return UNKNOWN

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        launcher = HERE / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build"
        return subprocess.run(
            [
                node(),
                str(launcher / "index.js"),
                "--cli",
                *self._target,
                "--protocol-era",
                self._era,
                "--quiet",
                *(word for pair in self._given for word in (self._option, pair)),
                *words,
            ],
            env=self._environment,
            capture_output=True,
            timeout=60,
            check=False,
            encoding="utf-8",
        )


@contextlib.contextmanager
def peer(name: str, at: At, scratch: Path) -> Iterator[Any]:
    """Connect one of the official clients by its name."""
    kind, _, mode = name.partition(":")
    made: AbstractContextManager[Any]
    if kind == "python":
        made = PythonPeer(mode, at)
    elif kind == "inspector":
        made = InspectorPeer(mode, at, scratch)
    else:
        made = TypeScriptPeer(kind, mode, at)
    with made as connected:
        yield connected
