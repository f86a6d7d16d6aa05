"""What an isolated launch costs beside the agent: making and removing the directory of a run."""

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

from amux import bundle
from amux.disk import handed
from amux.runtime import rundir
from amux.runtime.rundir import RunDirectory
from amux.runtime.user import User
from bench.measure import Figure, seconds

ROUNDS = 25
MADE_MS = 100.0
TEXTS = {"settings.json": 4_000, "append.md": 2_000, "subagent.json": 2_000}
PYTHON = "/usr/bin/python3"


def figures() -> Iterator[Figure]:
    """Measure one run's directory; as the caller, where only root could hand it to another."""
    own = pwd.getpwuid(os.geteuid())
    user = User(
        name=own.pw_name, uid=own.pw_uid, gid=own.pw_gid, groups=(), home=own.pw_dir, script=""
    )
    with tempfile.TemporaryDirectory(prefix="amux-bench-") as folder:
        base, root = f"{folder}/runs", f"{folder}/root"
        built = seconds(lambda: bundle.program(PYTHON, root))
        yield Figure(
            name="the command line in one file, built once",
            ours=built * 1000, peer=None, unit="ms", bound=5_000, of="a release",
        )  # fmt: skip
        taken = sorted(seconds(lambda n=n: made(base, root, f"s-{n}", user)) for n in range(ROUNDS))
        yield Figure(
            name="the directory of a run, made and removed",
            ours=taken[ROUNDS // 2] * 1000, peer=None, unit="ms", bound=MADE_MS, of="a launch",
        )  # fmt: skip
        assert not list(Path(base).iterdir())


def made(base: str, root: str, session: str, user: User) -> None:
    """Make one run's directory as a launch does, and remove it as its end does."""
    directory = RunDirectory(base, session, user)
    connection = rundir.connection("/run/amux/0.sock", "amux1:0:global", "amux_0", "")
    memory = {
        rundir.COMMAND: (bundle.program(PYTHON, root), 0o555),
        rundir.CONNECTION: (connection, 0o400),
    }
    files = {f"{directory.files}/{name}": "x" * size for name, size in TEXTS.items()}
    directory.make(files, memory)
    with handed.trusted(base, makes=False) as folder:
        handed.remove(folder, session)
