"""What is offered, and when: the Hub down, hung, slow, off, and coming back."""

import json
import threading
import time
from pathlib import Path

import pytest

from amux import __version__
from amux.wire.tools import noted
from tests.support.mcp_fake import FakeHub, Reply, hangs, refuses, says, status
from tests.support.mcp_lines import McpProcess, code

FIVE = ["memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue"]
SEARCH = "memory_search"


def within(start: float, seconds: float) -> bool:
    return time.monotonic() - start < seconds


@pytest.mark.requirement("M56", "row-16", "bug-21")
def test_hub_down_the_tools_are_listed_and_a_call_says_so(home: Path) -> None:
    with McpProcess(home) as mcp:
        mcp.initialize()
        assert within(mcp.born, 1.0)
        assert mcp.tools() == FIVE
        assert within(mcp.born, 1.0)
        text, is_refusal = mcp.call(SEARCH, query="x")
        assert is_refusal
        assert code(text) == "unavailable"
        assert json.loads(text)["error"]["hint"]
        assert within(mcp.born, 6.0)


@pytest.mark.requirement("M56", "row-16")
def test_after_the_hub_comes_the_same_process_works(home: Path) -> None:
    with McpProcess(home) as mcp:
        mcp.initialize()
        assert mcp.tools() == FIVE
        assert mcp.call(SEARCH, query="x")[1]
        with FakeHub(home, status=status(effective=True), search=says('{"hits":[]}')):
            assert mcp.call(SEARCH, query="x") == (noted('{"hits":[]}'), False)
        assert code(mcp.call(SEARCH, query="x")[0]) == "unavailable"
        with FakeHub(home, status=status(effective=True), search=says('{"hits":[1]}')):
            assert mcp.call(SEARCH, query="x") == (noted('{"hits":[1]}'), False)


@pytest.mark.slow
@pytest.mark.requirement("M56", "M28", "row-16", "bug-21")
def test_hub_hung_lists_within_a_second_and_calls_are_unavailable_within_six(home: Path) -> None:
    woken = threading.Event()
    with (
        FakeHub(home, status=hangs(woken), search=hangs(woken), upsert=hangs(woken)) as hub,
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        assert mcp.tools() == FIVE
        assert within(mcp.born, 1.0)
        start = time.monotonic()
        read = mcp.ask("tools/call", {"name": SEARCH, "arguments": {"query": "x"}})
        written = mcp.ask(
            "tools/call",
            {
                "name": "memory_upsert",
                "arguments": {"path": "a.md", "content": "", "expected_revision": "absent"},
            },
        )
        for one, expected in ((read, "unavailable"), (written, "outcome_unknown")):
            result = mcp.answer(one, 7)["result"]
            assert result["isError"]
            assert code(result["content"][0]["text"]) == expected
        assert within(start, 6.0)
        hub.replies["search"] = says('{"hits":[]}')
        assert mcp.call(SEARCH, query="x") == (noted('{"hits":[]}'), False)
        woken.set()


@pytest.mark.requirement("M56", "M6", "row-16")
def test_memory_off_leaves_the_tools_out_with_one_line_and_calls_say_why(home: Path) -> None:
    off = refuses(403, "memory_disabled")
    with (
        FakeHub(home, status=status(effective=False), search=off) as hub,
        McpProcess(home) as mcp,
    ):
        mcp.initialize()
        assert mcp.tools() == []
        assert code(mcp.call(SEARCH, query="x")[0]) == "memory_disabled"
        hub.replies |= {"status": status(effective=True), "search": says('{"hits":[]}')}
        assert mcp.call(SEARCH, query="x") == (noted('{"hits":[]}'), False)
        assert mcp.tools() == []
        assert hub.count("status") == 1
        _, errors = mcp.finish()
        assert errors.count(b"\n") == 1
        assert b"memory.enabled" in errors


@pytest.mark.requirement("M56", "M7")
def test_a_status_refused_with_memory_disabled_counts_as_off(home: Path) -> None:
    with FakeHub(home, status=refuses(403, "memory_disabled")), McpProcess(home) as mcp:
        assert mcp.tools() == []


@pytest.mark.requirement("M56")
@pytest.mark.parametrize(
    "reply",
    [
        refuses(503, "unavailable"),
        refuses(403, "permission_denied"),
        refuses(500, "internal"),
        says("{}"),
        says('{"settings":[]}'),
        says('{"settings":{"memory.enabled":{"effective":null}}}'),
        says('{"settings":{"memory.enabled":{"saved":false,"effective":true}}}'),
        says("no json"),
    ],
)
def test_only_a_definite_no_leaves_the_tools_out(home: Path, reply: Reply) -> None:
    with FakeHub(home, status=reply, get=reply), McpProcess(home) as mcp:
        mcp.initialize()
        assert mcp.tools() == FIVE


@pytest.mark.requirement("M56")
@pytest.mark.parametrize(("code", "tools"), [("memory_disabled", []), ("binding_mismatch", FIVE)])
def test_who_may_not_see_the_status_hears_of_a_switch_from_a_read(
    home: Path, code: str, tools: list[str]
) -> None:
    no = refuses(403, "permission_denied")
    with FakeHub(home, status=no, get=refuses(403, code)) as hub, McpProcess(home) as mcp:
        mcp.initialize()
        assert mcp.tools() == tools
        assert [name for name, _ in hub.asked] == ["status", "get"]


@pytest.mark.requirement("M56", "M7")
def test_a_bound_session_keeps_its_tools_while_memory_is_off(home: Path) -> None:
    token = home / "token"
    token.write_text("amux_x")
    token.chmod(0o600)
    bound = {"AMUX_MEMORY_BINDING": "amux1:x:global", "AMUX_CREDENTIAL_FILE": str(token)}
    with FakeHub(home, status=status(effective=False)), McpProcess(home, **bound) as mcp:
        mcp.initialize()
        assert mcp.tools() == FIVE


@pytest.mark.slow
@pytest.mark.requirement("M56")
def test_a_listing_waits_for_a_slow_hub_half_a_second_in_all_and_never_changes(
    home: Path,
) -> None:
    woken = threading.Event()

    def off_when_woken(arguments: dict[str, object]) -> tuple[int, str]:
        woken.wait(30)
        return status(effective=False)(arguments)

    with FakeHub(home, status=off_when_woken) as hub, McpProcess(home) as mcp:
        mcp.initialize()
        start = time.monotonic()
        first, second = mcp.ask("tools/list"), mcp.ask("tools/list")
        assert len(mcp.answer(first)["result"]["tools"]) == 5
        assert len(mcp.answer(second)["result"]["tools"]) == 5
        assert 0.4 < time.monotonic() - start < 0.8
        start = time.monotonic()
        assert mcp.tools() == FIVE
        assert within(start, 0.2)
        woken.set()
        # Now the Hub says that memory is off; the list stays what the agent was told.
        deadline = time.monotonic() + 10
        while not hub.answered:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert mcp.tools() == FIVE
        assert hub.count("status") == 1


@pytest.mark.requirement("M56")
def test_a_slow_answer_within_half_a_second_still_decides(home: Path) -> None:
    def late_off(arguments: dict[str, object]) -> tuple[int, str]:
        threading.Event().wait(0.15)
        return status(effective=False)(arguments)

    with FakeHub(home, status=late_off), McpProcess(home) as mcp:
        assert mcp.tools() == []


@pytest.mark.requirement("M56")
def test_the_hub_is_asked_after_initialize_and_then_never_again(home: Path) -> None:
    with (
        FakeHub(home, status=status(effective=True), get=says("{}")) as hub,
        McpProcess(home) as mcp,
    ):
        mcp.request("ping")
        mcp.request("server/discover")
        assert hub.asked == []
        mcp.initialize()
        for _ in range(5):
            assert mcp.tools() == FIVE
            mcp.call("memory_get", path="a.md")
        mcp.initialize()
        assert hub.count("status") == 1


@pytest.mark.requirement("M56")
def test_tools_memory_fixes_the_set_and_waits_for_nobody(home: Path) -> None:
    woken = threading.Event()
    with FakeHub(home, status=hangs(woken)), McpProcess(home, "--tools", "memory") as mcp:
        mcp.initialize()
        start = time.monotonic()
        assert mcp.tools() == FIVE
        assert within(start, 0.3)
        woken.set()


@pytest.mark.requirement("M56")
def test_tools_none_offers_nothing_and_asks_nobody(home: Path) -> None:
    with FakeHub(home) as hub, McpProcess(home, "--tools", "none") as mcp:
        assert "instructions" not in mcp.initialize()
        assert mcp.tools() == []
        answer = mcp.request("tools/call", {"name": SEARCH, "arguments": {"query": "x"}})
        assert answer["error"]["code"] == -32602
        assert mcp.finish() == (0, b"")
        assert hub.asked == []


@pytest.mark.requirement("M56", "M49")
def test_an_unknown_set_of_tools_is_refused_before_anything_is_served(home: Path) -> None:
    with McpProcess(home, "--tools", "everything") as mcp:
        status_of_end, errors = mcp.finish()
        assert status_of_end == 2
        assert json.loads(errors.splitlines()[-1])["error"]["code"] == "invalid_argument"


@pytest.mark.requirement("M53", "M56")
def test_a_hub_of_another_release_is_named_once(home: Path) -> None:
    with (
        FakeHub(home, version="9.9.9", status=status(effective=True)),
        McpProcess(home) as mcp,
    ):
        assert mcp.tools() == FIVE
        _, errors = mcp.finish()
        assert errors.count(b"\n") == 1
        assert b"9.9.9" in errors


@pytest.mark.requirement("M53", "M56")
def test_a_hub_of_this_release_is_not_worth_a_word(home: Path) -> None:
    with (
        FakeHub(home, version=__version__, status=status(effective=True)),
        McpProcess(home) as mcp,
    ):
        assert mcp.tools() == FIVE
        assert mcp.finish() == (0, b"")
