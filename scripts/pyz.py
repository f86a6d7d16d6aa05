"""Build `amux.pyz`: the agent's side in one file, standard library only.

Rule 1: what is in it is what `amux.app`, its late helpers and the faces that agents start reach
        by imports; the Hub's side is loaded late, by name, and so is never reached.
Rule 2: equal sources and one Python give equal bytes: fixed times, sorted names.
Rule 3: byte code lies beside the source, because an import from a zip cannot cache it; another
        Python finds a foreign magic number and compiles the source.
"""

import importlib.util
import marshal
import stat
import sys
import zipfile
from pathlib import Path

from scripts.imports import SOURCE, reached

ROOTS = (
    "amux/app.py", "amux/settings_file.py", "amux/tls.py",
    "amux/surface/cli/*.py", "amux/surface/mcp/*.py", "amux/runtime/*.py", "amux/journal/*.py",
)  # fmt: skip
MAIN = "import sys\n\nfrom amux.app import main\n\nsys.exit(main())\n"
UNCHECKED = (1).to_bytes(4, "little")  # named by the source's hash, which nobody compares (PEP 552)
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can say


def build(target: Path) -> None:
    """Write the file, executable by `./amux.pyz` too."""
    sources = {
        name: (SOURCE / name).read_text(encoding="utf-8") for name in sorted(reached(*ROOTS))
    }
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, source in {"__main__.py": MAIN, **sources}.items():
                _add(archive, name, source.encode("utf-8"))
                _add(archive, name + "c", _compiled(name, source))
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _compiled(name: str, source: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    digest = importlib.util.source_hash(source.encode("utf-8"))
    return importlib.util.MAGIC_NUMBER + UNCHECKED + digest + marshal.dumps(code)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
