"""Cards, links, the project SUMMARY's decisions, and the newlines around new text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal import relative
from amux.journal.text import card, day, decisions, insertion, link, newtext
from amux.journal.text.card import Handoff
from amux.journal.text.insertion import BOM, close
from amux.journal.text.link import Link, Mention
from tests.support.growth import require_linear

DOCUMENT = ".memory/clients/codex/tasks/20260314.md"
TABLE = (
    "| 日期 | 决策 | 原因 | 影响范围 | 证据 |\n|------|------|------|---------|------|\n"
    "| 2026-03-14 | a | b | c | d |\n"
)


@pytest.mark.requirement("J68", "JA35")
def test_the_last_card_of_a_section_counts_up_to_a_heading_as_high() -> None:
    text = (
        "### ContextHandoffCard\n- **next-action**：old\n#### 🤝 ContextHandoffCard x\r\n"
        "- **next-action**: new \n- **next-action**：later\n"
        "##### deeper\n- **task**：t\n#### end\nz\n"
    )
    data = text.encode()
    found = card.find(data)
    assert found is not None
    assert (
        data[found.start : found.end].decode() == text[text.index("#### 🤝") : text.index("#### e")]
    )
    assert found.values == {"next-action": "new", "task": "t"}
    assert card.find(data, "SessionTimingCard") is None
    assert card.find(b"# ContextHandoffCard\nContextHandoffCard\n## ContextHandoffCard") is None


@pytest.mark.requirement("J68", "J69")
def test_a_card_that_is_written_is_read_back() -> None:
    values = {key: f"{key} x" for key in card.HANDOFF_KEYS if key != card.STATE}
    written = "".join(Handoff(values=values, state='{"a":1}').render())
    found = card.find(written.encode())
    assert found is not None
    assert found.values == {**values, "state": '{"a":1}'}
    assert list(found.values) == list(card.HANDOFF_KEYS)
    assert "**state**" not in "".join(Handoff(values={"state": "mine"}).render())


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_any_bytes_may_hold_a_card(before: bytes, after: bytes) -> None:
    data = before + b"\n### ContextHandoffCard\n" + after
    found = card.find(data)
    assert found is not None
    assert 0 <= found.start < found.end <= len(data)


@pytest.mark.requirement("J66")
def test_links_are_relative_to_their_document() -> None:
    assert Link("a", "reports/x.md").render(DOCUMENT) == "[a](../../../../reports/x.md)"
    assert (
        Link("a", DOCUMENT).render(".memory/clients/codex/SUMMARY.md") == "[a](tasks/20260314.md)"
    )
    assert Link("a", "b/c.md", "why").render("b/d.md") == "[a](c.md) — why"
    assert Link("a]b", "x (1).md").render("d.md") == "[a\\]b](<x (1).md>)"
    assert Link("a", "x<y>.md").render("d.md") == "[a](<x\\<y\\>.md>)"
    assert link.unique([Link("a", "x"), Link("b", "y"), Link("c", "x")]) == (
        Link("a", "x"),
        Link("b", "y"),
    )


@pytest.mark.requirement("J19", "J66")
@pytest.mark.parametrize(
    ("path", "is_safe"),
    [
        ("a", True),
        ("a/b.md", True),
        ("项目 é/x", True),
        ("", False),
        ("/a", False),
        ("a//b", False),
        ("a/", False),
        ("./a", False),
        ("a/../b", False),
        ("..", False),
        ("a\\b", False),
        ("c:a", False),
        ("a\nb", False),
        ("a\x85", False),
        ("a" * 1024, True),
        ("é" * 513, False),
    ],
)
def test_a_path_argument_stays_inside_its_root(path: str, is_safe: bool) -> None:
    assert (relative.problem(path) is None) is is_safe


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4),
)
def test_a_relative_way_leads_to_its_target(here: list[str], there: list[str]) -> None:
    document, target = "/".join(here), "/".join(there)
    assert link.resolve(document, link.relative(document, target)) == target


@pytest.mark.requirement("J66")
def test_links_of_free_text_are_found_where_they_are_links() -> None:
    text = (
        "[a](x.md) ![b](<y z.md>) [c](https://h/x) [d](#top) [e](mailto:a@b) `[f](f.md)`\n"
        '```\n[g](g.md)\n````\n[h](h(1).md "t") [i](/abs) [j](file:///x) [k]() [l](//h/x)\n'
        "~~~\n[m](m.md)\n```\n~~~\n[n](n%20n.md#a)"
    )
    assert link.mentions(text) == (
        Mention("x.md", 1),
        Mention("y z.md", 1),
        Mention("h(1).md", 5),
        Mention("/abs", 5),
        Mention("file:///x", 5),
        Mention("n%20n.md#a", 10),
    )
    assert link.resolve(DOCUMENT, "n%20n.md#a") == ".memory/clients/codex/tasks/n n.md"
    assert link.resolve(DOCUMENT, "./../x//y.md?z") == ".memory/clients/codex/x/y.md"
    for href in ("/abs", "file:///x", "../../../../../x"):
        assert link.resolve(DOCUMENT, href) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "[\\",
        "[a](",
        "](",
        "`",
        "[](<",
        '[a](b "',
        "<!-- ",
        "<!-- devcodex:memory-session-binding ",
        "<!-- devcodex:memory-session-binding v1 session=",
        "##\u3000",
        "## 会话",
        "\ufdfa",
        "- **状态**：",
        "### ContextHandoffCard",
    ],
)
def test_no_text_takes_long_to_look_through(piece: str) -> None:
    text = (piece * (262_144 // len(piece)))[:262_144]
    for part in (text, f"{text}](", f"amux:session {text}\n会话"):
        require_linear(link.mentions, part)
        require_linear(newtext.structure_in, part)
        require_linear(lambda text: day.parse(f"## 会话 01\n{text}\n".encode()), part)
        require_linear(lambda text: card.find(f"{text}\n".encode()), part)


@pytest.mark.requirement("J48")
def test_a_new_project_summary_has_title_heading_and_table() -> None:
    made = decisions.append(None, ["2026-03-14", "a", "b", "c", "d"], project="billing")
    assert made.data.decode() == f"# 项目 SUMMARY — billing\n\n## 决策记录\n\n{TABLE}"
    assert [each.line for each in decisions.parse(made.data)] == [7]


@pytest.mark.requirement("J48")
def test_a_decision_follows_the_last_table_or_begins_one() -> None:
    cells = ["2026-03-15", "x", "y", "z", "—"]
    row = "| 2026-03-15 | x | y | z | — |\n"
    for old, expected in [
        (TABLE, TABLE + row),
        (TABLE + "\n \n", TABLE + row + "\n \n"),
        (TABLE.rstrip("\n"), TABLE + row),
        (
            f"people\n\n{TABLE}\nwords\n",
            f"people\n\n{TABLE}\nwords\n\n## 决策记录\n\n{TABLE[:-33]}",
        ),
    ]:
        made = decisions.append(old.encode(), cells, project="p").data.decode()
        assert made.startswith(expected[: len(expected) - 1]) or made == expected
        assert made.count(row) == 1
    prose = decisions.append(b"# mine\nwords", cells, project="p").data.decode()
    assert prose.startswith("# mine\nwords\n\n## 决策记录\n\n| 日期 |")


@pytest.mark.requirement("J65")
def test_a_decision_repeats_if_it_equals_the_last_row_but_for_its_date() -> None:
    old = TABLE.encode()
    found = decisions.is_repeat(old, ["2026-03-20", "a", "b", "c", "d"])
    assert found is not None
    assert found.line == 3
    assert decisions.is_repeat(old, ["2026-03-14", "a", "b", "c", "e"]) is None
    assert decisions.is_repeat(None, ["2026-03-14", "a", "b", "c", "e"]) is None
    with pytest.raises(AmuxError):
        decisions.append(old, ["2026-03-14", "a\nb", "b", "c", "e"], project="p")


LINES = st.lists(
    st.sampled_from(
        ["| a | b | c | d | e |\n", TABLE, "\n", "x\n", "## 决策记录\r\n", "| a |\n", "tail"]
    ),
    max_size=8,
).map("".join)


@pytest.mark.requirement("J48", "JA34")
@given(
    st.one_of(LINES.map(str.encode), st.binary(max_size=30), LINES.map(lambda t: BOM + t.encode()))
)
def test_a_decision_is_added_and_no_byte_is_lost(old: bytes) -> None:
    cells = ["2026-03-15", "x|y", "\\", "", "é"]
    made = decisions.append(old, cells, project="p")
    closed = close(old)
    at = made.start
    assert made.data[at : made.end].decode().count("|") == 7
    head = made.data[:at]
    assert closed.startswith(head) or head.startswith(closed)
    assert made.data.endswith(closed[at:]) if at <= len(closed) else True
    assert decisions.is_repeat(made.data, cells) is not None


@pytest.mark.requirement("J4", "J63", "JA34")
@given(st.binary(max_size=30), st.sampled_from([b"", BOM]))
def test_closing_adds_one_newline_at_most(data: bytes, bom: bytes) -> None:
    old = bom + data
    closed = insertion.close(old)
    assert closed.startswith(old)
    assert closed[len(old) :] in (b"", b"\n", b"\r\n")
    assert insertion.is_closed(closed)
    assert insertion.close(closed) == closed


@pytest.mark.requirement("J63")
@pytest.mark.parametrize(
    ("before", "is_blank"),
    [
        (b"", True),
        (BOM, True),
        (b"\n", True),
        (BOM + b"\r\n", True),
        (b"a\n", False),
        (b"a\n\n", True),
        (b"a\n \t\n", True),
        (b"a\r\n\r\n", True),
        (b" \n", True),
        (b"a\n\nb\n", False),
    ],
)
def test_a_blank_line_is_seen_where_one_stands(before: bytes, is_blank: bool) -> None:
    assert insertion.ends_blank(before) is is_blank
