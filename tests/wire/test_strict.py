"""Arguments against the table of calls: closed, typed, complete, each refusal naming its own."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import InvalidArgument
from amux.wire.strict import arguments
from amux.wire.tools import GET, SEARCH, TOOLS, UPSERT, schema

VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just([])


def refused(call: object, given_arguments: object) -> dict[str, object]:
    with pytest.raises(InvalidArgument) as refusal:
        arguments(call, given_arguments)
    return refusal.value.details


@pytest.mark.requirement("M48", "bug-17")
@pytest.mark.parametrize("name", ["project", "scope", "principal", "binding", "Query", "query "])
def test_an_unknown_argument_is_refused_by_name(name: str) -> None:
    assert refused(SEARCH, {"query": "x", name: "other"}) == {"argument": name}


@pytest.mark.requirement("M48")
def test_a_very_long_unknown_name_is_cut_in_the_refusal() -> None:
    assert refused(SEARCH, {"query": "x", "y" * 5000: 1}) == {"argument": "y" * 64}


@pytest.mark.requirement("M48")
@pytest.mark.parametrize(
    ("given_arguments", "name"),
    [
        ({"path": 1}, "path"),
        ({"path": None}, "path"),
        ({"path": "a.md", "start_line": "3"}, "start_line"),
        ({"path": "a.md", "start_line": True}, "start_line"),
        ({"path": "a.md", "offset": 1.0}, "offset"),
        ({"path": "a.md", "end_line": [1]}, "end_line"),
    ],
)
def test_a_wrong_type_is_refused_by_name(given_arguments: dict[str, object], name: str) -> None:
    assert refused(GET, given_arguments) == {"argument": name}


@pytest.mark.requirement("M48", "M19")
def test_an_upsert_without_expected_revision_is_refused() -> None:
    assert refused(UPSERT, {"path": "a.md", "content": ""}) == {"argument": "expected_revision"}


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("given_arguments", [None, [], "x", 1, True])
def test_arguments_that_are_no_object_are_refused(given_arguments: object) -> None:
    refused(SEARCH, given_arguments)


@pytest.mark.requirement("M48")
@pytest.mark.parametrize("call", TOOLS.values(), ids=TOOLS)
@given(data=st.data())
def test_the_check_agrees_with_the_schema_that_agents_are_shown(call: object, data: object) -> None:
    known = [argument.name for argument in call.arguments]
    names = st.sampled_from([*known, "project"])
    tried = data.draw(st.dictionaries(names, VALUES, max_size=5))
    # The one difference: JSON schema takes 1.0 for an integer, and we do not.
    if any(isinstance(value, float) for value in tried.values()):
        return
    is_valid = jsonschema.Draft202012Validator(schema(call)).is_valid(tried)
    try:
        assert arguments(call, tried) == tried
        assert is_valid
    except InvalidArgument:
        assert not is_valid
