"""Killing a process of ours right before any of its system calls that change the disk.

A fork runs the call; before the call that is its turn, it sends itself SIGKILL. Between two such
calls the disk does not change, so these points are all that a kill can leave.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path

# What changes a byte, a name or what is durable; `open` counts where it may create.
CHANGING = (
    "write", "pwrite", "ftruncate", "fsync", "fdatasync", "link", "rename", "replace", "unlink",
    "remove", "mkdir", "rmdir", "fchmod", "fchown", "utime",
)  # fmt: skip


def killed_before(nth: int, act: Callable[[], object]) -> bool:
    """Run an act in a process of its own, killed before its nth change; False where it ends first.

    A refusal or a bug in there is told by an assertion here.
    """
    child = os.fork()
    if child == 0:
        status = 70
        try:
            _arm(nth)
            act()
            status = 0
        except BaseException as error:  # noqa: BLE001 - the parent asserts on it
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the call did not answer"
    return False


def _arm(nth: int) -> None:
    left = [nth]

    def count() -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def call(*words: object, **named: object) -> object:
            count()
            return function(*words, **named)

        return call

    for name in CHANGING:
        setattr(os, name, counted(getattr(os, name)))
    plain = os.open

    def opened(path: object, flags: int, *words: object, **named: object) -> int:
        if flags & os.O_CREAT:
            count()
        return plain(path, flags, *words, **named)  # type: ignore[arg-type]

    os.open = opened


class Kept:
    """A tree that is put back, at the very place where it was: a root is known by its path."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._files: dict[Path, bytes | None] = {}
        for path in sorted(top.rglob("*")):
            self._files[path] = None if path.is_dir() else path.read_bytes()

    def put_back(self) -> None:
        for path in sorted(self._top.rglob("*"), reverse=True):
            if path not in self._files:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for path, data in self._files.items():
            if data is None:
                path.mkdir(exist_ok=True)
            elif not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
