"""A face lets the Hub learn after a search, once at a time, while it serves other calls."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from amux.core.identity import Actor
from amux.hub.service import Hub
from amux.memory.search import Found
from amux.surface import rpc

NOBODY = cast("Actor", None)
FOUND = Found(
    terms=(), scanned_files=0, skipped_files=0, incomplete=False, truncated=False, relaxed=False
)


class Learner:
    """A stand-in for the Hub: searches that find nothing, and lessons of three steps."""

    def __init__(self) -> None:
        self.lessons: list[int] = []
        self.running = 0

    def search(self, *_: object) -> Iterator[float]:
        yield 0.0
        return FOUND

    def learn(self) -> Iterator[float]:
        self.running += 1
        assert self.running == 1, "two lessons at once"
        try:
            self.lessons.append(0)
            for _ in range(3):
                yield 0.001
                self.lessons[-1] += 1
        finally:
            self.running -= 1


@pytest.mark.requirement("M42")
def test_after_a_search_the_hub_learns_and_no_second_lesson_begins_beside_it() -> None:
    hub = Learner()

    async def run() -> None:
        search: Any = rpc.Calls(cast("Hub", hub), run=lambda work: work()).handlers()["search"]
        for _ in range(3):  # all of them within the first lesson
            assert await search(NOBODY, {"query": "x"}) == FOUND.plain()
        assert hub.lessons == [0]
        while hub.running:
            await asyncio.sleep(0.001)
        assert hub.lessons == [3]
        await search(NOBODY, {"query": "x"})
        await asyncio.sleep(0)
        assert hub.running == 1

    asyncio.run(run())
    assert hub.running == 0, "the end of the loop ends a lesson"
