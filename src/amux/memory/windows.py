"""The windows in which a text is compared with terms, and what compares.

Rule 1: a long text is compared in windows, so that no comparison takes long. Windows end at
        line ends; in lines longer than a window they overlap by more than the longest term.
Rule 2: a window copies nothing, and `needle in window` is all that it is for.
"""

from typing import Any, Protocol

from amux.memory import limits

try:  # the same answers either way, several times faster with it
    from stringzilla import Str
except ImportError:
    Str = None

# Bytes compared with one term between two looks at the clock: half a millisecond even for the
# texts and terms that are worst for each.
BLOCK = 8 * 1024 if Str is None else 32 * 1024
# A term is at most 512 bytes, and folding makes no more than eleven bytes of one (U+FDFA).
_OVERLAP = limits.QUERY_MAX_BYTES * 11


class Window(Protocol):
    """Part of a folded text."""

    def __contains__(self, needle: Any, /) -> bool: ...

    def __len__(self) -> int: ...


class Plain:
    """A window without the fast matcher."""

    __slots__ = ("_begin", "_end", "_form")

    def __init__(self, form: bytes, begin: int, end: int) -> None:
        self._form = form
        self._begin = begin
        self._end = end

    def __contains__(self, needle: bytes) -> bool:
        return self._form.find(needle, self._begin, self._end) >= 0

    def __len__(self) -> int:
        return self._end - self._begin


def cut(form: bytes) -> tuple[Window, ...]:
    """Cut a text into windows that no term escapes."""
    windows = []
    begin = 0
    while len(form) - begin > BLOCK:
        stop = form.rfind(b"\n", begin, begin + BLOCK) + 1
        if stop > begin:
            windows.append(_window(form, begin, stop))
        else:
            stop = begin + BLOCK
            windows.append(_window(form, begin, min(len(form), stop + _OVERLAP)))
        begin = stop
    windows.append(_window(form, begin, len(form)))
    return tuple(windows)


def _window(form: bytes, begin: int, end: int) -> Window:
    if Str is None:
        return Plain(form, begin, end)
    found: Window = Str(form)[begin:end]
    return found
