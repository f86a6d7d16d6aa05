"""Which modules of amux a module reaches by its imports: read from the source, nothing is run."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def imported(path: Path) -> Iterator[str]:
    """Give the full names that a file imports, `from a import b` as both a and a.b.

    What stands under `if TYPE_CHECKING:` is not imported when the program runs.
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
