"""The files of one scope as a reader knows them: which are documents, and why others are not.

Rule 1: what a file is, is judged by one function, for search, quota and check alike.
Rule 2: a name is shown so that it can be printed, and found again by what was shown (M8).
"""

from collections.abc import Iterator, Mapping

from amux.core.path import DocPath
from amux.core.text import line_count
from amux.disk.tree import Folder, Root, Seen, corrupt, shown, why_not_ordinary
from amux.disk.watch import Watch
from amux.errors import Corrupt, InvalidArgument
from amux.memory import limits
from amux.memory.store import Broken, Stamp, Usage

_STEP_PATHS = 32  # about 0.3 ms of parsing paths


class FilesView:
    """One reader's knowledge of a scope on disk; of one thread."""

    def __init__(self, root: Root, top: str, *, has_notices: bool = True) -> None:
        self._root = root
        self._top = top
        self._watch = Watch(root, top, max_entries=limits.SCAN_MAX_ENTRIES, has_notices=has_notices)
        self._documents: dict[str, Stamp] = {}
        self.documents: Mapping[str, Stamp] = self._documents
        self.skipped = 0
        self.is_complete = False  # nothing has been looked at yet

    def close(self) -> None:
        """Give the kernel's part back."""
        self._watch.close()

    def refresh(self) -> Iterator[None]:
        """Bring `documents` up to date, in steps of at most 1 ms."""
        self.is_complete = False  # and stays so if this refresh is given up
        yield from self._watch.refresh()
        changed = self._watch.changed
        for number, path in enumerate(list(changed), 1):
            seen = self._watch.files.get(path)
            if seen is not None and why_no_document(path, seen) is None:
                self._documents[path] = Stamp(seen.size, seen.mtime_ns, seen.ctime_ns, seen.inode)
            else:
                self._documents.pop(path, None)
            changed.discard(path)
            if not number % _STEP_PATHS:
                yield
        self.skipped = len(self._watch.files) - len(self._documents)
        self.is_complete = self._watch.is_complete

    def read(self, path: str) -> bytes | None:
        """Give the bytes now on disk, or None where there is no document any more."""
        try:
            return read_document(self._root, f"{self._top}/{path}")
        except Corrupt:
            return None


def usage(watch: Watch) -> Usage:
    """Count what the quota counts, as a watch knows it."""
    return Usage(len(watch.files), sum(seen.size for seen in watch.files.values()))


def broken(root: Root, top: str) -> Iterator[tuple[str, Broken]]:
    """Find the files that are no documents: each by its raw path and as it is listed."""
    watch = Watch(root, top, max_entries=limits.SCAN_MAX_ENTRIES, has_notices=False)
    for _ in watch.refresh():
        pass
    for path, seen in sorted(watch.files.items()):
        reason = why_no_document(path, seen) or _why_bad_content(root, top, path)
        if reason:
            yield path, Broken(shown(path), reason)


def why_no_document(path: str, seen: Seen) -> str | None:
    """Name the first rule that a file breaks, as far as that can be told without reading it."""
    if seen.kind == "folder":  # it could not be opened, or lies too deep
        return "unreadable"
    reason = why_not_ordinary(seen, max_bytes=limits.DOCUMENT_MAX_BYTES)
    if reason:
        return reason
    if not path.lower().endswith(".md"):  # most strays, at a tenth of the price of parsing
        return "odd_name"
    try:
        DocPath.parse(path)
    except InvalidArgument:
        return "odd_name"
    return None


def read_document(root: Root, path: str) -> bytes | None:
    """Read a document whole; None where none is. Refuses as `corrupt` what breaks a rule."""
    return _checked(root.read(path, max_bytes=limits.DOCUMENT_MAX_BYTES))


def read_in(folder: Folder, name: str) -> bytes | None:
    """Read a document of an open directory, as `read_document` does."""
    return _checked(folder.read(name, max_bytes=limits.DOCUMENT_MAX_BYTES))


def _checked(data: bytes | None) -> bytes | None:
    if data is None:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise corrupt("not_utf8") from error
    if b"\0" in data:
        raise corrupt("nul")
    return data


def _why_bad_content(root: Root, top: str, path: str) -> str | None:
    try:
        data = read_document(root, f"{top}/{path}")
    except Corrupt as error:
        return str(error.details["reason"])
    if data is None or path != limits.ENTRY_NAME:
        return None
    # An entry that a person made too large is served, so that it can be made smaller (M16).
    is_too_large = len(data) > limits.ENTRY_MAX_BYTES or line_count(data) > limits.ENTRY_MAX_LINES
    return "entry_too_large" if is_too_large else None
