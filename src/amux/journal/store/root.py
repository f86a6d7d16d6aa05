"""An active root: open for a read, or held by its one writer (J19, J23 to J26).

Rule 1: a read opens what is there, takes no lock and makes nothing.
Rule 2: a writer holds the root's lock, at most one at a time, and the lock counts only while its
        path names the file that was locked: that is looked at right before each rename. Where it
        is gone, the call starts over, once.
Rule 3: the runtime state is made by the first writer, under the lock, but for the lock itself.
Rule 4: a root's name is a random one that it keeps; moved, copied or cloned it is another root.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from amux.core import canonical
from amux.core.value import Value
from amux.disk import commit, flock, regular
from amux.disk.flock import Flock, Manners, Patience
from amux.disk.ground import Ground
from amux.disk.tree import Folder
from amux.journal.ground.workspace import Target
from amux.journal.moment import Moment
from amux.journal.store import trouble

T = TypeVar("T")
_MANNERS = Manners()

FOLDER = ".devcodex"
STATE = ".runtime-state"
LOCK = "memory.lock"
ROOT = "root.json"
IGNORE = ".gitignore"
SCHEMA = "AmuxRootV1"
ROOT_ID_BYTES = 16
_ROOT_MAX_BYTES = 4096
_IGNORE_ALL = b"*\n"
_IGNORE_STATE = f"{STATE}/\n".encode()


class Place(Value):
    """Where an active root is, or will be."""

    base: str
    steps: tuple[str, ...]
    uid: int
    """Who works there: the effective uid."""

    @classmethod
    def of(cls, target: Target, uid: int) -> "Place":
        """Give the place of a call's target."""
        below = tuple(target.below.split("/")) if target.below else ()
        return cls(base=target.base, steps=(FOLDER, *below), uid=uid)


class LockGoneError(Exception):
    """The lock's path no longer names the file that this call has locked."""


class Held:
    """An active root whose lock this call has."""

    __slots__ = ("_lock", "ground", "place")

    def __init__(self, place: Place, ground: Ground, lock: Flock) -> None:
        self.place = place
        self.ground = ground
        self._lock = lock

    def require(self) -> None:
        """Require that the lock still counts; to be asked right before each rename."""
        if not self._lock.counts:
            raise LockGoneError

    def over(self, ground: Ground) -> "Held":
        """Give the same hold for files at another ground of this workspace (`layout.json`)."""
        return Held(self.place, ground, self._lock)

    def release(self) -> None:
        """Let the next writer have it."""
        self._lock.release()
        self.ground.close()
        _MANNERS.released()


@contextmanager
def opened(place: Place) -> Iterator[Ground | None]:
    """Open an active root for reading while the block runs; None where there is none."""
    with trouble.told(FOLDER):
        ground = Ground.open(place.base, place.steps, uid=place.uid)
    try:
        yield ground
    finally:
        if ground is not None:
            ground.close()


def hold(place: Place, *, wait_ms: int, act: Callable[[Held], T]) -> T:
    """Run `act` under the root's lock, a second time if the lock was taken away meanwhile."""
    for _ in range(2):
        _MANNERS.before_asking(wait_ms)
        held = _taken(place, Patience(wait_ms))
        try:
            return act(held)
        except LockGoneError:
            continue
        finally:
            held.release()
    raise trouble.locked()


def prepare(held: Held, *, now: Moment, random_bytes: Callable[[int], bytes]) -> str:
    """Make what is missing of the runtime state, and give the root's id; None is never given.

    A `root.json` that is damaged is left as it is, and its id is the empty text.
    """
    known = root_id(held.ground)
    if known is not None:
        return known
    made = {
        "createdAt": now.iso,
        "rootId": random_bytes(ROOT_ID_BYTES).hex(),
        "schemaVersion": SCHEMA,
    }
    with trouble.told(STATE):
        first = Ground.open(held.place.base, held.place.steps[:1], uid=held.place.uid)
        if first is not None:
            with first:
                _make(held, first.folder, IGNORE, _IGNORE_STATE)
        with held.ground.make_folder(STATE) as folder:
            _make(held, folder, IGNORE, _IGNORE_ALL)
            # Last: a root that has its id has all the rest.
            _make(held, folder, ROOT, canonical.encode(made) + b"\n")
    return root_id(held.ground) or ""


def root_id(ground: Ground | None) -> str | None:
    """Read the id of a root: None where it has none yet, the empty text where it is damaged."""
    if ground is None:
        return None
    try:
        folder = ground.open_folder(STATE)
        if folder is None:
            return None
        with folder:
            found = regular.read(folder, ROOT, max_bytes=_ROOT_MAX_BYTES)
    except OSError:
        return ""
    if found is None:
        return None
    match canonical.parsed(found.data):
        case {"schemaVersion": "AmuxRootV1", "rootId": str(name)} if _is_id(name):
            return name
        case _:
            return ""


def identity(active_root: str, project: str, root_id: str) -> str:
    """Name a root: another one once it is moved, copied, cloned or stripped (J24)."""
    return canonical.digest({"activeRoot": active_root, "project": project, "rootId": root_id})


def _is_id(text: str) -> bool:
    return len(text) == 2 * ROOT_ID_BYTES and not set(text) - set("0123456789abcdef")


def _taken(place: Place, patience: Patience) -> Held:
    while True:
        with trouble.told(f"{STATE}/{LOCK}"):
            held = _tried(place)
        if held is not None:
            return held
        _MANNERS.waited()
        if not patience.pause():
            raise trouble.locked()


def _tried(place: Place) -> Held | None:
    """Try the lock once, from the base on: all of it may have been made anew since."""
    ground = None
    try:
        ground = Ground.make(place.base, place.steps, uid=place.uid)
        with ground.make_folder(STATE) as folder:
            lock = flock.exclusive(ground, folder, LOCK, f"{STATE}/{LOCK}")
        if lock is not None:
            held, ground = Held(place, ground, lock), None
            return held
    except FileNotFoundError:  # removed under our hands
        pass
    finally:
        if ground is not None:
            ground.close()
    return None


def _make(held: Held, folder: Folder, name: str, data: bytes) -> None:
    """Make a small file of the runtime state, unless the name is taken."""
    ground = held.ground
    owner = (ground.owner, ground.gid) if ground.uid == 0 else None
    commit.sweep(folder, name)
    while folder.look(name) is None:
        temporary = commit.stage(folder, name, data, like=None, owner=owner)
        try:
            held.require()
            # Another root of this workspace may sweep it: they share the topmost directory.
            with suppress(FileExistsError, FileNotFoundError):
                commit.put_new(folder, temporary, name)
        finally:
            commit.discard(folder, temporary)
    commit.flush(folder)
