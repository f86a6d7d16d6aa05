"""What may be on a disk after a power loss, given what a process did to it.

The model is the weakest that file systems keep: changes of a directory that were not synced
are there or not, each by itself or in order; bytes that were not synced are missing, zeros,
garbage, torn at a block, or there. What an fsync covers is what came before it began, and it is
durable when the fsync has ended.
"""

import itertools
import os
import random
from collections.abc import Iterator
from typing import TypeAlias

from tests.crash.traced import Op

BLOCK_BYTES = 4096
SUBSETS_MAX = 6  # of more pending changes only the orders of events are tried, not all subsets

Change: TypeAlias = tuple[tuple[str, int | None], ...]
Tree: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Directory:
    """Names as the process sees them, as they are durable, and the changes in between."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.durable: dict[str, int] = {}
        self.pending: list[tuple[int, Change]] = []


class Content:
    """Bytes as the process sees them, as they are durable, and the writes in between."""

    def __init__(self) -> None:
        self.seen = b""
        self.durable = b""
        self.pending: list[tuple[int, bytes]] = []  # the whole content after each write


class Disk:
    """The parent of a root, and all beneath it."""

    def __init__(self, root: str) -> None:
        self._top = os.path.dirname(root)
        self._nodes: dict[int, Directory | Content] = {0: Directory()}
        self._clock = 0
        self._syncs: dict[str, list[tuple[int, int]]] = {}

    def apply(self, op: Op) -> None:
        """Do what the process did."""
        self._clock += 1
        match op.verb:
            case "mkdir":
                self._change(op.path, self._new(Directory()))
            case "create" | "truncate":
                if self._find(op.path) is None:
                    self._change(op.path, self._new(Content()))
                if op.verb == "truncate":
                    self._write(op.path, b"", replace=True)
            case "write":
                self._write(op.path, op.data)
            case "rename":
                self._change(op.other, self._find(op.path), gone=op.path)
            case "exchange":
                self._exchange(op.path, op.other)
            case "unlink":
                self._change(op.path, None)
            case _:
                self._sync(op)

    def _sync(self, op: Op) -> None:
        begun = self._syncs.setdefault(op.path, [])
        node = self._find(op.path)
        if op.verb == "sync-begin" and node is not None:
            begun.append((node, self._clock))
        elif op.verb == "sync-end" and begun:
            self._make_durable(*begun.pop(0))

    def states(self, chance: random.Random, *, in_order: bool, most: int) -> Iterator[Tree]:
        """Give what may be found after a crash now; a sample where there are more than `most`."""
        directories = [
            (number, node)
            for number, node in self._nodes.items()
            if isinstance(node, Directory) and node.pending
        ]
        contents = [
            (number, node)
            for number, node in self._nodes.items()
            if isinstance(node, Content) and node.pending
        ]
        choices: list[list[object]] = [
            list(_subsets(len(node.pending), in_order)) for _, node in directories
        ]
        choices += [list(_torn(node)) for _, node in contents]
        count = 1
        for choice in choices:
            count *= len(choice)
        picks = (
            itertools.product(*choices)
            if count <= most
            else (tuple(map(chance.choice, choices)) for _ in range(most))
        )
        for pick in picks:
            names = {
                number: _applied(node, pick[at]) for at, (number, node) in enumerate(directories)
            }
            data = {number: pick[len(directories) + at] for at, (number, _) in enumerate(contents)}
            yield tuple(self._tree(0, "", names, data))

    def _tree(
        self, number: int, path: str, names: dict[int, dict[str, int]], data: dict[int, object]
    ) -> Iterator[tuple[str, bytes | None]]:
        node = self._nodes[number]
        assert isinstance(node, Directory)
        for name, child in sorted(names.get(number, node.durable).items()):
            below = self._nodes[child]
            if isinstance(below, Directory):
                yield f"{path}{name}", None
                yield from self._tree(child, f"{path}{name}/", names, data)
            else:
                found = data.get(child, below.durable)
                assert isinstance(found, bytes)
                yield f"{path}{name}", found

    def _new(self, node: Directory | Content) -> int:
        number = len(self._nodes)
        self._nodes[number] = node
        return number

    def _find(self, path: str) -> int | None:
        at = 0
        for name in os.path.relpath(path, self._top).split("/"):
            if name == ".":
                continue
            node = self._nodes[at]
            found = node.seen.get(name) if isinstance(node, Directory) else None
            if found is None:
                return None
            at = found
        return at

    def _parent(self, path: str) -> tuple[Directory, str]:
        number = self._find(os.path.dirname(path))
        node = self._nodes[number] if number is not None else None
        assert isinstance(node, Directory), path
        return node, os.path.basename(path)

    def _change(self, path: str, number: int | None, *, gone: str = "") -> None:
        directory, name = self._parent(path)
        change: list[tuple[str, int | None]] = [(name, number)]
        if gone:
            other, old = self._parent(gone)
            assert other is directory, "the store renames within one directory"
            change.insert(0, (old, None))
        self._record(directory, tuple(change))

    def _exchange(self, one: str, other: str) -> None:
        directory, name = self._parent(one)
        _, twin = self._parent(other)
        self._record(directory, ((name, directory.seen[twin]), (twin, directory.seen[name])))

    def _record(self, directory: Directory, change: Change) -> None:
        directory.pending.append((self._clock, change))
        _apply(directory.seen, change)

    def _write(self, path: str, data: bytes, *, replace: bool = False) -> None:
        number = self._find(path)
        node = self._nodes[number] if number is not None else None
        assert isinstance(node, Content), path
        node.seen = data if replace else node.seen + data
        node.pending.append((self._clock, node.seen))

    def _make_durable(self, number: int, begun: int) -> None:
        node = self._nodes[number]
        if isinstance(node, Directory):
            for when, change in node.pending:
                if when <= begun:
                    _apply(node.durable, change)
            node.pending = [item for item in node.pending if item[0] > begun]
        else:
            for when, content in node.pending:
                if when <= begun:
                    node.durable = content
            node.pending = [item for item in node.pending if item[0] > begun]


def _apply(names: dict[str, int], change: Change) -> None:
    for name, number in change:
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


def _applied(node: Directory, pick: object) -> dict[str, int]:
    assert isinstance(pick, tuple)
    names = dict(node.durable)
    for index in pick:
        _apply(names, node.pending[index][1])
    return names


def _subsets(count: int, in_order: bool) -> Iterator[tuple[int, ...]]:
    if in_order or count > SUBSETS_MAX:
        for length in range(count + 1):
            yield tuple(range(length))
    else:
        for length in range(count + 1):
            yield from itertools.combinations(range(count), length)


def _torn(node: Content) -> Iterator[bytes]:
    found = [node.durable]
    for _, content in node.pending:
        zeros = bytes(len(content))
        found += [b"", zeros, b"\xde\xad" * (len(content) // 2) + b"x" * (len(content) % 2)]
        for at in range(BLOCK_BYTES, len(content), BLOCK_BYTES):
            found += [content[:at], content[:at] + zeros[at:], zeros[:at] + content[at:]]
        found += [content[: len(content) // 2], content]
    yield from dict.fromkeys(found)
