"""A few threads that run what they are given.

Rule 1: as few threads as are busy at once, and at most so many; what finds none waits for one.
Rule 2: what is run tells whoever waits for it how it ended; it raises nothing.

`concurrent.futures` would tell it by a condition variable, which takes a write as long as
reading, comparing and renaming a document.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class Threads:
    """Threads that end, when they are closed, after what they were given."""

    def __init__(self, most: int, *, name: str) -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._made: list[threading.Thread] = []

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *_: object) -> None:
        for _one in self._made:
            self._queue.put(None)
        for thread in self._made:
            thread.join()

    def run(self, work: Work) -> None:
        """Have `work` run, soon."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif len(self._made) < self._most:
                name = f"{self._name}-{len(self._made)}"
                self._made.append(threading.Thread(target=self._go_on, name=name))
                self._made[-1].start()
        self._queue.put(work)

    def _go_on(self) -> None:
        while work := self._queue.get():
            work()
            del work  # what it holds is not ours while we wait
            with self._lock:
                self._idle += 1
