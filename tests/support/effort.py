"""What a call has a processor do, counted instead of timed.

A bound in milliseconds is a bound on the machine, and fails on a slower one with nothing wrong.
Python counts alike everywhere: how many functions ran, of Python and of C, and how many files were
opened. What a client waits for is measured by `make bench`.
"""

import sys
from collections.abc import Callable
from types import FrameType

from amux.core.value import Value

_listeners: list[list[object]] = []


class Effort(Value):
    """What a call did: functions that ran, and files that were opened."""

    calls: int
    files: int


def effort(call: Callable[[], object]) -> Effort:
    """Count what a call does in this thread, once what it remembers is there."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    opened: list[object] = []
    _listeners.append(opened)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
        _listeners.remove(opened)
    return Effort(calls=calls, files=len(opened))


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        for opened in _listeners:
            opened.append(arguments[0])


sys.addaudithook(_listen)  # cannot be taken away again; it costs nothing while nobody counts
