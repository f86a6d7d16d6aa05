"""A writer that the disk holds up in the Hub: who waits for it, and how long."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.kill.home import Home, refusal_of, revision_of, until
from tests.kill.tracer import attached

STUCK_SECONDS = 5.0
AT_ONCE = ("", 0.0, 0.9)  # the answer, and between how many seconds it comes
BUSY = ("busy", 1.9, 2.9)  # M25: two seconds, and what a machine under load adds
OLD = b"old text\n"


@pytest.mark.slow
@pytest.mark.requirement("M24", "M25", "bug-7")
@pytest.mark.parametrize(
    ("call", "when", "readers_of_it", "writers"),
    [
        # Its temporary is not yet durable: it holds nothing, nobody waits.
        ("fsync", 1, AT_ONCE, None),
        # It holds the scope's lock, and nobody can tell which side of the rename it is on.
        ("renameat2", 1, BUSY, BUSY),
        # Its new bytes are in place, and a crash could still undo them.
        ("fsync", 2, BUSY, None),
    ],
)
def test_a_writer_that_is_held_up_keeps_others_for_two_seconds_at_most(
    home: Home,
    call: str,
    when: int,
    readers_of_it: tuple[str, float, float],
    writers: tuple[str, float, float] | None,
) -> None:
    home.enable().start()
    assert home.process is not None
    for path in ("a.md", "b.md", "c.md"):
        home.ask("upsert", path=path, content=OLD.decode(), expected_revision="absent")
    change = partial(home.ask, "upsert", content="new\n", expected_revision=revision_of(OLD))
    inject = f"delay_enter={STUCK_SECONDS * 1e6:.0f}:when={when}"
    with ThreadPoolExecutor(8) as threads, attached(home.process.pid, call, inject):
        stuck = threads.submit(refusal_of, partial(change, path="a.md"))
        if readers_of_it == AT_ONCE:
            until(lambda: bool(home.temporaries()), "the writer to be at work")
        else:
            impatient = partial(home.ask, "get", wait_seconds=0.2, path="a.md")
            until(lambda: refusal_of(impatient) == "unavailable", "the writer to be held up")
        waits = {
            "another": threads.submit(timed, partial(home.ask, "get", path="b.md")),
            "the same": threads.submit(timed, partial(home.ask, "get", path="a.md")),
            "search": threads.submit(timed, partial(home.ask, "search", query="text")),
            "list": threads.submit(timed, partial(home.ask, "list")),
            "a conflict": threads.submit(
                timed, partial(home.ask, "forget", path="a.md", expected_revision="0" * 64)
            ),
        }
        if writers is not None:
            waits["write"] = threads.submit(timed, partial(change, path="c.md"))
        found = {name: wait.result() for name, wait in waits.items()}
        assert not stuck.done(), "it was not held up long enough to prove anything"
        assert within(found.pop("another"), AT_ONCE)
        conflict = found.pop("a conflict")
        if readers_of_it == AT_ONCE:
            assert conflict[0] == "revision_conflict"
        else:
            assert within(conflict, BUSY)
        if writers is not None:
            assert within(found.pop("write"), writers)
        assert all(within(one, readers_of_it) for one in found.values()), found
        assert stuck.result() == ""
    assert home.ask("get", path="a.md")["content"] == "new\n"


def timed(call: Callable[[], object]) -> tuple[str, float]:
    begun = time.monotonic()
    return refusal_of(call), time.monotonic() - begun


def within(found: tuple[str, float], bounds: tuple[str, float, float]) -> bool:
    code, least, most = bounds
    return found[0] == code and least <= found[1] <= most
