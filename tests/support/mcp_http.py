"""A Hub's `/mcp` driven by requests: no SDK between the test and the bytes."""

import json

from tests.support.network import Reply, dialled, knocked, local, request

ACCEPT = "application/json, text/event-stream"
NEWEST = "2026-07-28"
_META = "io.modelcontextprotocol"


class Remote:
    """A client of `/mcp` with one credential; `port` 0 and a socket's path reach it locally."""

    def __init__(
        self, port: int, token: str = "", binding: str = "", socket_path: str = ""
    ) -> None:
        self.port = port
        self.socket_path = socket_path
        self.headers = {"Accept": ACCEPT}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        if binding:
            self.headers["Amux-Memory-Binding"] = binding

    def send(self, data: bytes) -> Reply:
        way = local(self.socket_path) if self.socket_path else dialled(self.port)
        return Reply(knocked(way, data))

    def post(self, body: bytes, **headers: str) -> Reply:
        return self.send(request("POST", "/mcp", body, **(self.headers | headers)))

    def rpc(self, method: str, params: dict[str, object] | None = None, **headers: str) -> Reply:
        message: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(json.dumps(message).encode(), **headers)

    def newest(self, method: str, params: dict[str, object], **headers: str) -> Reply:
        """Ask as the newest revision has it: everything in the one request."""
        about = {f"{_META}/protocolVersion": NEWEST, f"{_META}/clientCapabilities": {}}
        named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
        told = {"MCP-Protocol-Version": NEWEST, "Mcp-Method": method} | named
        return self.rpc(method, params | {"_meta": about}, **(told | headers))

    def reply(self, tool: str, **arguments: object) -> Reply:
        return self.rpc("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: object) -> tuple[str, bool]:
        """Call a tool: the text of its one block, and whether it is a refusal."""
        return shown(self.reply(tool, **arguments))

    def code(self, tool: str, **arguments: object) -> str:
        """Tell how a call ends: `ok`, or the code of its refusal, wherever it stands."""
        reply = self.reply(tool, **arguments)
        if reply.status != 200:
            return reply.code
        text, is_refusal = shown(reply)
        return str(json.loads(text)["error"]["code"]) if is_refusal else "ok"


def shown(reply: Reply) -> tuple[str, bool]:
    assert reply.status == 200, reply.body
    result = reply.value["result"]
    assert isinstance(result, dict)
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"]), bool(result["isError"])


def whole(remote: Remote, tool: str, **arguments: object) -> tuple[str, int]:
    """Call a tool and read all pages: the answer, and how many pages it took."""
    text, is_refusal = remote.call(tool, **arguments)
    joined, count = "", 1
    while not is_refusal and text.startswith('{"page":'):
        assert len(text.encode()) <= 6144
        page = json.loads(text)
        joined += page["text"]
        if page["continuation"] is None:
            return joined, count
        text, is_refusal = remote.call("result_continue", continuation=page["continuation"])
        count += 1
    assert not is_refusal, text
    return text, count
