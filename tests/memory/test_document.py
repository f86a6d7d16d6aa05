"""Slices: bounded, at characters, and joined they are the stored bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amux.core import revision
from amux.core.path import DocPath
from amux.core.text import to_json
from amux.errors import InvalidArgument, LimitExceeded
from amux.memory import limits
from amux.memory.document import Missing, Present, Range, Slice, cut, require_content, require_size

PATH = DocPath.parse("notes/a.md")
NASTY = st.text(
    st.one_of(
        st.sampled_from('"\\\n\r\t\x00\x01\x1f\x7f é记😀\u2028\ufeff'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=300,
)


def take(data: bytes, **part: int) -> Slice:
    return cut(PATH, Present(data), Range(**part))


def joined(data: bytes, end_line: int = 0) -> bytes:
    got, offset = b"", 0
    while True:
        slice_ = take(data, offset=offset, end_line=end_line)
        assert len(to_json(slice_.plain())) <= limits.ANSWER_MAX_BYTES
        got += slice_.content.encode()
        if slice_.next_offset is None:
            assert not slice_.truncated
            return got
        assert slice_.truncated
        assert slice_.next_offset > offset
        offset = slice_.next_offset


@pytest.mark.requirement("M17", "M31")
@settings(max_examples=60)
@given(NASTY, st.integers(1, 200))
def test_joined_slices_are_the_stored_bytes_and_none_is_over_budget(text: str, times: int) -> None:
    data = (text * times).encode()[: limits.DOCUMENT_MAX_BYTES]
    data = data.decode("utf-8", "ignore").encode()
    assert joined(data) == data


@pytest.mark.requirement("M17", "row-5")
@pytest.mark.parametrize("unit", ["\x01", '"', "\t", "\\", "😀", "记", "\x7f", "\n", "a"])
def test_a_full_document_of_one_awkward_character_is_read_whole_within_budget(unit: str) -> None:
    data = (unit * (limits.DOCUMENT_MAX_BYTES // len(unit.encode()))).encode()
    assert joined(data) == data


@pytest.mark.requirement("M30", "M31")
def test_lines_are_one_based_inclusive_and_end_at_lf_only() -> None:
    data = "one\ntwo\u2028still two\r\nthree\x0bthree\n".encode()
    assert take(data).total_lines == 3
    assert take(data, start_line=2, end_line=2).content == "two\u2028still two\r\n"
    assert take(data, start_line=3).content == "three\x0bthree\n"
    second = take(data, start_line=2, end_line=99)
    assert (second.start_line, second.end_line) == (2, 3)
    past = take(data, start_line=4)
    assert (past.content, past.truncated, past.next_offset) == ("", False, None)


@pytest.mark.requirement("M31")
@pytest.mark.parametrize(("data", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"\n\n", 2)])
def test_total_lines_counts_a_last_line_without_lf(data: bytes, lines: int) -> None:
    assert take(data).total_lines == lines


@pytest.mark.requirement("M31")
def test_an_offset_at_the_end_is_empty_and_one_inside_a_character_or_beyond_is_refused() -> None:
    data = "记忆".encode()
    assert take(data, offset=6).content == ""
    assert take(data, offset=3).content == "忆"
    for offset in (1, 2, 4, 7, 100):
        with pytest.raises(InvalidArgument):
            take(data, offset=offset)


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    "part",
    [
        {"start_line": 2, "offset": 1},
        {"start_line": 3, "end_line": 2},
        {"start_line": -1},
        {"end_line": -1},
        {"offset": -1},
    ],
)
def test_a_range_that_contradicts_itself_is_refused(part: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        Range(**part)


@pytest.mark.requirement("M31")
def test_an_end_line_holds_over_all_pages() -> None:
    data = b"".join(b"%04d %s\n" % (n, b"x" * 90) for n in range(300))
    assert joined(data, end_line=200) == b"".join(data.splitlines(keepends=True)[:200])


@pytest.mark.requirement("M32")
def test_a_missing_document_is_an_answer() -> None:
    slice_ = cut(PATH, Missing(), Range())
    assert (slice_.exists, slice_.revision, slice_.content) == (False, "absent", "")


@pytest.mark.requirement("M14", "bug-42")
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a", b"a\r\nb\r\n", b"\xef\xbb\xbfa\n", b"   \n ", b"---\nx: 1\n---\n"]
)
def test_bytes_survive_as_they_are(data: bytes) -> None:
    slice_ = take(data)
    assert slice_.content.encode() == data
    assert slice_.revision == revision.of(data)


@pytest.mark.requirement("M14")
@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"\xed\xa0\x80", b"\xc3"])
def test_what_is_not_utf8_or_holds_a_nul_is_no_content(data: bytes) -> None:
    with pytest.raises(InvalidArgument) as refused:
        require_content(data)
    assert refused.value.details["argument"] == "content"


@pytest.mark.requirement("M16", "M18", "bug-20")
def test_the_entry_has_its_own_bounds_and_nothing_is_cut() -> None:
    entry = DocPath.parse("MEMORY.md")
    require_size(entry, b"x" * 2048)
    require_size(entry, b"x\n" * 64)
    require_size(entry, b"x\n" * 63 + b"x")
    for data in (b"x" * 2049, b"x\n" * 65, b"x\n" * 64 + b"x", b"x" * 50_000):
        with pytest.raises(LimitExceeded) as refused:
            require_size(entry, data)
        assert "topic" in refused.value.hint
    require_size(DocPath.parse("sub/MEMORY.md"), b"x" * 2049)


@pytest.mark.requirement("M18")
def test_a_document_has_64_kib_and_not_one_byte_more() -> None:
    require_size(PATH, b"x" * 65_536)
    with pytest.raises(LimitExceeded) as refused:
        require_size(PATH, b"x" * 65_537)
    assert refused.value.details["max_bytes"] == 65_536
