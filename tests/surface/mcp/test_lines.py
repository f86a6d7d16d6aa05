"""Any line at all: an answer of JSON-RPC, or nothing, and the conversation goes on."""

import io
import json
import re
import time
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amux.core.address import Address, Connection
from amux.surface.mcp import message
from amux.surface.mcp.server import lines, serve

METHODS = ["initialize", "ping", "tools/list", "tools/call", "notifications/x", "x", "", 7, None]
NAMES = ["memory_search", "memory_get", "memory_forget", "result_continue", "x", 1, None]
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["path", "query", "continuation", "a.md"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PARAMS = ANY | st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(NAMES), "arguments": ANY}
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2.0]),
        "id": ANY,
        "method": st.sampled_from(METHODS) | ANY,
        "params": PARAMS,
        "result": ANY,
        "error": ANY,
    },
)
SPELLED = MESSAGES.map(lambda value: json.dumps(value).encode())
# A valid line with a piece cut out, doubled or put elsewhere: nearly right is the hardest.
BROKEN = st.tuples(SPELLED, st.integers(0, 200), st.integers(0, 200), st.binary(max_size=4)).map(
    lambda cut: cut[0][: cut[1]] + cut[3] + cut[0][cut[2] :]
)
LINES = SPELLED | BROKEN | st.binary(max_size=80)


class NoHub:
    """Surroundings in this process, with no Hub and no way to start one."""

    home = socket_path = "/nonexistent/hub.sock"
    no_autostart = True
    editor = temp_dir = binding = child_lease = workspace = ""
    connection = local = Connection(Address.local(socket_path))


class Around:
    config: object = NoHub()

    def __init__(self, given_lines: bytes) -> None:
        self.stdin = io.BytesIO(given_lines)
        self.stdout = io.BytesIO()
        self.stderr = io.BytesIO()

    def clock(self) -> float:
        return 0.0

    def random_bytes(self, count: int) -> bytes:
        return b"\x07" * count

    def late(self, name: str) -> ModuleType:
        raise AssertionError(name)


class Trickle(io.RawIOBase):
    """A pipe that takes seven bytes at a time, and lets others go first."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def write(self, data: bytes) -> int:
        self.taken += data[:7]
        time.sleep(0)
        return len(data[:7])

    def getvalue(self) -> bytes:
        return bytes(self.taken)


def answers(around: Around) -> list[dict[str, object]]:
    assert serve(around, "memory") == 0
    spelled = around.stdout.getvalue().decode("utf-8")
    assert spelled == "" or spelled.endswith("\n")
    return [json.loads(line) for line in spelled.split("\n")[:-1]]


@pytest.mark.requirement("M58", "M59")
@given(st.lists(LINES, max_size=4))
@example([b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_get"}}'])
@example([b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}'])
@example([b'{"id":{"id":1},"method":{"method":1},"id":1}'])
def test_any_lines_are_answered_with_json_rpc_and_the_server_lives(several: list[bytes]) -> None:
    ping = b'{"jsonrpc":"2.0","id":"the last","method":"ping"}\n'
    around = Around(b"".join(line.replace(b"\n", b" ") + b"\n" for line in several) + ping)
    found = answers(around)
    assert len(found) <= len(several) + 1
    assert {"jsonrpc": "2.0", "id": "the last", "result": {}} in found
    for answer in found:
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        assert set(answer) <= {"jsonrpc", "id", "result", "error"}
        assert answer["id"] is None or type(answer["id"]) in (str, int)
        assert "method" not in answer
    assert b"Traceback" not in around.stderr.getvalue()


@pytest.mark.requirement("M58")
@given(LINES)
def test_a_line_is_read_as_a_message_or_refused(line: bytes) -> None:
    try:
        read = message.read(line)
    except message.Refused as refusal:
        json.loads(message.error(refusal.id, refusal.code, refusal.message))
        return
    if read is not None:
        assert isinstance(read.params, dict)
        json.loads(message.result(read.id, {}))


@pytest.mark.requirement("M58", "M59")
@given(MESSAGES.map(lambda value: {k: v for k, v in value.items() if k != "id"}))
def test_what_has_no_id_is_never_answered_if_it_can_be_read(value: dict[str, object]) -> None:
    value |= {"jsonrpc": "2.0", "method": "tools/call"}
    assert (
        "NaN" in (line := json.dumps(value))
        or "Infinity" in line
        or "\\ud" in line
        or (answers(Around(line.encode() + b"\n")) == [])
    )


@pytest.mark.requirement("M58")
@given(st.lists(st.sampled_from([b"a", b"\n", b"b" * 9, b"c\n", b""]), max_size=30))
def test_lines_are_those_of_the_stream(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert b"".join(line or b"" for line in lines(io.BytesIO(data))) == data


@pytest.mark.requirement("M58")
def test_a_line_that_is_too_long_is_told_once_and_the_next_is_read() -> None:
    limit = message.LINE_MAX_BYTES
    for size in (limit + 1, limit + 2, 2 * limit, 5 * limit + 7):
        found = list(lines(io.BytesIO(b"x" * size + b"\n" + b"next\n")))
        assert found == [None, b"next\n"]
    assert list(lines(io.BytesIO(b"x" * limit + b"\nnext"))) == [b"x" * limit + b"\n", b"next"]
    assert list(lines(io.BytesIO(b"x" * (limit + 1)))) == [None]


@pytest.mark.requirement("M58")
def test_answers_of_eight_threads_are_whole_lines_on_a_pipe_that_takes_little() -> None:
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"memory_%s"}}\n'
    around = Around("".join(call % (n, ("get", "search")[n % 2]) for n in range(60)).encode())
    around.stdout = Trickle()
    assert sorted(answer["id"] for answer in answers(around)) == list(range(60))


@pytest.mark.requirement("M48")
def test_a_bug_is_told_as_an_incident_without_a_word_of_content() -> None:
    class Broken(NoHub):
        @property
        def connection(self) -> Connection:
            raise RuntimeError("secret")

    around = Around(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        b'{"name":"memory_get","arguments":{"path":"secret.md"}}}\n'
    )
    around.config = Broken()
    (answer,) = answers(around)
    assert answer["result"]["isError"] is True
    error = json.loads(answer["result"]["content"][0]["text"])["error"]
    assert error["code"] == "internal"
    log = around.stderr.getvalue().decode()
    assert re.search(rf"incident {error['details']['incident']}: RuntimeError in \S+:\d+\n$", log)
    assert "secret" not in log
