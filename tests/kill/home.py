"""One AMUX_HOME whose Hubs are started by whoever needs one, killed, and looked for."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.core import home as names
from amux.disk import named
from amux.errors import AmuxError, QuotaExceeded
from tests.support.hub import RunningHub

DEADLINE_SECONDS = 15.0
TEMPORARY = re.compile(r"\.amux-")
PROBE = "p" * 64 * 1024


class Home(RunningHub):
    """A Hub's root, seen from outside: its processes, and what stands on its disk."""

    def amux(self, *words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run the command line, which starts a Hub where none runs."""
        return self.cli(*words, stdin=stdin, AMUX_NO_AUTOSTART="0")

    def begin(self, *words: str, stdin: bytes = b"") -> "subprocess.Popen[bytes]":
        """Run the command line beside the test."""
        child = subprocess.Popen(
            [sys.executable, "-m", "amux", *words],
            env=self.environment | {"AMUX_NO_AUTOSTART": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdin is not None
        child.stdin.write(stdin)
        child.stdin.close()
        child.stdin = None
        return child

    # --- its processes ---

    def hubs(self) -> list[int]:
        """Find the processes that serve this root, or try to."""
        wanted = f"AMUX_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                is_hub = b"hub\0serve" in (entry / "cmdline").read_bytes()
                if is_hub and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended while we looked, or has ended and nobody has asked how
        return found

    def pid(self) -> int:
        """Ask the Hub who it is."""
        return int(str(self.ask("status")["pid"]))

    def is_owned(self) -> bool:
        """Tell whether a process holds the root."""
        return named.is_locked(str(self.home / names.RUN_DIR / names.LOCK_FILE))

    def kill_hub(self) -> None:
        """Kill -9 the Hub that serves, and wait until the kernel has taken its lock back."""
        os.kill(self.pid(), signal.SIGKILL)
        self.await_end()

    def await_end(self) -> None:
        """Wait until no process holds the root."""
        until(lambda: not self.is_owned(), "the root to be free")
        if self.process is not None and self.process.poll() is not None:
            self.process.communicate()
            self.process = None

    def end(self) -> None:
        """Kill every Hub of this root."""
        for pid in self.hubs():
            os.kill(pid, signal.SIGKILL)
        self.kill()

    # --- what stands on its disk ---

    def temporaries(self) -> set[str]:
        """List the files whose names only amux makes, anywhere in the root."""
        return {
            str(path.relative_to(self.home))
            for path in self.home.rglob("*")
            if TEMPORARY.match(path.name)
        }

    def on_disk(self, path: str) -> bytes | None:
        """Read a document behind the Hub's back."""
        try:
            return (self.memory_dir / path).read_bytes()
        except FileNotFoundError:
            return None

    def recount(self) -> tuple[int, int]:
        """Count files and bytes of the scope behind the Hub's back."""
        sizes = [path.stat().st_size for path in self.memory_dir.rglob("*") if path.is_file()]
        return len(sizes), sum(sizes)

    # --- what its Hub says ---

    def counted(self) -> tuple[int, int]:
        """Learn the Hub's count from the refusal of a document that has no room."""
        with pytest.raises(QuotaExceeded) as refused:
            self.ask("upsert", path="probe.md", content=PROBE, expected_revision="absent")
        details = refused.value.details
        return int(str(details["documents"])), int(str(details["bytes"]))

    def fill(self) -> None:
        """Leave less room than one largest document needs."""
        (self.memory_dir / "fill").mkdir(parents=True)
        for number in range(255):
            (self.memory_dir / "fill" / f"{number:03}.md").write_text("f" * 64 * 1024)
        (self.memory_dir / "fill" / "rest.md").write_text("f" * 32 * 1024)

    def listed(self) -> dict[str, tuple[int, str]]:
        """List all documents, page by page: bytes and revision."""
        found: dict[str, tuple[int, str]] = {}
        cursor: object = ""
        while cursor is not None:
            page = self.ask("list", **({"cursor": cursor} if cursor else {}))
            for row in page["documents"]:
                found[row["path"]] = (row["bytes"], row["revision"])
            cursor = page["next_cursor"]
        return found

    def expected_list(self) -> dict[str, tuple[int, str]]:
        """Make from the disk what a list should say."""
        found = {}
        for path in self.memory_dir.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                name = str(path.relative_to(self.memory_dir))
                found[name] = (len(data), hashlib.sha256(data).hexdigest())
        return found


def until(happened: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for something that only looking can tell."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def revision_of(data: bytes | None) -> str:
    """Give the revision of bytes, or of their absence."""
    return "absent" if data is None else hashlib.sha256(data).hexdigest()


def refusal_of(call: Callable[[], object]) -> str:
    """Make a call and give the code of its refusal; empty where it was answered."""
    try:
        call()
    except AmuxError as refusal:
        return str(refusal.code)
    return ""
