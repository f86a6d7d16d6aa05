"""A process that writes a journal and says what it was answered; started, traced and killed.

Usage: journal_driver.py ROOT MARKS SEED CALLS WRITERS [BUG]; ROOT is a `.devcodex`.

Before each call it appends a line `["begin", writer, tool, arguments]` to MARKS, after it
`["end", writer, {file: digest after it}]`. A bug is a fault that the checker must be able to find.
"""

import json
import os
import random
import stat
import sys
import threading
from pathlib import Path

from amux.disk import atomic, commit
from amux.disk.ground import Ground
from amux.disk.tree import Folder
from tests.support.writers import Receipt, Writer

TITLES = ["Totals", "Export", "导出"]


def main(arguments: list[str]) -> None:
    root, marks, seed, calls, writers, *bugs = arguments
    fd = os.open(marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for bug in bugs:
        BUGS[bug]()
    threads = [
        threading.Thread(target=work, args=(root, fd, number, int(seed), int(calls)))
        for number in range(1, int(writers))
    ]
    for thread in threads:
        thread.start()
    work(root, fd, 0, int(seed), int(calls))
    for thread in threads:
        thread.join()


def work(root: str, marks: int, number: int, seed: int, calls: int) -> None:
    """Open sections, add to them, append rows and decisions; send some calls twice."""
    chance = random.Random(seed * 100 + number)
    writer = writer_of(root, number, chance)
    sections: list[object] = []
    last: tuple[str, Receipt] | None = None
    for turn in range(calls):
        if last is not None and chance.random() < 0.15:
            name, given = last
        else:
            name, given = chosen(chance, number, turn, sections)
        last = name, given
        mark(marks, "begin", number, name, given)
        receipt = writer.call(name, **given)
        if receipt.get("opened") and receipt["section"] not in sections:
            sections.append(receipt["section"])
        mark(marks, "end", number, digests(receipt))


def writer_of(root: str, number: int, chance: random.Random) -> Writer:
    return Writer(
        Path(root).parent, session=f"s{number}", chance=chance.randbytes, AMUX_LOCK_WAIT_MS="30000"
    )


def chosen(
    chance: random.Random, number: int, turn: int, sections: list[object]
) -> tuple[str, Receipt]:
    if chance.random() < 0.1:
        return "decide", {"decision": f"decision {number} {turn}"}
    text = f"w{number} t{turn} {'x' * chance.choice([1, 60, 2500])}."
    given: Receipt = {"content": text}
    if sections and chance.random() < 0.6:
        given["section"] = chance.choice(sections)
    else:
        given["title"] = f"{chance.choice(TITLES)} {number} {turn}"
    if chance.random() < 0.5:
        given["row"] = f"row {number} {turn}"
        given["status"] = chance.choice(["active", "completed"])
    return "write", given


def digests(receipt: Receipt) -> dict[str, str]:
    """Give each file that a receipt says is there, by its digest."""
    event = receipt.get("summaryEvent")
    found = [receipt["transaction"], event["transaction"] if isinstance(event, dict) else None]
    return {one["file"]: one["afterDigest"] for one in found if isinstance(one, dict)}


def mark(fd: int, *line: object) -> None:
    os.write(fd, json.dumps(line).encode() + b"\n")


def is_folder(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def no_file_fsync() -> None:
    atomic.fsync = lambda fd: os.fsync(fd) if is_folder(fd) else None


def no_folder_fsync() -> None:
    atomic.fsync = lambda fd: None if is_folder(fd) else os.fsync(fd)


def no_way_fsync() -> None:
    """Neither when directories are made, nor when a file is created in them."""
    fsync = atomic.fsync
    Ground.sync_way = lambda *_: None  # type: ignore[method-assign]
    commit.flush = lambda folder: os.fsync(folder.fd)
    commit.flush_file = lambda *_: None
    atomic.fsync = lambda fd: None if is_folder(fd) else fsync(fd)


def no_way_of_others() -> None:
    """Trust that whoever made a directory has made it durable."""
    Ground.sync_way = lambda *_: None  # type: ignore[method-assign]


def no_flush_of_nothing() -> None:
    """Answer that all is there already without making it durable."""
    commit.flush_file = lambda *_: None
    Ground.sync_way = lambda *_: None  # type: ignore[method-assign]
    flush, over, new = commit.flush, commit.put_over, commit.put_new
    renamed = threading.local()

    def put(how: object) -> object:
        def call(*given: object) -> None:
            how(*given)  # type: ignore[operator]
            renamed.now = True

        return call

    def flushed(folder: Folder) -> None:
        if getattr(renamed, "now", False):
            flush(folder)
        renamed.now = False

    commit.put_over, commit.put_new, commit.flush = put(over), put(new), flushed  # type: ignore[assignment]


def in_place() -> None:
    def overwrite(folder: Folder, source: str, target: str) -> None:
        data = folder.read(source, max_bytes=1 << 24)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=folder.fd)
        atomic.write_all(fd, data or b"")
        os.fsync(fd)
        os.close(fd)
        os.unlink(source, dir_fd=folder.fd)

    commit.put_over = overwrite


def row_first() -> None:
    """Acknowledge before the directory is durable."""
    commit.flush = lambda _: None


BUGS = {
    kind.__name__: kind
    for kind in (
        no_file_fsync, no_folder_fsync, no_way_fsync, no_way_of_others, no_flush_of_nothing,
        in_place, row_first,
    )
}  # fmt: skip

if __name__ == "__main__":
    main(sys.argv[1:])
