"""What named files are now, by their bytes: targets of operations, confirmed artifacts (T46, T58).

Rule 1: nothing is believed of a file but what is seen here: no name, time or word of a caller.
Rule 2: a file that cannot be seen has no digest; that is not the same as one that is not there.
"""

from collections.abc import Iterable
from contextlib import suppress

from amux.core import canonical
from amux.core.canonical import ABSENT
from amux.disk import regular
from amux.disk.ground import Ground
from amux.journal.tasks.checkpoint import CONFIRMED, Checkpoints

ACTIVE = "active:"
TARGET_MAX_BYTES = 64 * 1024 * 1024  # hashed; what is larger is known by its metadata
ARTIFACT_MAX_BYTES = 8 * 1024 * 1024


def digest(ground: Ground | None, path: str, *, max_bytes: int = TARGET_MAX_BYTES) -> str | None:
    """Name what a path holds: a digest, `absent`, or None where it cannot be seen.

    A file that is larger than `max_bytes` is named by its size, time and inode.
    """
    place, _, name = path.rpartition("/")
    try:
        folder = None if ground is None else ground.open_folder(place)
        if folder is None:
            return ABSENT
        with folder:
            found = regular.facts(folder, name)
            if found is None:
                return ABSENT
            if found.size > max_bytes:
                seen = {"inode": found.inode, "mtimeNs": found.mtime_ns, "size": found.size}
                return f"stat:{canonical.digest(seen)}"
            read = regular.read(folder, name, max_bytes=max_bytes)
            if read is None:
                return ABSENT
            # Written to meanwhile, it was never these bytes as a whole.
            is_still = regular.facts(folder, name) == read.facts
            return canonical.digest(read.data) if is_still else None
    except OSError:
        return None


def targets(active: Ground, source: str, paths: Iterable[str]) -> dict[str, str]:
    """Name each target that can be seen: of the active root, or of the project's directory.

    The project's directory need not be ours in all its parts: only reading is done there.
    """
    found = {}
    with suppress(OSError):
        ground = Ground.open(source, (), uid=0)
        try:
            for path in paths:
                is_active = path.startswith(ACTIVE)
                seen = digest(active if is_active else ground, path.removeprefix(ACTIVE))
                if seen is not None:
                    found[path] = seen
        finally:
            if ground is not None:
                ground.close()
    return found


def artifacts(ground: Ground, task_root: str, checkpoints: Checkpoints) -> dict[str, str]:
    """Name the confirmed files of a task that are there, by the phase of their checkpoint."""
    found = {}
    for slot in checkpoints.slots:
        if slot.status != CONFIRMED or slot.confirmation is None:
            continue
        path = f"{task_root}/{slot.confirmation.artifact_path}"
        seen = digest(ground, path, max_bytes=ARTIFACT_MAX_BYTES)
        if seen is not None and seen != ABSENT:
            found[slot.phase] = seen
    return found
