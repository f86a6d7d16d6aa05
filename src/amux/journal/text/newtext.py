"""What new text may not hold, because a reader would take it for structure (J71, J63 step 3).

Rule 1: as people see it, not as bytes: after NFKC, without zero-width characters, behind any
        Unicode line break and after up to three blanks a heading is still a heading.
Rule 2: a finding names the line of the text as it was given.
"""

import re
import unicodedata

from amux.core.value import Value
from amux.journal.refusals import refuse

# What takes no room: format characters, selectors, joiners, fillers.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
_HEADING = re.compile(r"\s{0,3}##\s+会话")
_MARKER = re.compile(
    r"\s{0,3}<!--\s*(?:devcodex:memory-session-binding|amux:session)(?![\w-])"
    r"|.*<!--\s*(?:devcodex:memory-session-binding\s+v1\s+session=\S+\s+token="
    r"|amux:session\s+)[0-9a-fA-F]{16}"
)


class Structure(Value, kw_only=False):
    """New text would be read as a heading or a marker."""

    kind: str  # "heading" or "marker"
    line: int


def structure_in(text: str) -> Structure | None:
    """Find the first line of new text that is, or looks like, a session heading or a marker."""
    if not _is_suspect(_plain(text)):
        return None
    for number, line in enumerate(text.split("\n"), start=1):
        for part in (*line.splitlines(), *_plain(line).splitlines()):
            if _HEADING.match(part):
                return Structure("heading", number)
            if _MARKER.match(part):
                return Structure("marker", number)
    return None


def require_plain(text: str, argument: str) -> None:
    """Refuse new text that would be read as structure."""
    found = structure_in(text)
    if found is not None:
        raise refuse(
            "MEMORY_SESSION_WRITE_VERIFICATION_FAILED",
            f"a line of the new text would be read as a session {found.kind}",
            hint="indent the line by four blanks, or say it in other words",
            argument=argument,
            kind=found.kind,
            line=found.line,
        )


def _plain(text: str) -> str:
    """Give the text as it looks: nothing unseen, compatible characters alike."""
    if text.isascii():
        return text
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))


def _is_suspect(plain: str) -> bool:
    """Tell cheaply whether there is anything to look for."""
    return "会话" in plain or "memory-session-binding" in plain or "amux:session" in plain
