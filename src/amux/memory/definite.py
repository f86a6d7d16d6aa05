"""What a disk refuses before a rename, as the refusal that says that nothing changed (M23).

Rule 1: what is refused here is definite: the old document is intact, and no temporary is left.
Rule 2: a right that is missing is for a person to give; anything else may pass by itself.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from amux.errors import NotSaved, PermissionDenied

_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def definite() -> Iterator[None]:
    """Turn an `OSError` of what is done inside into its refusal."""
    try:
        yield
    except OSError as error:
        raise refusal(error) from error


def refusal(error: OSError) -> NotSaved | PermissionDenied:
    """Give the refusal of an error of the disk."""
    if error.errno in _NOT_WRITABLE:
        return PermissionDenied(
            "the memory root may not be written",
            hint="give its owner the right to write it, or mount it writable",
            reason="root_not_writable",
        )
    return NotSaved(
        "the disk did not take the bytes; the old document is intact",
        hint="make room on the disk; forget works on a full one",
        cause=errno.errorcode.get(error.errno or 0, "unknown"),
    )
