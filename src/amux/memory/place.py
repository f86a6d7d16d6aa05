"""The place of a document on disk: its directories, and whether its name is free.

Rule 1: a directory is durable before anything is put into it.
Rule 2: a name that equals another one on some file system is not free (M13).
Rule 3: everything here runs under the scope's lock, or before any writer exists.
"""

from contextlib import suppress

from amux.core.path import DocPath, fold
from amux.disk import atomic
from amux.disk.tree import Folder, Root, Seen, corrupt, shown
from amux.errors import Corrupt, InvalidArgument, QuotaExceeded
from amux.memory import limits


def parent(path: str) -> str:
    """Name the directory that a path lies in."""
    return path.rpartition("/")[0]


def require_free(root: Root, top: str, path: DocPath) -> None:
    """Refuse a new path whose names collide with existing ones."""
    place = top
    *folders, last = path.segments
    for segment in [*folders, last]:
        folder = root.folder(place)
        if folder is None:
            return
        with folder:
            _require_no_twin(folder, segment)
            seen = folder.look(segment)
        if seen is None:
            return
        if segment is not last:
            _require_folder(seen)
        elif seen.kind == "folder":
            raise InvalidArgument(
                "a folder has this name", hint="choose another name", argument="path",
                reason="is_folder",
            )  # fmt: skip
        place = f"{place}/{segment}"


def make_folders(root: Root, place: str) -> Folder:
    """Make what is missing of a directory's path, durably, and open the directory.

    On an exception what was made is removed again.
    """
    made = ""
    at, path = root.folder(""), ""
    try:
        for step in place.split("/"):
            path = f"{path}/{step}" if path else step
            below = root.folder(path)
            if below is None and at is not None:
                atomic.make_folder(at, step)
                made = path
                atomic.sync_folder(at)
                below = root.folder(path)
            if at is not None:
                at.close()
            at = below
        if at is None:
            raise FileNotFoundError(place)
    except BaseException:
        if at is not None:
            at.close()
        if made:
            prune(root, "", made)
        raise
    return at


def prune(root: Root, top: str, place: str) -> None:
    """Remove a directory if it is empty, and those above it, up to the scope's own."""
    while place and place != top:
        above, _, name = place.rpartition("/")
        folder = root.folder(above)
        if folder is None:
            return
        with folder:
            try:
                atomic.remove_folder(folder, name)
            except OSError:  # not empty, or not there
                return
        place = above


def sweep(root: Root) -> None:
    """Remove the temporaries that a crash left behind, in every directory."""
    places = [""]
    while places:
        place = places.pop()
        with suppress(Corrupt, OSError):
            folder = root.folder(place)
            if folder is None:
                continue
            with folder:
                atomic.sweep(folder)
                for name in list(folder.names()):
                    seen = folder.look(name)
                    if seen and seen.kind == "folder":
                        places.append(f"{place}/{name}" if place else name)


def _require_no_twin(folder: Folder, segment: str) -> None:
    """Refuse a name that equals another one there up to case and compatibility, not exactly."""
    folded = fold(segment)
    twin = ""
    for number, name in enumerate(folder.names()):
        if name == segment:
            return
        if number >= limits.SCAN_MAX_ENTRIES:
            raise QuotaExceeded(
                "too many files in this folder", hint="amux memory check lists them"
            )
        # The quick form of `fold` for most names.
        if (name.lower() if name.isascii() else fold(name)) == folded:
            twin = name
    if twin:
        raise InvalidArgument(
            "an existing name differs only in case or form",
            hint=f"use the existing name {shown(twin)}, or another one",
            argument="path",
            reason="case_collision",
            existing=shown(twin),
        )


def _require_folder(seen: Seen) -> None:
    if seen.kind == "file":
        raise InvalidArgument(
            "a document has the name of this folder", hint="choose another folder",
            argument="path", reason="not_a_folder",
        )  # fmt: skip
    if seen.kind != "folder":
        raise corrupt("link" if seen.kind == "link" else "not_regular")
