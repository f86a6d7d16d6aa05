"""A durable write with nothing but system calls: what every durable write is compared with."""

import os
from collections.abc import Callable
from pathlib import Path


def write(folder: Path, name: str, data: bytes, fsync: Callable[[int], None]) -> None:
    """Write, fsync, rename, fsync the directory."""
    temporary = folder / f".tmp-{name}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, data)
    fsync(fd)
    os.close(fd)
    os.rename(temporary, folder / name)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fsync(directory)
    os.close(directory)
