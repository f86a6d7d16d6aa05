import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import Corrupt
from amux.journal.ledger import record

ROOT = "24dd0334b1e83eb4fe64debbebef1e8efd795c60cdf207293a2fd36fe97b142e"
META = {
    "createdAt": "2026-03-14T01:20:00.000Z", "rootIdentityDigest": ROOT, "runtimeGeneration": 1,
    "schemaVersion": "LedgerMetaV1",
}  # fmt: skip
bodies = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.recursive(
        st.none() | st.booleans() | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)  # fmt: skip


def problem(data: bytes, kind: str = "meta", key: str = "meta") -> object:
    with pytest.raises(Corrupt) as refused:
        record.parse(data, kind, key)
    assert refused.value.details["reason"] == "MEMORY_LEDGER_CORRUPT"
    assert refused.value.details["record"] == record.file_name(kind, key)
    return refused.value.details["problem"]


@pytest.mark.requirement("T5", "T75")
def test_the_record_of_the_specification_has_its_bytes() -> None:
    made = record.first("meta", "meta", META)
    assert made.digest == "e786dfdab54507e0a318d7f9df652decf5077f5aa1b92908e762108290f1fe1e"
    assert len(made.render()) == 329
    assert made.name == "meta.json"


@pytest.mark.requirement("T5")
@given(bodies, bodies)
def test_a_record_reads_back_and_its_successor_names_it(
    body: dict[str, object], later: dict[str, object]
) -> None:
    made = record.first("task", "k1", body)
    assert record.parse(made.render(), "task", "k1") == made
    after = made.successor(later)
    assert (after.seq, after.previous) == (2, made.digest)
    assert record.parse(after.render(), "task", "k1") == after


@pytest.mark.requirement("T6")
@given(st.data())
def test_no_byte_of_a_record_may_change(data: st.DataObject) -> None:
    whole = record.first("meta", "meta", META).render()
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda one: one != whole[at]))
    problem(whole[:at] + bytes([byte]) + whole[at + 1 :])


@pytest.mark.requirement("T6")
@given(st.integers(0, 328))
def test_no_part_of_a_record_is_one(length: int) -> None:
    problem(record.first("meta", "meta", META).render()[:length])


@pytest.mark.requirement("T6")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 6}, "newer-format"), ({"format": 4}, "fields"), ({"kind": "task"}, "key"),
        ({"key": "other"}, "key"), ({"seq": 0}, "fields"), ({"seq": True}, "fields"),
        ({"previous": "x"}, "fields"), ({"body": []}, "fields"), ({"extra": 1}, "fields"),
        ({"digest": "0" * 64}, "digest"), ({"body": {"n": 1.5}}, "not-canonical"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(change: dict[str, object], told: str) -> None:
    fields = json.loads(record.first("meta", "meta", META).render()) | change
    assert problem(json.dumps(fields).encode()) == told


@pytest.mark.requirement("T6")
def test_a_record_that_was_copied_to_another_key_is_found_out() -> None:
    assert problem(record.first("task", "one", META).render(), "task", "other") == "key"


@pytest.mark.requirement("T6")
@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b'{"a":1}'])
def test_what_is_no_record_at_all_is_refused(data: bytes) -> None:
    problem(data)


@pytest.mark.parametrize("key", ["", ".", "..", "../x", "a/b", "-a", ".hidden", "a" * 129, "a\n"])
def test_a_key_is_no_way_out_of_the_ledger(key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        record.file_name("task", key)
