"""The pages of one conversation: answers that an agent is still reading (M57).

Rule 1: one keeper for all tools of a process: `result_continue` does not ask whose answer it was.
"""

import threading
from collections.abc import Callable

from amux.wire.pages import Pages


class Paging:
    """Pages, one caller at a time."""

    def __init__(self, *, random_bytes: Callable[[int], bytes], clock: Callable[[], float]) -> None:
        self._pages = Pages(lambda: random_bytes(12).hex())
        self._clock = clock
        self._reading = threading.Lock()

    def open(self, answer: str) -> str:
        """Give an answer as it is where it fits, else its first page."""
        with self._reading:
            return self._pages.open(answer, self._clock())

    def resume(self, continuation: str) -> str:
        """Give the page that a continuation names."""
        with self._reading:
            return self._pages.resume(continuation, self._clock())
