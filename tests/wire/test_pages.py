"""Pages of oversized answers: small enough, complete, and gone in time."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import LimitExceeded, NotFound
from amux.memory import limits
from amux.wire.pages import Pages

# What costs most in JSON, what may not be cut, and what is only long.
HARD = ['"', "\\", "\x00", "\x1f", "\n", "\t", "é", "用", "😀", "\u2028", "a", "\ufeff", "e\u0301"]


def numbered() -> Pages:
    numbers = itertools.count(1)
    return Pages(lambda: f"{next(numbers):024x}")


def read_all(pages: Pages, answer: str, now: float = 0.0) -> list[dict[str, object]]:
    shown = pages.open(answer, now)
    found = []
    while True:
        assert len(shown.encode("utf-8")) <= limits.PAGE_MAX_BYTES
        found.append(json.loads(shown))
        if found[-1]["continuation"] is None:
            return found
        shown = pages.resume(found[-1]["continuation"], now)


@pytest.mark.requirement("M57")
def test_an_answer_of_exactly_6_kib_is_one_block_as_it_came() -> None:
    answer = "用" * 2048
    assert len(answer.encode()) == 6144
    assert numbered().open(answer, 0.0) == answer


@pytest.mark.requirement("M57", "M17")
@given(
    parts=st.lists(
        st.tuples(st.sampled_from(HARD) | st.characters(codec="utf-8"), st.integers(1, 9000)),
        min_size=1,
        max_size=5,
    )
)
def test_pages_join_to_the_answer_and_none_is_over_6_kib(parts: list[tuple[str, int]]) -> None:
    answer = "".join(text * times for text, times in parts)
    if len(answer.encode()) <= limits.PAGE_MAX_BYTES:
        assert numbered().open(answer, 0.0) == answer
        return
    found = read_all(numbered(), answer)
    assert "".join(page["text"] for page in found) == answer
    assert [page["page"] for page in found] == list(range(1, len(found) + 1))
    assert {page["pages"] for page in found} == {len(found)}


@pytest.mark.requirement("M57")
@pytest.mark.parametrize("character", HARD)
def test_a_page_wastes_less_than_a_character_of_its_room(character: str) -> None:
    first, *_ = read_all(numbered(), character * 20_000)
    spelled = json.dumps(first, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(spelled) > limits.PAGE_MAX_BYTES - 40


@pytest.mark.requirement("M57")
def test_a_page_can_be_asked_for_again() -> None:
    pages = numbered()
    continuation = json.loads(pages.open("x" * 10_000, 0.0))["continuation"]
    assert pages.resume(continuation, 1.0) == pages.resume(continuation, 2.0)


@pytest.mark.requirement("M57")
def test_a_continuation_lives_ten_minutes() -> None:
    pages = numbered()
    continuation = json.loads(pages.open("x" * 10_000, 5.0))["continuation"]
    pages.resume(continuation, 604.9)
    with pytest.raises(NotFound) as refused:
        pages.resume(continuation, 605.0)
    assert "repeat" in refused.value.hint


@pytest.mark.requirement("M57")
@pytest.mark.parametrize("text", ["", ".", "x", "x.1", "0" * 24 + ".1", ".1", "😀.2"])
def test_an_unknown_continuation_is_not_found(text: str) -> None:
    with pytest.raises(NotFound):
        numbered().resume(text, 0.0)


@pytest.mark.requirement("M57")
@pytest.mark.parametrize("number", ["0", "2", "-1", "01", "1 ", "", "９", "1.1"])
def test_a_continuation_with_another_number_is_not_found(number: str) -> None:
    pages = numbered()
    handle, _, _ = json.loads(pages.open("x" * 10_000, 0.0))["continuation"].rpartition(".")
    with pytest.raises(NotFound):
        pages.resume(f"{handle}.{number}", 0.0)


@pytest.mark.requirement("M57")
def test_of_65_answers_the_oldest_is_dropped() -> None:
    pages = numbered()
    found = [json.loads(pages.open("x" * 7000, 0.0))["continuation"] for _ in range(65)]
    with pytest.raises(NotFound):
        pages.resume(found[0], 0.0)
    for continuation in found[1:]:
        pages.resume(continuation, 0.0)


@pytest.mark.requirement("M57")
def test_over_1_mib_the_oldest_answers_are_dropped() -> None:
    pages = numbered()
    old, middle, new = (
        json.loads(pages.open("用" * (400 * 1024 // 3), 0.0))["continuation"] for _ in range(3)
    )
    with pytest.raises(NotFound):
        pages.resume(old, 0.0)
    pages.resume(middle, 0.0)
    pages.resume(new, 0.0)


@pytest.mark.requirement("M57")
def test_an_answer_that_no_caller_may_keep_is_refused_whole() -> None:
    pages = numbered()
    kept = json.loads(pages.open("x" * 7000, 0.0))["continuation"]
    with pytest.raises(LimitExceeded):
        pages.open("x" * (1024 * 1024 + 1), 0.0)
    pages.resume(kept, 0.0)


@pytest.mark.requirement("M57")
def test_expired_answers_make_room_before_younger_ones_are_dropped() -> None:
    pages = numbered()
    young = json.loads(pages.open("y" * 600_000, 500.0))["continuation"]
    pages.open("x" * 400_000, 500.0)
    later = json.loads(pages.open("z" * 7000, 501.0))["continuation"]
    pages.resume(young, 1099.0)
    pages.resume(later, 1100.5)
    with pytest.raises(NotFound):
        pages.resume(young, 1100.5)
