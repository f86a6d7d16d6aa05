"""Rules of the house that import-linter cannot see."""

import ast
import re

import pytest

from scripts.imports import SOURCE, imported, reached

PACKAGE = SOURCE / "amux"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
MAX_LINES = 400

# serve: the log; bundle: the sources; drop: a script that knows nothing of amux
MAY_OPEN = re.compile(r"disk/|(bundle|config|serve|runtime/drop)\.py$")
OPTIONAL = {"memory/windows.py", "runtime/sidecar.py"}  # may try an optional library at the top
LATE = {"app.py", "core/late.py", "surface/cli/main.py"}  # may resolve module names
COMPILES = {"bundle.py"}  # may ask importlib how byte code is spelled
STARTS = {"runtime/process.py"}  # the only subprocess

# What an agent's start pays for. `client` and the two faces that agents start, their verbs
# included; what a verb needs rarely is loaded by the late table and is not reached from here.
START_ROOTS = (
    "amux/app.py", "amux/client.py", "amux/surface/cli/main.py", "amux/surface/cli/memory.py",
    "amux/surface/mcp/server.py",
)  # fmt: skip
SLOW_TO_IMPORT = {
    "argparse", "asyncio", "dataclasses", "hashlib", "http.client", "inspect", "pathlib",
    "subprocess", "tempfile", "tomllib", "typing",
}  # fmt: skip

every_module = pytest.mark.parametrize("name", MODULES)


def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@every_module
def test_only_disk_and_config_open_files(name: str) -> None:
    called = {
        node.func.id
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "__import__", "input"}
    assert MAY_OPEN.match(name) or "open" not in called


@every_module
def test_modules_stay_small_enough_to_read(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@every_module
def test_imports_are_at_the_top(name: str) -> None:
    module = tree(name)
    optional = {
        statement.lineno
        for node in module.body
        if name in OPTIONAL
        and isinstance(node, ast.Try)
        and all(
            isinstance(handler.type, ast.Name) and handler.type.id == "ImportError"
            for handler in node.handlers
        )
        for statement in node.body
    }
    for_types = {
        statement.lineno
        for node in module.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
    }
    nested = [
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and node.col_offset
        and node.lineno not in optional | for_types
    ]
    assert not nested


@every_module
def test_late_imports_come_from_the_two_tables(name: str) -> None:
    assert name in LATE | COMPILES or not {"importlib"} & {
        full.split(".")[0] for full in imported(MODULES[name])
    }


@every_module
def test_what_is_loaded_late_is_imported_for_type_checkers_and_contracts(name: str) -> None:
    seen = {
        (alias.asname or alias.name): f"{node.module}.{alias.name}"
        for node in ast.walk(tree(name))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree(name)):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=late)],
                value=ast.Call(func=ast.Name(id="Late"), args=[ast.Constant(value=module)]),
            ):
                assert seen.get(late) == module


@every_module
def test_one_module_starts_processes(name: str) -> None:
    assert name in STARTS or not {"subprocess", "multiprocessing"} & set(imported(MODULES[name]))


@every_module
def test_a_module_opens_with_what_it_owns(name: str) -> None:
    words = ast.get_docstring(tree(name))
    assert words
    assert len(words.splitlines()[0]) <= 100


@every_module
def test_package_files_are_only_a_docstring(name: str) -> None:
    if name.endswith("/__init__.py"):
        assert len(tree(name).body) == 1


@pytest.mark.parametrize("name", sorted(reached("amux/runtime/launch.py")))
def test_an_agent_waits_for_no_dataclass(name: str) -> None:
    """`amux run` has a tenth of a second in all; `core.value` says what a dataclass costs."""
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "pathlib", "tempfile"}
    assert not slow & set(imported(SOURCE / name))


@pytest.mark.parametrize("name", sorted(reached(*START_ROOTS)))
def test_an_agents_start_imports_nothing_slow(name: str) -> None:
    assert not SLOW_TO_IMPORT & set(imported(SOURCE / name))


def test_the_start_is_followed_through_packages_and_names() -> None:
    start = reached("amux/client.py")
    assert {"amux/core/text.py", "amux/wire/tools.py", "amux/errors.py"} <= start
    assert {"amux/__init__.py", "amux/wire/__init__.py"} <= start
    assert "amux/memory/document.py" not in start


def test_the_agents_side_reaches_nothing_of_the_hub() -> None:
    side = reached("amux/app.py", "amux/surface/cli/*.py", "amux/surface/mcp/*.py")
    assert not [name for name in side if name.startswith("amux/hub/")]
    assert not side & {"amux/serve.py", "amux/surface/rpc.py", "amux/memory/service.py"}
