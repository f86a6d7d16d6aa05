"""A relative Markdown path, or a refusal (M11, M13, M40).

Rule 1: one document has one name: what is not in canonical form is refused, never rewritten.
Rule 2: a name is legal on every file system, so that a tree can move to any machine.
Rule 3: reading accepts `.md` in any case; creating accepts only `.md`.
"""

import re
import unicodedata

from amux.core.value import Value
from amux.errors import InvalidArgument

ENTRY = "MEMORY.md"
MAX_BYTES = 512  # fits every file system and a few of them fit one answer
MAX_SEGMENTS = 8  # folders are topics, not a taxonomy
MAX_SEGMENT_BYTES = 100  # file systems stop at 255 bytes; room is left for their own suffixes

_FORBIDDEN = frozenset(':*?"<>|')
_DRIVE = re.compile(r"[A-Za-z]:")
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE
)
# Invisible or not yet assigned: two names that look alike must not differ.
_BAD_CATEGORIES = {
    "Cc": "control_character",
    "Cf": "format_character",
    "Cs": "surrogate",
    "Co": "private_character",
    "Cn": "unassigned_character",
    "Zl": "control_character",
    "Zp": "control_character",
}


class DocPath(Value, kw_only=False):
    """The logical path of a document: `/`-separated, relative, ending in `.md`."""

    text: str

    @classmethod
    def parse(cls, text: str) -> "DocPath":
        """Accept a path as a caller wrote it, or refuse it as `invalid_argument`."""
        segments = _segments(text, argument="path")
        for segment in segments:
            _require_segment(segment, argument="path")
        if not segments[-1].lower().endswith(".md"):
            raise _refusal("path", "not_markdown", "a path ends in .md", hint=f"try {text}.md")
        return cls(text)

    @property
    def segments(self) -> tuple[str, ...]:
        """Split into the names of folders and of the file."""
        return tuple(self.text.split("/"))

    @property
    def name(self) -> str:
        """Give the last segment."""
        return self.text.rpartition("/")[2]

    @property
    def is_entry(self) -> bool:
        """Tell whether this is the scope's entry."""
        return self.text == ENTRY

    def require_creatable(self) -> None:
        """Refuse names that may be read but not created: `.MD`, and `Memory.md` at the top."""
        if not self.name.endswith(".md"):
            raise _refusal("path", "not_markdown", "a new path ends in .md in lower case")
        if fold(self.text) == fold(ENTRY) and not self.is_entry:
            raise _refusal(
                "path",
                "case_collision",
                "only MEMORY.md may be created of its case forms",
                hint=f"use {ENTRY}",
            )


class PathPrefix(Value, kw_only=False):
    """The beginning of logical paths; a trailing `/` means the folder, empty means all."""

    text: str

    @classmethod
    def parse(cls, text: str) -> "PathPrefix":
        """Accept a prefix as a caller wrote it, or refuse it as `invalid_argument`."""
        if not text:
            return cls("")
        *finished, last = _segments(text.removesuffix("/"), argument="path_prefix")
        for segment in finished:
            _require_segment(segment, argument="path_prefix")
        # The last name may be unfinished, so a blank or dot at its end is not yet wrong.
        _require_segment(last, argument="path_prefix", finished=text.endswith("/"))
        return cls(text)

    def covers(self, path: str) -> bool:
        """Tell whether a path begins so."""
        return path.startswith(self.text)


def fold(segment: str) -> str:
    """Give the form in which two names count as one on some file system (M13)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", segment).casefold())


def _segments(text: str, *, argument: str) -> list[str]:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        at = error.start
        raise _refusal(argument, "surrogate", "an unpaired surrogate", at=at) from error
    if size > MAX_BYTES:
        raise _refusal(argument, "too_long", f"a path may have {MAX_BYTES} bytes")
    if not text:
        raise _refusal(argument, "empty_segment", "a path is not empty")
    if "\\" in text:
        reason = "unc" if text.startswith("\\\\") else "backslash"
        raise _refusal(argument, reason, "a path has no backslash", hint="separate folders by /")
    if text.startswith("/"):
        reason = "unc" if text.startswith("//") else "absolute"
        raise _refusal(argument, reason, "a path is relative", hint="leave out the leading /")
    if _DRIVE.match(text):
        raise _refusal(argument, "drive", "a path names no drive")
    segments = text.split("/")
    if len(segments) > MAX_SEGMENTS:
        raise _refusal(argument, "too_deep", f"a path may have {MAX_SEGMENTS} segments")
    return segments


def _require_segment(segment: str, *, argument: str, finished: bool = True) -> None:
    """Refuse a name that is not legal everywhere; the first broken rule is the reason."""
    if not segment:
        raise _refusal(argument, "empty_segment", "a segment is not empty")
    if segment in {".", ".."}:
        raise _refusal(argument, "dot_segment", "a path holds no . or .. segment")
    if len(segment.encode("utf-8")) > MAX_SEGMENT_BYTES:
        raise _refusal(argument, "too_long", f"a segment may have {MAX_SEGMENT_BYTES} bytes")
    _require_characters(segment, argument)
    if not unicodedata.is_normalized("NFC", segment):
        form = unicodedata.normalize("NFC", segment)
        raise _refusal(argument, "not_nfc", "the text is not in NFC", hint=f"write it as {form}")
    if segment[0] in ".-":
        reason = "leading_dot" if segment[0] == "." else "leading_dash"
        raise _refusal(argument, reason, "a segment does not start with . or -")
    if segment[0].isspace() or (finished and (segment[-1] == "." or segment[-1].isspace())):
        raise _refusal(argument, "edge_blank_or_dot", "a segment has no blank or dot at its edge")
    if finished and _RESERVED.match(segment):
        raise _refusal(argument, "reserved_name", "a name that Windows keeps for a device")


def _require_characters(segment: str, argument: str) -> None:
    if segment.isascii() and segment.isprintable() and _FORBIDDEN.isdisjoint(segment):
        return  # nearly every name; a walk of a full scope asks a thousand times
    for character in segment:
        reason = _BAD_CATEGORIES.get(unicodedata.category(character))
        if character in _FORBIDDEN:
            reason = "forbidden_character"
        if reason:
            point = f"U+{ord(character):04X}"
            raise _refusal(argument, reason, f"{point} is not allowed in a path", character=point)


def _refusal(
    argument: str, reason: str, message: str, *, hint: str = "", **details: object
) -> InvalidArgument:
    return InvalidArgument(message, hint=hint, argument=argument, reason=reason, **details)
