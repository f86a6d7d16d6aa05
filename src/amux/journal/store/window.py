"""What a read sees of one file: its end, and what proves which file it was (J54, J55, J57).

Rule 1: at most the last 8 MiB are read, and nothing more is hashed. What lies before is not known,
        so a larger file has no identity and its lines no numbers.
Rule 2: a missing file is an empty window, not a refusal.
"""

import unicodedata
from functools import cached_property

from amux.core import canonical
from amux.disk import regular
from amux.disk.ground import Ground
from amux.disk.regular import Facts
from amux.journal.moment import Moment
from amux.journal.store import trouble

WINDOW_BYTES = 8 * 1024 * 1024  # J55: what one answer may read of a file
IDENTITY_SCHEMA = "ContentIdentityV1"


class Window:
    """The end of a file, all of it unless it is larger than a window."""

    def __init__(self, path: str, data: bytes, start: int, facts: Facts | None) -> None:
        self.path = path
        """In the active root."""
        self.data = data
        self.start = start
        """Where in the file the bytes begin."""
        self.facts = facts
        """None where there is no file."""

    @property
    def exists(self) -> bool:
        """Tell whether there is a file."""
        return self.facts is not None

    @property
    def is_cut(self) -> bool:
        """Tell whether the file has bytes before the window (coverage `partial`)."""
        return self.start > 0

    @property
    def total(self) -> int:
        """Count the bytes of the file."""
        return self.start + len(self.data)

    @cached_property
    def sha256(self) -> str | None:
        """Name the file's bytes; None for no file, or one that was not read whole."""
        return canonical.digest(self.data) if self.exists and not self.is_cut else None

    @property
    def cursor_source(self) -> str:
        """Name the file as a cursor is bound to it (J62)."""
        return self.sha256 or canonical.ABSENT

    def identity(self) -> dict[str, object] | None:
        """Spell what proves the file whole (J57); None where `sha256` is."""
        digest = self.sha256
        return None if digest is None else identity(self.path, digest, len(self.data))

    def source(self) -> dict[str, object]:
        """Spell J56's `source`."""
        return {
            "path": self.path,
            "exists": self.exists,
            "bytes": self.total,
            "modifiedAt": modified_at(self.facts.mtime_ns) if self.facts else None,
            "identity": self.identity(),
        }


def read(ground: Ground | None, path: str, *, max_bytes: int = WINDOW_BYTES) -> Window:
    """Read the end of a file of the active root; nothing is made, changed or waited for.

    Refuses what is no regular file, and a way to it that leads through a link or through another
    user's directory.
    """
    place, _, name = path.rpartition("/")
    with trouble.told(path):
        folder = ground.open_folder(place) if ground is not None else None
        if folder is None:
            return Window(path, b"", 0, None)
        with folder:
            found = regular.read_end(folder, name, max_bytes=max_bytes)
    return Window(path, b"", 0, None) if found is None else Window(path, *found)


def names(ground: Ground | None, path: str) -> list[str]:
    """Name what lies in a directory of the active root, in order; nothing where none is."""
    with trouble.told(path):
        folder = ground.open_folder(path) if ground is not None else None
        if folder is None:
            return []
        with folder:
            return sorted(folder.names())


def identity(path: str, digest: str, size: int) -> dict[str, object]:
    """Spell a ContentIdentityV1 of the bytes of a file."""
    return {
        "schemaVersion": IDENTITY_SCHEMA,
        "algorithm": "sha256",
        "sourceKey": unicodedata.normalize("NFC", path),
        "contractVersion": 1,
        "digest": digest,
        "bytes": size,
    }


def modified_at(mtime_ns: int) -> str:
    """Spell a file's time as JSON has it."""
    seconds, rest = divmod(mtime_ns, 1_000_000_000)
    return Moment.at(seconds).iso.replace(".000Z", f".{rest // 1_000_000:03d}Z")
