"""Build `amux.pyz`: the agent's side in one file, standard library only."""

import stat
import sys
from pathlib import Path

from amux import bundle


def build(target: Path) -> None:
    """Write the file, executable by `./amux.pyz` too."""
    target.write_bytes(b"#!/usr/bin/env python3\n" + bundle.build())
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
