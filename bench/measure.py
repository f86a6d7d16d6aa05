"""Taking times: interleaved, warmed up, medians.

Rule 1: what is compared runs in turn, A B A B, so that a drifting machine moves both; in short
        bursts where each would find the other's data in the processor's caches.
Rule 2: a figure is a median unless it is named p99.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One budget: what was measured, against what, and what it may be."""

    name: str
    ours: float
    peer: float | None
    """None where the budget is absolute."""
    unit: str
    bound: float | None
    """None where a figure is told for comparison, and nothing was promised."""
    of: str
    """What the peer is, or what is bounded."""

    @property
    def value(self) -> float:
        """Give what the bound is about: the ratio, or the figure itself."""
        return self.ours if self.peer is None else self.ours / self.peer

    @property
    def is_kept(self) -> bool:
        """Tell whether the budget is kept."""
        return self.bound is None or self.value <= self.bound


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def paired(
    one: Callable[[], object],
    other: Callable[[], object],
    *,
    rounds: int,
    warm_up: int = 2,
    burst: int = 1,
) -> tuple[float, float]:
    """Time two things in turn, `burst` times each; give the median seconds of each."""
    for _ in range(warm_up):
        one()
        other()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds // burst):
        for call, taken in zip((one, other), times, strict=True):
            taken += [seconds(call) for _ in range(burst)]
    return statistics.median(times[0]), statistics.median(times[1])


def percentile(times: Sequence[float], share: float) -> float:
    """Give the time that `share` of all are not over."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
