"""A Hub whose disk obeys the test: run as a program, told what to do by one file.

The file holds words: `delay SECONDS` (every fsync), `hold-file`, `hold-folder` (an fsync waits
until the word is gone), `hold-exchange` (so does a replace, after everything was compared),
`fail-file`, `fail-folder` (an fsync fails with EIO), `bug` (reading breaks inside the Hub).
What happened stands in a log of JSON lines, each with the machine's monotonic time.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from amux import app
from amux.disk import atomic
from amux.disk.tree import Folder
from amux.memory import document

HOLD_SECONDS = 30.0  # a test that forgot to let go must end some day


class FaultyDisk:
    """The test's end: what to do, and what happened."""

    def __init__(self, folder: Path) -> None:
        self.control = folder / "disk-control"
        self.log = folder / "disk-log"
        self.log.touch()
        self.set("")

    @property
    def launcher(self) -> list[str]:
        return [sys.executable, "-P", __file__, str(self.control), str(self.log)]

    def set(self, words: str) -> None:
        beside = self.control.with_suffix(".new")
        beside.write_text(words)
        beside.rename(self.control)

    def events(self, kind: str) -> list[dict[str, object]]:
        """Give what happened; a last line that a kill has torn is left out."""
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def await_event(self, kind: str, count: int = 1, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while len(self.events(kind)) < count:
            assert time.monotonic() < deadline, f"no event {kind}"
            time.sleep(0.002)

    @contextlib.contextmanager
    def doing(self, words: str) -> "Iterator[FaultyDisk]":
        self.set(words)
        try:
            yield self
        finally:
            self.set("")


class Faults:
    """The Hub's end: what stands between it and the disk."""

    def __init__(self, control: str, log: str) -> None:
        self._control = Path(control)
        self._sink = os.open(log, os.O_WRONLY | os.O_APPEND)
        self._fsync = os.fsync
        self._exchange = atomic.exchange
        self._rename_new = atomic.rename_new
        self._cut = document.cut

    def words(self) -> list[str]:
        return self._control.read_text().split()

    def tell(self, kind: str, **more: object) -> None:
        line = json.dumps({"kind": kind, "at": time.monotonic(), **more}) + "\n"
        os.write(self._sink, line.encode())

    def hold(self, word: str) -> None:
        if word not in self.words():
            return
        self.tell("held", word=word)
        deadline = time.monotonic() + HOLD_SECONDS
        while word in self.words() and time.monotonic() < deadline:
            time.sleep(0.002)

    def fsync(self, fd: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"
        if os.readlink(f"/proc/self/fd/{fd}").endswith("/audit.jsonl"):
            kind = "trail"  # only delayed: what a broken trail does has tests of its own
        begun = time.monotonic()
        asked = self.words()
        if "delay" in asked:
            time.sleep(float(asked[asked.index("delay") + 1]))
        if f"fail-{kind}" in asked:
            raise OSError(errno.EIO, "the test broke it")
        self.hold(f"hold-{kind}")
        self._fsync(fd)
        if kind == "folder":
            self.tell("sync", begun=begun, inode=os.fstat(fd).st_ino)

    def exchange(self, folder: Folder, temporary: str, name: str) -> bool:
        self.hold("hold-exchange")
        self._renamed(folder, temporary, name)
        return self._exchange(folder, temporary, name)

    def rename_new(self, folder: Folder, temporary: str, name: str) -> None:
        self._renamed(folder, temporary, name)
        self._rename_new(folder, temporary, name)

    def cut(self, *given: object) -> object:
        if "bug" in self.words():
            raise RuntimeError("the test broke it")
        return self._cut(*given)

    def _renamed(self, folder: Folder, temporary: str, name: str) -> None:
        fd = os.open(temporary, os.O_RDONLY, dir_fd=folder.fd)
        with os.fdopen(fd, "rb") as file:
            revision = hashlib.sha256(file.read()).hexdigest()
        inode = os.fstat(folder.fd).st_ino
        self.tell("rename", name=name, revision=revision, inode=inode)


def run(control: str, log: str) -> int:
    faults = Faults(control, log)
    os.fsync = faults.fsync
    atomic.exchange, atomic.rename_new = faults.exchange, faults.rename_new
    document.cut = faults.cut
    sys.argv = ["amux", "hub", "serve"]
    return app.main()


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:3]))
