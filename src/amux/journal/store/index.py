"""The derived index: what was found in a file once, kept for readers who check all of it (J58-J61).

Rule 1: who reads makes, repairs and removes nothing here; `indexing` does, for a writer.
Rule 2: a reader believes nothing: pointer, manifest and partition match their digests, the producer
        is this release, and the file is byte for byte the one that was read. Else it parses.
Rule 3: an answer with the index equals the answer without it; deleting it loses nothing.
Rule 4: two generations stay, so that a reader who is under way still finds its objects.
"""

from collections.abc import Mapping

from amux import __version__
from amux.core import canonical
from amux.core.value import Value
from amux.disk import regular
from amux.disk.ground import Ground
from amux.journal.store.root import STATE, Held
from amux.journal.store.window import Window

PRODUCER = f"amux/{__version__}"
FORMAT = 1
FOLDER = f"{STATE}/derived-indexes/v1/memory"
POINTER, MANIFESTS, OBJECTS = "current.json", "manifests", "objects"
POINTER_SCHEMA = "MemoryIndexPointerV1"
MANIFEST_SCHEMA = "MemoryIndexManifestV1"
PARTITION_SCHEMA = "MemoryIndexPartitionV1"
SMALL_MAX_BYTES = 1024 * 1024  # a pointer or a manifest: one line a month of a lifetime
OBJECT_MAX_BYTES = 16 * 1024 * 1024  # twice a window

Record = dict[str, object]


class Scope(Value):
    """What one index is of: the SUMMARY or one day of an agent in one memory."""

    agent: str
    project: str
    scope: str
    """`project` or `workspace`."""
    date: str | None = None
    """YYYYMMDD of a day; None is the SUMMARY."""

    @property
    def digest(self) -> str:
        """Name its folder."""
        named: Record = {"agent": self.agent, "project": self.project, "scope": self.scope}
        if self.date is None:
            return canonical.digest({**named, "source": "summary"})
        return canonical.digest({**named, "source": "daily", "date": self.date})

    @property
    def folder(self) -> str:
        """Give its folder in the active root."""
        return f"{FOLDER}/{self.digest}"


class Source(Value):
    """The file that an index was made from."""

    path: str
    size: int
    mtime_ns: int
    sha256: str

    def as_json(self) -> Record:
        """Spell it for a manifest."""
        return {
            "path": self.path,
            "bytes": self.size,
            "mtimeNs": self.mtime_ns,
            "sha256": self.sha256,
        }


class Manifest(Value):
    """One generation of an index."""

    digest: str
    generation: int
    producer: str
    source: Record
    objects: Mapping[str, str]
    """The digest of each partition's object, by key."""


class Consulted:
    """An index as one reader finds it; `fresh` until something of it does not hold."""

    __slots__ = ("_found", "_ground", "_scope", "manifest", "reason")

    def __init__(
        self,
        ground: Ground | None,
        scope: Scope,
        manifest: Manifest | None,
        reason: str | None = None,
    ) -> None:
        self._ground = ground
        self._scope = scope
        self.manifest = manifest
        self.reason = reason
        self._found: dict[str, object] = {}

    @property
    def is_fresh(self) -> bool:
        """Tell whether all that was asked of it so far could be believed."""
        return self.reason is None

    def partition(self, key: str) -> object:
        """Give a partition's data; None sends the reader to the file, and says why."""
        if self.reason is not None or self.manifest is None or self._ground is None:
            return None
        if key in self._found:
            return self._found[key]
        name = self.manifest.objects.get(key)
        record = None
        try:
            if name is not None:
                record = _record(self._ground, f"{self._scope.folder}/{OBJECTS}/{name}.json")
        except BrokenIndexError:
            self._fall("partition-invalid")
            return None
        match record:
            case None:
                self._fall("partition-missing")
            case {
                "schemaVersion": "MemoryIndexPartitionV1",
                "format": 1,
                "key": str(its),
                "digest": str(digest),
                "data": data,
            } if its == key and digest == name:
                self._found[key] = data
                return data
            case _:
                self._fall("partition-invalid")
        return None

    def has(self, key: str) -> bool:
        """Tell whether there is such a partition."""
        return self.manifest is not None and key in self.manifest.objects

    def insufficient(self) -> None:
        """Note that a partition holds less than the question needs."""
        self._fall("partition-insufficient")

    def invalid(self) -> None:
        """Note that a partition's data is of another shape than this release makes."""
        self._fall("partition-invalid")

    def receipt(self) -> Record:
        """Spell J56's `indexReceipt` of a read."""
        return {"status": "fallback" if self.reason else "fresh", "reason": self.reason}

    def _fall(self, reason: str) -> None:
        self.reason = self.reason or reason


def consult(ground: Ground | None, scope: Scope, window: Window) -> Consulted:
    """Look whether the index of a file that was just read may be believed (J60)."""
    if window.is_cut:
        return Consulted(ground, scope, None, "source-too-large")
    try:
        manifest = current(ground, scope)
    except BrokenIndexError:
        return Consulted(ground, scope, None, "index-invalid")
    if manifest is None:
        return Consulted(ground, scope, None, "index-missing")
    if manifest.producer != PRODUCER:
        return Consulted(ground, scope, None, "index-producer-mismatch")
    source = manifest.source
    mtime_ns = window.facts.mtime_ns if window.facts else None
    seen = (window.path, window.total, mtime_ns)
    if (source.get("path"), source.get("bytes"), source.get("mtimeNs")) != seen:
        return Consulted(ground, scope, None, "source-metadata-drift")
    if source.get("sha256") != window.sha256:
        return Consulted(ground, scope, None, "source-digest-drift")
    return Consulted(ground, scope, manifest)


def standing(held: Held, scope: Scope, source: Source) -> Consulted:
    """Give a writer the index of the file as it was before its change, to carry parts over."""
    try:
        manifest = current(held.ground, scope)
    except BrokenIndexError:
        return Consulted(held.ground, scope, None, "index-invalid")
    if manifest is None:
        return Consulted(held.ground, scope, None, "index-missing")
    if manifest.producer != PRODUCER:
        return Consulted(held.ground, scope, None, "index-producer-mismatch")
    if manifest.source != source.as_json():
        return Consulted(held.ground, scope, None, "source-metadata-drift")
    return Consulted(held.ground, scope, manifest)


class BrokenIndexError(Exception):
    """What is there is no index of ours."""


def current(ground: Ground | None, scope: Scope) -> Manifest | None:
    """Read pointer and manifest; None where there is no pointer."""
    if ground is None:
        return None
    match _record(ground, f"{scope.folder}/{POINTER}"):
        case None:
            return None
        case {
            "schemaVersion": "MemoryIndexPointerV1",
            "generation": int(generation),
            "manifest": str(name),
        } if _is_digest(name):
            pass
        case _:
            raise BrokenIndexError
    match _record(ground, f"{scope.folder}/{MANIFESTS}/{name}.json"):
        case {
            "schemaVersion": "MemoryIndexManifestV1",
            "generation": int(its),
            "producer": str(producer),
            "format": 1,
            "source": dict(source),
            "partitions": list(listed),
            "digest": str(digest),
        } if its == generation and digest == name:
            return Manifest(
                digest=digest,
                generation=generation,
                producer=producer,
                source=source,
                objects=_objects(listed),
            )
        case _:
            raise BrokenIndexError


def _objects(listed: list[object]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in listed:
        match entry:
            case {"key": str(key), "object": str(name)} if _is_digest(name):
                found[key] = name
            case _:
                raise BrokenIndexError
    return found


def _record(ground: Ground, path: str) -> Record | None:
    """Read one file of an index; None where there is none, broken where its digest is wrong."""
    place, _, name = path.rpartition("/")
    most = OBJECT_MAX_BYTES if place.endswith(OBJECTS) else SMALL_MAX_BYTES
    try:
        folder = ground.open_folder(place)
        if folder is None:
            return None
        with folder:
            found = regular.read(folder, name, max_bytes=most)
    except OSError as error:
        raise BrokenIndexError from error
    if found is None:
        return None
    record = canonical.parsed(found.data)
    if not isinstance(record, dict):
        raise BrokenIndexError
    digest = record.get("digest")
    if not isinstance(digest, str) or not _is_sealed(found.data, record, digest):
        raise BrokenIndexError
    return dict(record)


def sealed(record: Record) -> Record:
    """Add to a record its own digest."""
    return {**record, "digest": canonical.digest(record)}


def _is_sealed(data: bytes, record: Mapping[str, object], digest: str) -> bool:
    try:
        return canonical.digest_without(record, "digest") == digest and data == spelled(record)
    except ValueError:
        return False


def spelled(record: Mapping[str, object]) -> bytes:
    """Spell a record as its file."""
    return canonical.encode(record) + b"\n"


def _is_digest(text: str) -> bool:
    return len(text) == 64 and not set(text) - set("0123456789abcdef")
