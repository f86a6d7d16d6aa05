"""Which line of a document answers a query, and how much of it is shown (M38).

Rule 1: lines are found in folded text, which keeps line numbers; what is shown is cut out of
        the stored bytes.
Rule 2: a snippet's budget counts its bytes as JSON, and a cut is always at a character.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import contains
from typing import NamedTuple

from amux.core.text import fit, json_length
from amux.memory import limits
from amux.memory.fold import fold, pieces
from amux.memory.search import matched
from amux.memory.title import Title

_LF = ord("\n")
_CHUNK = 8192  # bytes whose lines are compared at once, for at most 16 terms


class Place(NamedTuple):
    """The line that answers, and the line at which what is shown begins, if that is fixed."""

    line: int
    start: int = 0


class Snippet(NamedTuple):
    """Part of a document's text, the line it starts in, and whether a line of it was cut."""

    line: int
    text: str
    truncated: bool


def lines(body: bytes, needles: Sequence[bytes]) -> Iterator[int]:
    """Look for the line with most distinct needles, the earliest of several.

    Each step tells the best line so far, 0 for none; a caller may stop at any.
    """
    best_line, best, first, at = 0, 0, 1, 0
    while at < len(body) and best < len(needles):
        stop = body.rfind(b"\n", at, at + _CHUNK) + 1 or body.find(b"\n", at + _CHUNK) + 1
        chunk = body[at : stop or len(body)]
        at += len(chunk)
        present = []
        for needle in needles:
            if needle in chunk:
                present.append(needle)
            yield best_line
        if len(present) == 1 and best == 0:
            best, best_line = 1, first + chunk.count(b"\n", 0, chunk.index(present[0]))
        elif len(present) > best:
            parts = chunk.split(b"\n")
            rows = []
            for needle in present:
                rows.append(bytes(map(contains, parts, repeat(needle))))
                yield best_line
            counts = matched(rows)
            if max(counts) > best:
                best = max(counts)
                best_line = first + counts.index(best)
        first += chunk.count(b"\n")
    yield best_line


def first_line(body: bytes, needles: Sequence[bytes]) -> int:
    """Find the first line with any needle, 0 for none."""
    places = [at for at in map(body.find, needles) if at >= 0]
    return body.count(b"\n", 0, min(places)) + 1 if places else 0


def settle(heading: Title, body: bytes, line: int, needles: Sequence[bytes]) -> Place:
    """Say what to show, `line` being the best line of the folded `body`, 0 for none.

    A hit by path or title alone is shown from the title on.
    """
    if line == 0:
        return Place(heading.line or 1, heading.line or 1)
    is_title = heading.line <= line < heading.line + heading.lines
    if is_title and _is_alone(body, heading, needles):
        return Place(line, heading.line)
    return Place(line)


def snippet(data: bytes, place: Place, needles: Sequence[bytes], budget: int) -> Snippet:
    """Cut out a line and as many whole neighbours as fit `budget` bytes of JSON.

    Of a line that does not fit, show a window that starts at most 80 bytes before the first
    needle.
    """
    line = place.start or place.line
    begin = _line_start(data, line)
    end = _line_end(data, begin)
    whole = data[begin:end].decode("utf-8")
    room = budget - json_length(whole) if end - begin <= budget else -1
    if room < 0:
        return Snippet(line, _window(whole, () if place.start else needles, budget), True)
    shown, first = whole, line
    is_above, is_below = not place.start, True
    while is_above or is_below:
        below = _line(data, end + 1, room) if is_below and end + 1 < len(data) else None
        is_below = below is not None
        if below is not None:
            shown += "\n" + below
            room -= json_length(below) + 2
            end += 1 + len(below.encode("utf-8"))
        start = data.rfind(b"\n", 0, begin - 1) + 1 if begin else 0
        above = _line(data, start, room) if is_above and begin else None
        is_above = above is not None
        if above is not None:
            shown = above + "\n" + shown
            room -= json_length(above) + 2
            begin, first = start, first - 1
    return Snippet(first, shown, False)


def _is_alone(body: bytes, heading: Title, needles: Sequence[bytes]) -> bool:
    """Tell whether needles occur in no line but the title's."""
    begin = _line_start(body, heading.line)
    end = _line_start(body, heading.line + heading.lines)
    return not any(
        body.find(needle, 0, begin) >= 0 or body.find(needle, end) >= 0 for needle in needles
    )


def _line(data: bytes, begin: int, room: int) -> str | None:
    """Give the line that begins here, if it and the line end before or after it fit."""
    end = _line_end(data, begin)
    if end - begin + 2 > room:  # spares decoding: JSON is never shorter than the bytes
        return None
    text = data[begin:end].decode("utf-8")
    return text if json_length(text) + 2 <= room else None


def _line_start(data: bytes, line: int) -> int:
    """Find the byte at which a line begins; the end, if there are fewer lines."""
    low, high, above = 0, len(data), line - 1
    while above and low < high:  # counting is much faster than going from line to line
        middle = (low + high) // 2
        found = data.count(b"\n", low, middle)
        if found < above:
            above -= found + (data[middle] == _LF)
            low = middle + 1
        else:
            high = middle
    return low


def _line_end(data: bytes, begin: int) -> int:
    end = data.find(b"\n", begin)
    return len(data) if end < 0 else end


def _window(text: str, needles: Sequence[bytes], budget: int) -> str:
    """Show a long line from a little before its first needle."""
    at = _first(text.encode("utf-8"), needles)
    lead = text[max(0, at - limits.SNIPPET_LEAD_BYTES) : at]
    # The needle itself must be seen, however long the characters before it are as JSON.
    while json_length(lead) > min(limits.SNIPPET_LEAD_BYTES, budget // 4):
        lead = lead[1:]
    return fit((lead + text[at : at + budget])[:budget], budget)


def _first(data: bytes, needles: Sequence[bytes]) -> int:
    """Find the character at which the first needle begins in an unfolded line, 0 for none."""
    parts = list(pieces(data))
    folded = [fold(part) for part in parts]
    whole = b"".join(folded)
    at = min((found for found in map(whole.find, needles) if found >= 0), default=0)
    characters = 0
    for part, form in zip(parts, folded, strict=True):
        text = part.decode("utf-8")
        if at < len(form):
            return characters + _unfolded(text, at)
        at -= len(form)
        characters += len(text)
    return 0


def _unfolded(text: str, at: int) -> int:
    """Find the character whose form reaches beyond a byte of the folded text."""
    low, high = 0, max(0, len(text) - 1)
    while low < high:
        middle = (low + high) // 2
        if len(fold(text[: middle + 1].encode("utf-8"))) > at:
            high = middle
        else:
            low = middle + 1
    return low
