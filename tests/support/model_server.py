"""A scripted language model on loopback: real agents ask it, and it keeps what it was asked.

Rule 1: what is answered depends on the request alone: the last `@play NAME` in a user's text picks
        the script, the assistant's turns since then count the steps. Side requests (titles, token
        counts, compaction) cannot put a script out of step; without one the answer is `ok`.
Rule 2: three wire formats: Anthropic messages, OpenAI responses, OpenAI chat completions, each
        streamed or whole.
Rule 3: every request is kept with its bytes, in the order of arrival; nothing leaves the machine.
"""

import contextlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.model_words import Reply, Used

MARKER = re.compile(r"@play\s+([A-Za-z0-9_.-]+)")
KINDS = {"/messages": "messages", "/responses": "responses", "/chat/completions": "chat"}
HELD_SECONDS = 60.0  # a step that waits for its test gives up at last


@dataclass(frozen=True, slots=True)
class Found:
    """An argument taken from what a tool said: group 1 of the last match."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model uses; the name may be the end of an offered one."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer: text, tool calls, or an HTTP status; `held` is waited for first."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    held: threading.Event | None = None


def say(text: str) -> Step:
    """Answer with text."""
    return Step(text=text)


def use(tool: str, **arguments: Any) -> Step:
    """Use one tool."""
    return Step(calls=(Call(tool, arguments),))


REVISION = Found(r'"revision": ?"([^"]+)"')  # the one that a tool told last
Scripts = Mapping[str, Sequence[Step]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request to the model, and which step answered it."""

    kind: str
    """`messages`, `responses` or `chat`."""
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any] = field(repr=False)
    script: str | None = None
    step: int = 0

    def where(self, needle: str, under: str | None = None) -> list[str]:
        """Tell at which places of the body, or of one member of it, a text stands."""
        return where(self.body if under is None else self.body.get(under), needle)

    def count(self, needle: str) -> int:
        """Tell how often a text stands in the whole request."""
        return sum(text.count(needle) for text in strings(self.body))

    @property
    def tool_names(self) -> list[str]:
        """Name the offered tools, a namespace in front of its own."""
        return [f"{space}{'__' if space else ''}{name}" for name, space in offered(self)]

    @property
    def items(self) -> list[Any]:
        """Give the conversation: `input` or `messages`."""
        return list(self.body.get("input" if self.kind == "responses" else "messages") or [])

    @property
    def results(self) -> list[str]:
        """Give what tools said, the oldest first."""
        return [text for role, text in events(self) if role == "result"]


class ModelServer:
    """`with ModelServer(scripts) as model: … model.url … model.asked`."""

    def __init__(self, scripts: Scripts) -> None:
        self.scripts: dict[str, Sequence[Step]] = dict(scripts)
        self.asked: list[Asked] = []
        self.others: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ModelServer":
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait(
        self, happened: Callable[["ModelServer"], bool], seconds: float = 30.0
    ) -> "ModelServer":
        """Wait until what was asked satisfies the test."""
        with self._changed:
            assert self._changed.wait_for(lambda: happened(self), seconds), [
                (one.kind, one.script, one.step) for one in self.asked
            ]
        return self

    def of(self, script: str) -> list[Asked]:
        """Give the requests that one script answered."""
        return [one for one in self.asked if one.script == script]

    def answer(
        self, kind: str, path: str, headers: Mapping[str, str], raw: bytes
    ) -> tuple[int, Reply]:
        """Keep a request and choose what is answered."""
        asked = Asked(kind=kind, path=path, headers=headers, raw=raw, body=json.loads(raw or b"{}"))
        script, count = _chosen(asked)
        asked = replace(asked, script=script, step=count)
        steps = self.scripts.get(script, ()) if script else ()
        step = steps[count] if count < len(steps) else say("ok")
        with self._changed:
            self.asked.append(asked)
            self._changed.notify_all()
        if step.held:
            step.held.wait(HELD_SECONDS)
        calls = [_resolved(call, asked) for call in step.calls]
        number = f"{next(self._numbers):08d}"
        return step.status, Reply(step.text, calls, number, asked.body.get("model", "fake-model"))


# --- reading a request ---------------------------------------------------------------------------


def strings(value: object) -> Iterator[str]:
    """Give every text within a JSON value."""
    for _, text in _leaves(value, ""):
        yield text


def where(value: object, needle: str) -> list[str]:
    """Tell at which places of a JSON value a text stands."""
    return [place for place, text in _leaves(value, "") if needle in text]


def _leaves(value: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")


def events(asked: Asked) -> list[tuple[str, str]]:
    """Give the conversation as (`user`, `assistant` or `result`, text), turns joined."""
    found = {"messages": _in_messages, "responses": _in_responses, "chat": _in_chat}[asked.kind]
    joined: list[tuple[str, str]] = []
    for role, text in found(asked.items):
        if role == "assistant" and joined and joined[-1][0] == "assistant":
            joined[-1] = (role, joined[-1][1] + text)  # text and calls of one turn
        else:
            joined.append((role, text))
    return joined


def offered(asked: Asked) -> list[tuple[str, str]]:
    """Give the tools of a request as (name, namespace or nothing)."""
    names: list[tuple[str, str]] = []
    tools = list(asked.body.get("tools") or [])
    for item in asked.items:  # Codex's own models are given tools as an item of the conversation
        if item.get("type") == "additional_tools":
            tools += item.get("tools", [])
    for tool in tools:
        if asked.kind == "chat":
            names.append((tool["function"]["name"], ""))
        elif tool.get("type") == "namespace":
            names += [(inner.get("name", ""), tool["name"]) for inner in tool.get("tools", [])]
        else:
            names.append((tool.get("name") or tool.get("type", ""), ""))
    return names


def _in_messages(items: list[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        blocks = item["content"] if isinstance(item["content"], list) else [item["content"]]
        if item["role"] == "assistant":
            yield "assistant", _text(blocks)
            continue
        for block in blocks:
            is_result = isinstance(block, dict) and block.get("type") == "tool_result"
            yield "result" if is_result else "user", _text(block)


def _in_responses(items: list[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") in ("user", "assistant"):
            yield item["role"], _text(item.get("content"))
        elif kind.endswith("_call"):
            yield "assistant", ""
        elif kind.endswith("_output"):
            yield "result", _text(item.get("output"))


def _in_chat(items: list[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        role = {"tool": "result"}.get(item["role"], item["role"])
        if role in ("user", "assistant", "result"):
            yield role, _text(item.get("content"))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(_text(part) for part in value)
    if isinstance(value, dict):
        return " ".join(_text(value[name]) for name in ("text", "content") if name in value)
    return ""


def _chosen(asked: Asked) -> tuple[str | None, int]:
    told = events(asked)
    for index in range(len(told) - 1, -1, -1):
        role, text = told[index]
        names = MARKER.findall(text) if role == "user" else []
        if names:
            return names[-1], sum(1 for later, _ in told[index + 1 :] if later == "assistant")
    return None, 0


def _resolved(call: Call, asked: Asked) -> Used:
    """Find the offered tool that a call means, and fill in what tools have said."""
    tools = offered(asked)
    exact = [(name, space) for name, space in tools if call.tool == name]
    ending = [(name, space) for name, space in tools if name.endswith(call.tool)]
    name, space = (exact or (ending if len(ending) == 1 else [(call.tool, "")]))[0]
    return name, space, {key: _filled(value, asked) for key, value in call.arguments.items()}


def _filled(value: object, asked: Asked) -> object:
    if not isinstance(value, Found):
        return value
    told = (
        hits[-1] for text in reversed(asked.results) if (hits := re.findall(value.pattern, text))
    )
    return next(told, "")


# --- the server ----------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _model(self) -> ModelServer:
        assert isinstance(self.server, _Server)
        return self.server.model

    def log_message(self, *_: object) -> None:
        """Say nothing: what was asked is kept."""

    def do_GET(self) -> None:
        self._model.others.append((self.command, self.path))
        self._whole({"object": "list", "data": [{"id": "fake-model", "object": "model"}]})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        raw = self._read()
        path = self.path.partition("?")[0]
        kind = next((kind for end, kind in KINDS.items() if path.endswith(end)), None)
        # An agent that is killed in the middle does not read its answer.
        with contextlib.suppress(ConnectionError):
            if kind is None:
                self._model.others.append((self.command, self.path))
                self._whole({"input_tokens": max(1, len(raw) // 4)})
                return
            status, reply = self._model.answer(kind, self.path, dict(self.headers), raw)
            whole, parts = getattr(reply, kind)()
            if status != 200:
                self._whole({"error": {"message": "scripted"}}, status)
            elif json.loads(raw).get("stream"):
                self._stream(parts)
            else:
                self._whole(whole)

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _whole(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, parts: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for part in parts:
            self.wfile.write(part)
            self.wfile.flush()
        self.close_connection = True
