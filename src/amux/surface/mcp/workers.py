"""Work beside the conversation: a few threads, a short queue, and an end to waiting.

Rule 1: who reads the next line never waits for the work of the last one.
Rule 2: threads and queue are bounded; what finds no place is told so at once.
Rule 3: the threads die with the process: nothing that hangs keeps it alive.
"""

import threading
from collections import deque
from collections.abc import Callable

Work = Callable[[float], None]


class Workers:
    """Run work in at most `threads_max` threads; `queue_max` pieces may wait for one."""

    def __init__(self, *, threads_max: int, queue_max: int, clock: Callable[[], float]) -> None:
        self._threads_max = threads_max
        self._queue_max = queue_max
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: deque[tuple[Work, float]] = deque()
        self._threads = 0
        self._busy = 0

    def put(self, work: Work) -> bool:
        """Have `work` run with the seconds that it waited; False where the queue is full."""
        with self._changed:
            if len(self._queue) >= self._queue_max:
                return False
            self._queue.append((work, self._clock()))
            is_short = self._threads - self._busy < len(self._queue)
            if is_short and self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(target=self._run, daemon=True).start()
            self._changed.notify_all()
            return True

    def wait_idle(self, seconds: float) -> bool:
        """Wait until everything is done, for some seconds at most; tell whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._queue))
                work, since = self._queue.popleft()
                self._busy += 1
            try:
                work(self._clock() - since)
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()
