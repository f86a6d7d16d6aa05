"""What the disk refused, said as the journal refuses it (J19, J25, J54, J63).

Rule 1: one place turns an error of the disk into a reason; whoever writes or reads lets it pass.
Rule 2: before the rename nothing has changed, and the refusal is definite; after it, it is not.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from amux.disk import commit
from amux.disk.flock import LockUnsupportedError
from amux.disk.ground import BlockedError, ForeignOwnerError
from amux.disk.regular import NotRegularError, TooLargeError
from amux.errors import AmuxError
from amux.journal.refusals import refuse


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turn what the disk raises meanwhile into the refusal that names its reason."""
    try:
        yield
    except OSError as error:
        raise of(error, path) from error


def of(error: OSError, path: str) -> AmuxError:
    """Make the refusal of an error that left everything as it was."""
    name = commit.name_of(error)
    match error:
        case BlockedError():
            return refuse(
                "MEMORY_PATH_REPARSE_BLOCKED",
                "a link, or what is no directory, stands on the way",
                hint="put a real directory in its place; amux doctor names it",
                path=path,
                at=error.filename or "",
            )
        case ForeignOwnerError():
            return refuse(
                "MEMORY_WORKSPACE_FOREIGN_OWNER",
                "a directory of this workspace belongs to another user",
                hint="work as its owner, or in a workspace of your own",
                path=path,
                at=error.filename or "",
            )
        case NotRegularError():
            return refuse(
                "MEMORY_FILE_NOT_REGULAR",
                "something that is no regular file has this name",
                hint="move it away; amux doctor names it",
                path=path,
            )
        case TooLargeError():
            return refuse(
                "MEMORY_SOURCE_TOO_LARGE",
                "the file is too large to be written to",
                hint="move its old part into another file by hand",
                path=path,
            )
        case LockUnsupportedError():
            return refuse(
                "MEMORY_LOCK_UNSUPPORTED",
                "the file system of this workspace has no lock that excludes",
                hint="keep the workspace on a local disk",
                cause=name,
            )
        case _:
            return _of_the_system(error, path, name)


def unknown(path: str, cause: OSError | None = None) -> AmuxError:
    """Make the refusal of a write that failed after its rename."""
    return refuse(
        "MEMORY_FILE_READBACK_MISMATCH",
        "the file was replaced, and what stands there now could not be made sure",
        hint="read it; a write that is missing is made good by sending the same call again",
        path=path,
        cause=commit.name_of(cause) if cause else "other-bytes",
    )


def conflict(path: str) -> AmuxError:
    """Make the refusal of a write whose file others changed meanwhile."""
    return refuse(
        "MEMORY_FILE_CAS_MISMATCH",
        "the file was changed by others while it was being written",
        hint="nothing of theirs was overwritten: send the same call again",
        path=path,
    )


def locked() -> AmuxError:
    """Make the refusal of a call that did not get the lock in time."""
    return refuse(
        "MEMORY_TRANSACTION_LOCKED",
        "another writer of this memory takes too long",
        hint="send the same call again in a moment; AMUX_LOCK_WAIT_MS sets how long it waits",
    )


def _of_the_system(error: OSError, path: str, name: str) -> AmuxError:
    if commit.is_forbidden(error):
        return refuse(
            "MEMORY_STORE_READ_ONLY",
            "this place may not be read or written",
            hint="check who owns it and how it is mounted; amux doctor tells",
            path=path,
            cause=name,
        )
    return refuse(
        "MEMORY_DISK_FULL",
        "the disk has no room for it" if commit.is_full(error) else "the disk did not take it",
        hint="nothing was changed: make room or mend the disk, then send the same call again",
        path=path,
        cause=name,
    )
