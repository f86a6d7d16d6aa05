"""Each call that changes the disk fails once, in each way that disks fail (M23)."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.core import revision
from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.disk import atomic
from amux.errors import AmuxError, NotSaved, OutcomeUnknown, PermissionDenied, Unavailable
from amux.memory.document import Missing, Present
from amux.memory.files import Files

CALLS = [
    "create", "write", "fsync", "rename", "rename_new", "exchange", "unlink", "make_folder",
    "remove_folder",
]  # fmt: skip
WAYS = {
    "EIO": NotSaved, "ENOSPC": NotSaved, "EDQUOT": NotSaved, "EMFILE": NotSaved,
    "EROFS": PermissionDenied, "EACCES": PermissionDenied,
}  # fmt: skip
# What one of these did before it failed, it did: a retry sees it.
SCRIPT: list[tuple[str, bytes | None]] = [
    ("top.md", b"one"),
    ("a/b/c.md", b"x" * 9000),
    ("top.md", b"two"),
    ("top.md", b"two"),
    ("a/b/d.md", b"1"),
    ("a/b/c.md", None),
    ("a/b/d.md", None),
    ("top.md", None),
    ("top.md", b"again"),
]


class Faults:
    """Counts the calls of all kinds and makes one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, way: str) -> None:
        self.count = 0
        self.failed = ""
        self._fail_at = fail_at
        self._way = way
        for name in CALLS:
            monkeypatch.setattr(atomic, name, self._wrapped(name, getattr(atomic, name)))

    def _wrapped(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            self.count += 1
            if self.count == self._fail_at:
                self.failed = name
                if self._way == "short":
                    return self._short(name, real, arguments)
                number = getattr(errno, self._way)
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        return call

    def _short(
        self, name: str, real: Callable[..., object], arguments: tuple[object, ...]
    ) -> object:
        if name != "write":
            return real(*arguments)
        fd, data = arguments
        assert isinstance(data, memoryview)
        return real(fd, data[: max(1, len(data) // 3)])


def play(store: Files, expected_kind: type[AmuxError] | None) -> tuple[dict[str, bytes], int]:
    """Play the script; after each refusal compare the disk with what it promised."""
    model: dict[str, bytes] = {}
    refusals = 0
    kinds: list[type[AmuxError]] = []
    for name, data in SCRIPT:
        path = DocPath.parse(name)
        before = model.get(name)
        expected = revision.ABSENT if before is None else revision.of(before)
        try:
            if data is None:
                store.remove(GLOBAL, path, expected)
            else:
                store.put(GLOBAL, path, data, expected)
        except OutcomeUnknown:
            refusals += 1
            assert store.is_failed
            found = store.read(GLOBAL, path)
            now = found.data if isinstance(found, Present) else None
            assert now in {before, data}
            with pytest.raises(Unavailable):
                store.put(GLOBAL, DocPath.parse("other.md"), b"", revision.ABSENT)
            return {**model, name: b""}, refusals
        except Unavailable:
            assert store.is_failed
            assert refusals
        except AmuxError as refusal:
            refusals += 1
            kinds.append(type(refusal))
            found = store.read(GLOBAL, path)
            assert found == (Missing() if before is None else Present(before))
        else:
            model.pop(name, None)
            if data is not None:
                model[name] = data
    assert kinds in ([], [expected_kind])
    return model, refusals


@pytest.mark.slow
@pytest.mark.requirement("M23", "row-17")
@pytest.mark.parametrize("way", [*WAYS, "short"])
@pytest.mark.parametrize("can_exchange", [True, False])
def test_whichever_call_fails_the_end_is_definite_or_unknown_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, can_exchange: bool
) -> None:
    fail_at, seen = 0, set()
    while True:
        fail_at += 1
        root = tmp_path / f"{fail_at}"
        store = Files(str(root))
        with monkeypatch.context() as patched:
            if not can_exchange:
                patched.setattr(atomic, "_renameat2", lambda *_: False)
            faults = Faults(patched, fail_at, way)
            model, refusals = play(store, WAYS.get(way))
        if not faults.failed:  # the script has fewer calls: everything was tried
            break
        seen.add(faults.failed)
        unlink_failed = faults.failed == "unlink" and store.is_failed
        if not unlink_failed:  # then nobody may touch the temporary before the next start
            assert not list(root.rglob(".amux-*"))
        if way == "short":
            assert refusals == 0
        assert faults.failed == "remove_folder" or way == "short" or refusals == 1
        store.close()
        again = Files(str(root))
        assert not list(root.rglob(".amux-*"))
        if not store.is_failed:
            for name, data in model.items():
                assert again.read(GLOBAL, DocPath.parse(name)) == Present(data)
            assert again.usage(GLOBAL).documents == len(model)
        again.close()
    assert fail_at > 35
    assert {"create", "write", "fsync", "unlink", "make_folder"} <= seen
