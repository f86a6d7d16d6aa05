"""The table of refusals is whole: codes, rows, classes."""

import pytest

from amux import errors
from amux.errors import AmuxError, Code

# 0 done, 1 tell us, 2 change the request, 3 look again, 4 ask someone, 5 later, 6 find out first,
# 7 not with this agent
EXITS_BY_RETRY = {
    "never": {1, 2, 3, 4, 7},
    "make room": {3},
    "reread": {3},
    "restart": {3},
    "choose": {3},
    "a person": {3, 4},
    "later": {5},
    "read first": {6},
}


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_row_and_exactly_one_class(code: Code) -> None:
    assert code in errors.TABLE
    assert [kind.code for kind in AmuxError.__subclasses__()].count(code) == 1


@pytest.mark.parametrize("code", Code)
def test_exit_status_and_advice_agree(code: Code) -> None:
    row = errors.TABLE[code]
    assert row.exit in EXITS_BY_RETRY[row.retry]
    assert row.http is None or 400 <= row.http <= 599
    assert row.when
    assert not row.when.endswith(".")


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("kind", AmuxError.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_body_is_read_back_as_the_refusal_that_it_was(kind: type[AmuxError]) -> None:
    refusal = kind("what happened", hint="what to do", observed="absent", lines=65)
    again = errors.from_body(refusal.body())
    assert type(again) is kind
    assert again.body() == refusal.body()
    assert again.exit_status == errors.TABLE[kind.code].exit


@pytest.mark.parametrize(
    "body",
    [None, [], "error", {}, {"error": None}, {"error": {"code": "no_such_code"}}, {"error": []}],
    ids=repr,
)
def test_what_is_no_refusal_is_not_read_as_one(body: object) -> None:
    assert errors.from_body(body) is None
