"""`amux mcp` and a real Hub: started on demand, off, stopped in its tracks, killed, back again."""

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support.hub import RunningHub, running_hub
from tests.support.mcp_lines import McpProcess, code

FIVE = 5


def stop_background_hub(home: Path) -> None:
    hub = RunningHub(home)
    with contextlib.suppress(Exception):
        hub.cli("hub", "stop")


@pytest.mark.slow
@pytest.mark.requirement("M53", "M56")
def test_without_a_hub_one_is_started_and_told_of_on_standard_error(home: Path) -> None:
    RunningHub(home).enable()
    try:
        with McpProcess(home, AMUX_NO_AUTOSTART="0") as mcp:
            mcp.initialize()
            assert len(mcp.tools()) == FIVE
            text, is_refusal = mcp.call("memory_get", path="a.md")
            assert not is_refusal
            assert json.loads(text)["revision"] == "absent"
            _, errors = mcp.finish()
            assert str(home).encode() in errors
            assert errors.count(b"\n") == 1
    finally:
        stop_background_hub(home)


@pytest.mark.slow
@pytest.mark.requirement("M53", "M56", "M23")
def test_a_hub_that_died_is_started_again_by_the_next_call(home: Path) -> None:
    with running_hub(home) as hub, McpProcess(home, AMUX_NO_AUTOSTART="0") as mcp:
        mcp.initialize()
        assert len(mcp.tools()) == FIVE
        hub.kill()
        try:
            text, is_refusal = mcp.call(
                "memory_upsert", path="a.md", content="x", expected_revision="absent"
            )
            assert not is_refusal, text
            assert (home / "memory/global/a.md").read_bytes() == b"x"
        finally:
            stop_background_hub(home)


@pytest.mark.slow
@pytest.mark.requirement("M53", "M56", "row-16")
def test_eight_calls_at_a_dead_hub_start_one_and_are_all_answered(home: Path) -> None:
    RunningHub(home).enable()
    try:
        with McpProcess(home, "--tools", "memory", AMUX_NO_AUTOSTART="0") as mcp:
            request = {"name": "memory_get", "arguments": {"path": "a.md"}}
            asked = [mcp.ask("tools/call", request) for _ in range(8)]
            for one in asked:
                assert "isError" not in mcp.answer(one)["result"]
            _, errors = mcp.finish()
            assert errors.count(b"started a Hub") == 1
    finally:
        stop_background_hub(home)


@pytest.mark.slow
@pytest.mark.requirement("row-16", "M6", "M7", "M56")
def test_a_hub_with_memory_off_offers_nothing_and_enabling_it_revives_the_process(
    home: Path,
) -> None:
    hub = RunningHub(home).start()
    try:
        with McpProcess(home) as mcp:
            mcp.initialize()
            assert mcp.tools() == []
            assert code(mcp.call("memory_get", path="a.md")[0]) == "memory_disabled"
            hub.stop()
            assert code(mcp.call("memory_get", path="a.md")[0]) == "unavailable"
            hub.enable().start()
            assert not mcp.call("memory_get", path="a.md")[1]
            assert mcp.tools() == []
    finally:
        hub.kill()


@pytest.mark.slow
@pytest.mark.requirement("row-16", "M28", "bug-21")
def test_a_hub_stopped_in_its_tracks_is_unavailable_and_works_when_it_goes_on(home: Path) -> None:
    with running_hub(home) as hub:
        assert hub.process is not None
        os.kill(hub.process.pid, signal.SIGSTOP)
        with McpProcess(home) as mcp:
            mcp.initialize()
            assert len(mcp.tools()) == FIVE
            assert time.monotonic() - mcp.born < 1.0
            start = time.monotonic()
            assert code(mcp.call("memory_get", path="a.md")[0]) == "unavailable"
            assert time.monotonic() - start < 6.0
            os.kill(hub.process.pid, signal.SIGCONT)
            assert not mcp.call("memory_get", path="a.md")[1]


@pytest.mark.slow
@pytest.mark.requirement("bug-1", "M26")
def test_two_clients_append_twenty_lines_each_and_none_is_lost(home: Path) -> None:
    def append(name: str) -> None:
        with McpProcess(home) as mcp:
            mcp.initialize()
            for number in range(20):
                while True:
                    seen = json.loads(mcp.call("memory_get", path="a.md")[0])
                    text, is_refusal = mcp.call(
                        "memory_upsert",
                        path="a.md",
                        content=seen["content"] + f"{name} {number}\n",
                        expected_revision=seen["revision"],
                    )
                    if not is_refusal:
                        break
                    assert code(text) == "revision_conflict"

    with running_hub(home) as hub:
        writers = [threading.Thread(target=append, args=(name,)) for name in ("one", "two")]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        written = (hub.memory_dir / "a.md").read_text().splitlines()
    expected = {f"{name} {number}" for name in ("one", "two") for number in range(20)}
    assert len(written) == 40
    assert set(written) == expected
    for name in ("one", "two"):
        mine = [line for line in written if line.startswith(name)]
        assert mine == [f"{name} {number}" for number in range(20)]
