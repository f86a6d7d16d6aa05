"""A process that writes documents and says what it was answered; started, traced and killed.

Usage: driver.py ROOT MARKS SEED CALLS WRITERS [BUG]

Before each call it appends a line `["begin", writer, verb, path, data]` to MARKS, after it
`["end", writer, path, outcome]`. A bug is a fault that the checker must be able to find.
"""

import json
import os
import random
import stat
import sys
import threading
from collections.abc import Callable
from functools import partial

from amux.core.identity import GLOBAL
from amux.core.path import DocPath
from amux.disk import atomic
from amux.disk.tree import Folder
from amux.errors import AmuxError
from amux.memory.document import Present
from amux.memory.files import Files

PATHS = ["MEMORY.md", "a/x.md", "a/b/y.md", "p/q/r/z.md", "top.md"]
OTHERS = ["a/x-{}.md", "a/b/y-{}.md"]


def main(arguments: list[str]) -> None:
    root, marks, seed, calls, writers, *bugs = arguments
    fd = os.open(marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for bug in bugs:
        BUGS[bug]()
    store = Files(root)
    threads = [
        threading.Thread(target=work, args=(store, fd, number, int(seed), int(calls)))
        for number in range(1, int(writers))
    ]
    for thread in threads:
        thread.start()
    work(store, fd, 0, int(seed), int(calls))
    for thread in threads:
        thread.join()


def work(store: Files, marks: int, writer: int, seed: int, calls: int) -> None:
    """Write, replace and forget; each writer has paths of its own in folders of all."""
    chance = random.Random(seed * 100 + writer)
    paths = PATHS if writer == 0 else [path.format(writer) for path in OTHERS]
    for number in range(calls):
        name = chance.choice(paths)
        path = DocPath.parse(name)
        found = store.read(GLOBAL, path)
        if isinstance(found, Present) and chance.random() < 0.3:
            mark(marks, "begin", writer, "forget", name, None)
            outcome = told(partial(store.remove, GLOBAL, path, found.revision))
        else:
            # One line, a few, more than a block, many blocks; the entry is small.
            most = 1 if name == "MEMORY.md" else 4
            data = f"{name} {writer} {number}\n" * chance.choice([1, 20, 500, 2500][:most])
            mark(marks, "begin", writer, "upsert", name, data)
            outcome = told(partial(store.put, GLOBAL, path, data.encode(), found.revision))
        mark(marks, "end", writer, name, outcome)


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except AmuxError as refusal:
        return str(refusal.code)
    return "ok"


def mark(fd: int, *line: object) -> None:
    os.write(fd, json.dumps(line).encode() + b"\n")


def is_folder(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def no_file_fsync() -> None:
    atomic.fsync = lambda fd: os.fsync(fd) if is_folder(fd) else None


def no_folder_fsync() -> None:
    atomic.fsync = lambda fd: None if is_folder(fd) else os.fsync(fd)


def no_parent_fsync() -> None:
    atomic.sync_folder = lambda _: None


def no_forget_fsync() -> None:
    unlink, settle = atomic.unlink, atomic.DirectorySyncs.settle
    skipped = threading.local()

    def note(folder: Folder, name: str) -> None:
        unlink(folder, name)
        skipped.now = not atomic.is_temporary(name)

    def skip(self: atomic.DirectorySyncs, given: atomic.Mark) -> None:
        if not getattr(skipped, "now", False):
            settle(self, given)
        skipped.now = False

    atomic.unlink = note
    atomic.DirectorySyncs.settle = skip


def in_place() -> None:
    def overwrite(folder: Folder, source: str, target: str) -> bool:
        data = folder.read(source, max_bytes=1 << 20)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=folder.fd)
        atomic.write_all(fd, data or b"")
        os.fsync(fd)
        os.close(fd)
        os.unlink(source, dir_fd=folder.fd)
        return False

    atomic.exchange = overwrite
    atomic.rename = lambda *_: None
    atomic.rename_new = overwrite


BUGS = {
    kind.__name__: kind
    for kind in (no_file_fsync, no_folder_fsync, no_parent_fsync, no_forget_fsync, in_place)
}

if __name__ == "__main__":
    main(sys.argv[1:])
