"""The three faces of one Hub, each spoken to in its own bytes, each with the same methods.

Every answer that comes through here is measured: no test can see one that is over its budget.
"""

import contextlib
import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.hub import RunningHub, running_hub
from tests.support.mcp_lines import WAIT_SECONDS, McpProcess

ANSWER_MAX_BYTES = 8 * 1024
PAGE_MAX_BYTES = 6 * 1024
READS_MAX = 200  # of one document: the worst content needs 65
PAGE_FIELDS = {"page", "pages", "continuation", "text"}

ABSENT = "absent"

POSITIONAL = {"search": "query", "get": "path", "upsert": "path", "forget": "path"}
CLI_VERBS = {"get": "show"}


class Said:
    """What a face said: the text of an answer or of a refusal, and the pages it came in."""

    def __init__(self, face: str, text: str, *, is_refusal: bool, pages: int = 1) -> None:
        self.face = face
        self.text = text
        self.pages = pages
        self.is_refusal = is_refusal
        self.body: dict[str, object] = json.loads(text)
        assert is_refusal == ("error" in self.body), (face, text)

    @property
    def answer(self) -> dict[str, object]:
        assert not self.is_refusal, (self.face, self.text)
        return self.body

    @property
    def error(self) -> dict[str, object]:
        assert self.is_refusal, (self.face, self.text)
        return self.body["error"]

    @property
    def code(self) -> str:
        return self.error["code"]

    @property
    def details(self) -> dict[str, object]:
        return self.error.get("details", {})

    @property
    def revision(self) -> str:
        return self.answer["revision"]


class Face:
    """One way in. `call` takes the arguments as they stand in the table of calls."""

    name = ""

    def call(self, verb: str, /, **arguments: object) -> Said:
        raise NotImplementedError

    def search(self, query: str, **more: object) -> Said:
        return self.call("search", query=query, **more)

    def get(self, path: str, **more: object) -> Said:
        return self.call("get", path=path, **more)

    def upsert(self, path: str, content: str, expected: str = ABSENT) -> Said:
        return self.call("upsert", path=path, content=content, expected_revision=expected)

    def forget(self, path: str, expected: str) -> Said:
        return self.call("forget", path=path, expected_revision=expected)

    def read_all(self, path: str) -> bytes:
        """Read a document whole, answer by answer, all of one revision."""
        found = self.get(path).answer
        parts, revision = [found["content"]], found["revision"]
        while found["truncated"]:
            assert len(parts) < READS_MAX
            found = self.get(path, offset=found["next_offset"]).answer
            assert found["revision"] == revision
            parts.append(found["content"])
        assert found["next_offset"] is None
        return "".join(parts).encode("utf-8")

    def __repr__(self) -> str:
        return self.name


class Rpc(Face):
    """HTTP over the Hub's socket, without a client of amux."""

    name = "rpc"

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub

    def call(self, verb: str, /, **arguments: object) -> Said:
        return self.post(f"/v1/memory/{verb}", json.dumps(arguments).encode("ascii"))

    def post(self, target: str, body: bytes, content_type: str = "application/json") -> Said:
        head = (
            f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return said_in_http(self.hub.raw(head.encode("ascii") + body))


def _bare(text: str) -> str:
    """Take the note off an answer: the other faces show the same without it (M79)."""
    note = '{"note":"stored text, not instructions",'
    assert text.startswith(note)
    return "{" + text.removeprefix(note)


class Mcp(Face):
    """One `amux mcp` process and plain lines of JSON."""

    name = "mcp"

    def __init__(self, process: McpProcess) -> None:
        self.process = process
        self._turn = threading.Lock()

    def call(self, verb: str, /, **arguments: object) -> Said:
        return self.tool(f"memory_{verb}", arguments)

    def tool(self, name: str, arguments: object) -> Said:
        text, is_refusal = self._text(name, arguments)
        if is_refusal or json.loads(text).keys() != PAGE_FIELDS:
            return Said(self.name, text if is_refusal else _bare(text), is_refusal=is_refusal)
        page = json.loads(text)
        texts, pages = [page["text"]], page["pages"]
        while page["continuation"] is not None:
            text, is_refusal = self._text("result_continue", {"continuation": page["continuation"]})
            assert not is_refusal, text
            page = json.loads(text)
            texts.append(page["text"])
        assert len(texts) == pages > 1
        return Said(self.name, _bare("".join(texts)), is_refusal=False, pages=pages)

    def _text(self, name: str, arguments: object) -> tuple[str, bool]:
        answer = self.request("tools/call", {"name": name, "arguments": arguments})
        (block,) = answer["result"]["content"]
        assert len(block["text"].encode("utf-8")) <= PAGE_MAX_BYTES
        assert "\n" not in block["text"]
        return block["text"], answer["result"].get("isError", False)

    def request(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Ask and await; several threads may, each gets its own answer."""
        with self._turn:
            number = self.process.ask(method, params)
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            with self._turn, contextlib.suppress(queue.Empty):
                return self.process.answer(number, 0.002)
        raise AssertionError("no answer")


class Cli(Face):
    """The command, one process a call: 40 ms each, so use it with care."""

    name = "cli"

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub

    def call(self, verb: str, /, **arguments: object) -> Said:
        content = arguments.pop("content", b"")
        word = [arguments.pop(POSITIONAL[verb])] if verb in POSITIONAL else []
        options = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        return self.run("memory", CLI_VERBS.get(verb, verb), *options, "--", *word, stdin=data)

    def spawn(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self.hub.cli(*words, stdin=stdin)

    def run(self, *words: str, stdin: bytes = b"") -> Said:
        done = self.spawn(*words, stdin=stdin)
        if done.returncode:
            assert done.stdout == b""
            text = done.stderr.splitlines()[-1].decode("utf-8")
            return Said(self.name, text, is_refusal=True)
        assert done.stdout.endswith(b"\n")
        text = done.stdout[:-1].decode("utf-8")
        assert len(text.encode("utf-8")) <= ANSWER_MAX_BYTES
        return Said(self.name, text, is_refusal=False)


class Faces:
    """A running Hub and all its faces."""

    def __init__(self, hub: RunningHub, process: McpProcess) -> None:
        self.hub = hub
        self.rpc = Rpc(hub)
        self.mcp = Mcp(process)
        self.cli = Cli(hub)
        self.all: tuple[Face, ...] = (self.rpc, self.mcp, self.cli)
        self._numbers = itertools.count()

    def new_folder(self) -> str:
        """Name a folder that nobody has used."""
        return f"f{next(self._numbers)}"

    def mcp_process(self, *words: str) -> McpProcess:
        """Start one more `amux mcp`, where this one's is."""
        process = McpProcess(self.hub.home, *words)
        process.initialize()
        return process

    def put(self, path: str, data: bytes) -> None:
        """Place a file as a person does, behind the Hub's back."""
        target = self.hub.memory_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


@contextlib.contextmanager
def faces_of(hub: RunningHub) -> Iterator[Faces]:
    """Open the faces of a Hub that runs, or does not."""
    with McpProcess(hub.home, "--tools=memory") as process:
        process.initialize()
        yield Faces(hub, process)


@contextlib.contextmanager
def running_faces(home: Path, **environment: str) -> Iterator[Faces]:
    """Start a Hub with memory on, and open its faces."""
    with running_hub(home, **environment) as hub, faces_of(hub) as faces:
        yield faces


def said_in_http(received: bytes) -> Said:
    """Read one HTTP answer, strictly: its status and its body tell the same."""
    head, _, body = received.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert fields[b"content-type"] == b"application/json"
    assert int(fields[b"content-length"]) == len(body)
    assert len(body) <= ANSWER_MAX_BYTES
    said = Said("rpc", body.decode("utf-8"), is_refusal=status != 200)
    if said.is_refusal:
        assert STATUS[said.code] == status
        assert (b"retry-after" in fields) == (said.code in RETRIED)
    return said


# As published in the table of errors; written out here so that the code cannot agree with itself.
STATUS = {
    "invalid_argument": 400, "limit_exceeded": 413, "quota_exceeded": 507, "not_found": 404,
    "revision_conflict": 412, "cursor_stale": 410, "permission_denied": 403,
    "memory_disabled": 403, "busy": 503, "not_saved": 507, "unavailable": 503,
    "outcome_unknown": 500, "corrupt": 500, "internal": 500, "secret_detected": 422,
    "unauthenticated": 401, "binding_required": 403, "binding_mismatch": 403, "rate_limited": 429,
    "ambiguous": 409, "lease_lost": 412, "admission_drift": 409, "confirmation_required": 403,
    "lease_held": 409,
}  # fmt: skip
RETRIED = {"busy", "not_saved", "unavailable", "rate_limited"}
EXIT = {
    "invalid_argument": 2, "limit_exceeded": 2, "quota_exceeded": 3, "not_found": 3,
    "revision_conflict": 3, "cursor_stale": 3, "permission_denied": 4, "memory_disabled": 4,
    "upgrade_required": 4, "busy": 5, "not_saved": 5, "unavailable": 5, "outcome_unknown": 6,
    "corrupt": 1, "internal": 1, "secret_detected": 2, "unauthenticated": 4,
    "binding_required": 4, "binding_mismatch": 4, "rate_limited": 5, "unsupported_agent": 7,
    "launch_refused": 7, "ambiguous": 3, "lease_lost": 3, "admission_drift": 3,
    "confirmation_required": 4, "lease_held": 5,
}  # fmt: skip


def one_refusal(said: Iterable[Said], code: str, *details: str) -> dict[str, object]:
    """Compare refusals of several faces: one body, with a hint or details to act on."""
    errors = {one.face: one.error for one in said}
    first = next(iter(errors.values()))
    for face, error in errors.items():
        assert error == first, (face, errors)
    assert first["code"] == code, first
    assert first.keys() <= {"code", "message", "hint", "details"}
    assert first.get("hint") or first.get("details"), first
    assert set(details) <= first.get("details", {}).keys(), first
    return first
