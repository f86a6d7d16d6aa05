"""What is written into a day: only insertions, parsed again, repeats known (J63, J65, J71, J74)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.canonical import digest
from amux.errors import AmuxError
from amux.journal.text import day, section
from amux.journal.text.card import Handoff
from amux.journal.text.insertion import BOM, close, newline_of
from amux.journal.text.newtext import structure_in
from amux.journal.text.section import Block, Opening
from amux.journal.text.status import State

TOKEN, OWNER = "ab" * 32, "93211895d97cd08b"
STAMP = "2026-03-14 09:20 +08:00"
OPENING = Opening(stamp=STAMP, token=TOKEN, owner=OWNER)
LINES = st.sampled_from(
    [
        "## 会话 01 — a\n",
        "## 会话 1\r\n",
        "## 会话\n",
        "text\r\n",
        "\n",
        " \n",
        "```\n",
        "- **状态**：✅\n",
        f"<!-- devcodex:memory-session-binding v1 session=01 token={TOKEN} -->\n",
        "tail",
        "## 会话 2",
    ]
)
OLD = st.builds(
    lambda bom, lines, rest: bom + "".join(lines).encode() + rest,
    st.sampled_from([b"", BOM]),
    st.lists(LINES, max_size=8),
    st.one_of(st.just(b""), st.binary(max_size=6)),
)
CONTENT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1
)


def reason(refusal: pytest.ExceptionInfo[AmuxError]) -> object:
    return refusal.value.details["reason"]


def is_subsequence(old: bytes, new: bytes) -> bool:
    """Tell whether an insertion at one place, after closing, turned one into the other."""
    closed = close(old)
    extra = len(new) - len(closed)
    same = 0
    while same < len(closed) and closed[same] == new[same]:
        same += 1
    return extra >= 0 and closed[same:] == new[len(new) - len(closed) + same :]


@pytest.mark.requirement("J40", "J63")
def test_a_first_section_starts_the_file() -> None:
    opened = section.open_section(b"", OPENING)
    assert opened.insertion.data.decode() == OPENING.render("01")
    assert opened.section.title == section.NO_TITLE
    assert (opened.section.intent, opened.section.source_message) == ("unspecified", "—")


@pytest.mark.requirement("J40", "J32")
def test_an_unknown_agent_leaves_the_reason_in_one_line() -> None:
    opening = Opening(stamp=STAMP, token=TOKEN, owner=OWNER, unknown_agent="no name\n## 会话 9\n")
    opened = section.open_section(b"", opening)
    assert "- **宿主**：unknown-agent（no name ## 会话 9）\n" in opened.insertion.data.decode()


@pytest.mark.requirement("J63", "JA13")
def test_text_goes_to_its_sections_end_before_a_malformed_heading() -> None:
    old = section.open_section(b"", OPENING).insertion.data + "## 会话\nx\n".encode()
    found = day.parse(old).sections[0]
    extended = section.extend(old, found, Block(content="hello"))
    text = extended.insertion.data.decode()
    assert text.endswith("-->\n\nhello\n\n## 会话\nx\n")
    assert section.open_section(old, OPENING).section.id == "02"


@pytest.mark.requirement("JA9", "J36", "J63")
def test_an_unterminated_heading_is_closed_and_becomes_a_section() -> None:
    old = "## 会话 12\n## 会话 1".encode()
    opened = section.open_section(old, OPENING)
    assert opened.section.id == "13"
    assert opened.insertion.data.startswith("## 会话 12\n## 会话 1\n\n## 会话 13 — ".encode())


@pytest.mark.requirement("J63")
def test_one_blank_line_stands_before_and_after_what_is_added() -> None:
    first = section.open_section(b"", OPENING).insertion.data
    both = section.open_section(first, OPENING).insertion.data
    found = day.parse(both).sections[0]
    once = section.extend(both, found, Block(content="one\n"))
    twice = section.extend(once.insertion.data, once.section, Block(content="two"))
    assert "-->\n\none\n\ntwo\n\n## 会话 02".encode() in twice.insertion.data
    blanks = section.extend(both, found, Block(content="\n\none\n\n\n")).insertion.data.decode()
    assert "-->\n\n\n\none\n\n\n## 会话 02" in blanks


@pytest.mark.requirement("J63", "JA34")
def test_lines_end_as_the_first_line_of_the_file_does() -> None:
    old = b"# d\r\nx\n"
    opened = section.open_section(old, OPENING, Block(content="a\nb", status=State.COMPLETED))
    added = opened.insertion.data[len(old) :]
    assert added.count(b"\n") == added.count(b"\r\n") > 5
    assert opened.insertion.data.startswith(old)
    lf = section.open_section(b"x\ny\r\n", OPENING).insertion.data
    assert lf.count(b"\r\n") == 1


@pytest.mark.requirement("J63", "JA34")
@given(OLD, CONTENT)
def test_a_new_section_loses_no_byte_whatever_stood_there(old: bytes, content: str) -> None:
    block = Block(content=content)
    if structure_in(block.render()) is not None:
        with pytest.raises(AmuxError):
            section.open_section(old, OPENING, block)
        return
    opened = section.open_section(old, OPENING, block)
    assert opened.insertion.data.startswith(close(old))
    before, after = day.parse(close(old)), day.parse(opened.insertion.data)
    assert [each.id for each in after.sections[:-1]] == [each.id for each in before.sections]
    assert opened.section.id not in {each.id for each in before.sections}
    assert opened.section.is_managed
    repeated = section.opened_before(opened.insertion.data, after, OPENING, block)
    assert repeated == opened.section
    newline = newline_of(close(old))
    assert content.encode().replace(b"\n", newline) in opened.insertion.data


@pytest.mark.requirement("J63", "JA34")
@given(OLD, CONTENT, st.integers(0, 5))
def test_a_longer_section_loses_no_byte_whatever_stood_there(
    old: bytes, content: str, which: int
) -> None:
    old = "## 会话 07\n".encode() + old.removeprefix(BOM)
    found = day.parse(old).sections
    block = Block(content=content, status=State.BLOCKED)
    if structure_in(block.render()) is not None:
        with pytest.raises(AmuxError):
            section.extend(old, found[which % len(found)], block)
        return
    extended = section.extend(old, found[which % len(found)], block)
    assert is_subsequence(old, extended.insertion.data)
    assert extended.section.state is State.BLOCKED
    assert section.is_repeat(extended.insertion.data, extended.section, block)
    others = [each.id for each in day.parse(extended.insertion.data).sections]
    assert others == [each.id for each in day.parse(close(old)).sections]


@pytest.mark.requirement("J71")
def test_parts_of_a_block_stand_in_their_order_one_blank_line_apart() -> None:
    block = Block(
        content="text\n",
        links=("[a](../a.md)", "[b](../b.md) — why"),
        card=Handoff(values={"next-action": "go on", "task": "t"}, state='{"a":1}'),
        status=State.ACTIVE,
    )
    assert block.render() == (
        "text\n\n### 📄 关联报告\n\n- [a](../a.md)\n- [b](../b.md) — why\n\n"
        "### 🤝 ContextHandoffCard\n\n- **task**：t\n"
        '- **state**：{"a":1}\n'
        "- **source-of-truth**：—\n- **confirmed-decisions**：—\n- **open-risks**：—\n"
        "- **next-action**：go on\n- **blocked-reason**：—\n- **must-not-overwrite**：—\n"
        "- **validation-state**：—\n- **artifact-links**：—\n\n- **状态**：🔄 active\n"
    )
    assert Block().render() == ""
    assert Block(status=State.COMPLETED).render() == "- **状态**：✅ completed\n"


@pytest.mark.requirement("J65")
def test_a_block_that_ends_its_section_is_a_repeat_whatever_its_cards_state() -> None:
    old = section.open_section(b"", OPENING).insertion.data
    block = Block(card=Handoff(values={"next-action": "x"}, state="{}"), content="a")
    first = section.extend(old, day.parse(old).sections[0], block)
    data = first.insertion.data
    later = Block(card=Handoff(values={"next-action": "x"}, state='{"a":2}'), content="a")
    assert section.is_repeat(data, first.section, later)
    for other in (
        Block(card=Handoff(values={"next-action": "y"}, state="{}"), content="a"),
        Block(card=Handoff(values={"next-action": "x"}), content="a"),
        Block(card=Handoff(values={"next-action": "x"}, state="{}"), content="b"),
        Block(content="a"),
    ):
        assert not section.is_repeat(data, first.section, other)
    assert not section.is_repeat(old, day.parse(old).sections[0], block)


@pytest.mark.requirement("J65")
def test_a_block_is_no_repeat_of_the_end_of_a_longer_one() -> None:
    old = section.open_section(b"", OPENING, Block(content="a\nb"))
    assert not section.is_repeat(old.insertion.data, old.section, Block(content="b"))
    assert section.is_repeat(old.insertion.data, old.section, Block(content="a\nb\n\n"))


@pytest.mark.requirement("J65")
def test_opening_is_a_repeat_only_of_this_sessions_latest_section_with_equal_words() -> None:
    data = section.open_section(b"", OPENING, Block(content="a")).insertion.data

    def before(opening: Opening, block: Block | None) -> day.Section | None:
        return section.opened_before(data, day.parse(data), opening, block)

    assert before(OPENING, Block(content="a")) is not None
    again = Opening(stamp="2026-03-14 11:00 +08:00", token="cd" * 32, owner=OWNER)
    assert before(again, Block(content="a")) is not None
    assert before(OPENING, Block(content="b")) is None
    assert before(OPENING, None) is None
    assert before(Opening(stamp=STAMP, token=TOKEN, owner="0" * 16), Block(content="a")) is None
    for words in ({"title": "t"}, {"intent": "fix"}, {"source_message": "m"}):
        other = Opening(stamp=STAMP, token=TOKEN, owner=OWNER, **words)
        assert before(other, Block(content="a")) is None
    allocated = section.open_section(data, OPENING).insertion.data
    found = section.opened_before(allocated, day.parse(allocated), OPENING, None)
    assert found is not None
    assert found.id == "02"
    foreign = allocated.replace(b"session=02", b"session=03")
    assert section.opened_before(foreign, day.parse(foreign), OPENING, None) is None


@pytest.mark.requirement("J74", "JA10", "JA12")
def test_a_section_opens_only_to_its_own_token() -> None:
    marker = f"<!-- devcodex:memory-session-binding v1 session=01 token={TOKEN} -->\n"
    managed = day.parse(f"## 会话 01\n{marker}".encode())
    assert section.find_bound(managed, "01", TOKEN).id == "01"
    assert section.find_bound(managed, "01", TOKEN[:12].upper()).id == "01"
    cases = {
        "MEMORY_SESSION_NOT_FOUND": ("## 会话 02\n", TOKEN),
        "MEMORY_SESSION_AMBIGUOUS": (f"## 会话 1\n{marker}## 会话 01\n", TOKEN),
        "MEMORY_SESSION_BINDING_UNAVAILABLE": ("## 会话 1\n", TOKEN),
        "MEMORY_SESSION_BINDING_MISMATCH": (f"## 会话 1\n{marker}", "cd" * 6),
    }
    for expected, (text, token) in cases.items():
        with pytest.raises(AmuxError) as refusal:
            section.find_bound(day.parse(text.encode()), "01", token)
        assert reason(refusal) == expected
    for text in (f"## 会话 1\n{marker}{marker}", f"## 会话 1\n{marker.replace('=01', '=02')}"):
        with pytest.raises(AmuxError) as refusal:
            section.find_bound(day.parse(text.encode()), "01", TOKEN)
        assert reason(refusal) == "MEMORY_SESSION_LAYOUT_INVALID"


@pytest.mark.requirement("J63", "J71")
def test_what_would_be_read_as_structure_is_refused_and_nothing_is_made() -> None:
    old = section.open_section(b"", OPENING).insertion.data
    for opening in (
        Opening(stamp=STAMP, token="no token", owner=OWNER),
        Opening(stamp=STAMP, token=TOKEN, owner=OWNER, title="a\n## 会话 09"),
        Opening(stamp=STAMP, token=TOKEN, owner=OWNER, source_message="a\n## 会话"),
    ):
        with pytest.raises(AmuxError) as refusal:
            section.open_section(old, opening)
        assert reason(refusal) == "MEMORY_SESSION_WRITE_VERIFICATION_FAILED"
    for content in (
        "x\n## 会话 09",
        "x\u2028## 会话 09",
        "＃＃ 会话",
        f"<!-- amux:session {OWNER} -->",
    ):
        for block in (Block(content=content), Block(links=(f"a\n{content}",))):
            with pytest.raises(AmuxError) as refusal:
                section.extend(old, day.parse(old).sections[0], block)
            assert reason(refusal) == "MEMORY_SESSION_WRITE_VERIFICATION_FAILED"
            with pytest.raises(AmuxError) as refusal:
                section.open_section(old, OPENING, block)
            assert reason(refusal) == "MEMORY_SESSION_WRITE_VERIFICATION_FAILED"


def test_digests_of_what_does_not_change_stay() -> None:
    first = section.open_section(b"", OPENING).insertion.data
    second = section.open_section(first, OPENING)
    assert digest(second.insertion.data[: len(first)]) == digest(first)
