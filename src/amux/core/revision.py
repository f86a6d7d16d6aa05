"""The name of a document's content.

Rule 1: a revision is the lower-case hex SHA-256 of the stored bytes, or the word `absent` (M14).
Rule 2: a writer says which revision it has seen; only the holder of the lock compares (M19).
"""

import hashlib
import re

from amux.errors import InvalidArgument, RevisionConflict

ABSENT = "absent"
_FORM = re.compile(r"[0-9a-f]{64}")


def of(data: bytes) -> str:
    """Name a content."""
    return hashlib.sha256(data).hexdigest()


def parse(text: str) -> str:
    """Accept a revision as a caller wrote it, or refuse it as `invalid_argument`."""
    if text == ABSENT or _FORM.fullmatch(text):
        return text
    raise InvalidArgument(
        "the expected revision is neither `absent` nor 64 lower-case hex digits",
        hint="pass the revision that get or search answered, or `absent` to create",
        argument="expected_revision",
    )


def require(observed: str, expected: str) -> None:
    """Refuse a write whose writer has seen something else; pure compare-and-swap (M21)."""
    if observed != expected:
        raise RevisionConflict(
            "the document changed since it was read",
            hint="read it again, merge, and retry with the new revision",
            observed=observed,
        )
