"""The conversation on standard input and output: JSON-RPC, versions, and its end."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from amux.wire.tools import noted
from tests.support.mcp_fake import FakeHub, Reply, hangs, says, status
from tests.support.mcp_lines import McpProcess, block, code

KNOWN = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.requirement("M58", "M55")
@pytest.mark.parametrize("version", KNOWN)
def test_a_known_protocol_version_is_echoed(home: Path, version: str) -> None:
    with McpProcess(home) as mcp:
        introduction = mcp.initialize(version)
        assert introduction["protocolVersion"] == version
        assert introduction["serverInfo"]["name"] == "amux"


@pytest.mark.requirement("M58")
@pytest.mark.parametrize("params", [{"protocolVersion": "2099-01-01"}, {"protocolVersion": 7}, {}])
def test_an_unknown_protocol_version_is_offered_the_newest(
    home: Path, params: dict[str, object]
) -> None:
    with McpProcess(home) as mcp:
        assert mcp.request("initialize", params)["result"]["protocolVersion"] == KNOWN[-1]


@pytest.mark.requirement("M59", "M60")
def test_the_server_promises_no_notifications_and_one_line_of_instructions(home: Path) -> None:
    with McpProcess(home) as mcp:
        introduction = mcp.initialize()
        assert introduction["capabilities"] == {"tools": {}}
        assert "\n" not in introduction["instructions"]


@pytest.mark.requirement("M58")
@pytest.mark.parametrize(
    "method",
    ["server/discover", "resources/list", "prompts/list", "logging/setLevel", "", "tools/List"],
)
def test_an_unknown_method_is_refused_at_once(home: Path, method: str) -> None:
    with McpProcess(home) as mcp:
        mcp.request("ping")
        start = time.monotonic()
        assert mcp.request(method)["error"]["code"] == -32601
        assert time.monotonic() - start < 0.2


@pytest.mark.requirement("M58")
@pytest.mark.parametrize(
    ("line", "error", "id"),
    [
        (b"x", -32700, None),
        (b"", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
        (b"\xff\xfe{}", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"a":1}}', -32600, 5),
        (b"7", -32600, None),
        (b'"text"', -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', -32600, 5),
        (b'{"id":5,"method":"ping"}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}', -32602, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call"}', -32602, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}', -32602, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}}', -32602, 5),
    ],
)
def test_a_malformed_line_is_refused_and_the_conversation_goes_on(
    home: Path,
    line: bytes,
    error: int,
    id: int | None,  # noqa: A002
) -> None:
    with McpProcess(home) as mcp:
        mcp.send(line + b"\n")
        refusal = mcp.receive()
        assert (refusal["error"]["code"], refusal["id"]) == (error, id)
        assert mcp.request("ping")["result"] == {}


@pytest.mark.requirement("M58")
def test_a_line_over_1_mib_is_skipped_without_being_held(home: Path) -> None:
    with McpProcess(home) as mcp:
        mcp.request("ping")
        before = _peak_kib(mcp.process.pid)
        block_of_16_mib = b"x" * (16 * 1024 * 1024)
        for _ in range(4):
            mcp.send(block_of_16_mib)
        mcp.send(b"\n")
        refusal = mcp.receive()
        assert (refusal["error"]["code"], refusal["id"]) == (-32700, None)
        assert mcp.request("ping")["result"] == {}
        assert _peak_kib(mcp.process.pid) - before < 8 * 1024


@pytest.mark.requirement("M58")
def test_the_longest_allowed_line_is_read(home: Path) -> None:
    with McpProcess(home) as mcp:
        head = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"'
        for length, is_read in ((1024 * 1024, True), (1024 * 1024 + 1, False)):
            mcp.send(head + b"x" * (length - len(head) - 3) + b'"}}\n')
            assert ("result" in mcp.receive()) is is_read


@pytest.mark.requirement("M58", "M59")
def test_notifications_and_answers_are_never_answered(home: Path) -> None:
    with McpProcess(home) as mcp:
        for line in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            {"jsonrpc": "2.0", "method": "tools/list"},
            {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "memory_get"}},
            {"jsonrpc": "2.0", "method": "no/such/thing", "params": [1]},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "x"}},
        ):
            mcp.send(line)
        assert mcp.request("ping")["id"] == 1
        status_of_end, _ = mcp.finish()
        assert status_of_end == 0
        assert mcp._lines.empty()


@pytest.mark.requirement("M58")
@pytest.mark.parametrize("id", ["a", "", "用户", 0, -1, 2**70], ids=repr)
def test_an_id_comes_back_as_it_was(home: Path, id: int | str) -> None:  # noqa: A002
    with McpProcess(home) as mcp:
        mcp.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
        assert mcp.receive() == {"jsonrpc": "2.0", "id": id, "result": {}}


@pytest.mark.requirement("M58", "row-16")
def test_a_hung_call_blocks_neither_ping_nor_lists_nor_other_calls(home: Path) -> None:
    woken = threading.Event()
    with (
        FakeHub(home, status=status(effective=True), search=hangs(woken), get=says("{}")),
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        hung = mcp.ask("tools/call", {"name": "memory_search", "arguments": {"query": "x"}})
        start = time.monotonic()
        assert mcp.request("ping")["result"] == {}
        assert len(mcp.tools()) == 5
        assert mcp.call("memory_get", path="a.md") == (noted("{}"), False)
        assert time.monotonic() - start < 1.0
        woken.set()
        assert block(mcp.answer(hung)) == (noted("{}"), False)


@pytest.mark.slow
@pytest.mark.requirement("row-16", "M28")
def test_a_flood_at_a_hung_hub_is_answered_within_6_seconds(home: Path) -> None:
    woken = threading.Event()
    with (
        FakeHub(home, status=status(effective=True), get=hangs(woken)),
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        start = time.monotonic()
        arguments = {"name": "memory_get", "arguments": {"path": "a.md"}}
        asked = [mcp.ask("tools/call", arguments) for _ in range(100)]
        codes = [code(block(mcp.answer(one, 8))[0]) for one in asked]
        assert time.monotonic() - start < 6.5
        assert codes.count("unavailable") == 8
        assert codes.count("busy") == 92
        woken.set()


@pytest.mark.slow
@pytest.mark.requirement("M58")
def test_the_process_ends_within_a_second_of_its_input(home: Path) -> None:
    woken = threading.Event()
    with (
        FakeHub(home, status=hangs(woken), search=hangs(woken)),
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        mcp.ask("tools/call", {"name": "memory_search", "arguments": {"query": "x"}})
        mcp.request("ping")
        start = time.monotonic()
        status_of_end, errors = mcp.finish()
        assert time.monotonic() - start < 1.0
        assert status_of_end == 0
        assert b"Traceback" not in errors
        assert b"Fatal" not in errors
        woken.set()


@pytest.mark.slow
@pytest.mark.requirement("M58")
def test_what_was_asked_before_the_end_of_input_is_answered(home: Path) -> None:
    with (
        FakeHub(home, status=status(effective=True), get=_slow(0.2, '{"late":true}')),
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        asked = mcp.ask("tools/call", {"name": "memory_get", "arguments": {"path": "a.md"}})
        listed = mcp.ask("tools/list")
        mcp.end_input()
        assert block(mcp.answer(asked)) == (noted('{"late":true}'), False)
        assert "result" in mcp.answer(listed)
        assert mcp.process.wait(5) == 0


@pytest.mark.requirement("M58")
def test_a_last_line_without_its_newline_is_a_line(home: Path) -> None:
    with McpProcess(home) as mcp:
        mcp.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        mcp.end_input()
        assert mcp.receive()["result"] == {}


@pytest.mark.requirement("M58")
@pytest.mark.parametrize(("number", "exit_status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_quietly(home: Path, number: int, exit_status: int) -> None:
    with McpProcess(home, "--tools", "none") as mcp:
        mcp.initialize()
        mcp.request("ping")
        mcp.process.send_signal(number)
        assert mcp.process.wait(5) == exit_status
        assert mcp.process.stderr is not None
        assert mcp.process.stderr.read() == b""


@pytest.mark.requirement("M58")
@pytest.mark.parametrize("is_late", [False, True], ids=["by the reader", "by a worker"])
def test_a_closed_output_ends_it_quietly_while_its_input_is_open(home: Path, is_late: bool) -> None:
    with FakeHub(home, status=status(effective=True), get=_slow(0.1, "{}")):
        read_end, write_end = os.pipe()
        os.close(read_end)
        with _writing_to(home, write_end) as mcp:
            os.close(write_end)
            method = "tools/call" if is_late else "ping"
            mcp.ask(method, {"name": "memory_get", "arguments": {"path": "a.md"}})
            assert mcp.process.wait(5) == 0
            assert mcp.process.stderr is not None
            errors = mcp.process.stderr.read()
            assert b"Traceback" not in errors
            assert b"Exception" not in errors


@pytest.mark.slow
@pytest.mark.requirement("M58")
def test_a_client_that_stops_reading_does_not_keep_the_process_alive(home: Path) -> None:
    read_end, write_end = os.pipe()
    with (
        FakeHub(home, status=status(effective=True), get=says('"' + "x" * 6000 + '"')),
        _writing_to(home, write_end) as mcp,
    ):
        os.close(write_end)
        for _ in range(40):  # 240 KB; a pipe holds 64 KiB
            mcp.ask("tools/call", {"name": "memory_get", "arguments": {"path": "a.md"}})
        start = time.monotonic()
        status_of_end, errors = mcp.finish()
        assert time.monotonic() - start < 1.5
        assert status_of_end == 0
        assert b"Fatal" not in errors
        os.close(read_end)


@pytest.mark.requirement("M58", "row-12")
def test_text_is_utf8_whatever_the_locale_says(home: Path) -> None:
    answer = json.dumps({"content": "用户偏好 é 😀\u2028"}, ensure_ascii=False)
    with (
        FakeHub(home, status=status(effective=True), get=says(answer)) as hub,
        McpProcess(home, LANG="C", LC_ALL="C", PYTHONIOENCODING="cp1252") as mcp,
    ):
        assert mcp.call("memory_get", path="用户/é.md") == (noted(answer), False)
        assert hub.asked == [("get", {"path": "用户/é.md"})]


@pytest.mark.slow
@pytest.mark.requirement("M58", "M59")
def test_lines_of_parallel_answers_never_mix_when_the_pipe_is_full(home: Path) -> None:
    def echo(arguments: dict[str, object]) -> tuple[int, str]:
        return 200, json.dumps({"path": arguments["path"], "content": "x" * 5900})

    read_end, write_end = os.pipe()
    with (
        FakeHub(home, status=status(effective=True), get=echo) as hub,
        _writing_to(home, write_end) as mcp,
    ):
        os.close(write_end)
        for number in range(60):
            mcp.ask("tools/call", {"name": "memory_get", "arguments": {"path": f"{number}.md"}})
        # A pipe holds ten of these lines: then eight threads wait in the middle of theirs.
        deadline = time.monotonic() + 10
        while hub.answered.count("get") < 18:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        with open(read_end, "rb") as stream:
            answers = [json.loads(stream.readline()) for _ in range(60)]
    assert sorted(answer["id"] for answer in answers) == list(range(1, 61))
    for answer in answers:
        text, _ = block(answer)
        assert json.loads(text)["path"] == f"{answer['id'] - 1}.md"


def _peak_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")


def _slow(seconds: float, text: str) -> Reply:
    def reply(_: dict[str, object]) -> tuple[int, str]:
        threading.Event().wait(seconds)
        return 200, text

    return reply


def _writing_to(home: Path, descriptor: int) -> McpProcess:
    return McpProcess(home, output=descriptor)
