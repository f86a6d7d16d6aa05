"""Ordinary documents: what people wrote for other people, found in installed packages.

Markdown files and the descriptions of packages come first; the words at the top of Python modules
are Markdown-like prose with code in it, and every machine has enough of them.
"""

import functools
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from amux.memory.limits import DOCUMENT_MAX_BYTES

MIN_CHARACTERS = 200
PEERS = Path(__file__).parents[1] / "peers" / "node_modules"
MODULE_WORDS = re.compile(r"(?:\s*#[^\n]*\n|\s)*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)


@functools.cache
def ordinary() -> dict[str, str]:
    """Map each text, once, to the name of the file that it comes from."""
    found: dict[str, str] = {}
    for name, text in _texts():
        if len(text) >= MIN_CHARACTERS and len(text.encode()) <= DOCUMENT_MAX_BYTES:
            found.setdefault(text, name)
    return found


def _texts() -> Iterator[tuple[str, str]]:
    packages = Path(sysconfig.get_path("purelib"))
    for folder in (packages, PEERS):
        for path in sorted(folder.rglob("*.md")):
            yield path.name, _read(path)
    for path in sorted(packages.glob("*.dist-info/METADATA")):
        yield path.parent.name, _read(path).partition("\n\n")[2]
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        words = MODULE_WORDS.match(_read(path))
        if words:
            yield path.name, words[2]


def _read(path: Path) -> str:
    # Some packages ship files that are broken on purpose; those are no documents.
    try:
        return path.read_bytes().decode("utf-8") if path.is_file() else ""
    except UnicodeDecodeError:
        return ""
