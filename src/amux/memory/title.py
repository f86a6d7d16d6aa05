"""The title of a document: its first level-1 heading outside code fences (M37).

Rule 1: ATX (`# Title`) and setext (`Title` over `===`) count, as CommonMark has them; a heading
        without words is none.
Rule 2: only lines that could matter are looked at, so a document without a title costs little.
"""

import re
from typing import NamedTuple

# A mark is searched from the line end before it: the matcher then jumps from line to line.
_MARK = re.compile(
    rb"\n {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|#(?P<atx>[ \t][^\n]*)"
    rb"|(?P<under>=+)[ \t\r]*(?![^\n]))"
)
# Lines that are no part of a paragraph, and so of no setext heading: they end it ...
_ENDS = re.compile(
    rb"[ \t\r]*$| {0,3}(?:#{1,6}(?:[ \t\r]|$)|-+[ \t\r]*$|(?:`{3}|~{3})"
    rb"|(?:[-*_][ \t]*){3,}\r?$)"
)
# ... or hold it inside something else: a quotation, a list.
_HOLDS = re.compile(rb" {0,3}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])")


class Title(NamedTuple):
    """The words of a title, and the lines that hold it; line 0 says that there is none."""

    words: bytes = b""
    line: int = 0
    lines: int = 0


def title(data: bytes) -> Title:
    """Find the title of a document."""
    text = b"\n" + data.removeprefix(b"\xef\xbb\xbf")
    at = 0
    floor = 0  # where the text after the last code fence begins
    held = -1  # where the last line of `=` begins that lies inside something else
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark["fence"]:
            if mark["fence"][0] == ord("`") and b"`" in mark["info"]:
                continue  # a code span at the start of a line
            at = floor = _fence_end(text, mark)
        elif mark["under"]:
            found = _setext(text, floor, held, mark.start())
            if found is None:
                held = mark.start()
            elif found.line:
                return found
        elif words := _words(mark["atx"].strip()):
            return Title(words, text.count(b"\n", 0, mark.start() + 1), 1)
    return Title()


def _words(heading: bytes) -> bytes:
    """Leave out the closing sequence of an ATX heading."""
    opened = heading.rstrip(b"#")
    return heading if opened and opened[-1] not in b" \t" else opened.rstrip()


def _fence_end(text: bytes, mark: re.Match[bytes]) -> int:
    """Find the line end of the fence that closes this one."""
    fence = mark["fence"]
    pattern = rb"\n {0,3}%b{%d,}[ \t\r]*(?![^\n])" % (fence[:1], len(fence))
    end = re.compile(pattern).search(text, mark.end())
    return end.end() if end else len(text)


def _setext(text: bytes, floor: int, held: int, end: int) -> Title | None:
    """Take the paragraph above a line of `=`; None says that it lies inside something else."""
    lines: list[bytes] = []
    while end > floor:
        begin = text.rfind(b"\n", 0, end)
        line = text[begin + 1 : end]
        if _ENDS.match(line):
            break
        if begin == held or _HOLDS.match(line):
            return None
        lines.append(line)
        end = begin
    first = text.count(b"\n", 0, end + 1)
    while lines and lines[-1].startswith((b"    ", b"\t")):  # code, not yet the paragraph
        lines.pop()
        first += 1
    if not lines:
        return Title()
    return Title(b"\n".join(line.strip() for line in reversed(lines)), first, len(lines))
