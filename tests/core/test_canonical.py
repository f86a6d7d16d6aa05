import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core import canonical

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("J5", "J75")
def test_the_vector_of_the_specification_is_reproduced() -> None:
    value = {"b": 1, "a": "é|\n", "c": [True, None]}
    assert (
        canonical.digest(value)
        == "e45df5017077f5d470a8a987a14a3f030cf7bdd8e4d0160f168459a3bc6c194f"
    )


@pytest.mark.requirement("J5")
@given(VALUES)
def test_what_is_spelled_is_read_back_as_the_same_value(value: object) -> None:
    assert json.loads(canonical.encode(value)) == value
    assert canonical.encode(json.loads(canonical.encode(value))) == canonical.encode(value)


@pytest.mark.requirement("J5")
@pytest.mark.parametrize("value", [1.5, {"a": 0.0}, {1: "a"}, [b"x"], "\ud800", {"\udfff": 1}])
def test_what_has_no_one_spelling_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"canonical|surrogates"):
        canonical.encode(value)


def test_a_records_own_digest_is_left_out() -> None:
    record = {"a": 1}
    assert canonical.digest_without(record | {"digest": "x"}, "digest") == canonical.digest(record)
