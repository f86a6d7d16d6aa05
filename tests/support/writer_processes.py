"""Writers of the journal as processes of their own: started, called together, stopped, killed.

Run as a program it is one that can be held: `HELD=1` makes it stop before each commit of a day,
print `inside`, and wait for a line; at each rename it notes which lock it holds, and which the
path names (`renames` in the environment is the file for that).
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from amux.disk import atomic
from amux.journal.text import section as sections
from tests.support import writers

LOCK = ".devcodex/.runtime-state/memory.lock"


class Process:
    """One writer, running."""

    def __init__(self, base: Path, *options: str, **environment: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.writer_processes", str(base), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.pid = self._child.pid

    def line(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def send(self, name: str, **given: object) -> None:
        self.say(json.dumps([name, given]))

    def say(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def answer(self) -> writers.Receipt:
        found: writers.Receipt = json.loads(self.line())
        return found

    def call(self, name: str, **given: object) -> writers.Receipt:
        self.send(name, **given)
        return self.answer()

    def kill(self) -> None:
        self._child.kill()
        self._child.communicate()

    def signal(self, number: int) -> None:
        self._child.send_signal(number)


@contextlib.contextmanager
def together(base: Path, options: list[list[str]], **environment: str) -> Iterator[list[Process]]:
    """Start writers; the block begins once all of them are ready."""
    started = [Process(base, *each, **environment) for each in options]
    try:
        for process in started:
            assert process.line() == "ready"
        yield started
    finally:
        for process in started:
            process.kill()


def _held_back() -> None:
    """Stop before a day's new bytes are given to the write route, until a line comes."""
    real_open, real_extend = sections.open_section, sections.extend

    def wait() -> None:
        print("inside", flush=True)
        sys.stdin.readline()

    def open_section(*given: object) -> object:
        wait()
        return real_open(*given)  # type: ignore[arg-type]

    def extend(*given: object) -> object:
        wait()
        return real_extend(*given)  # type: ignore[arg-type]

    sections.open_section, sections.extend = open_section, extend  # type: ignore[assignment]


def _noted(base: str, log: str) -> None:
    """Note at each rename the inode of each lock that we hold, and the one that the path names."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    rename, rename_free = atomic.rename, atomic.rename_free

    def note(name: str) -> None:
        held = []
        for number in os.listdir("/proc/self/fdinfo"):
            with contextlib.suppress(FileNotFoundError):
                text = Path(f"/proc/self/fdinfo/{number}").read_text(encoding="ascii")
                held += [
                    int(line.split()[6].rpartition(":")[2])
                    for line in text.splitlines()
                    if line.startswith("lock:") and "FLOCK" in line
                ]
        try:
            now = os.stat(f"{base}/{LOCK}").st_ino
        except FileNotFoundError:
            now = 0
        os.write(fd, json.dumps([os.getpid(), name, held, now]).encode() + b"\n")

    def renamed(folder: atomic.Handle, source: str, target: str) -> None:
        note(target)
        rename(folder, source, target)

    def renamed_free(folder: atomic.Handle, source: str, target: str) -> bool:
        note(target)
        return rename_free(folder, source, target)

    atomic.rename, atomic.rename_free = renamed, renamed_free


def main() -> None:
    """Run one writer."""
    base = os.path.realpath(sys.argv[1])
    if os.environ.get("HELD"):
        _held_back()
    if os.environ.get("RENAMES"):
        _noted(base, os.environ["RENAMES"])
    writers.main(*sys.argv[1:])


if __name__ == "__main__":
    main()
