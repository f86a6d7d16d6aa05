"""States are recognised by a glyph or a whole first word (J38)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.journal.text import day
from amux.journal.text.status import FILTERS, State, spell, state_of


@pytest.mark.requirement("J38", "JA20")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("incomplete", "unknown"),
        ("not done yet", "unknown"),
        ("未完成", "unknown"),
        ("inactive", "unknown"),
        ("✅ 未完成", "completed"),
        ("done, 4 tests", "completed"),
        ("进行中（等评审）", "active"),
        ("", "unknown"),
        ("  ✅\ufe0f", "completed"),
        ("\ufe0f✅", "completed"),
        ("⛔ x", "blocked"),
        ("🔄", "active"),
        ("⏳ later", "active"),
        ("Ｄｏｎｅ", "completed"),
        ("COMPLETED", "completed"),
        ("已关闭。", "completed"),
        ("paused—why", "blocked"),
        ("已阻塞、等", "blocked"),
        ("in progress", "active"),
        ("In  Progress: half", "active"),
        ("in-progress", "active"),
        ("in", "unknown"),
        ("in time", "unknown"),
        ("in progressing", "unknown"),
        ("等待中；", "active"),
        ("❌", "unknown"),
        ("done/blocked", "completed"),
    ],
)
def test_a_status_names_a_state(text: str, state: str) -> None:
    assert state_of(text) is State(state)


@pytest.mark.requirement("JA20")
def test_status_lines_of_a_day_are_recognised_alike() -> None:
    lines = ["incomplete", "not done yet", "未完成", "inactive", "✅ 未完成", "done, 4 tests"]
    text = "".join(f"## 会话 {n}\n- **状态**：{line}\n" for n, line in enumerate(lines, start=1))
    found = [section.state.value for section in day.parse(text.encode()).sections]
    assert found == ["unknown"] * 4 + ["completed"] * 2


@pytest.mark.requirement("J38")
def test_filters_admit_states() -> None:
    assert FILTERS["unresolved"] == {State.ACTIVE, State.BLOCKED}
    assert FILTERS["all"] == set(State)


@given(st.text())
def test_any_text_has_a_state(text: str) -> None:
    assert state_of(text) in State


@pytest.mark.parametrize("state", [State.ACTIVE, State.BLOCKED, State.COMPLETED])
def test_a_state_that_is_written_is_recognised(state: State) -> None:
    assert state_of(spell(state)) is state
    assert state_of(spell(state).split()[1]) is state
