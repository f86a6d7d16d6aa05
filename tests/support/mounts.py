"""Small file systems of a test's own; the test must run as root, and says so otherwise."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


def mount(*words: str) -> None:
    """Mount something."""
    done = subprocess.run(["mount", *words], capture_output=True, check=False)
    assert done.returncode == 0, f"this test mounts, as root: {done.stderr.decode()}"


@contextlib.contextmanager
def small_disk(folder: Path, **options: object) -> Iterator[Path]:
    """Mount a file system in memory, with its limits in bytes and inodes."""
    folder.mkdir(parents=True, exist_ok=True)
    spelled = ",".join(f"{name}={value}" for name, value in options.items())
    mount("-t", "tmpfs", "-o", spelled, "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Mount a folder over itself, read-only: modes do not stop an owner who is root."""
    mount("--bind", str(folder), str(folder))
    try:
        mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
