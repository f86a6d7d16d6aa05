"""Days: sections found by line, every byte in one place (J34 to J41)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amux.core.canonical import digest
from amux.journal.text import day
from amux.journal.text.insertion import BOM
from amux.journal.text.section import Opening
from amux.journal.text.status import State

TOKEN = "ab" * 32
OWNER = "93211895d97cd08b"  # of session key `sess-1`
ATOMS = [
    "## 会话 01 — a\n",
    "## 会话 1\n",
    "## 会话\n",
    "## 会话 x y\n",
    "##  会话 #Ab.c：t\r\n",
    "会话",
    "- **状态**：✅ done\n",
    "- **状态**: blocked\n",
    "- **意图**：fix\n",
    "\n",
    "```\n",
    "text",
    "é|",
    f"<!-- devcodex:memory-session-binding v1 session=01 token={TOKEN} -->\n",
    f"<!-- amux:session {OWNER} -->\n",
    "### 🤝 ContextHandoffCard\n",
    "- **state**：{}\n",
    "# x\n",
]
TEXTS = st.lists(st.sampled_from(ATOMS), max_size=14).map("".join)
BYTES = st.one_of(
    TEXTS.map(str.encode),
    st.binary(max_size=60),
    st.builds(
        lambda bom, text, rest: bom + text.encode() + rest,
        st.sampled_from([b"", BOM]),
        TEXTS,
        st.binary(max_size=8),
    ),
)


def one(text: str) -> day.Section:
    found = day.parse(text.encode()).sections
    assert len(found) == 1
    return found[0]


@pytest.mark.requirement("J75", "J40", "J39")
def test_the_allocation_of_the_specification_is_reproduced() -> None:
    opening = Opening(
        title="Export endpoint returns stale totals",
        stamp="2026-03-14 09:20 +08:00",
        intent="fix",
        source_message="totals in the CSV lag one day",
        token=TOKEN,
        owner=OWNER,
    )
    data = opening.render("03").encode()
    assert len(data) == 359
    assert digest(data) == "e08a903812d0ec209326e9446866186bf4b66ccc78e14f4529e1f67a60adbeca"
    section = day.parse(data).sections[0]
    assert (section.handle, section.owners) == ("03-abababababab", (OWNER,))
    assert (section.state, section.status) == (State.ACTIVE, "🔄 reserved")
    assert section.after_header == len(data)


@pytest.mark.requirement("J34")
@pytest.mark.parametrize(
    ("heading", "name", "title"),
    [
        ("## 会话 03 — Title", "03", "Title"),
        ("## 会话 7", "07", ""),
        ("##\t会话100：x", "100", "x"),
        ("## 会话 #7: x", "07", "x"),
        ("## 会话 0007 - x - y", "07", "x - y"),
        ("## 会话 A.b_C-9 t", "a.b_c-9", "t"),
        ("## 会话 03—x", "03", "x"),
        ("## 会话 03:x\r", "03", "x"),
        ("## 会话 03 — — x ", "03", "— x"),
        ("## 会话 99999999999999999999", "99999999999999999999", ""),
        (f"## 会话 {'a' * 64}", "a" * 64, ""),
    ],
)
def test_a_heading_gives_a_canonical_id_and_a_title(heading: str, name: str, title: str) -> None:
    section = one(f"{heading}\n")
    assert (section.id, section.title, section.line) == (name, title, 1)


@pytest.mark.requirement("J35")
@pytest.mark.parametrize(
    "line",
    [
        "## 会话",
        "## 会话记录",
        "## 会话 03、x",
        f"## 会话 {'a' * 65}",
        "## 会话 ##3",
        "## 会话 # 3",
    ],
)
def test_a_malformed_heading_ends_the_section_before_it_and_starts_none(line: str) -> None:
    data = f"# d\n\n## 会话 01\na\n{line}\nb\n".encode()
    found = day.parse(data)
    assert [section.id for section in found.sections] == ["01"]
    assert data[found.sections[0].body : found.sections[0].end] == b"a\n"
    assert [(each.code, each.line) for each in found.remarks] == [("malformed-session-heading", 5)]


@pytest.mark.requirement("J34")
@pytest.mark.parametrize(
    "line", [" ## 会话 01", "### 会话 01", "##会话 01", "x## 会话 01", "## 对话 01"]
)
def test_what_is_no_heading_from_its_first_column_starts_nothing(line: str) -> None:
    assert day.parse(f"{line}\n".encode()) == day.Day(sections=(), remarks=())


@pytest.mark.requirement("J34")
def test_an_unclosed_fence_does_not_swallow_the_next_session() -> None:
    found = day.parse("## 会话 01\n```\ncode\n## 会话 02\n".encode())
    assert [section.id for section in found.sections] == ["01", "02"]


@pytest.mark.requirement("J36", "JA9")
def test_an_unterminated_last_line_is_text_and_nothing_else() -> None:
    for tail in ("## 会话 1", "## 会话", "- **状态**：✅", f"<!-- amux:session {OWNER} -->"):
        found = day.parse(f"## 会话 12\n{tail}".encode())
        assert [section.id for section in found.sections] == ["12"]
        assert found.sections[0].state is State.UNKNOWN
        assert found.sections[0].owners == ()
        assert [(each.code, each.line) for each in found.remarks] == [("unterminated-tail", 2)]


@pytest.mark.requirement("J37")
def test_the_last_status_line_that_is_recognised_gives_the_state() -> None:
    text = "## 会话 1\n- **状态**：🔄 reserved\n- **状态**: ✅ x\n- **状态**：who knows\n"
    section = one(text)
    assert (section.state, section.status) == (State.COMPLETED, "✅ x")
    assert one("## 会话 1\n- **状态**：inactive\n").status == "inactive"
    assert one("## 会话 1\ntext\n").status is None


@pytest.mark.requirement("J37")
def test_fields_are_lines_of_their_own_from_the_first_column() -> None:
    section = one(
        "## 会话 1\n- **意图**：fix\n- **意图**：dev\n - **sourceMessage**：no\n"
        "x - **状态**：✅\n- **sourceMessage**:  a b \n"
    )
    assert (section.intent, section.source_message) == ("fix", "a b")
    assert section.state is State.UNKNOWN


@pytest.mark.requirement("J39", "JA12")
def test_a_section_is_managed_by_exactly_one_marker_with_its_id() -> None:
    def marker(name: str) -> str:
        return f"<!-- devcodex:memory-session-binding v1 session={name} token={TOKEN} -->\n"

    assert one(f"## 会话 7\n{marker('7')}").is_managed
    assert one(f"## 会话 7\n{marker('07')}").handle == f"07-{TOKEN[:12]}"
    for text in ("", marker("08"), marker("07") * 2, " " + marker("07"), marker("07")[:-1]):
        section = one(f"## 会话 7\n{text}")
        assert not section.is_managed
        assert (section.token, section.handle) == (None, None)


@pytest.mark.requirement("J39")
def test_a_token_is_hidden_wherever_it_stands() -> None:
    text = f"a <!-- devcodex:memory-session-binding v1 session=01 token={TOKEN} -->"
    assert day.shown(text.encode()) == text.replace(TOKEN, "[hidden]")


@pytest.mark.requirement("J40", "JA13")
@pytest.mark.parametrize(
    ("names", "following"),
    [
        ([], "01"),
        (["03", "x", "01"], "04"),
        (["99"], "100"),
        (["01", "99999999999999999999"], "02"),
        (["999998"], "999999"),
        (["999999"], "1000000"),
        (["999999", "1000000"], "1000001"),
    ],
)
def test_the_next_id_is_one_more_than_the_largest_that_counts(
    names: list[str], following: str
) -> None:
    data = "".join(f"## 会话 {name}\n" for name in names).encode()
    assert day.next_id(day.parse(data)) == following


@pytest.mark.requirement("J4")
def test_bad_bytes_and_a_byte_order_mark_are_read_over() -> None:
    found = day.parse(BOM + "## 会话 01 — a\n".encode() + b"\xff\n")
    assert [(section.id, section.line) for section in found.sections] == [("01", 1)]
    assert [each.code for each in found.remarks] == ["invalid-utf8"]
    assert day.shown(b"\xff") == "\ufffd"


@pytest.mark.requirement("J55")
def test_a_window_that_lacks_the_start_gives_whole_sections_without_lines() -> None:
    data = "## 会话 01\nx\n## 会话 02\n".encode()
    for at in range(1, len(data)):
        found = day.parse(data[at:], is_cut=True)
        assert [section.id for section in found.sections][-1:] in ([], ["02"])
        assert all(section.line is None for section in found.sections)
        assert all(section.start > 0 for section in found.sections)


@pytest.mark.requirement("J34", "J35")
@given(BYTES)
@example(b"")
@example(BOM)
def test_any_bytes_are_read_and_sections_are_ranges_in_order(data: bytes) -> None:
    found = day.parse(data)
    at = 0
    for number, section in enumerate(found.sections, start=1):
        assert section.ordinal == number
        assert at <= section.start < section.body <= section.after_header <= section.end
        assert section.end <= len(data)
        assert data[: section.start].count(b"\n") + 1 == section.line
        at = section.end
    assert day.parse(data, is_cut=True).sections is not None
