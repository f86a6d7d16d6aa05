"""What is in a directory tree, and what changed since the last look.

Rule 1: notices say where to look, never what is there: each name is looked at anew.
Rule 2: a directory is watched before it is read, so that nothing falls in between.
Rule 3: where notices were lost or cannot be had, everything is looked at again.
Rule 4: work is done in steps of at most a millisecond, and a refresh that is given up halfway
        goes on with the next one.
Rule 5: a watch belongs to one thread, and knows at most `max_entries` names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from amux.disk.atomic import is_temporary
from amux.disk.notices import Notices
from amux.disk.tree import Folder, Root, Seen
from amux.errors import Corrupt

MAX_ENTRIES = 8192  # stray files must not stall a reader
_MAX_DEPTH = 32  # a document is at most 8 deep; deeper trees are not ours to walk
_STEP_NAMES = 32  # about 0.1 ms of looking at names


@dataclass(slots=True)
class _Known:
    """A directory as it was read: its names, and the watch on it."""

    watch: int = -1
    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)


class Watch:
    """The names beneath one directory of a root, kept up to date on request."""

    def __init__(
        self, root: Root, top: str, *, max_entries: int = MAX_ENTRIES, has_notices: bool = True
    ) -> None:
        self.files: dict[str, Seen] = {}
        """Path beneath the top -> what was seen: all but directories that could be read."""
        self.changed: set[str] = set()
        """Paths that came, changed or went since the reader last emptied this set."""
        self.is_complete = True
        """False where there are more names than may be known, or the top cannot be read."""
        self._root = root
        self._top = top
        self._max_entries = max_entries
        self._wants_notices = has_notices
        self._notices: Notices | None = None
        self._paths: dict[int, str] = {}
        self._folders: dict[str, _Known] = {}
        self._identity: tuple[int, int] | None = None
        self._count = 0
        self._linked: set[str] = set()
        # Ordered sets of what is still to do: they outlive a refresh that is given up.
        self._to_scan: dict[str, None] = {}
        self._to_look: dict[str, None] = {}

    @property
    def has_notices(self) -> bool:
        """Tell whether the kernel tells us of changes."""
        return self._notices is not None

    def close(self) -> None:
        """Give the kernel's part back; what is known stays readable."""
        if self._notices:
            self._notices.close()
        self._notices = None
        self._identity = None

    def refresh(self) -> Iterator[None]:
        """Bring `files`, `changed` and `is_complete` up to date, in steps."""
        try:
            top = self._root.folder(self._top)
        except Corrupt:  # a link, or nothing that we may read
            self._forget_all()
            self.is_complete = False
            return
        if top is None:
            self._forget_all()
            return
        with top:
            identity = (top.device, top.inode)
        if identity != self._identity:
            self._forget_all()
            self._identity = identity
            self._start()
        elif not self.is_complete:
            # Notices would be of no use, and to end them takes the kernel a while.
            self._forget_all()
            self._identity = identity
            self._to_scan[""] = None
        elif self._notices is None:
            self._start()
        else:
            # Nobody is told here when another name of a file comes or goes elsewhere.
            self._to_look.update(dict.fromkeys(self._linked))
            yield from self._drain(self._notices)
        yield from self._work()

    def _start(self) -> None:
        """Ask for notices anew, and for a look at everything."""
        if self._notices:
            self._notices.close()
        self._notices = Notices.open() if self._wants_notices else None
        self._paths.clear()
        for known in self._folders.values():
            known.watch = -1
        self._to_look.clear()
        self._to_scan = {"": None}  # and from there down

    def _drain(self, notices: Notices) -> Iterator[None]:
        while True:
            news, lost = notices.read()
            if lost:
                self._start()
                return
            if not news:
                return
            for notice in news:
                place = self._paths.get(notice.watch)
                if place is not None and not is_temporary(notice.name):
                    self._to_look[_join(place, notice.name)] = None
            yield

    def _work(self) -> Iterator[None]:
        while self._to_look or self._to_scan:
            for path in list(self._to_look)[:_STEP_NAMES]:
                self._note(path, self._look(path))
                self._to_look.pop(path, None)
            yield
            if not self._to_look and self._to_scan:
                path = next(iter(self._to_scan))
                yield from self._scan(path)
                self._to_scan.pop(path, None)

    def _look(self, path: str) -> Seen | None:
        try:
            return self._root.look(_join(self._top, path))
        except Corrupt:  # its directory was swapped for a link
            return None

    def _scan(self, path: str) -> Iterator[None]:
        """Read one directory; what was known of it and is not there any more goes."""
        folder = self._open(path)
        if folder is None:
            return
        with folder:
            known = self._folders.setdefault(path, _Known())
            self._listen(path, known, folder)
            found: set[str] = set()
            for number, name in enumerate(folder.names(), 1):
                if not number % _STEP_NAMES:
                    yield
                if is_temporary(name):
                    continue
                found.add(name)
                self._note(_join(path, name), folder.look(name))
                if not self.is_complete:
                    self._to_scan.clear()
                    return
            for name in (known.files | known.folders) - found:
                self._note(_join(path, name), None)

    def _open(self, path: str) -> Folder | None:
        """Open a directory to read it; one that may not be read stays as a name of a file."""
        folder: Folder | None = None
        try:
            if path.count("/") < _MAX_DEPTH:
                folder = self._root.folder(_join(self._top, path))
        except Corrupt:
            folder = None
        if folder is None and path:
            seen = self._look(path)
            self._note(path, None)
            if seen is not None:
                self._add_file(path, seen)
        return folder

    def _listen(self, path: str, known: _Known, folder: Folder) -> None:
        if self._notices is None:
            return
        watch = self._notices.add(folder)
        if watch is None:  # too many watches on this machine: look for ourselves from now on
            self._notices.close()
            self._notices = None
            self._wants_notices = False
            return
        # A directory that was renamed keeps its watch; the old name must not end it.
        old = self._folders.get(self._paths.get(watch, path))
        if old is not None and old is not known:
            old.watch = -1
        if known.watch not in {-1, watch}:
            self._paths.pop(known.watch, None)
            self._notices.remove(known.watch)
        known.watch = watch
        self._paths[watch] = path

    def _note(self, path: str, seen: Seen | None) -> None:
        """Take over what a look at a name told."""
        if seen is None:
            self._drop(path)
        elif seen.kind != "folder":
            if path in self._folders:
                self._drop(path)
            self._add_file(path, seen)
        else:
            if path in self.files:
                self._drop(path)
            if self._add(path, is_folder=True):
                self._to_scan[path] = None

    def _add_file(self, path: str, seen: Seen) -> None:
        if self.files.get(path) != seen and self._add(path, is_folder=False):
            self.files[path] = seen
            self.changed.add(path)
            if seen.kind == "file" and seen.links > 1:
                self._linked.add(path)
            else:
                self._linked.discard(path)

    def _add(self, path: str, *, is_folder: bool) -> bool:
        place, _, name = path.rpartition("/")
        parent = self._folders.setdefault(place, _Known())
        names = parent.folders if is_folder else parent.files
        if name not in names:
            if self._count >= self._max_entries:
                self.is_complete = False
                return False
            self._count += 1
            names.add(name)
        return True

    def _drop(self, path: str) -> None:
        """Forget a name, and all beneath it."""
        known = self._folders.get(path)
        if known is not None:
            for child in known.files | known.folders:
                self._drop(_join(path, child))
            del self._folders[path]
            if known.watch != -1:
                self._paths.pop(known.watch, None)
                if self._notices:
                    self._notices.remove(known.watch)
        place, _, name = path.rpartition("/")
        parent = self._folders.get(place)
        if parent is not None:
            for names in (parent.files, parent.folders):
                if name in names:
                    names.remove(name)
                    self._count -= 1
        if self.files.pop(path, None) is not None:
            self.changed.add(path)
            self._linked.discard(path)
        self._to_scan.pop(path, None)

    def _forget_all(self) -> None:
        self.changed.update(self.files)
        self.files.clear()
        self._folders.clear()
        self._paths.clear()
        self._to_scan.clear()
        self._to_look.clear()
        self._linked.clear()
        self._count = 0
        self.is_complete = True
        self.close()


def _join(place: str, name: str) -> str:
    return f"{place}/{name}" if place and name else place or name
