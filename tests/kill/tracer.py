"""strace at a running Hub: it stops, fails or kills at one system call, in whatever thread.

Counts (`when=`) are those of each thread since the tracer came; a Hub makes a write in one thread.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.crash.traced import strace

# What changes the disk, and what leads up to it. `write` is also how a thread tells the loop that
# it is done, and how the loop answers.
CHANGING = (
    "openat", "write", "fsync", "rename", "renameat", "renameat2", "unlink", "unlinkat",
    "mkdir", "mkdirat", "ftruncate",
)  # fmt: skip


@contextlib.contextmanager
def attached(
    pid: int, call: str, inject: str, *, log: Path = Path("/dev/null"), only: Path | None = None
) -> Iterator[None]:
    """Do to a system call of a process what `inject` says, as long as the block runs.

    With `only` it is done to calls on that file alone. The log names the file of each descriptor.
    """
    tracer = subprocess.Popen(
        [
            strace(), "-f", "-y", "-p", str(pid), "-o", str(log), f"-etrace={call}",
            f"-einject={call}:{inject}", *(["-P", str(only)] if only else []),
        ],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert tracer.stderr is not None
    try:
        said = b""
        while b"attached" not in said:
            said = tracer.stderr.readline()
            assert said, "strace ended"
        yield
    finally:
        # Asked politely, it may wait for ever for threads that the kernel has already buried.
        tracer.kill()
        tracer.communicate()
