"""Real users of this machine, made for tests and removed with all that is theirs.

Rule 1: only root can make them. Where the tests are not root they are skipped, and the reason is
        said; in CI (`CI=true`) that is a failure: there nothing may go unproven.
Rule 2: what a test does as somebody is done by a process of theirs, with the system's Python.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.rights import cannot

PYTHON = "/usr/bin/python3"
RUN_SECONDS = 60.0
_MAKE_SECONDS = 60.0  # the files of users are locked while another worker makes one


@dataclass(frozen=True, slots=True)
class Other:
    """Somebody else."""

    name: str
    uid: int
    gid: int
    home: Path

    def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        cwd: str = "/",
        environment: Mapping[str, str] | None = None,
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a program as this user, with nothing of ours."""
        return subprocess.run(
            argv,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)} | dict(environment or {}),
            cwd=cwd,
            input=stdin,
            capture_output=True,
            timeout=RUN_SECONDS,
            check=False,
            user=self.uid,
            group=self.gid,
            extra_groups=[],
        )

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a program in Python as this user, and go on."""
        return subprocess.Popen(
            [PYTHON, "-IS", "-c", program, *arguments],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self.uid,
            group=self.gid,
            extra_groups=[],
        )

    def python(self, program: str, *arguments: str) -> str:
        """Run a program in Python as this user; gives what it says, its refusal too."""
        done = self.run(PYTHON, "-IS", "-c", program, *arguments)
        return (done.stdout + done.stderr).decode("utf-8", "replace")

    def give(self, path: Path) -> Path:
        """Make something this user's, and all above it up to the home."""
        while path != self.home and self.home in path.parents:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
            path = path.parent
        return path

    def write(self, place: str, text: str) -> Path:
        """Write a file below the home, as this user has it."""
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        self.give(path)
        return path

    def processes(self) -> list[int]:
        """Name what lives of this user."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                told = (path / "status").read_text()
                if f"\nUid:\t{self.uid}\t" in told and "\nState:\tZ" not in told:
                    found.append(int(path.name))
        return found

    def clear(self) -> None:
        """End everything of this user, and empty the home."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for path in self.home.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def require_root() -> None:
    """Skip where real users cannot be made, or fail where that must not be."""
    if os.geteuid() != 0 or not shutil.which("useradd"):
        cannot("only root can make users")


@contextlib.contextmanager
def made(*names: str) -> Iterator[list[Other]]:
    """Make users for the block."""
    require_root()
    others = [_make(f"t{name}-{uuid.uuid4().hex[:8]}") for name in names]
    try:
        yield others
    finally:
        for other in others:
            with contextlib.suppress(FileNotFoundError):
                other.clear()
            locked("userdel", "-r", "-f", other.name)


def _make(name: str) -> Other:
    locked("useradd", "-m", "-d", f"/home/{name}", "-s", "/bin/sh", name)
    found = pwd.getpwnam(name)
    home = Path(found.pw_dir)
    home.chmod(0o700)
    other = Other(name, found.pw_uid, found.pw_gid, home)
    other.clear()
    return other


def locked(*argv: str) -> None:
    """Run a program that changes the files of users, once they are free."""
    deadline = time.monotonic() + _MAKE_SECONDS
    while True:
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode == 0 or (argv[0] == "userdel" and done.returncode in (6, 12)):
            return
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.1)
