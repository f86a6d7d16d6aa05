"""Refreshing the derived index after a commit: objects, manifest, pointer last (J59).

Rule 1: it is made from the bytes that were read back, under the lock that they were written under.
Rule 2: whatever fails here is told in the receipt and fails nothing else.
Rule 3: an object is named by its digest and never changed; what neither of two generations needs
        is removed.
"""

from collections.abc import Mapping

from amux.disk import commit, regular
from amux.disk.tree import Folder
from amux.errors import AmuxError
from amux.journal.moment import Moment
from amux.journal.store.index import (
    FORMAT,
    MANIFEST_SCHEMA,
    MANIFESTS,
    OBJECT_MAX_BYTES,
    OBJECTS,
    PARTITION_SCHEMA,
    POINTER,
    POINTER_SCHEMA,
    PRODUCER,
    SMALL_MAX_BYTES,
    BrokenIndexError,
    Consulted,
    Manifest,
    Record,
    Scope,
    Source,
    current,
    sealed,
    spelled,
)
from amux.journal.store.root import Held, LockGoneError


def refresh(
    held: Held,
    scope: Scope,
    source: Source,
    partitions: Mapping[str, object],
    *,
    now: Moment,
    kept: Consulted | None = None,
) -> Record:
    """Make the index of a file that was just written; `indexReceipt` of a write (J59).

    `kept` is the standing index whose other partitions still hold. Whatever fails is told in the
    receipt and fails nothing else.
    """
    try:
        return _refreshed(held, scope, source, partitions, now, kept)
    except LockGoneError:
        return {"status": "failed", "reason": "lock-gone"}
    except AmuxError as refusal:
        return {"status": "failed", "reason": str(refusal.details.get("reason", refusal.code))}
    except OSError as error:
        return {"status": "failed", "reason": commit.name_of(error)}


def is_whole(held: Held, scope: Scope, standing: Consulted) -> bool:
    """Tell whether every object of a standing index is there, to be carried over."""
    if standing.manifest is None:
        return False
    try:
        folder = held.ground.open_folder(f"{scope.folder}/{OBJECTS}")
        if folder is None:
            return False
        with folder:
            there = {name.removesuffix(".json") for name in folder.names()}
    except OSError:
        return False
    return there.issuperset(standing.manifest.objects.values())


def _refreshed(
    held: Held,
    scope: Scope,
    source: Source,
    partitions: Mapping[str, object],
    now: Moment,
    kept: Consulted | None,
) -> Record:
    ground = held.ground
    before = _before(held, scope)
    made = [
        sealed({"schemaVersion": PARTITION_SCHEMA, "key": key, "format": FORMAT, "data": data})
        for key, data in partitions.items()
    ]
    objects = dict(kept.manifest.objects) if kept and kept.manifest else {}
    objects |= {str(record["key"]): str(record["digest"]) for record in made}
    manifest = _manifest(source, objects, before)
    pointer = sealed(
        {
            "schemaVersion": POINTER_SCHEMA,
            "generation": manifest["generation"],
            "manifest": manifest["digest"],
            "committedAt": now.iso,
        }
    )
    with (
        ground.make_folder(scope.folder) as top,
        ground.make_folder(f"{scope.folder}/{OBJECTS}") as folder,
        ground.make_folder(f"{scope.folder}/{MANIFESTS}") as manifests,
    ):
        for each in (top, folder, manifests):
            commit.sweep(each)
        files = [(folder, f"{record['digest']}.json", spelled(record)) for record in made]
        files = [file for file in files if not _is_there(*file)]
        if not files and before is not None and _is_same(before, source, objects):
            return {"status": "reused", "reason": None}
        files.append((manifests, f"{manifest['digest']}.json", spelled(manifest)))
        files.append((top, POINTER, spelled(pointer)))
        _put(held, files)
        found = regular.read(top, POINTER, max_bytes=SMALL_MAX_BYTES)
        if found is None or found.data != spelled(pointer):
            return {"status": "failed", "reason": "pointer-readback"}
        reachable = set(objects.values()) | (set(before.objects.values()) if before else set())
        _clear(folder, reachable)
        _clear(manifests, {str(manifest["digest"])} | ({before.digest} if before else set()))
    return {"status": "written", "reason": None}


def _before(held: Held, scope: Scope) -> Manifest | None:
    try:
        return current(held.ground, scope)
    except BrokenIndexError:
        return None


def _manifest(source: Source, objects: Mapping[str, str], before: Manifest | None) -> Record:
    return sealed(
        {
            "schemaVersion": MANIFEST_SCHEMA,
            "generation": before.generation + 1 if before else 1,
            "previous": before.digest if before else None,
            "producer": PRODUCER,
            "format": FORMAT,
            "source": source.as_json(),
            "partitions": [{"key": key, "object": objects[key]} for key in sorted(objects)],
        }
    )


def _is_same(before: Manifest, source: Source, objects: Mapping[str, str]) -> bool:
    return (
        before.source == source.as_json()
        and before.objects == objects
        and before.producer == PRODUCER
    )


def _is_there(folder: Folder, name: str, data: bytes) -> bool:
    """Tell whether an object is there already, whole."""
    seen = folder.look(name)
    if seen is None or seen.kind != "file" or seen.size != len(data):
        return False
    found = regular.read(folder, name, max_bytes=OBJECT_MAX_BYTES)
    return found is not None and found.data == data


def _put(held: Held, files: list[tuple[Folder, str, bytes]]) -> None:
    """Put files of an index in their places, in this order.

    All are written before the first is synced: one commit of the file system serves them all, and
    others wait for the lock meanwhile.
    """
    ground = held.ground
    owner = (ground.owner, ground.gid) if ground.uid == 0 else None
    with commit.staged(files, owner=owner) as temporaries:
        for (folder, name, _), temporary in zip(files, temporaries, strict=True):
            held.require()
            commit.put_over(folder, temporary, name)


def _clear(folder: Folder, reachable: set[str]) -> None:
    """Remove what neither generation needs."""
    for name in list(folder.names()):
        if name.removesuffix(".json") not in reachable:
            commit.discard(folder, name)
