"""How long a search may go on before it lets others in, and before it ends.

Rule 1: work is a generator that yields the seconds to wait before its next step (M42).
Rule 2: the clock is passed in, monotonic, and looked at after each small piece of work (M44).
"""

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias, TypeVar

from amux.memory import limits

# A look at the clock may come half a step late; and beside two searches a call waits for a step
# of each before it is read, and for another of each before it is answered.
_SLICE_SECONDS = limits.STEP_MAX_SECONDS / 4
_SHOW_SECONDS = 0.010  # kept back from the deadline for reading and cutting the hits

_T = TypeVar("_T")
Steps: TypeAlias = Generator[float, None, _T]


class Pace:
    """When one search has to let others go on, and when it has to end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now = self._before = clock()
        self._until = self._now + _SLICE_SECONDS
        self._deadline = self._now + limits.SCAN_MAX_SECONDS

    def is_due(self) -> bool:
        """Look at the clock; tell whether this step is over."""
        self._before, self._now = self._now, self._clock()
        return self._now >= self._until

    def lap(self) -> float:
        """Tell the seconds between the last two looks, or since the step began."""
        return self._now - self._before

    def is_late(self, spare: float = _SHOW_SECONDS) -> bool:
        """Tell whether less than `spare` seconds were left of all at the last look."""
        return self._now >= self._deadline - spare

    def pause(self) -> Iterator[float]:
        """End a step; the next one begins when the caller comes back."""
        yield 0.0
        self._now = self._clock()
        self._until = self._now + _SLICE_SECONDS
