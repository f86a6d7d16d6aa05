"""Where a task stands: by its archive mark, by the ledger, or by what people wrote (T28).

Rule 1: the mark wins, then a ledger state that is not foreign, then the first status line.
Rule 2: a line that says something nobody knows is unknown, and never taken for done.
"""

import re

from amux.journal.tasks.resolve import ACTIVE, COMPLETED, REJECTED, UNKNOWN
from amux.journal.tasks.task import TaskState
from amux.journal.text.status import State, state_of

READ_BYTES = 64 * 1024  # of sessions.md: the line stands at its top
_LINE = re.compile(r"[\s>*-]*(?:当前状态|状态|status)[\s*]*[:：](.*)", re.IGNORECASE)
_SELECTORS = re.compile("[\ufe00-\ufe0f]")
_REJECTED = {"rejected", "cancelled", "failed", "已拒绝", "已废弃", "已取消"}
_TOKEN_END = re.compile(r"[\s,;:./()—，、。；：（）]")


def status(*, is_archived: bool, state: TaskState | None, line: str | None) -> str:
    """Give the status of a task; `state` is one that counts, `line` what `of_text` found."""
    if is_archived:
        return COMPLETED
    if state is not None:
        return ACTIVE if state.terminal is None else state.terminal.terminal_status
    return ACTIVE if line is None else line


def of_text(data: bytes) -> str | None:
    """Read the first status line of `sessions.md`; None where none is."""
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    for line in text.split("\n"):
        match = _LINE.fullmatch(line.removesuffix("\r"))
        if match is not None:
            return of_value(match[1])
    return None


def of_value(value: str) -> str:
    """Recognise what a status line says.

    >>> of_value("✅ done"), of_value("⛔ waits"), of_value("❌"), of_value("inactive")
    ('completed', 'active', 'rejected', 'unknown')
    """
    plain = _SELECTORS.sub("", value).strip()
    if plain.startswith("❌") or _TOKEN_END.split(plain.casefold(), maxsplit=1)[0] in _REJECTED:
        return REJECTED
    match state_of(value):
        case State.COMPLETED:
            return COMPLETED
        case State.ACTIVE | State.BLOCKED:
            return ACTIVE
        case _:
            return UNKNOWN
