"""The files of a task on disk: its identity, judged, and what an admission makes (T21, T23, T31).

Rule 1: an identity is valid with its path: no link leads to it or below the task's directory.
Rule 2: a file is made whole, never over another; one that is there already and equal is enough.
"""

from collections.abc import Iterable

from amux.core import canonical
from amux.disk import regular
from amux.disk.ground import BlockedError, Ground
from amux.errors import AmuxError
from amux.journal.refusals import refuse
from amux.journal.store import trouble
from amux.journal.store.files import Edited, Writer
from amux.journal.tasks import identity, observing
from amux.journal.tasks.identity import FirstIdentity, Identity, Invalid

MAX_BYTES = 8 * 1024 * 1024


def read(ground: Ground, path: str, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """Read a file below the active root; None where none is."""
    place, _, name = path.rpartition("/")
    with trouble.told(path):
        folder = ground.open_folder(place)
        if folder is None:
            return None
        with folder:
            found = regular.read(folder, name, max_bytes=max_bytes)
    return None if found is None else found.data


def identity_of(ground: Ground, task_root: str) -> Identity | FirstIdentity | None:
    """Read the identity of a task directory; None where it has none at all (legacy).

    Refuses one that does not hold together (T23).
    """
    try:
        first = _file(ground, f"{task_root}/{identity.TASK_FILE}")
        found = None if first is None else identity.parse(first)
        if isinstance(found, Identity):
            return _placed(found, task_root)
        second = _file(ground, f"{task_root}/{identity.V2_FILE}")
        if second is None:
            return found
        parsed = identity.parse(second)
    except Invalid as error:
        raise invalid(task_root, str(error)) from error
    if not isinstance(parsed, Identity):
        raise invalid(task_root, "identityVersion")
    return _placed(parsed, task_root)


def invalid(task_root: str, problem: str) -> AmuxError:
    """Make the refusal of an identity that is none."""
    return refuse(
        "TASK_IDENTITY_INVALID",
        "the task's identity does not hold together",
        hint="put task.json back as it was; a person may have it in a backup",
        path=task_root,
        problem=problem,
    )


def create(writer: Writer, path: str, data: bytes) -> None:
    """Make a file, whole; one that is there must have these very bytes."""

    def edit(old: bytes | None) -> Edited[None]:
        if old is not None and old != data:
            raise refuse(
                "TASK_ADMISSION_RECONCILIATION_DRIFT",
                "a file of the admission is not what was planned",
                hint="put its bytes back; or keep them, and bind the task with new words",
                path=path,
                planned=canonical.digest(data),
                observed=canonical.digest(old),
            )
        return Edited(data, None)

    writer.write(path, edit)


def present(ground: Ground, paths: Iterable[str]) -> dict[str, str]:
    """Name what planned paths hold; refuses a way that leads over a link."""
    found = {}
    for path in paths:
        place, _, _ = path.rpartition("/")
        require_no_link(ground, place)
        seen = observing.digest(ground, path, max_bytes=MAX_BYTES)
        if seen is None:
            raise refuse(
                "MEMORY_FILE_NOT_REGULAR",
                "something that cannot be read as a file has this name",
                hint="move it away; amux doctor names it",
                path=path,
            )
        found[path] = seen
    return found


def require_no_link(ground: Ground, place: str) -> None:
    """Refuse a link on the way below a task's directory; above it, the root's own rule speaks."""
    kind, _, below = place.partition("/")
    with trouble.told(kind):
        folder = ground.open_folder(kind)
    if folder is None:
        return
    folder.close()
    try:
        found = ground.open_folder(place)
    except BlockedError as error:
        raise refuse(
            "TASK_PATH_REPARSE_BLOCKED",
            "a link, or what is no directory, stands in the task's directory",
            hint="put a real directory in its place",
            path=f"{kind}/{below}",
        ) from error
    except OSError as error:
        raise trouble.of(error, place) from error
    if found is not None:
        found.close()


def _file(ground: Ground, path: str) -> bytes | None:
    place, _, name = path.rpartition("/")
    require_no_link(ground, place)
    try:
        folder = ground.open_folder(place)
        if folder is None:
            return None
        with folder:
            found = regular.read(folder, name, max_bytes=identity.MAX_BYTES)
    except OSError as error:
        raise invalid(place.rpartition("/")[0], "unreadable") from error
    return None if found is None else found.data


def _placed(found: Identity, task_root: str) -> Identity:
    if found.task_root_relative != task_root:
        raise invalid(task_root, "taskRootRelative")
    return found


def names(ground: Ground, place: str) -> list[str]:
    """Name what lies in a directory below the active root, of whatever kind; nothing if none is."""
    with trouble.told(place):
        folder = ground.open_folder(place)
        if folder is None:
            return []
        with folder:
            return list(folder.names())
