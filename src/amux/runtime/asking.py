"""Asking a program something short: its version, whether it knows a flag.

Rule 1: it should say little and end soon; what does not is ended, with all that it started.
"""

import select
import time
from collections.abc import Mapping, Sequence

from amux.runtime import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime.user import User

SAID_MAX_BYTES = 64 * 1024


def capture(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    *,
    seconds: float,
    max_bytes: int,
    runs_as: "User | None" = None,
) -> tuple[int | None, bytes]:
    """Run a program that should say little and end soon; gives its status and what it said.

    The status is None where it did not end in time; whatever it started is ended with it.
    """
    child = process.spawn(
        argv, environment, cwd, has_pipes=True, keeps_stderr=True, own_group=True, runs_as=runs_as
    )
    deadline = time.monotonic() + seconds
    said = {pipe: b"" for pipe in (child.stdout, child.stderr) if pipe is not None}
    try:
        if child.stdin is not None:
            child.stdin.close()
        silent: list[object] = []
        while len(silent) < len(said) and (left := deadline - time.monotonic()) > 0:
            waiting = [pipe for pipe in said if pipe not in silent]
            for pipe in select.select(waiting, [], [], left)[0]:
                chunk = pipe.read(SAID_MAX_BYTES)
                said[pipe] = (said[pipe] + chunk)[:max_bytes]
                if not chunk:
                    silent.append(pipe)
        status = child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        child.end(0.0)
    out, err = said.values()
    return status, out or err
