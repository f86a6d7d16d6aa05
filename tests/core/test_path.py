"""Paths: one name a document, legal everywhere (M11, M13, M40)."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amux.core.path import DocPath, PathPrefix, fold
from amux.errors import InvalidArgument

REASONS = {
    "/a.md": "absolute",
    "//server/share/a.md": "unc",
    "C:a.md": "drive",
    "C:/a.md": "drive",
    "\\\\server\\a.md": "unc",
    "a\\b.md": "backslash",
    "": "empty_segment",
    "a//b.md": "empty_segment",
    "a/": "empty_segment",
    "./a.md": "dot_segment",
    "a/../b.md": "dot_segment",
    "..": "dot_segment",
    ".a.md": "leading_dot",
    "a/.b/c.md": "leading_dot",
    "-a.md": "leading_dash",
    " a.md": "edge_blank_or_dot",
    "a /b.md": "edge_blank_or_dot",
    "a./b.md": "edge_blank_or_dot",
    "a.md ": "edge_blank_or_dot",
    "a\u3000/b.md": "edge_blank_or_dot",
    "a\tb.md": "control_character",
    "a\x7f.md": "control_character",
    "a\x85.md": "control_character",
    "x.md\0": "control_character",
    "a\u2028b.md": "control_character",
    "a\u202eb.md": "format_character",
    "a\u200bb.md": "format_character",
    "a\ufeffb.md": "format_character",
    "a\U000e0041b.md": "format_character",
    "a\ue000b.md": "private_character",
    "\ud800.md": "surrogate",
    "e\u0301.md": "not_nfc",
    "CON.md": "reserved_name",
    "nul/a.md": "reserved_name",
    "com1.txt.md": "reserved_name",
    "nul .md": "reserved_name",
    "LPT¹.md": "reserved_name",
    "notes:stream.md": "forbidden_character",
    "a*.md": "forbidden_character",
    "a?.md": "forbidden_character",
    'a".md': "forbidden_character",
    "a<b>.md": "forbidden_character",
    "a|b.md": "forbidden_character",
    "a.txt": "not_markdown",
    "a": "not_markdown",
    "md": "not_markdown",
    "/".join("abcdefgh") + "/i.md": "too_deep",
    "x" * 98 + ".md": "too_long",
    "记" * 33 + ".md": "too_long",
    "/".join(["x" * 90] * 6) + ".md": "too_long",
}


@pytest.mark.requirement("M11")
@pytest.mark.parametrize(("text", "reason"), REASONS.items(), ids=ascii)
def test_a_path_outside_the_rules_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        DocPath.parse(text)
    assert refused.value.details["reason"] == reason


@pytest.mark.requirement("M11")
@pytest.mark.parametrize(
    "text",
    [
        "MEMORY.md",
        "a.md",
        "projects/amux/decisions.md",
        "用户/偏好.md",
        "é.md",
        "a b.c-d_e (f).md",
        "con_.md",
        "A.MD",
        "/".join("abcdefg") + "/h.md",
        "x" * 97 + ".md",
        "日本/東京.md",
    ],
)
def test_a_path_within_the_rules_is_kept_as_it_is(text: str) -> None:
    assert DocPath.parse(text).text == text


@pytest.mark.requirement("M11")
def test_the_hint_for_text_outside_nfc_gives_the_nfc_form() -> None:
    with pytest.raises(InvalidArgument) as refused:
        DocPath.parse("cafe\u0301.md")
    assert "café.md" in refused.value.hint


@pytest.mark.requirement("M11", "M13")
def test_an_upper_case_extension_and_a_case_form_of_the_entry_may_be_read_but_not_created() -> None:
    for text in ("A.MD", "memory.md", "Memory.md", "ＭＥＭＯＲＹ.md"):
        with pytest.raises(InvalidArgument):
            DocPath.parse(text).require_creatable()
    DocPath.parse("MEMORY.md").require_creatable()
    DocPath.parse("projects/memory.md").require_creatable()


@pytest.mark.requirement("M11")
@given(st.text(max_size=80))
@example("a/b.md")
def test_whatever_is_accepted_obeys_every_rule(text: str) -> None:
    try:
        path = DocPath.parse(text)
    except InvalidArgument:
        return
    assert unicodedata.is_normalized("NFC", path.text)
    assert len(path.text.encode()) <= 512
    assert 1 <= len(path.segments) <= 8
    for segment in path.segments:
        assert segment not in {"", ".", ".."}
        assert 1 <= len(segment.encode()) <= 100
        assert not set(segment) & set('\\:*?"<>|\0')
        assert segment[0] not in ".- "
        assert segment[-1] not in ". "


@pytest.mark.requirement("M40")
@pytest.mark.parametrize(
    "text", ["", "projects", "projects/", "projects/am", "a.", "a ", "con", "a/b. "]
)
def test_a_prefix_may_end_in_an_unfinished_name(text: str) -> None:
    assert PathPrefix.parse(text).text == text


@pytest.mark.requirement("M40")
@pytest.mark.parametrize("text", ["/a", "../a", "a//", "a./", "con/", ".a", "a\\b", "a:b", "a /b"])
def test_a_prefix_obeys_the_rules_of_paths_where_it_is_finished(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        PathPrefix.parse(text)
    assert refused.value.details["argument"] == "path_prefix"


@pytest.mark.requirement("M40")
def test_a_prefix_covers_paths_that_begin_so() -> None:
    assert PathPrefix.parse("projects/am").covers("projects/amux/a.md")
    assert not PathPrefix.parse("projects/am/").covers("projects/amux/a.md")
    assert PathPrefix.parse("").covers("a.md")


@pytest.mark.requirement("M13")
@pytest.mark.parametrize(
    ("one", "other"), [("A.md", "a.md"), ("ＡＢＣ.md", "abc.md"), ("straße.md", "STRASSE.md")]
)
def test_names_that_some_file_system_takes_for_one_fold_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)
