"""Under what name a task gets its directory (T22).

Rule 1: the name of a directory is derived once, at admission; it grants nothing and finds nothing.
Rule 2: two names that a file system might take for one are one here: NFC, casefold.
Rule 3: a name that is taken is not shared: the start of the taskId is appended, once.
"""

import re
import unicodedata
from collections.abc import Iterable

from amux.journal.machine import Refused

MAX_BYTES = 160
_DASHED = re.compile(r'[:*?"<>|]')
_DEVICE = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?", re.IGNORECASE)
KINDS = ("requirements", "bugs", "optimizations", "scenario-tests")


def segment(display_name: str) -> str | Refused:
    """Give the directory name of a task of this name, or say why there is none.

    >>> segment("A: B")
    'A- B'
    """
    name = _DASHED.sub("-", unicodedata.normalize("NFKC", display_name)).strip()
    if not name:
        return _refused("REQUIRED", "a directory cannot have an empty name")
    if len(name.encode("utf-8")) > MAX_BYTES:
        return _refused("TOO_LONG", "the name is too long for a directory", limit=MAX_BYTES)
    if name.startswith(".") or name.endswith(".") or any(_is_unfit(one) for one in name):
        return _refused("INVALID", "the name cannot be that of a directory")
    if _DEVICE.fullmatch(name):
        return _refused("RESERVED", "the name is that of a device on some systems")
    return name


def choose(name: str, task_id: str, taken: Iterable[str]) -> str | Refused:
    """Give the segment that the task takes among its siblings.

    `taken` names the siblings, but one whose identity has this very taskId.
    """
    folded = {fold(one) for one in taken}
    for candidate in (name, f"{name}--{task_id[:8]}"):
        if fold(candidate) not in folded:
            return candidate
    return Refused(
        reason="TASK_DIRECTORY_COLLISION",
        message="a directory of this name is there already",
        hint="admit the task under another displayName, or adopt the directory",
    )


def fold(name: str) -> str:
    """Give what two names of one directory have in common."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _is_unfit(character: str) -> bool:
    return character in "/\\" or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def _refused(end: str, message: str, **details: object) -> Refused:
    return Refused(
        reason=f"TASK_DIRECTORY_NAME_{end}",
        message=message,
        hint="choose another displayName; the name is kept as given, the directory is made of it",
        details=details,
    )
