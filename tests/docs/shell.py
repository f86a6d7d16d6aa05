"""A person's shell: a home of its own, amux on the PATH, a terminal if wanted."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

SECONDS = 60.0
BIN = Path(sys.prefix) / "bin"


class Shell:
    """Runs command lines as a person would type them, in a home that nobody else sees."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.cwd = folder / "work"
        for made in (self.home, self.cwd):
            made.mkdir(parents=True)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "EDITOR": "true",
            "TMPDIR": str(folder),
        } | {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}

    @property
    def root(self) -> Path:
        return self.home / ".amux"

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line of bash with its output in pipes."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )

    def on_a_terminal(self, command: str) -> str:
        """Run a line of bash on a terminal and give what it shows."""
        ours, theirs = pty.openpty()
        shown = b""
        with open(ours, "rb", buffering=0) as screen:
            with open(theirs, "wb", buffering=0) as terminal:
                child = subprocess.Popen(
                    ["bash", "-c", command],
                    cwd=self.cwd,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=terminal,
                    stderr=terminal,
                )
            # Linux ends the reading side with EIO once nobody has the other side open.
            with contextlib.suppress(OSError):
                while chunk := os.read(screen.fileno(), 65536):
                    shown += chunk
        child.wait(timeout=SECONDS)
        return shown.decode("utf-8").replace("\r\n", "\n")
