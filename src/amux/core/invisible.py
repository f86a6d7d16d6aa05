"""Characters that a reader does not see and a model does (M78).

Rule 1: refused are characters that no text needs: tags, bidi controls, invisible operators,
        fillers, interlinear marks, controls but tab, LF and CR, noncharacters; and four or more
        zero-width characters or variation selectors in a row, which is how bytes are hidden.
Rule 2: text stays text: emoji with their joiners, selectors and flags, ZWJ and ZWNJ in Persian
        or Hindi, one selector after a Han character, a BOM at the start.
Rule 3: nothing is stripped: what is stored is what was sent, or nothing.
"""

from amux.core.lazy import Lazy

# C0 but tab, LF and CR; DEL; C1; bidi controls; word joiner, invisible operators and what
# Unicode deprecates beside them; Hangul fillers; interlinear marks; noncharacters.
_NEVER = frozenset(
    chr(point)
    for first, last in (
        (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F),
        (0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069),
        (0x2060, 0x2065), (0x206A, 0x206F),
        (0x115F, 0x1160), (0x3164, 0x3164), (0xFFA0, 0xFFA0),
        (0xFFF9, 0xFFFB),
        (0xFDD0, 0xFDEF), *((end - 1, end) for end in range(0xFFFF, 0x110000, 0x10000)),
    )
    for point in range(first, last + 1)
)  # fmt: skip
_PLAIN = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # and what the plane has unassigned
_SELECTORS = "\U000e0100-\U000e01ef"  # 17 to 256: variants of Han characters
_JOINERS = frozenset(
    chr(point)
    for first, last in (
        (0x034F, 0x034F), (0x180B, 0x180F), (0x200B, 0x200D), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)
    )
    for point in range(first, last + 1)
)  # fmt: skip
_PLANE_14 = "\U000e0000"  # of tags and selectors, and nothing else
_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"

_RUN = Lazy(f"[{''.join(sorted(_JOINERS))}{_SELECTORS}{_TAGS}]+")
_OF_FLAG = Lazy("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
_BLACK_FLAG = "\U0001f3f4"
_NOT_TEXT = Lazy(f"[{_TAGS}]|.[{_SELECTORS}]")
_OF_HAN = Lazy(f"[{_HAN}][{_SELECTORS}]")
MAX_RUN = 3  # joiner, selector and skin tone never make four without a visible one between


def first_in(text: str) -> int | None:
    """Find an invisible character that is not text."""
    # Most of a text is plain, and taken out at once; of the rest each character is looked at.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    if not rest:
        return None
    characters = set(rest.decode("utf-8", "surrogatepass"))
    never = characters & _NEVER
    if never:
        return min(map(text.index, never))
    if characters.isdisjoint(_JOINERS) and max(characters) < _PLANE_14:
        return None
    for run in _RUN.now.finditer(text):
        if not _is_text(text, run.start(), run.end()):
            return run.start()
    return None


def _is_text(text: str, start: int, end: int) -> bool:
    """Tell whether a run of zero-width characters, selectors and tags is one that text needs."""
    if text[start - 1 : start] == _BLACK_FLAG:
        flag = _OF_FLAG.now.match(text, start, end)
        start = flag.end() if flag else start
    run = text[start:end]
    if len(run) > MAX_RUN or _NOT_TEXT.now.search(run):
        return False
    is_selected = run[:1] >= "\U000e0100"
    return not is_selected or _OF_HAN.now.match(text, start - 1) is not None
