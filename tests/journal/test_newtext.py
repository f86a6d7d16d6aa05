"""New text that readers would take for structure is found, however it is dressed (J71)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal.text import day
from amux.journal.text.newtext import Structure, require_plain, structure_in

TOKEN = "ab" * 32
BINDING = f"<!-- devcodex:memory-session-binding v1 session=01 token={TOKEN} -->"
OWNER = "<!-- amux:session 93211895d97cd08b -->"


@pytest.mark.requirement("J71", "JA11")
@pytest.mark.parametrize(
    "line",
    [
        "## 会话 09",
        "## 会话",
        "## 会话 09\r",
        "＃＃ 会话 09",
        "x\u2028## 会话 09",
        "x\x85## 会话",
        "x\x0b## 会话 1",
        "## 会\u200b话 09",
        "#\u200b# 会话 09",
        "   ## 会话 09",
        "\u200b ## 会话 1",
        "##\u3000会话 09",
        "##\u00a0会话 09",
        "#\ufe0f# 会话 1",
        "\u3000## 会话",
        "#\u00ad# 会话 1",
    ],
)
def test_a_dressed_heading_is_found_with_its_line(line: str) -> None:
    assert structure_in(f"```\na\n{line}\nb") == Structure("heading", 3)


@pytest.mark.requirement("J71", "JA11", "J39")
@pytest.mark.parametrize(
    "line",
    [
        BINDING,
        OWNER,
        f"  {BINDING}",
        f"x {BINDING}",
        f"`{OWNER}`",
        BINDING[:60],
        "<!--amux:session",
        f"＜!-- amux:session {'a' * 16} --＞",
        "<!-- amux\u200b:session 0 -->",
    ],
)
def test_a_dressed_marker_is_found_with_its_line(line: str) -> None:
    assert structure_in(f"a\n{line}") == Structure("marker", 2)


@pytest.mark.requirement("J71")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "### 会话 09",
        "##会话 09",
        "    ## 会话 09",
        "> ## 会话 09",
        "a ## 会话 09",
        "the marker is amux:session and memory-session-binding",
        "会话 09\n## other",
        "## 對話",
        "<!-- amux:sessions -->",
    ],
)
def test_text_that_no_reader_takes_for_structure_passes(text: str) -> None:
    assert structure_in(text) is None
    require_plain(text, "content")


@pytest.mark.requirement("J71")
def test_a_refusal_names_argument_and_line() -> None:
    with pytest.raises(AmuxError) as refusal:
        require_plain("a\n## 会话 1", "content")
    details = refusal.value.details
    assert details["reason"] == "MEMORY_SESSION_WRITE_VERIFICATION_FAILED"
    assert (details["argument"], details["line"], details["kind"]) == ("content", 2, "heading")


@given(
    st.lists(st.sampled_from(["## 会话", " 01", "\n", BINDING, OWNER, "a", "\r\n", "#"])).map(
        "".join
    )
)
def test_what_passes_is_read_as_no_structure(text: str) -> None:
    if structure_in(text) is None:
        found = day.parse(f"## 会话 01\n\n{text}\n".encode())
        assert len(found.sections) == 1
        assert not found.remarks
        assert (found.sections[0].bindings, found.sections[0].owners) == ((), ())
