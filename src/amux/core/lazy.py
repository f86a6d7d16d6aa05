"""A pattern that is compiled when it is first used.

Rule 1: a Hub must answer soon after its start, and a search or a write that needs a pattern is
        seldom the first thing it is asked; thirty of them cost a start 15 ms.
"""

import re
from functools import cached_property


class Lazy:
    """A regular expression and its flags."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def now(self) -> re.Pattern[str]:
        """Give the compiled pattern."""
        return re.compile(self._pattern, self._flags)
