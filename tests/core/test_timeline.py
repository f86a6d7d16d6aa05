"""What a timeline holds, and what it never holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core import timeline
from amux.core.timeline import Event, Logged

NOW = "2026-11-30T12:00:00.000+00:00"

EVENTS = [
    timeline.start(amux="1", agent="pi", version="", is_resumed=False, is_headless=True),
    timeline.binding("failed", "the Hub is out of reach"),
    timeline.warning("look"),
    timeline.prompt("what is this?"),
    timeline.native("01a2"),
    timeline.tool("mcp__amux__memory_get", "ok", {"path": "MEMORY.md"}),
    timeline.answer("that"),
    timeline.exit(0),
    timeline.exit(None, "broken off"),
]


@pytest.mark.requirement("R13")
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_a_line_is_read_back_as_the_event_that_it_was(event: Event) -> None:
    line = timeline.line(event, at=NOW, run=2)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert timeline.parse(line) == Logged(at="2026-11-30T12:00:00.000+00:00", run=2, event=event)


@pytest.mark.requirement("R13", "R31")
def test_of_a_write_stands_the_place_and_not_what_was_written() -> None:
    arguments = {
        "path": "a.md",
        "content": "the CONTENT",
        "expected_revision": "absent",
        "other": {"deep": "CONTENT"},
        "query": ["CONTENT"],
    }
    event = timeline.tool("amux.memory_upsert", "revision_conflict", arguments)
    assert event.data["arguments"] == {"path": "a.md", "expected_revision": "absent"}
    assert b"CONTENT" not in timeline.line(event, at=NOW, run=1)


@pytest.mark.requirement("R13")
def test_of_other_tools_stand_name_and_outcome_only() -> None:
    event = timeline.tool("Bash", "ok", {"command": "echo SECRET", "path": "SECRET"})
    assert event.data == {"name": "Bash", "outcome": "ok"}


@pytest.mark.requirement("R13")
def test_a_long_prompt_is_cut_and_says_so() -> None:
    event = timeline.prompt("é" * 100_000)
    assert event.data["truncated"] is True
    line = timeline.line(event, at=NOW, run=1)
    assert timeline.TEXT_MAX_BYTES - 1000 < len(line) < timeline.LINE_MAX_BYTES
    assert timeline.parse(line) is not None


@given(st.text())
def test_any_prompt_can_be_noted(text: str) -> None:
    found = timeline.parse(timeline.line(timeline.prompt(text), at=NOW, run=1))
    assert found is not None
    assert found.event.data["text"] == text


def test_a_prompt_that_is_no_unicode_can_be_noted() -> None:
    found = timeline.parse(timeline.line(timeline.prompt("a\udcff"), at=NOW, run=1))
    assert found is not None
    assert found.event.data["text"] == "a\\udcff"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"at":"x","run":1,"kind":"prompt","te',
        b"[]",
        b'{"at":"x","run":1,"kind":"of tomorrow"}',
        b'{"at":1,"run":1,"kind":"exit"}',
        b'{"at":"x","run":"1","kind":"exit"}',
        b"\xff",
    ],
    ids=repr,
)
def test_a_line_that_is_not_known_is_passed_over(line: bytes) -> None:
    assert timeline.parse(line) is None


@given(st.binary())
def test_no_bytes_are_too_odd_to_be_looked_at(data: bytes) -> None:
    assert timeline.parse(data) is None or json.loads(data)
