"""Native arguments are read as an agent would read them, and no word is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.runtime import native
from amux.runtime.native import Takes

TABLE = {
    "-a": Takes.NOTHING, "-b": Takes.NOTHING, "-o": Takes.ONE, "--one": Takes.ONE,
    "--maybe": Takes.MAYBE, "--many": Takes.MANY, "--none": Takes.NOTHING, "-nt": Takes.NOTHING,
}  # fmt: skip


@pytest.mark.requirement("R21")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--one", "-x"], [("--one", ("-x",))]),
        (["--one"], [("--one", ())]),
        (["--one=a=b"], [("--one", ("a=b",))]),
        (["--maybe", "-a"], [("--maybe", ()), ("-a", ())]),
        (["--maybe", "x", "y"], [("--maybe", ("x",)), ("", ("y",))]),
        (["--many", "-x", "y", "-a"], [("--many", ("-x", "y")), ("-a", ())]),
        (["-ab"], [("-a", ()), ("-b", ())]),
        (["-aox"], [("-a", ()), ("-o", ("x",))]),
        (["-ao", "x"], [("-a", ()), ("-o", ("x",))]),
        (["--else", "x", "--else", "-a"], [("--else", ("x",)), ("--else", ()), ("-a", ())]),
        (["a", "--", "-a"], [("", ("a",)), ("", ("--",)), ("", ("-a",))]),
        (["-", ""], [("", ("-",)), ("", ("",))]),
    ],
)  # fmt: skip
def test_words_are_read_by_the_table(
    words: list[str], expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    found = native.read(words, TABLE, short=True)
    assert [(one.flag, one.values) for one in found] == expected


@pytest.mark.requirement("R21")
def test_an_agent_without_clusters_has_flags_of_more_letters() -> None:
    found = native.read(["-nt", "-ab", "x", "--one=a"], TABLE, short=False)
    assert [(one.flag, one.values) for one in found] == [
        ("-nt", ()), ("-ab", ("x",)), ("--one=a", ()),
    ]  # fmt: skip


WORD = st.one_of(
    st.sampled_from([*TABLE, "--", "-", "", "-ab", "-ox", "--one=x", "--many=", "--else", "x"]),
    st.text(max_size=4),
)


@pytest.mark.requirement("R21")
@given(words=st.lists(WORD, max_size=8), short=st.booleans())
def test_no_word_is_lost(words: list[str], short: bool) -> None:
    found = native.read(words, TABLE, short=short)
    assert [word for one in found for word in one.words] == words
