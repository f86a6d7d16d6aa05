"""The state that a status text names: its first character, else its first word (J38).

Rule 1: a glyph decides whatever follows it; a word counts only whole, so `incomplete` and
        `not done yet` are unknown, and unknown is never taken for done.
Rule 2: what is asked for is a filter; only rows and sections have a state.
"""

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache


class State(StrEnum):
    """Where a session stands."""

    ACTIVE = "active"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


GLYPHS = {State.ACTIVE: "🔄", State.BLOCKED: "⛔", State.COMPLETED: "✅"}
RESERVED = f"{GLYPHS[State.ACTIVE]} reserved"  # the state of a section that was just opened

FILTERS: dict[str, frozenset[State]] = {
    "active": frozenset({State.ACTIVE}),
    "completed": frozenset({State.COMPLETED}),
    "blocked": frozenset({State.BLOCKED}),
    "unresolved": frozenset({State.ACTIVE, State.BLOCKED}),
    "all": frozenset(State),
}
UNRESOLVED = FILTERS["unresolved"]

_BY_GLYPH = {glyph: state for state, glyph in GLYPHS.items()} | {"⏳": State.ACTIVE}
_BY_WORD = {
    **dict.fromkeys(
        ["completed", "complete", "closed", "done", "完成", "已完成", "已关闭"], State.COMPLETED
    ),
    **dict.fromkeys(["blocked", "paused", "阻塞", "已阻塞", "暂停", "已暂停"], State.BLOCKED),
    **dict.fromkeys(
        ["active", "in-progress", "pending", "进行中", "处理中", "等待", "等待中"], State.ACTIVE
    ),
}
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_TOKEN_END = re.compile(r"[\s,;:./()—，、。；：（）]")


@lru_cache(maxsize=1024)  # a table of years has few different ones
def state_of(text: str) -> State:
    """Recognise the state that a status line or cell names; unknown is the answer for the rest."""
    value = _SELECTORS.sub("", text).strip()
    if value[:1] in _BY_GLYPH:
        return _BY_GLYPH[value[:1]]
    folded = unicodedata.normalize("NFKC", value).casefold()
    token, *rest = _TOKEN_END.split(folded, maxsplit=1)
    if token == "in" and rest and _TOKEN_END.split(rest[0].lstrip(), maxsplit=1)[0] == "progress":
        return State.ACTIVE
    return _BY_WORD.get(token, State.UNKNOWN)


def spell(state: State) -> str:
    """Write a state as its glyph and its word, for a line of a section."""
    return f"{GLYPHS[state]} {state.value}"
