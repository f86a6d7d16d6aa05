"""Arguments against the table of tools: what passes as it came, and what is refused as what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal.call import arguments
from amux.journal.call.tools import TOOLS
from amux.journal.moment import Moment
from amux.journal.refusals import REASONS

NOW = Moment.at(1_773_450_000.0)  # 2026-03-14, about 01:00 UTC


def check(name: str, given: object) -> dict[str, object]:
    return arguments.check(TOOLS[name], given, NOW)


def refusal(name: str, given: object) -> AmuxError:
    with pytest.raises(AmuxError) as caught:
        check(name, given)
    return caught.value


def reason(name: str, given: object) -> str:
    return str(refusal(name, given).details["reason"])


STATUS, QUERY, WRITE = "memory_status", "memory_session_query", "memory_session_write"
APPEND, DECIDE, RESOLVE = "memory_summary_append", "memory_decision_append", "memory_task_resolve"
HEX = "0123456789abcdef" * 4


@pytest.mark.requirement("J7")
def test_an_unknown_key_is_named_at_every_level() -> None:
    assert reason(STATUS, {"x": 1}) == "MEMORY_ARGUMENT_UNKNOWN"
    inner = {"handoff": {"next-action": "go on", "state": "{}"}}
    found = refusal(WRITE, inner)
    assert found.details["reason"] == "MEMORY_ARGUMENT_UNKNOWN"
    assert found.details["argument"] == "handoff.state"
    deep = {"content": "a", "artifacts": [{"label": "a", "targetPath": "b", "c": 1}]}
    assert refusal(WRITE, deep).details["argument"] == "artifacts[0].c"


@pytest.mark.requirement("J7")
@pytest.mark.parametrize(
    ("name", "given_value"),
    [
        (STATUS, []),
        (STATUS, {"limit": "5"}),
        (STATUS, {"limit": 5.0}),
        (STATUS, {"limit": True}),
        (STATUS, {"limit": 0}),
        (STATUS, {"limit": 21}),
        (STATUS, {"freshContext": 1}),
        (STATUS, {"agent": "claude"}),
        (STATUS, {"scope": "Workspace"}),
        (STATUS, {"project": "a\0b"}),
        (QUERY, {"date": "20260230"}),
        (QUERY, {"date": "2026-03-14"}),
        (QUERY, {"date": "20260316"}),
        (QUERY, {"contentOffset": 5}),
        (QUERY, {"sessionId": "a b"}),
        ("memory_summary_query", {"since": "2026-2-3"}),
        ("memory_summary_query", {"status": "done"}),
        ("memory_context_plan", {"sources": ["memory_status", "memory_status"]}),
        ("memory_context_plan", {"planVersion": 3}),
        (RESOLVE, {"name": "x" * 301}),
        (RESOLVE, {"name": "a\nb"}),
    ],
)
def test_a_read_refuses_what_is_not_valid_as_a_query(name: str, given_value: object) -> None:
    assert reason(name, given_value) == "MEMORY_QUERY_INVALID"


@pytest.mark.requirement("J7")
@pytest.mark.parametrize(
    ("name", "given_value"),
    [
        (WRITE, {"content": "   \n"}),
        (WRITE, {"content": 7}),
        (WRITE, {"content": "a", "title": "one\u2028two"}),
        (WRITE, {"content": "a", "title": "one\x85two"}),
        (WRITE, {"content": "a", "title": ""}),
        (WRITE, {"content": "right\u202eleft"}),
        (WRITE, {"content": "a\ud800"}),
        (WRITE, {"content": "a", "status": "done"}),
        (WRITE, {"content": "a", "artifacts": []}),
        (WRITE, {"content": "a", "section": "03-abababababab", "title": "t"}),
        (APPEND, {"row": "a", "entry": {}}),
        (DECIDE, {"decision": "d", "day": "2026-02-30"}),
        ("memory_child_plan", {"op": "plan", "task": "t", "owner": "o", "budget": {"a": "b"}}),
    ],
)
def test_a_writer_refuses_what_is_not_valid(name: str, given_value: object) -> None:
    wanted = "MEMORY_WRITER_ARGUMENT_INVALID"
    if name == APPEND:
        wanted = "MEMORY_WRITER_ARGUMENT_REQUIRED"  # of the entry's keys
    assert reason(name, given_value) == wanted


@pytest.mark.requirement("J7")
def test_an_invisible_character_is_named_by_its_code_point() -> None:
    found = refusal(DECIDE, {"decision": "d", "reason": "a\u2066b"})
    assert found.details["character"] == "U+2066"
    assert found.details["argument"] == "reason"
    # A read stores nothing: there it is a text like any other.
    check(RESOLVE, {"name": "a\u200bb"})


@pytest.mark.requirement("J7")
def test_a_writers_long_string_has_its_limit_in_the_details() -> None:
    found = refusal(WRITE, {"content": "x" * 262_145})
    assert found.details["reason"] == "MEMORY_WRITER_ARGUMENT_TOO_LARGE"
    assert found.details["limit"] == 262_144
    check(WRITE, {"content": "é" * 262_144})  # chars are counted, not bytes


@pytest.mark.requirement("J7", "J8")
def test_a_missing_argument_comes_back_as_the_call_to_complete() -> None:
    found = refusal(DECIDE, {"reason": "r"})
    assert found.details["reason"] == "MEMORY_WRITER_ARGUMENT_REQUIRED"
    assert found.details["nextCall"] == {
        "tool": DECIDE,
        "arguments": {"reason": "r"},
        "fill": ["decision"],
    }
    assert reason(WRITE, {}) == "MEMORY_WRITER_ARGUMENT_REQUIRED"
    assert reason(WRITE, {"status": "active"}) == "MEMORY_WRITER_ARGUMENT_REQUIRED"
    assert reason(RESOLVE, {}) == "TASK_NAME_REQUIRED"
    assert reason(RESOLVE, {"name": "  "}) == "TASK_NAME_REQUIRED"


@pytest.mark.requirement("J7")
def test_lines_of_a_text_end_as_ours_do_before_they_are_counted() -> None:
    assert check(WRITE, {"content": "a\r\nb\rc"})["content"] == "a\nb\nc"
    check(WRITE, {"content": "\r\n" * 131_072 + "x" * 131_072})


@pytest.mark.requirement("J7")
def test_nothing_else_is_trimmed_or_defaulted() -> None:
    assert check(WRITE, {"content": "  a  "}) == {"content": "  a  "}
    assert check(STATUS, {}) == {"limit": 5, "freshContext": False}
    assert check(QUERY, {})["date"] == f"{NOW.today:%Y%m%d}"


@pytest.mark.requirement("J7")
def test_the_day_after_today_is_not_yet_out_of_reach() -> None:
    assert check(QUERY, {"date": "20260315"})["date"] == "20260315"


@pytest.mark.requirement("J7")
def test_a_digest_may_be_cut_to_sixteen_digits_of_either_case() -> None:
    base = {"task": "t"}
    name = "memory_artifact_mutation_reconcile_v1"
    for text in (HEX, HEX[:16], HEX[:40].upper()):
        found = check(name, base | {"expectedCloseoutDigest": text})
        assert HEX.startswith(str(found["expectedCloseoutDigest"]))
    for text in (HEX[:15], HEX + "0", "g" * 16):
        assert reason(name, base | {"expectedCloseoutDigest": text}).endswith("INVALID")


@pytest.mark.requirement("J7")
def test_handles_and_tokens_are_refused_by_their_shape() -> None:
    assert reason(WRITE, {"content": "a", "section": "01-abcdefabcde"}).endswith("BINDING_INVALID")
    assert reason(WRITE, {"content": "a", "sessionId": "1", "sessionBinding": "zz"}).endswith(
        "BINDING_INVALID"
    )
    assert reason(WRITE, {"content": "a", "sessionId": "1"}).endswith("BINDING_REQUIRED")
    check(WRITE, {"content": "a", "sessionId": "1", "sessionBinding": HEX[:16]})


WORDS = st.sampled_from(
    [*sorted({field.name for tool in TOOLS.values() for field in tool.fields}), "x", ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.requirement("J7", "J8")
@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(WORDS, VALUES, max_size=5) | VALUES)
def test_any_object_is_accepted_or_refused_with_a_reason(name: str, value: object) -> None:
    try:
        found = check(name, value)
    except AmuxError as error:
        refused = error
    else:
        assert isinstance(value, dict)
        assert found.keys() >= value.keys()
        return
    assert refused.hint
    assert refused.code == REASONS[str(refused.details["reason"])]
