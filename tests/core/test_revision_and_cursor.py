"""Revisions name content; cursors open only for their own question."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core import cursor, revision
from amux.errors import CursorStale, InvalidArgument, RevisionConflict

KEY = b"k" * 32


@pytest.mark.requirement("M14")
def test_a_revision_is_what_sha256sum_says_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes("记忆\r\n".encode())
    said = subprocess.run(["sha256sum", file], capture_output=True, check=True).stdout
    assert revision.of(file.read_bytes()) == said.split()[0].decode()


@pytest.mark.requirement("M14", "M19")
@pytest.mark.parametrize("text", ["", "ABSENT", "absent ", "a" * 63, "A" * 64, "g" * 64, "0" * 65])
def test_a_text_that_is_no_revision_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        revision.parse(text)
    assert refused.value.details["argument"] == "expected_revision"


@pytest.mark.requirement("M21")
def test_a_conflict_names_what_was_observed() -> None:
    with pytest.raises(RevisionConflict) as refused:
        revision.require("a" * 64, revision.ABSENT)
    assert refused.value.details == {"observed": "a" * 64}
    revision.require(revision.ABSENT, revision.ABSENT)


@pytest.mark.requirement("M34")
@given(st.text(), st.text(), st.text())
def test_a_cursor_opens_for_its_own_question_only(place: str, asked: str, other: str) -> None:
    place, asked, other = (
        text.encode("utf-8", "ignore").decode() for text in (place, asked, other)
    )
    sealed = cursor.seal(KEY, ("list", asked), place)
    assert cursor.unseal(KEY, ("list", asked), sealed) == place
    for question, key in ((("list", asked + "x"), KEY), (("list", asked), b"z" * 32)):
        with pytest.raises(CursorStale):
            cursor.unseal(key, question, sealed)


@pytest.mark.requirement("M34")
@given(st.text(max_size=60))
def test_a_made_up_cursor_is_stale_and_nothing_else(text: str) -> None:
    with pytest.raises(CursorStale):
        cursor.unseal(KEY, ("list",), text)
