"""The agent SUMMARY: rows as they stand, folded by key, appended only (J43 to J47)."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from amux.core.canonical import digest
from amux.errors import AmuxError
from amux.journal.text import event, summary, table
from amux.journal.text.insertion import BOM, close
from amux.journal.text.status import State

HEAD = (
    "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n|---|:--:|---|---|---|---|:-:|\n"
)
CELL = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12
)
ATOMS = [
    HEAD,
    "| 2026-03-14 | 03 | fix | a | — | — | 🔄 |\n",
    "| 2026-03-14 09:21 | 3 | fix | a | — | — | ✅ |\n",
    "| 2026-03-15 | x | fix | a\\|b | — | — | ⛔ |\r\n",
    "| a | b |\n",
    "# h\n",
    "\n",
    "prose\n",
    "|\n",
    "||\n",
    "| 2026-02-30 | 01 | dev | z | | | ✅ |\n",
    "| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |\n",
    "> 项目：x\n",
    "| a \\|\n",
    "|日期|会话|a|b|c|d|状态|x|\n",
    "| 2026-03-16 | 9 | dev | tail | — | — | 🔄 |",
]
BYTES = st.one_of(
    st.lists(st.sampled_from(ATOMS), max_size=12).map(lambda each: "".join(each).encode()),
    st.binary(max_size=40),
    st.builds(
        lambda each, rest: BOM + HEAD.encode() + "".join(each).encode() + rest,
        st.lists(st.sampled_from(ATOMS), max_size=8),
        st.binary(max_size=6),
    ),
)


def row(day: str, name: str, status: str, text: str = "a") -> str:
    return f"| {day} | {name} | fix | {text} | — | — | {status} |\n"


def parse(text: str) -> summary.Summary:
    return summary.parse(text.encode())


def codes(found: summary.Summary) -> list[tuple[str, int | None]]:
    return [(each.code, each.line) for each in found.remarks]


@pytest.mark.requirement("J75", "J47")
def test_the_row_of_the_specification_is_reproduced() -> None:
    cells = [
        "2026-03-14 09:21",
        "03",
        "fix",
        "a | b",
        "—",
        "[20260314.md](tasks/20260314.md)",
        "🔄",
    ]
    data = table.render(cells).encode()
    assert len(data) == 89
    assert digest(data) == "f09a24c18d4b0fec07fba2f6e7f16cc7552d4edbe56798d0744a24d5e8edd6eb"


@pytest.mark.requirement("J43")
def test_a_new_file_has_title_project_and_table() -> None:
    cells = ["2026-03-14", "03", "fix", "a", "—", "—", "✅"]
    made = event.append(None, cells, agent="codex", project="billing").data.decode()
    assert made == (
        "# Agent SUMMARY — codex\n\n> 项目：billing\n\n"
        "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
        "|------|:----:|------|------|---------|---------|:----:|\n"
        "| 2026-03-14 | 03 | fix | a | — | — | ✅ |\n"
    )
    assert parse(made).remarks == ()


@pytest.mark.requirement("J44")
def test_tables_start_at_their_header_and_end_at_a_heading() -> None:
    rows = [row("2026-03-14", name, "✅") for name in "12345"]
    text = f"{rows[0]}{HEAD}{rows[1]}\n{rows[2]}# h\n{rows[3]}x\n{HEAD}{HEAD}{rows[4]}"
    found = parse(text)
    assert [each.section for each in found.rows] == ["02", "03", "05"]
    assert codes(found) == [("summary-foreign-content", 1)]
    assert found.reaches_end
    assert not parse(f"{HEAD}# h\n").reaches_end
    assert not parse("prose\n").reaches_end


@pytest.mark.requirement("J44", "JA21")
def test_a_row_of_too_many_cells_is_repaired_and_one_of_too_few_is_skipped() -> None:
    text = f"{HEAD}| 2026-03-14 | 1 | fix | a | b | c | r | m | ✅ |\n| 2026-03-14 | 2 | x |\n"
    found = parse(text)
    assert summary.cells_of(text.encode(), found.rows[0]) == (
        "2026-03-14",
        "1",
        "fix",
        "a|b|c",
        "r",
        "m",
        "✅",
    )
    assert codes(found) == [("row-repaired", 3), ("row-skipped", 4)]


@pytest.mark.requirement("J44")
@pytest.mark.parametrize(
    "line", [" | 2026-03-14 | 1 | fix | a | — | — | ✅ |", "| a | b \\|", "|", "| 1 | 2", "text"]
)
def test_what_is_no_row_is_foreign(line: str) -> None:
    found = parse(f"{HEAD}{line}\n{line}\n")
    assert (found.rows, codes(found)) == ((), [("summary-foreign-content", 3)])


@pytest.mark.requirement("J36", "J44")
def test_an_unterminated_last_line_is_a_row_only_if_it_is_whole() -> None:
    whole = row("2026-03-14", "1", "✅").rstrip("\n")
    assert len(parse(HEAD + whole).rows) == 1
    assert len(parse(HEAD + whole[:-1]).rows) == 0
    assert len(parse(HEAD + "| 2026-03-14 | 1 |").rows) == 0
    assert len(parse(HEAD + HEAD.split("\n")[0]).rows) == 0
    assert len(parse(HEAD + "|---|---|---|---|---|---|---|").rows) == 0
    assert len(parse("x\n" + whole).rows) == 0
    assert codes(parse(HEAD + whole)) == [("unterminated-tail", 3)]
    assert parse(f"{HEAD}# h").reaches_end
    assert not parse(close(f"{HEAD}# h".encode()).decode()).reaches_end


@pytest.mark.requirement("J45", "JA17")
def test_the_last_row_of_a_key_is_current_and_a_reopened_one_is_a_conflict() -> None:
    text = HEAD + row("2026-03-14", "3", "🔄") + row("2026-03-14 09:00", "#03", "✅")
    found = parse(text)
    assert [each.key for each in found.rows] == ["2026-03-14#03"] * 2
    assert [each.state for each in found.current()] == [State.COMPLETED]
    assert found.conflicts() == ()
    again = parse(text + row("2026-03-15", "1", "🔄") + row("2026-03-14", "03", "🔄"))
    assert [each.key for each in again.current()] == ["2026-03-15#01", "2026-03-14#03"]
    states = (State.ACTIVE, State.COMPLETED, State.ACTIVE)
    assert again.conflicts() == (summary.Conflict("2026-03-14#03", states),)


@pytest.mark.requirement("J45")
def test_conflicts_come_newest_first_and_short() -> None:
    text = HEAD + "".join(row("2026-03-14", n, s) for n in "12" for s in ["✅", "🔄"] * 20)
    found = parse(text).conflicts()
    assert [each.key for each in found] == ["2026-03-14#02", "2026-03-14#01"]
    assert len(found[0].states) == summary.MAX_STATES


@pytest.mark.requirement("J45")
def test_a_row_without_real_date_or_id_stands_for_itself() -> None:
    text = (
        HEAD + "".join(row("2026-02-30", "1", s) for s in "✅🔄") + row("2026-03-14", "a b", "🔄")
    )
    found = parse(text)
    assert [each.key for each in found.rows] == ["line#3", "line#4", "line#5"]
    assert [each.is_canonical for each in found.rows] == [False] * 3
    assert len(found.current()) == 3
    assert found.conflicts() == ()
    assert found.rows[2].section == "a b"


@pytest.mark.requirement("J55")
def test_a_window_that_lacks_the_start_is_read_as_part_of_a_table() -> None:
    data = (
        row("2026-03-14", "1", "✅") + row("2026-03-14", "2", "🔄") + row("x", "3", "🔄")
    ).encode()
    found = summary.parse(data[3:], is_cut=True)
    assert [(each.section, each.line) for each in found.rows] == [("02", None), ("03", None)]
    assert found.rows[1].key.startswith("byte#")


@pytest.mark.requirement("J46", "JA19")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "SUMMARY_TYPE_EMPTY"),
        ("fix/dev", "SUMMARY_TYPE_SLASH"),
        ("fix dev", "SUMMARY_TYPE_WHITESPACE"),
        ("fix/ dev", "SUMMARY_TYPE_SLASH"),
        ("release", "SUMMARY_TYPE_NON_CANONICAL"),
        ("Fix", "SUMMARY_TYPE_NON_CANONICAL"),
        ("fix+fix", "SUMMARY_TYPE_NON_CANONICAL"),
        ("fix+", "SUMMARY_TYPE_NON_CANONICAL"),
        ("unspecified", "SUMMARY_TYPE_NON_CANONICAL"),
    ],
)
def test_a_type_that_is_not_canonical_is_refused_for_the_first_reason(
    text: str, reason: str
) -> None:
    with pytest.raises(AmuxError) as refusal:
        event.check_type(text)
    assert refusal.value.details["reason"] == reason


@pytest.mark.requirement("J46")
def test_types_are_joined_by_plus_and_an_intent_may_be_unspecified() -> None:
    assert event.check_type("fix+self-fix") == "fix+self-fix"
    assert event.check_type("unspecified", may_be_unspecified=True) == "unspecified"
    assert (event.type_cell("unspecified"), event.type_cell("dev")) == ("other", "dev")


@pytest.mark.requirement("J71", "JA19")
@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("a\nb", "one-line"),
        ("| 2026-03-14 | 03 | fix | a | — | ✅ |", "seven-cells"),
        ("2026-03-14", "seven-cells"),
        ("| 2026-02-30 | 03 | fix | a | — | — | ✅ |", "real-date"),
        ("| 2026-03-14x | 03 | fix | a | — | — | ✅ |", "real-date"),
        ("| 2026-03-14 | 0 3 | fix | a | — | — | ✅ |", "id"),
        ("| 2026-03-14 | 03 | fix |  | — | — | ✅ |", "summary"),
        ("| 2026-03-14 | 03 | fix | a | — | — | someday |", "state"),
    ],
)
def test_a_callers_row_is_refused_for_the_first_check_that_fails(line: str, check: str) -> None:
    with pytest.raises(AmuxError) as refusal:
        event.check_row(line)
    assert refusal.value.details["reason"] == "MEMORY_WRITER_ARGUMENT_INVALID"
    assert refusal.value.details["check"] == check


@pytest.mark.requirement("J71")
def test_a_callers_row_is_split_as_readers_do() -> None:
    cells = event.check_row("| 2026-03-14 09:21 | 03 | fix | a \\| b | — | — | done |")
    assert cells[3] == "a | b"


@pytest.mark.requirement("J47")
def test_the_first_cell_has_the_clock_time_only_of_today() -> None:
    now = {"today": "2026-03-15", "minute": "2026-03-15 00:10"}
    assert event.date_cell("2026-03-15", **now) == "2026-03-15 00:10"
    assert event.date_cell("2026-03-14", **now) == "2026-03-14"


@pytest.mark.requirement("J36", "J45")
def test_a_row_is_cut_out_again_whether_it_is_ended_or_not() -> None:
    data = (HEAD + row("2026-03-14", "1", "✅") + row("2026-03-14", "2", "✅"))[:-1].encode()
    for each in summary.parse(data).rows:
        assert summary.row_at(data, each.line, each.start, each.end) == each
        assert summary.current_row(data, "2026-03-14", each.section) == each
    assert summary.row_at(data, 1, 0, 5) is None


@pytest.mark.requirement("J44")
def test_a_header_that_is_none_or_not_yet_ended_begins_no_table() -> None:
    no_header = HEAD.partition("\n")[0].replace("状态", "state")
    for text in (
        f"{no_header}\n",
        HEAD.partition("\n")[0],
        f"日期\n{no_header}\n",
        f"{HEAD}#\n日期\n",
    ):
        data = text.encode()
        assert not summary.reaches(data, len(data))
    outside = f"x\n{row('2026-03-14', '1', '✅')}".encode()
    assert summary.current_row(outside, "2026-03-14", "01") is None


@pytest.mark.requirement("J65")
def test_a_row_repeats_if_the_current_one_of_its_key_differs_by_the_clock_alone() -> None:
    data = (HEAD + row("2026-03-14 09:00", "3", "🔄") + row("2026-03-14 09:10", "4", "🔄")).encode()
    cells = ["2026-03-14 09:30", "03", "fix", "a", "—", "—", "🔄"]
    found = event.is_repeat(data, cells)
    assert found is not None
    assert found.line == 3
    assert event.is_repeat(data, [*cells[:6], "✅"]) is None
    assert event.is_repeat(data + row("2026-03-14", "03", "✅").encode(), cells) is None
    assert event.is_repeat(data, [*cells[:1], "a b", *cells[2:]]) is None
    assert event.is_repeat(b"", cells) is None
    assert event.is_repeat(b"2026-03-14\n" + data[: data.index(b"\n") - 9], cells) is None


@pytest.mark.requirement("JA21", "J44", "J47", "JA34")
@given(BYTES, st.lists(CELL, min_size=4, max_size=4))
@example(b"", ["a|b\\|", "", "\\", "|"])
def test_an_appended_row_comes_back_as_it_was_given_and_no_byte_is_lost(
    old: bytes, cells: list[str]
) -> None:
    given_cells = ["2026-03-17", "09", *cells, "✅"]
    made = event.append(old, given_cells, agent="codex", project="p")
    assert made.data.startswith(close(old))
    before, after = summary.parse(close(old)), summary.parse(made.data)
    assert after.rows[:-1] == before.rows
    assert summary.cells_of(made.data, after.rows[-1]) == tuple(
        cell.strip(" \t") for cell in given_cells
    )
    assert event.is_repeat(made.data, given_cells) == after.rows[-1]
    again = event.append(made.data, given_cells, agent="codex", project="p")
    assert again.data[len(made.data) :].count(b"\n") == 1


@given(st.lists(CELL, min_size=1, max_size=9))
def test_cells_come_back_as_they_were_given(cells: list[str]) -> None:
    assume(not (len(cells) == 1 and not cells[0].strip(" \t")))
    assert table.cells_of(table.render(cells)[:-1]) == [cell.strip(" \t") for cell in cells]


@pytest.mark.requirement("J45")
@given(BYTES)
def test_any_bytes_are_read_and_what_is_found_without_reading_all_is_the_same(data: bytes) -> None:
    found = summary.parse(data)
    assert found.remarks == () or found.remarks[0].code
    for each in found.rows:
        assert summary.row_at(data, each.line, each.start, each.end) == each
    for each in found.current():
        if each.is_canonical:
            assert summary.current_row(data, each.date, each.section) == each
    closed = close(data)
    assert summary.reaches(closed, len(closed)) == summary.parse(closed).reaches_end
    assert summary.parse(data, is_cut=True).rows is not None


@pytest.mark.requirement("J4")
def test_bad_bytes_are_read_over_with_a_warning() -> None:
    data = BOM + HEAD.encode() + b"| 2026-03-14 | 1 | fix | \xff | x | y | \xe2\x9c\x85 |\n"
    found = summary.parse(data)
    assert summary.cells_of(data, found.rows[0])[3] == "\ufffd"
    assert codes(found) == [("invalid-utf8", None)]


def test_a_row_that_would_be_read_otherwise_is_refused() -> None:
    with pytest.raises(AmuxError):
        event.append(None, ["2026-03-14", "1", "fix", "a\nb", "", "", "✅"], agent="a", project="p")
