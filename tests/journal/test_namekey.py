import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.journal.text.namekey import distance, name_key

words = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.requirement("T38", "T75")
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Ｅｘｐｏｒｔ\u3000 Totals", "export totals"),
        ("straße", "strasse"),
        ("STRASSE", "strasse"),
        ("导出总额  1", "导出总额 1"),
        ("  a\t\n b\u2003 ", "a b"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("İstanbul", "i̇stanbul"),  # Turkish: folded as Unicode folds, whatever the locale
        ("ISTANBUL", "istanbul"),
        ("", ""),
    ],
)
def test_a_name_has_the_key_of_the_specification(name: str, key: str) -> None:
    assert name_key(name) == key


@pytest.mark.requirement("T38")
@given(words)
def test_width_and_blanks_around_change_no_key(name: str) -> None:
    assert name_key(f"\u3000{name} ") == name_key(name)
    assert name_key(unicodedata.normalize("NFKC", name)) == name_key(name)


@pytest.mark.requirement("T38")
def test_nothing_is_transliterated_or_split() -> None:
    assert name_key("Zürich") != name_key("Zurich")
    assert name_key("export-totals") != name_key("export totals")


def by_the_book(one: str, other: str) -> int:
    """Levenshtein, with a full table."""
    table = [[max(row, column) for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            table[row][column] = min(
                table[row - 1][column] + 1,
                table[row][column - 1] + 1,
                table[row - 1][column - 1] + (one[row - 1] != other[column - 1]),
            )
    return table[-1][-1]


@given(st.text("abc", max_size=9), st.text("abcd", max_size=9), st.integers(0, 9))
def test_distance_is_levenshteins_as_far_as_it_is_asked(one: str, other: str, most: int) -> None:
    away = by_the_book(one, other)
    assert distance(one, other, at_most=most) == (away if away <= most else None)
