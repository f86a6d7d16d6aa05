"""Proof that no text makes a function slow, without a clock on the wall.

A bound in seconds would be a bound on the machine. Here a text is compared with a quarter of
itself: what grows with its text costs four times as much, what grows with the square sixteen.
"""

import time
from collections.abc import Callable

FREE_SECONDS = 0.02  # so little cannot be compared, and is no harm at 64 KiB
TRIES = 3
RATIO_MAX = 10.0


def require_linear(call: Callable[[str], object], text: str) -> None:
    """Fail where the cost of a call grows much faster than its text."""
    whole = _cheapest(call, text)
    if whole > FREE_SECONDS:
        eighth = len(text) // 8
        # Both ends stay: what makes a text bad often stands at one of them.
        quarter = text[:eighth] + text[-eighth:]
        # A processor that changes its pace in between spoils one comparison, not each.
        for _ in range(TRIES):
            if whole < RATIO_MAX * _cheapest(call, quarter):
                return
            whole = _cheapest(call, text)
        raise AssertionError(f"{whole:.4f} s, more than {RATIO_MAX} times a quarter of it")


def _cheapest(call: Callable[[str], object], text: str) -> float:
    times = []
    for _ in range(3):
        begun = time.process_time()
        call(text)
        times.append(time.process_time() - begun)
    return min(times)
