"""`amux.pyz`: the agent's side in one file, standard library only; built once, copied into runs.

Rule 1: what is in it is what `amux.app`, its late helpers and the faces that agents start reach
        by imports; the Hub's side is loaded late, by name, and so is never reached.
Rule 2: equal sources and one Python give equal bytes: fixed times, sorted names.
Rule 3: byte code lies beside the source, because an import from a zip cannot cache it; another
        Python finds a foreign magic number and compiles the source.
Rule 4: what is kept is derived: it names the sources that it was built from, and is built anew
        where they changed.
"""

import ast
import hashlib
import importlib.util
import io
import marshal
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import amux
from amux.core import home
from amux.disk import atomic
from amux.disk.tree import Root

SOURCE = Path(amux.__file__).parents[1]
ROOTS = (
    "amux/app.py", "amux/bundle.py", "amux/settings_file.py", "amux/tls.py",
    "amux/surface/cli/*.py", "amux/surface/mcp/*.py", "amux/runtime/*.py", "amux/journal/*.py",
)  # fmt: skip
MAIN = "import sys\n\nfrom amux.app import main\n\nsys.exit(main())\n"
UNCHECKED = (1).to_bytes(4, "little")  # named by the source's hash, which nobody compares (PEP 552)
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can say


def program(interpreter: str, root: str) -> bytes:
    """Give the whole program, to be run by an interpreter that is named by its path.

    It is isolated: neither the environment nor the folder that it is started in is searched. What
    was built is kept in the AMUX_HOME `root`.
    """
    return f"#!{interpreter} -IS\n".encode() + body(root)


def body(root: str) -> bytes:
    """Give what follows the first line: what was kept, if it is of these sources."""
    own = _own_archive()
    if own:
        return own
    key = _key()
    path = os.path.join(root, home.RUN_DIR, home.BUNDLE_FILE)
    with suppress(OSError), open(path, "rb") as file:
        kept = file.read()
        if kept.endswith(key):
            return kept
    built = build(key)
    with suppress(OSError):  # it costs the next run a second
        folder = Root.create(os.path.dirname(path))
        try:
            atomic.replace(folder, home.BUNDLE_FILE, built)
        finally:
            folder.close()
    return built


def build(comment: bytes = b"") -> bytes:
    """Make the archive from the sources."""
    sources = {
        name: (SOURCE / name).read_text(encoding="utf-8") for name in sorted(reached(*ROOTS))
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in {"__main__.py": MAIN, **sources}.items():
            _add(archive, name, source.encode("utf-8"))
            _add(archive, name + "c", _compiled(name, source))
        archive.comment = comment
    return made.getvalue()


def imported(path: Path) -> Iterator[str]:
    """Give the full names that a file imports, `from a import b` as both a and a.b.

    What stands under `if TYPE_CHECKING:` is not imported when the program runs. What is `Late` may
    be.
    """
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Late":
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def reached(*patterns: str) -> set[str]:
    """Follow imports of amux from some files, their packages included; names as `amux/app.py`."""
    found: set[str] = set()
    todo = [_name(path) for pattern in patterns for path in SOURCE.glob(pattern)]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _packages(name)
            todo += [file for full in imported(SOURCE / name) for file in _files(full)]
    return found


def _own_archive() -> bytes:
    """Give the archive that this very program runs from; nothing where it runs from files."""
    archive = getattr(amux.__loader__, "archive", "")
    if not archive:
        return b""
    data = Path(archive).read_bytes()
    return data[data.index(b"\n") + 1 :] if data.startswith(b"#!") else data


def _key() -> bytes:
    """Name the sources as they are now, and who compiled them."""
    digest = hashlib.sha256(f"{amux.__version__} {sys.version} {SOURCE}".encode())
    for path in sorted((SOURCE / "amux").rglob("*.py")):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest().encode("ascii")


def _compiled(name: str, source: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    digest = importlib.util.source_hash(source.encode("utf-8"))
    return importlib.util.MAGIC_NUMBER + UNCHECKED + digest + marshal.dumps(code)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


def _packages(name: str) -> Iterator[str]:
    for folder in Path(name).parents:
        if (SOURCE / folder / "__init__.py").is_file():
            yield (folder / "__init__.py").as_posix()


def _files(full: str) -> Iterator[str]:
    base = full.replace(".", "/")
    for name in (f"{base}.py", f"{base}/__init__.py"):
        if full.startswith("amux") and (SOURCE / name).is_file():
            yield name


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()
