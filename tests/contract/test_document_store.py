"""One suite for everything that keeps documents (amux.memory.store)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.identity import GLOBAL, Scope
from amux.core.path import DocPath
from amux.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    QuotaExceeded,
    RevisionConflict,
)
from amux.memory import limits
from amux.memory.document import Missing, Present
from amux.memory.files import Files
from amux.memory.store import DocumentStore, Put, View
from tests.support.fake_store import FakeStore

ABSENT = revision.ABSENT
KINDS: dict[str, Callable[[Path], FakeStore | Files]] = {
    "fake": lambda _: FakeStore(),
    "files": lambda place: Files(str(place / "memory")),
    "files-stepwise": lambda place: Files(str(place / "memory"), stepwise=True),
    "files-unnotified": lambda place: Files(str(place / "memory"), has_notices=False),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocumentStore]:
    made = KINDS[request.param](tmp_path)
    yield made
    made.close()


def at(text: str) -> DocPath:
    return DocPath.parse(text)


def documents(view: View) -> set[str]:
    for _ in view.refresh():
        pass
    return set(view.documents)


@pytest.mark.requirement("M19", "M32")
def test_a_document_is_created_where_absent_is_expected_and_nothing_is(
    store: DocumentStore,
) -> None:
    assert store.read(GLOBAL, at("a/b.md")) == Missing()
    put = store.put(GLOBAL, at("a/b.md"), b"one\n", ABSENT)
    assert put == Put(revision.of(b"one\n"), changed=True)
    assert store.read(GLOBAL, at("a/b.md")) == Present(b"one\n")


@pytest.mark.requirement("M19")
def test_a_document_is_replaced_whole_at_its_revision(store: DocumentStore) -> None:
    first = store.put(GLOBAL, at("a.md"), b"a longer text than the next", ABSENT)
    store.put(GLOBAL, at("a.md"), b"short", first.revision)
    assert store.read(GLOBAL, at("a.md")) == Present(b"short")


@pytest.mark.requirement("M21", "bug-2")
@pytest.mark.parametrize("expected", [ABSENT, "0" * 64])
def test_a_conflict_says_what_is_there_and_changes_nothing(
    store: DocumentStore, expected: str
) -> None:
    there = store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    with pytest.raises(RevisionConflict) as refused:
        store.put(GLOBAL, at("a.md"), b"two", expected)
    assert refused.value.details["observed"] == there.revision
    with pytest.raises(RevisionConflict) as refused:
        store.remove(GLOBAL, at("a.md"), "0" * 64)
    assert refused.value.details["observed"] == there.revision
    assert store.read(GLOBAL, at("a.md")) == Present(b"one")


@pytest.mark.requirement("M21")
def test_replacing_what_is_gone_conflicts_with_absent(store: DocumentStore) -> None:
    with pytest.raises(RevisionConflict) as refused:
        store.put(GLOBAL, at("a.md"), b"two", "0" * 64)
    assert refused.value.details["observed"] == ABSENT


@pytest.mark.requirement("M21")
@pytest.mark.parametrize("expected", [ABSENT, "0" * 64])
def test_removing_what_is_gone_says_absent_whatever_was_expected(
    store: DocumentStore, expected: str
) -> None:
    assert store.remove(GLOBAL, at("a.md"), expected) == ABSENT
    assert store.remove(GLOBAL, at("a/b/c.md"), expected) == ABSENT


@pytest.mark.requirement("M19", "M22")
def test_remove_takes_this_document_and_nothing_else(store: DocumentStore) -> None:
    there = store.put(GLOBAL, at("a/b/one.md"), b"one", ABSENT)
    store.put(GLOBAL, at("a/two.md"), b"two", ABSENT)
    assert store.remove(GLOBAL, at("a/b/one.md"), there.revision) == there.revision
    assert store.read(GLOBAL, at("a/b/one.md")) == Missing()
    assert store.read(GLOBAL, at("a/two.md")) == Present(b"two")
    # Nothing is left of the folder: its name is free for a document of another case.
    store.put(GLOBAL, at("a/B.md"), b"", ABSENT)


@pytest.mark.requirement("M29")
def test_identical_bytes_succeed_and_change_nothing(store: DocumentStore) -> None:
    there = store.put(GLOBAL, at("a.md"), b"same", ABSENT)
    view = store.view(GLOBAL)
    documents(view)
    before = view.documents["a.md"]
    assert store.put(GLOBAL, at("a.md"), b"same", there.revision) == Put(there.revision, False)
    documents(view)
    assert view.documents["a.md"] == before


@pytest.mark.requirement("M14", "bug-42")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"no newline",
        b"\xef\xbb\xbfbom",
        b"crlf\r\n",
        "用户偏好 🙂\u2028".encode(),
        b"\x01" * 9,
    ],
)
def test_bytes_survive_as_they_are(store: DocumentStore, data: bytes) -> None:
    store.put(GLOBAL, at("a.md"), data, ABSENT)
    assert store.read(GLOBAL, at("a.md")) == Present(data)


@pytest.mark.requirement("M14")
@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"\xed\xa0\x80"])
def test_what_is_no_text_is_refused(store: DocumentStore, data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        store.put(GLOBAL, at("a.md"), data, ABSENT)
    assert store.read(GLOBAL, at("a.md")) == Missing()


@pytest.mark.requirement("M16")
def test_an_entry_over_its_limits_is_refused_and_one_at_them_is_kept(store: DocumentStore) -> None:
    entry = at("MEMORY.md")
    for data in (b"x" * 2049, b"\n" * 65):
        with pytest.raises(LimitExceeded):
            store.put(GLOBAL, entry, data, ABSENT)
    there = store.put(GLOBAL, entry, b"x" * 2048, ABSENT)
    store.put(GLOBAL, entry, b"\n" * 64, there.revision)


@pytest.mark.requirement("M16", "M18")
def test_a_document_may_hold_64_kib_and_no_more(store: DocumentStore) -> None:
    with pytest.raises(LimitExceeded):
        store.put(GLOBAL, at("a.md"), b"x" * (64 * 1024 + 1), ABSENT)
    store.put(GLOBAL, at("a.md"), b"x" * 64 * 1024, ABSENT)


@pytest.mark.requirement("M13")
@pytest.mark.parametrize(
    ("existing", "wanted"),
    [
        ("notes/one.md", "Notes/two.md"),
        ("notes/one.md", "notes/ONE.md"),
        ("ß.md", "SS.md"),
        ("straße/x.md", "STRASSE/y.md"),
        ("abc.md", "ａｂｃ.md"),
        ("ﬁ.md", "fi.md"),
    ],
)
def test_a_new_name_that_equals_another_on_some_file_system_is_refused(
    store: DocumentStore, existing: str, wanted: str
) -> None:
    store.put(GLOBAL, at(existing), b"", ABSENT)
    with pytest.raises(InvalidArgument) as refused:
        store.put(GLOBAL, at(wanted), b"", ABSENT)
    assert refused.value.details["reason"] == "case_collision"
    assert documents(store.view(GLOBAL)) == {existing}


@pytest.mark.requirement("M11", "M13")
@pytest.mark.parametrize(
    ("wanted", "reason"),
    [("memory.md", "case_collision"), ("Memory.md", "case_collision"), ("a.MD", "not_markdown")],
)
def test_some_names_may_be_read_but_not_created(
    store: DocumentStore, wanted: str, reason: str
) -> None:
    assert store.read(GLOBAL, at(wanted)) == Missing()
    with pytest.raises(InvalidArgument) as refused:
        store.put(GLOBAL, at(wanted), b"", ABSENT)
    assert refused.value.details["reason"] == reason


@pytest.mark.requirement("M19")
def test_a_document_and_a_folder_do_not_share_a_name(store: DocumentStore) -> None:
    store.put(GLOBAL, at("a.md/b.md"), b"", ABSENT)
    with pytest.raises(InvalidArgument) as refused:
        store.put(GLOBAL, at("a.md"), b"", ABSENT)
    assert refused.value.details["reason"] == "is_folder"
    with pytest.raises(InvalidArgument) as refused:
        store.put(GLOBAL, at("a.md/b.md/c.md"), b"", ABSENT)
    assert refused.value.details["reason"] == "not_a_folder"
    assert store.read(GLOBAL, at("a.md")) == Missing()
    assert store.remove(GLOBAL, at("a.md/b.md/c.md"), ABSENT) == ABSENT


@pytest.mark.requirement("M4")
def test_scopes_share_nothing(store: DocumentStore) -> None:
    one, two = Scope("principal:one"), Scope("principal:two")
    store.put(one, at("a.md"), b"of one", ABSENT)
    for other in (two, GLOBAL):
        assert store.read(other, at("a.md")) == Missing()
        assert store.usage(other) == (0, 0)
        assert documents(store.view(other)) == set()
    store.put(two, at("A.md"), b"of two", ABSENT)
    assert store.read(one, at("a.md")) == Present(b"of one")


@pytest.mark.slow
@pytest.mark.requirement("M18", "row-4")
def test_a_scope_holds_1024_documents_and_counts_only_growth(store: DocumentStore) -> None:
    for number in range(limits.SCOPE_MAX_DOCUMENTS):
        store.put(GLOBAL, at(f"{number // 128}/{number}.md"), b"x", ABSENT)
    with pytest.raises(QuotaExceeded) as refused:
        store.put(GLOBAL, at("one-more.md"), b"x", ABSENT)
    assert refused.value.details["documents"] == limits.SCOPE_MAX_DOCUMENTS
    x = revision.of(b"x")
    store.put(GLOBAL, at("0/0.md"), b"a replacement may grow", x)
    store.remove(GLOBAL, at("0/1.md"), x)
    store.put(GLOBAL, at("one-more.md"), b"x", ABSENT)
    assert store.usage(GLOBAL) == (limits.SCOPE_MAX_DOCUMENTS, limits.SCOPE_MAX_DOCUMENTS + 21)


@pytest.mark.slow
@pytest.mark.requirement("M18", "row-4")
def test_a_scope_holds_16_mib(store: DocumentStore) -> None:
    large = b"x" * limits.DOCUMENT_MAX_BYTES
    for number in range(limits.SCOPE_MAX_BYTES // len(large)):
        store.put(GLOBAL, at(f"{number}.md"), large, ABSENT)
    with pytest.raises(QuotaExceeded) as refused:
        store.put(GLOBAL, at("one-more.md"), b"x", ABSENT)
    assert refused.value.details["bytes"] == limits.SCOPE_MAX_BYTES
    empty = store.put(GLOBAL, at("empty.md"), b"", ABSENT)  # its bytes do not grow
    with pytest.raises(QuotaExceeded):
        store.put(GLOBAL, at("empty.md"), b"x", empty.revision)
    store.put(GLOBAL, at("0.md"), large[1:], revision.of(large))
    store.put(GLOBAL, at("empty.md"), b"x", empty.revision)
    assert store.usage(GLOBAL).bytes == limits.SCOPE_MAX_BYTES


@pytest.mark.requirement("M9")
def test_a_view_follows_every_write(store: DocumentStore) -> None:
    view = store.view(GLOBAL)
    assert documents(view) == set()
    first = store.put(GLOBAL, at("a/b/c.md"), b"one", ABSENT)
    assert documents(view) == {"a/b/c.md"}
    stamp = view.documents["a/b/c.md"]
    store.put(GLOBAL, at("a/b/c.md"), b"two", first.revision)
    documents(view)
    assert view.documents["a/b/c.md"] != stamp
    assert view.read("a/b/c.md") == b"two"
    store.remove(GLOBAL, at("a/b/c.md"), revision.of(b"two"))
    assert documents(view) == set()
    assert view.read("a/b/c.md") is None
    assert view.is_complete
    assert view.skipped == 0


@pytest.mark.requirement("M8")
def test_discarding_what_is_not_broken_is_refused(store: DocumentStore) -> None:
    store.put(GLOBAL, at("a.md"), b"fine", ABSENT)
    assert store.broken(GLOBAL) == []
    for name in ("a.md", "b.md", "../a.md", ""):
        with pytest.raises(NotFound):
            store.discard(GLOBAL, name)
    assert store.read(GLOBAL, at("a.md")) == Present(b"fine")


@pytest.mark.requirement("M24")
def test_after_a_write_nothing_is_pending(store: DocumentStore) -> None:
    store.put(GLOBAL, at("a.md"), b"one", ABSENT)
    assert store.pending(GLOBAL, at("a.md")) is None
    assert store.pending(GLOBAL) is None
