"""Putting a temporary at its name, although editors do not ask for our lock (M9).

Rule 1: names are exchanged, not overwritten: what comes out is looked at, and given back if it
        is not what was compared. Where the kernel cannot exchange, this is a plain rename.
Rule 2: an `OSError` means that nothing changed; `AfterRenameError` that something did.
"""

from amux.disk import atomic
from amux.disk.tree import Folder
from amux.errors import Corrupt
from amux.memory import limits
from amux.memory.document import Document, Missing


class AfterRenameError(Exception):
    """Something failed when the names had already changed."""


def put_in_place(folder: Folder, temporary: str, name: str, before: Document) -> bool:
    """Rename the temporary to its name; False where something else came there meanwhile."""
    ours = folder.look(temporary)
    try:
        if isinstance(before, Missing):
            atomic.rename_new(folder, temporary, name)
            return True
        if not atomic.exchange(folder, temporary, name):
            atomic.rename(folder, temporary, name)
            return True
    except (FileExistsError, FileNotFoundError):
        return False
    try:
        try:
            came_out = folder.read(temporary, max_bytes=limits.DOCUMENT_MAX_BYTES)
        except Corrupt:
            came_out = None
        if came_out != before.data:
            _give_back(folder, temporary, name, ours.inode if ours else -1)
            return False
        atomic.unlink(folder, temporary)
    except OSError as error:
        raise AfterRenameError from error
    return True


def _give_back(folder: Folder, temporary: str, name: str, ours: int) -> None:
    """Put back what an editor wrote between our comparison and our rename."""
    try:
        atomic.exchange(folder, temporary, name)
    except FileNotFoundError:  # the editor has removed our bytes: its own are its last word
        atomic.rename_new(folder, temporary, name)
    seen = folder.look(temporary)
    if seen is not None and seen.inode != ours:
        # The editor saved once more, over our bytes; that is the newest, so it stays.
        atomic.exchange(folder, temporary, name)
    # Until this is durable a crash may undo the second exchange and keep the first.
    atomic.fsync(folder.fd)
