import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.memory import fold as folding
from amux.memory.fold import fold, pieces
from tests.support.growth import require_linear

# What is written, what joins its neighbours, and what folding changes in length or order.
LETTERS = "aAzZ éÉ ß İı ſ K ﬁ Σσς ＡＢｃ９ ，。（）…～ \u3000\u00a0 中文記憶 か\u3099 ｶﾞ 한글 \u1112\u1161\u11ab ǰJ\u030c ΐΪ\u0301 ᾳ\u0345\u0301 ẞ Ǆ ① ﷺ ⅧⅧ Ⓐ 𝐀 𐐀 🙂 “”— \n\r\t\u2028"  # noqa: E501
texts = st.text(st.one_of(st.sampled_from(LETTERS), st.characters(codec="utf-8")), max_size=60)


def meaning(text: str) -> bytes:
    """The definition, as slow as it reads."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).encode(
        "utf-8"
    )


def folded(text: str) -> bytes:
    return fold(text.encode("utf-8"))


def in_pieces(text: str) -> bytes:
    return b"".join(map(fold, pieces(text.encode("utf-8"))))


@pytest.mark.slow
@pytest.mark.requirement("M36")
def test_every_character_folds_to_what_the_definition_says_and_none_to_a_line_end() -> None:
    for point in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(point)
        form = folded(character)
        assert form == meaning(character), f"U+{point:04X}"
        assert form
        assert b"\n" not in form or character == "\n"


@pytest.mark.slow
@pytest.mark.requirement("M36")
def test_a_piece_may_begin_with_every_character_that_stands_apart() -> None:
    befores = "aIか한\u1112ΐ\u0915\u09c7"
    for point in (*range(1, 0xD800), *range(0xE000, 0x110000)):
        character = chr(point)
        is_assigned = unicodedata.category(character) not in {"Cn", "Co"}
        if is_assigned and folding._starts(character):
            for before in befores:
                assert meaning(before + character) == meaning(before) + meaning(character), hex(
                    point
                )


@pytest.mark.requirement("M36")
@given(texts)
def test_texts_fold_to_what_the_definition_says(text: str) -> None:
    assert folded(text) == meaning(text)


@pytest.mark.requirement("M36")
@given(texts, st.integers(0, 3))
def test_long_texts_fold_piece_by_piece_to_the_same(text: str, lines: int) -> None:
    long = (text + "\n" * lines + "x" * 37) * (1 + 20_000 // (37 + len(text.encode("utf-8"))))
    assert in_pieces(long) == meaning(long)
    assert all(0 < len(piece) <= folding.PIECE for piece in pieces(long.encode("utf-8")))


@pytest.mark.requirement("M36")
@given(texts)
def test_folding_keeps_lines(text: str) -> None:
    lines = text.split("\n")
    assert [folded(line) for line in lines] == folded(text).split(b"\n")


@pytest.mark.requirement("M36")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ", "abc"),
        ("ｶﾞ", "ガ"),
        ("Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("ﬁne", "FINE"),
        ("e\u0301", "É"),
        ("ΐ", "Ϊ\u0301"),
        ("，：（）！？；", ",:()!?;"),
        ("\u1112\u1161\u11ab", "한"),
    ],
)
def test_widths_cases_and_compositions_are_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.requirement("M36")
def test_long_runs_of_symbols_fold_as_they_would_one_by_one() -> None:
    for symbol in ("，", "—", "…", "①", "🙂", "．"):
        assert in_pieces(symbol * 9000) == meaning(symbol) * 9000


@pytest.mark.requirement("M42")
@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 16_000,  # a whole second where marks are sorted in one go
        "\uff9e\u0301" * 12_000,
        "\ufdfa" * 21_000,
        "\u0344\u0316" * 16_000,
    ],
    ids=["marks", "half-width marks", "ligatures", "composed marks"],
)
def test_no_text_takes_long_to_fold(text: str) -> None:
    require_linear(in_pieces, text[: 64 * 1024 // len(text[0].encode())])
