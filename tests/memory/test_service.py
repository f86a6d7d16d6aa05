"""What the service adds to a store: waiting for what is pending, pages, and what a forget keeps."""

from collections.abc import Generator
from typing import TypeVar

import pytest

from amux.core.identity import GLOBAL
from amux.core.path import DocPath, PathPrefix
from amux.core.text import to_json
from amux.errors import Busy, CursorStale
from amux.memory import limits
from amux.memory.document import Range
from amux.memory.service import KEPT, Memory
from tests.support.fake_store import FakeStore

T = TypeVar("T")
PATH = DocPath.parse("a.md")
ALL = PathPrefix.parse("")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """A ticket that settles after some looks at it, or never."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    @property
    def is_settled(self) -> bool:
        self.looks -= 1
        return self.looks < 0


class PendingStore(FakeStore):
    """A store whose tickets and reads come from a script."""

    def __init__(self) -> None:
        super().__init__()
        self.tickets: list[Slow] = []

    def pending(self, *_):
        return self.tickets.pop(0) if self.tickets else None


def driven(steps: Generator[float, None, T], clock: Clock | None = None) -> T:
    while True:
        try:
            wait = next(steps)
        except StopIteration as stop:
            return stop.value
        if clock is not None:
            clock.now += wait


def memory(store: FakeStore, clock: Clock) -> Memory:
    return Memory(store, clock=clock, cursor_key=b"k" * 32)


@pytest.mark.requirement("M24", "M25")
def test_a_read_waits_for_a_pending_path_and_is_busy_at_the_deadline() -> None:
    clock, store = Clock(), PendingStore()
    made = memory(store, clock)
    made.upsert(GLOBAL, PATH, b"x", "absent")
    store.tickets = [Slow(3)]
    assert driven(made.get(GLOBAL, PATH, Range()), clock).content == "x"
    store.tickets = [Slow(10**9)]
    with pytest.raises(Busy):
        driven(made.get(GLOBAL, PATH, Range()), clock)
    assert 2.0 <= clock.now < 2.1


@pytest.mark.requirement("M24", "M9")
def test_a_read_looks_again_after_waiting_because_a_write_may_have_been_given_back() -> None:
    clock, store = Clock(), PendingStore()
    made = memory(store, clock)
    revision = made.upsert(GLOBAL, PATH, b"ours", "absent").revision
    store.tickets = [Slow(1)]
    steps = made.get(GLOBAL, PATH, Range())
    next(steps)
    store.put(GLOBAL, PATH, b"the editor's", revision)
    assert driven(steps, clock).content == "the editor's"


@pytest.mark.requirement("M22")
def test_a_forget_says_what_it_leaves_and_takes_nothing_else() -> None:
    made = memory(FakeStore(), Clock())
    revision = made.upsert(GLOBAL, PATH, b"x", "absent").revision
    made.upsert(GLOBAL, DocPath.parse("b.md"), b"x", "absent")
    assert made.forget(GLOBAL, PATH, revision).plain()["kept"] == KEPT
    assert made.forget(GLOBAL, PATH, "0" * 64).already_absent
    assert [row["path"] for row in driven(made.list(GLOBAL, "p", ALL, "")).documents] == ["b.md"]


@pytest.mark.requirement("M34")
def test_a_listing_in_pages_neither_repeats_nor_skips_while_others_write() -> None:
    made = memory(FakeStore(), Clock())
    paths = [f"notes/{number:04d}-{'长' * 20}.md" for number in range(300)]
    for path in paths:
        made.upsert(GLOBAL, DocPath.parse(path), path.encode(), "absent")
    seen: list[str] = []
    cursor = ""
    while True:
        page = driven(made.list(GLOBAL, "p", ALL, cursor))
        assert len(to_json(page.plain())) <= limits.ANSWER_MAX_BYTES
        seen += [str(row["path"]) for row in page.documents]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
        # Before the cursor, and already listed: neither may move the next page.
        made.upsert(GLOBAL, DocPath.parse(f"a/{len(seen)}.md"), b"new", "absent")
    assert seen == paths


@pytest.mark.requirement("M34")
def test_a_cursor_of_another_prefix_scope_or_principal_is_stale() -> None:
    made = memory(FakeStore(), Clock())
    for number in range(300):
        made.upsert(GLOBAL, DocPath.parse(f"n/{number:04d}{'长' * 20}.md"), b"x", "absent")
    cursor = driven(made.list(GLOBAL, "p", ALL, "")).next_cursor
    assert cursor
    for principal, prefix in (("q", ALL), ("p", PathPrefix.parse("n"))):
        with pytest.raises(CursorStale):
            driven(made.list(GLOBAL, principal, prefix, cursor))
