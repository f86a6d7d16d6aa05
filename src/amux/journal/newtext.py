"""What new text may not hold, because a reader would take it for structure (J71, J63 step 3).

Rule 1: as people see it, not as bytes: after NFKC, without zero-width characters, behind any
        Unicode line break and after up to three blanks a heading is still a heading.
Rule 2: a finding names the line of the text as it was given.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Structure:
    """New text would be read as a heading or a marker."""

    kind: str  # "heading" or "marker"
    line: int


def structure_in(text: str) -> Structure | None:
    """Find the first line of new text that is, or looks like, a session heading or a marker."""
    raise NotImplementedError


def require_plain(text: str, argument: str) -> None:
    """Refuse new text that would be read as structure."""
    raise NotImplementedError
