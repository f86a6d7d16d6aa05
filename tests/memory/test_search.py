import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amux.core.text import json_length, to_json
from amux.errors import Code, InvalidArgument, LimitExceeded
from amux.memory import limits
from amux.memory.search import Found, Hit, Query, TermCount, rank, share
from amux.memory.snippet import Place, lines, settle, snippet
from amux.memory.title import title


def needles(text: str) -> list[str]:
    return [needle.decode("utf-8") for needle in Query.parse(text).needles]


def words(query: Query | None) -> list[str]:
    return [term.text for term in query.terms] if query else []


@pytest.mark.requirement("M35", "row-6")
def test_terms_are_split_on_unicode_white_space_and_are_never_syntax() -> None:
    query = Query.parse('NOT foo/bar\u3000"x\u00a0a.*b\n-v $(id)\tOR C++')
    assert words(query) == ["NOT", "foo/bar", '"x', "a.*b", "-v", "$(id)", "OR", "C++"]
    assert needles("NOT foo/bar a.*b -v $(id) C++") == [
        "not", "foo/bar", "a.*b", "-v", "$(id)", "c++"
    ]  # fmt: skip


@pytest.mark.requirement("M35")
def test_terms_that_fold_to_one_count_once_as_first_written() -> None:
    assert words(Query.parse("Hub ＨＵＢ hub straße STRASSE")) == ["Hub", "straße"]


@pytest.mark.requirement("M36", "row-6")
@pytest.mark.parametrize(
    ("term", "needle"),
    [
        ("totals?", "totals"),
        ('"parse"', "parse"),
        ("`parse`", "parse"),
        ("(foo1)", "foo1"),
        ("“记忆”", "记忆"),
        ("记忆？", "记忆"),
        ("《记》", "《记》"),
        ("カタ、", "カタ"),
        ("C++", "c++"),
        ("f()", "f()"),
        ("ab?", "ab?"),
        ("a-b-c:", "a-b-c"),
        ("???", "???"),
        ("std::move", "std::move"),
        ("ＡＢＣ！", "abc"),
        ("x_y_", "x_y_"),
    ],
)
def test_punctuation_around_a_term_is_optional_if_enough_is_left(term: str, needle: str) -> None:
    assert needles(term) == [needle]


@pytest.mark.requirement("M35", "row-6")
def test_queries_have_limits_that_the_refusal_names() -> None:
    Query.parse(" ".join(f"t{number}" for number in range(16)) + " t1 T2")
    Query.parse("x" * 512)
    Query.parse("记" * 170)
    with pytest.raises(LimitExceeded) as many:
        Query.parse(" ".join(f"t{number}" for number in range(17)))
    assert (many.value.code, many.value.details["max_terms"]) == (Code.LIMIT_EXCEEDED, 16)
    for text in ("x" * 513, "记" * 171, " " * 513):
        with pytest.raises(LimitExceeded) as long:
            Query.parse(text)
        assert long.value.details["max_bytes"] == 512
    for text in ("", " \u3000\n", "\ud800"):
        with pytest.raises(InvalidArgument) as empty:
            Query.parse(text)
        assert empty.value.details["argument"] == "query"


@pytest.mark.requirement("M41")
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("用户偏好", ["用户", "户偏", "偏好"]),
        ("记忆 plain", ["记忆"]),
        ("ＨＵＢ的端口8080在哪", ["hub", "的端", "端口", "8080", "在哪"]),
        ("搜索搜索", ["搜索", "索搜"]),
        ("データを、消す", ["デー", "ータ", "タを", "消す"]),
        ("메모리검색", ["메모", "모리", "리검", "검색"]),
        ("字 a字b plain", []),
        ("plain words", []),
        ("一二三四五六七八九十甲乙丙丁戊己庚辛壬", ["一二", "二三", "三四", "四五", "五六", "六七",
         "七八", "八九", "九十", "十甲", "甲乙", "乙丙", "丙丁", "丁戊", "戊己", "己庚"]),
    ],
)  # fmt: skip
def test_a_relaxed_query_has_pairs_and_whole_latin_words(text: str, pieces: list[str]) -> None:
    assert words(Query.parse(text).relax()) == pieces


@pytest.mark.requirement("M37")
def test_rank_is_terms_then_heads_then_path() -> None:
    rows = [bytes([0, 1, 1, 1, 1, 0]), bytes([0, 0, 1, 1, 0, 1])]
    heads = [b"", b"b.md", b"c.md", b"d.md\na title", b"e.md\na", b"f.md"]
    assert rank(rows, heads, [b"a", b"b"], 9) == [3, 2, 1, 4, 5]
    assert rank(rows, heads, [b"a", b"b"], 2) == [3, 2]
    assert rank([b"", b""], [], [b"a", b"b"], 5) == []


@pytest.mark.requirement("M37")
@given(st.data())
def test_rank_is_what_sorting_says(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    row = st.lists(st.integers(0, 1), min_size=count, max_size=count).map(bytes)
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    terms = [b"a", b"b", b"c", b"d"][: len(rows)]
    heads = data.draw(
        st.lists(st.sampled_from([b"", b"a", b"ab", b"cd"]), min_size=count, max_size=count)
    )
    expected = sorted(
        (index for index in range(count) if any(row[index] for row in rows)),
        key=lambda i: (-sum(r[i] for r in rows), -sum(t in heads[i] for t in terms), i),
    )
    limit = data.draw(st.integers(1, 20))
    assert rank(rows, heads, terms, limit) == expected[:limit]


# Of quotes, control characters and astral characters a byte becomes up to six.
nasty = st.text(st.sampled_from('"\\\n\r\t\x01\x1f\x7f aé记🙂\u2028'), max_size=400)
terms = st.lists(
    st.text(st.sampled_from('\x01\x02"\\🙂记ab'), min_size=1, max_size=32), min_size=1, max_size=16
)
segment = st.text(st.sampled_from("é记🙂a"), min_size=1, max_size=99).map(
    lambda text: text.encode()[:97].decode(errors="ignore")
)
paths = st.lists(segment, min_size=1, max_size=8).map(lambda parts: "/".join(parts)[:120] + ".md")


@pytest.mark.requirement("M17", "M38")
@given(terms, st.lists(st.tuples(paths, nasty, st.integers(1, 65_536)), max_size=20), st.booleans())
def test_no_answer_is_longer_than_its_budget(
    terms: list[str], documents: list[tuple[str, str, int]], flag: bool
) -> None:
    found = Found(
        terms=tuple(TermCount(term, 1024) for term in terms if len("".join(terms).encode()) <= 512),
        scanned_files=1024,
        skipped_files=8192,
        incomplete=flag,
        truncated=False,
        relaxed=flag,
    )
    shells = [
        Hit(path=path, revision="f" * 64, line=line, snippet_line=line, snippet="",
            truncated=False, matched_terms=tuple(range(16)))
        for path, _, line in documents
    ]  # fmt: skip
    shown, budget = share(found, shells)
    assert shown >= min(3, len(shells))
    assert limits.SNIPPET_MIN_BYTES <= budget <= limits.SNIPPET_MAX_BYTES
    hits = []
    for shell, (_, text, _) in zip(shells[:shown], documents, strict=False):
        cut = snippet(text.encode(), Place(1), [b"a"], budget)
        hits.append(Hit(**{**shell.plain(), "snippet": cut.text, "truncated": cut.truncated}))
    body = to_json(
        Found(hits=tuple(hits), terms=found.terms, scanned_files=1024, skipped_files=8192,
              incomplete=flag, truncated=shown < len(shells), relaxed=flag).plain()
    )  # fmt: skip
    assert len(body) <= limits.ANSWER_MAX_BYTES
    assert json.loads(body)["hits"] == [json.loads(to_json(hit.plain())) for hit in hits]


@pytest.mark.requirement("M17", "M38")
@pytest.mark.parametrize("count", [1, 5, 20])
def test_an_answer_may_be_full_to_the_last_byte_but_no_further(count: int) -> None:
    longest = 0
    for length in range(1, 120):
        shell = Hit(path="p" * length, revision="f" * 64, line=1, snippet_line=1, snippet="",
                    truncated=False, matched_terms=(0,))  # fmt: skip
        terms = tuple(TermCount("t" * 500, 1) for _ in range(6))
        found = Found(terms=terms, scanned_files=1, skipped_files=0, incomplete=False,
                      truncated=False, relaxed=False)  # fmt: skip
        shown, budget = share(found, [shell] * count)
        hits = (replace(shell, snippet="x" * budget),) * shown
        size = len(to_json(replace(found, hits=hits).plain()))
        longest = max(longest, size)
        assert size <= limits.ANSWER_MAX_BYTES
    assert count < 20 or longest > limits.ANSWER_MAX_BYTES - count


@pytest.mark.requirement("M38")
@given(nasty, st.integers(1, 8), st.integers(80, 320), st.sampled_from([0, 1, 2]))
def test_a_snippet_is_whole_lines_of_the_text_or_a_window_of_one(
    text: str, line: int, budget: int, start: int
) -> None:
    rows = text.split("\n")
    line = min(line, len(rows))
    cut = snippet(text.encode(), Place(line, min(start, line)), [b"a"], budget)
    assert json_length(cut.text) <= budget
    shown = cut.text.split("\n")
    if cut.truncated:
        assert len(shown) == 1
        assert cut.text in rows[cut.line - 1]
        assert json_length(rows[cut.line - 1]) > budget
    else:
        assert shown == rows[cut.line - 1 : cut.line - 1 + len(shown)]
        assert cut.line == start if 0 < start <= line else cut.line <= line
        below = cut.line - 1 + len(shown)
        rest = rows[:-1] if rows[-1] == "" else rows
        if below < len(rest):
            assert json_length(cut.text + "\n" + rest[below]) > budget
        if cut.line > 1 and not start:
            assert json_length(rows[cut.line - 2] + "\n" + cut.text) > budget


@pytest.mark.requirement("M38")
@example("a" * 200, "b" * 200, 80)
@example("\x01" * 200, "b" * 200, 80)
@given(
    st.text(st.sampled_from("aé，Ａ记🙂e\u0301ﬁß \x01"), max_size=3000),
    st.text(st.sampled_from("aé，Ａ记🙂ﬁß \x01"), max_size=3000),
    st.integers(80, 320),
)
def test_a_window_of_a_long_line_shows_the_first_match(
    before: str, after: str, budget: int
) -> None:
    text = before + "NeedLe" + after
    cut = snippet(text.encode(), Place(1), [b"needle"], budget)
    if cut.truncated:
        assert "NeedLe" in cut.text
        lead = cut.text.partition("NeedLe")[0]
        assert len(lead.encode()) <= limits.SNIPPET_LEAD_BYTES


@pytest.mark.requirement("M38")
@given(
    st.lists(st.text("abc", max_size=4), max_size=60), st.sets(st.sampled_from("abc"), min_size=1)
)
def test_the_line_of_a_hit_has_most_terms_and_is_the_first_such(
    rows: list[str], some: set[str]
) -> None:
    body = "\n".join(rows).encode()
    found = list(lines(body, [term.encode() for term in sorted(some)]))[-1]
    counts = [sum(term in row for term in some) for row in rows]
    assert found == (counts.index(max(counts)) + 1 if counts and max(counts) else 0)


@pytest.mark.requirement("M38")
def test_the_best_line_of_a_long_document_is_found_behind_many_worse_ones() -> None:
    body = b"alpha only\n" * 4000 + b"alpha beta\n" + b"beta alpha\n" * 9
    assert list(lines(body, [b"alpha", b"beta", b"gamma"]))[-1] == 4001


@pytest.mark.requirement("M38")
@pytest.mark.parametrize(
    ("text", "line", "needles", "place"),
    [
        ("intro\n\n# Title\nmore", 0, [b"path"], Place(3, 3)),
        ("no title", 0, [b"path"], Place(1, 1)),
        ("", 0, [b"path"], Place(1, 1)),
        ("intro\n# Title\nmore", 2, [b"title"], Place(2, 2)),
        ("intro\n# Title\ntitle", 2, [b"title"], Place(2)),
        ("a title\n# Title\n", 1, [b"title"], Place(1)),
        ("x\n\nLong\ntitle\n===\n", 4, [b"title"], Place(4, 3)),
    ],
)
def test_a_hit_by_path_or_title_alone_starts_at_the_title(
    text: str, line: int, needles: list[bytes], place: Place
) -> None:
    assert settle(title(text.encode()), text.lower().encode(), line, needles) == place
