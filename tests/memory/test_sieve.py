"""What a sieve says of texts: never a false no."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.memory.sieve import TERM_MIN_BYTES, Sieve

TEXTS = st.text(max_size=300).map(str.encode) | st.binary(max_size=300)


def noted(sieve: Sieve, form: bytes) -> int:
    """Note a text in all its steps."""
    return list(sieve.note(form))[-1]


@pytest.mark.requirement("M36", "M39")
@given(st.lists(TEXTS, min_size=1, max_size=8), st.data())
def test_a_text_that_holds_a_term_is_never_ruled_out(
    texts: list[bytes], data: st.DataObject
) -> None:
    sieve = Sieve()
    numbers = [noted(sieve, text) for text in texts]
    assert numbers == list(range(1, len(texts) + 1))
    assert sieve.count == len(texts)
    text = data.draw(st.sampled_from(texts))
    begin = data.draw(st.integers(0, len(text)))
    needle = text[begin : begin + data.draw(st.integers(1, 40))]
    found = sieve.candidates(needle)
    if len(needle) < TERM_MIN_BYTES:
        assert found is None
        return
    assert found is not None
    assert len(found) == len(texts) + 1
    assert set(found) <= {0, 1}
    assert found[0] == 1
    for number, one in zip(numbers, texts, strict=True):
        assert found[number] or needle not in one


@pytest.mark.requirement("M36")
@pytest.mark.parametrize("before", [0, 1, 4090, 4091, 4092, 4093, 4094, 4095, 4096, 8191, 8192])
def test_a_term_across_the_pieces_of_a_long_text_is_found(before: int) -> None:
    sieve = Sieve()
    number = noted(sieve, b"." * before + "鹦鹉螺 needle".encode() + b"." * 9000)
    for needle in ("鹦鹉螺".encode(), b"needle", b"edle", b" needle"):
        found = sieve.candidates(needle)
        assert found is not None
        assert found[number]


@pytest.mark.requirement("M42")
def test_most_texts_without_a_rare_term_are_ruled_out() -> None:
    sieve = Sieve()
    for at in range(200):
        noted(sieve, f"note {at}: the quick brown fox jumps over the lazy dog\n".encode() * 40)
    number = noted(sieve, b"a quorumlease and others")
    found = sieve.candidates(b"quorumlease")
    assert found is not None
    assert found[number]
    assert sum(found) < 10
    assert sum(sieve.candidates(b"lazy dog") or b"") > 200


@pytest.mark.requirement("M42", "M44")
def test_a_long_text_is_noted_in_short_steps() -> None:
    text = bytes(range(256)) * 256
    assert len(list(Sieve().note(text))) > len(text) / 4096
