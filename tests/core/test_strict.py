"""The one strict decoder: what it refuses, what it gives, and that nothing makes it die or hang."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.strict import MAX_DEPTH, decode
from amux.errors import InvalidArgument
from tests.support.growth import require_linear

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)
# Fragments that meet in ways which plain text rarely would.
PIECES = st.sampled_from(
    [
        *(bytes([byte]) for byte in b'{}[]"\\:,1- \n'),
        *(b"e9", b"e999", b"NaN", b"null", b'"a":', b"9" * 5000),
        *(b"\\ud800", b"\\u0000", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    ]
)


@pytest.mark.requirement("M48")
@given(JSON)
def test_what_json_writes_is_read_back_equal(value: object) -> None:
    for is_ascii in (True, False):
        assert decode(json.dumps(value, ensure_ascii=is_ascii).encode()) == value


@pytest.mark.requirement("M48")
@given(st.binary(max_size=200) | st.lists(PIECES, max_size=60).map(b"".join))
def test_any_bytes_are_a_value_or_a_refusal(data: bytes) -> None:
    try:
        value = decode(data)
    except InvalidArgument:
        return
    # What was given is a value of JSON that can be spelled again.
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a":1,"a":1}', "a"),
        ('{"x":{"query":"1","query":"2"}}', "query"),
        ('[{"\\u0061":1,"a":2}]', "a"),
        ('{"' + "k" * 99 + '":1,"' + "k" * 99 + '":1}', "k" * 64),
    ],
)
def test_a_key_that_stands_twice_is_refused_by_name(text: str, key: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        decode(text)
    assert refused.value.details["argument"] == key


@pytest.mark.requirement("M48")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[-1.5e9999]",
        b'"\\ud800"',
        b'{"\\udc00":1}',
        b"\xff",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"{'a':1}",
        b"[1,]",
        b'"\n"',
        b"1" * 5000,
        "{}".encode("utf-16"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidArgument):
        decode(text)


@pytest.mark.requirement("M48")
def test_depth_is_bounded_at_32_and_brackets_in_strings_are_text() -> None:
    assert decode("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    with pytest.raises(InvalidArgument):
        decode("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    with pytest.raises(InvalidArgument):
        decode('{"a":' * 100_000)
    text = '"[[[' * 50
    assert decode(json.dumps(text)) == text


@pytest.mark.requirement("M48")
@pytest.mark.parametrize(
    "text",
    [
        '"' + '\\"' * 250_000 + "[" * 99,
        '"\\' * 250_000 + "[" * 99,
        "[" * 500_000,
        "[]" * 250_000,
        '"' * 500_000 + "[" * 99,
        '"a\\\\' * 125_000 + "{" * 99,
    ],
    ids=["escaped quotes", "quote backslash", "open", "pairs", "quotes", "mixed"],
)
def test_half_a_megabyte_of_malice_is_refused_in_no_time(text: str) -> None:
    def refused(part: str) -> None:
        with pytest.raises(InvalidArgument):
            decode(part)

    # A closed string that were tried from each quote anew would take an hour.
    require_linear(refused, text)
