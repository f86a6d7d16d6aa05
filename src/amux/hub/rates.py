"""How much a credential may ask at once: buckets without a clock.

Rule 1: no clock in here; `now` is an argument, so a test can be any moment.
Rule 2: a refusal says when to come back (M76).
Rule 3: only who fails is slowed for failing: a right token never waits for a wrong one.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from amux.errors import RateLimited

CALLS_AT_ONCE = 8  # an agent with several tools in flight, not a flood
SEARCHES_AT_ONCE = 2  # each may take a quarter of a second of the loop
WRITES_PER_SECOND = 20.0  # of a delegated token: no agent has that much to say
WRITES_BURST = 60.0  # three seconds of it at once: a session that saves what it learnt
CREDENTIALS_KEPT = 4096  # buckets that are full again are forgotten, oldest first
FAILURE_STEP_SECONDS = 0.02  # one mistake is told at once, the fiftieth after a second
FAILURE_MAX_SECONDS = 1.0  # a guess a second against 256 bits


@dataclass(slots=True)
class _Account:
    calls: int = 0
    searches: int = 0
    writes: float = WRITES_BURST
    counted: float = 0.0


class Rates:
    """The accounts of all credentials, by their alias; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    @contextmanager
    def call(self, alias: str, *, is_search: bool) -> Iterator[None]:
        """Count one call while it lasts; refuse it where too many last already."""
        with self._lock:
            account = self._account(alias)
            is_full = is_search and account.searches >= SEARCHES_AT_ONCE
            if account.calls >= CALLS_AT_ONCE or is_full:
                raise _limited("too many calls at once", 1.0)
            account.calls += 1
            account.searches += is_search
        try:
            yield
        finally:
            with self._lock:
                account.calls -= 1
                account.searches -= is_search

    def write(self, alias: str, now: float) -> None:
        """Take one write from a delegated credential's bucket, or refuse it."""
        with self._lock:
            account = self._account(alias)
            refilled = account.writes + (now - account.counted) * WRITES_PER_SECOND
            account.writes = min(WRITES_BURST, refilled)
            account.counted = now
            if account.writes < 1.0:
                raise _limited("too many writes", (1.0 - account.writes) / WRITES_PER_SECOND)
            account.writes -= 1.0

    def _account(self, alias: str) -> _Account:
        account = self._accounts.pop(alias, None) or _Account()
        self._accounts[alias] = account
        while len(self._accounts) > CREDENTIALS_KEPT:
            oldest, idle = next(iter(self._accounts.items()))
            if idle.calls:
                self._accounts.move_to_end(oldest)
                break
            del self._accounts[oldest]
        return account


def failure_delay(failures: int) -> float:
    """Tell how many seconds an answer waits that refuses the n-th wrong token in a row."""
    return min(FAILURE_MAX_SECONDS, failures * FAILURE_STEP_SECONDS)


def _limited(message: str, seconds: float) -> RateLimited:
    return RateLimited(message, hint="wait and ask again", retry_after=round(max(seconds, 0.05), 2))
