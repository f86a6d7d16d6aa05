import re

import pytest

from amux.errors import Code
from amux.journal.refusals import REASONS, next_call, refuse


@pytest.mark.requirement("J8", "J73", "T74")
@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_is_refused_under_its_code(reason: str) -> None:
    refusal = refuse(reason, "it did not work", hint="ask again", line=3)
    body = refusal.body()["error"]
    assert body["code"] == str(REASONS[reason])
    assert body["details"] == {"reason": reason, "line": 3}
    assert refusal.exit_status == type(refusal)("").exit_status


@pytest.mark.requirement("J73", "T74")
def test_reasons_are_names_in_capitals_and_codes_are_of_the_house() -> None:
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)+", reason) for reason in REASONS)
    assert set(REASONS.values()) <= set(Code)


@pytest.mark.requirement("J8")
def test_a_next_call_is_data() -> None:
    refusal = refuse(
        "CONTEXT_BINDING_REQUIRED",
        "ask for the status first",
        next_call=next_call("memory_status", {"limit": 5}),
    )
    assert refusal.details["nextCall"] == {
        "tool": "memory_status", "arguments": {"limit": 5}, "fill": [],
    }  # fmt: skip
