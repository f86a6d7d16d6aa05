"""Where the workspace of a start directory is: its base and its layout (J12–J15).

Rule 1: it looks, and nothing else; what is not there yet is only said to be missing.
Rule 2: a stranger's `.devcodex` in a shared parent neither captures nor blocks a workspace.
Rule 3: a broken `layout.json` is refused, never passed over for one further up.
Rule 4: it is light: each start of `amux mcp` asks whether a workspace is there.
"""

from amux.core import strict
from amux.disk import glance
from amux.errors import AmuxError
from amux.journal.ground import namespace
from amux.journal.refusals import refuse

FOLDER = ".devcodex"
FILE = "layout.json"
MAX_BYTES = 64 * 1024  # J13
NAMESPACE_MODE, PROJECT_MODE = "workspace-namespace", "project-root"
NAMESPACE, PROJECT = "namespace", "project"
FOREIGN_SKIPPED = "foreign-devcodex-skipped"
MARKERS = (
    "package.json", "pyproject.toml", "go.mod", "Cargo.toml", "pom.xml", "build.gradle",
    "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "Package.swift", ".git",
)  # fmt: skip
_ANY_NAME = "project"  # J15, where a base's own name is no namespace
_WORKTREES = "/.git/worktrees/"
_GIT_FILE_MAX_BYTES = 16 * 1024  # one line with one path


class Layout:
    """One workspace: its base, how memory lies in it, and the row of J13 that found it."""

    __slots__ = ("base", "kind", "named", "row", "start", "warnings")

    def __init__(
        self, *, base: str, kind: str, row: int, start: str, named: str, warnings: tuple[str, ...]
    ) -> None:
        self.base = base
        self.kind = kind
        """`project` or `namespace`."""
        self.row = row
        self.start = start
        """The start directory, or the main tree's where that is a linked worktree (J14)."""
        self.named = named
        """`project` of layout.json; empty where it has none."""
        self.warnings = warnings

    @property
    def is_created(self) -> bool:
        """Tell whether its `.devcodex` is there; else the first writer makes it."""
        return self.row <= 3

    @property
    def folder(self) -> str:
        """Give the path of its `.devcodex`."""
        return glance.under(self.base, FOLDER)

    @property
    def project(self) -> str:
        """Give the `project` value of the project layout (J15)."""
        return self.named or default_project(self.base)


def default_project(base: str) -> str:
    """Name a project by its base, if J16 allows that name."""
    name = glance.last(base)
    return name if namespace.broken_rule(name) is None else _ANY_NAME


def start_directory(flag: str, variable: str, current: str) -> tuple[str, bool]:
    """Choose the start directory (J12), and tell whether a person named it."""
    named = flag or variable
    return glance.real(glance.under(current, named) if named else current), bool(named)


def find(start: str, *, is_named: bool, home: str, uid: int) -> Layout:
    """Find the workspace of a start directory: J14, then the rows of J13.

    `start` and `home` are resolved. Refuses as MEMORY_LAYOUT_INVALID, _WORKSPACE_UNRESOLVED,
    _WORKSPACE_FOREIGN_OWNER or _PATH_REPARSE_BLOCKED.
    """
    seen = glance.look(start) if start else None
    if seen is None or seen.kind != "folder":
        raise _unresolved("the start directory is not there")
    root = _repository_root(start)
    main = _main_tree(start, root)
    if main:
        start, is_named, root = main, False, _repository_root(main)
    too_wide = set() if is_named else {"/", home}
    places, warnings = _devcodexes(start, root, uid)
    for place in places:
        found = _by_file(place, start, uid, warnings)
        if found is not None:
            return found
    for place in places:
        if place in too_wide or (root and glance.within(place, root) is None):
            continue
        _require_own(place, uid)
        return Layout(base=place, kind=PROJECT, row=3, start=start, named="", warnings=warnings)
    base = _uncreated(start, root, too_wide)
    if not base:
        raise _unresolved("no workspace is at or above the start directory")
    return Layout(base=base, kind=PROJECT, row=4, start=start, named="", warnings=warnings)


def is_there(start: str, *, is_named: bool, home: str, uid: int) -> bool:
    """Tell whether one of rows 1 to 3 holds; a workspace that is refused is there all the same."""
    try:
        return find(start, is_named=is_named, home=home, uid=uid).is_created
    except AmuxError as refusal:
        return refusal.details.get("reason") != "MEMORY_WORKSPACE_UNRESOLVED"


def parse(data: bytes) -> dict[str, object]:
    """Read the bytes of a `layout.json`; its `mode` is one of the two, its `project` legal."""
    try:
        value = strict.decode(data) if len(data) <= MAX_BYTES else None
    except AmuxError as error:
        raise _invalid("it is not JSON") from error
    if not isinstance(value, dict):
        raise _invalid("it is over 64 KiB" if value is None else "it is no JSON object")
    if value.get("mode") not in (NAMESPACE_MODE, PROJECT_MODE):
        raise _invalid("its mode is none that amux knows")
    named = value.get("project")
    if named is not None and namespace.broken_rule(named) is not None:
        raise _invalid("its project is no project namespace")
    return value


def _by_file(place: str, start: str, uid: int, warnings: tuple[str, ...]) -> Layout | None:
    """Give the layout that a directory's `layout.json` tells; None where it has none."""
    path = glance.under(place, f"{FOLDER}/{FILE}")
    try:
        data = glance.read(path, max_bytes=MAX_BYTES)
    except OSError as error:
        _require_own(place, uid)
        raise _invalid("it is no file that can be read") from error
    if data is None:
        return None
    _require_own(place, uid)
    value = parse(data)
    is_namespace = value["mode"] == NAMESPACE_MODE
    return Layout(
        base=place,
        kind=NAMESPACE if is_namespace else PROJECT,
        row=1 if is_namespace else 2,
        start=start,
        named=str(value.get("project") or ""),
        warnings=warnings,
    )


def _devcodexes(start: str, root: str, uid: int) -> tuple[list[str], tuple[str, ...]]:
    """List the directories that hold a `.devcodex`, the nearest first, strangers' left out."""
    places: list[str] = []
    warnings: tuple[str, ...] = ()
    inner = root or start
    for place in glance.upwards(start):
        seen = glance.look(glance.under(place, FOLDER))
        if seen is None:
            continue
        if _is_foreign(seen, uid) and glance.within(place, inner) is None:
            warnings = (FOREIGN_SKIPPED,)
        elif seen.kind == "folder":
            places.append(place)
        else:
            raise _blocked()
    return places, warnings


def _main_tree(start: str, root: str) -> str:
    """Give the main tree of a linked worktree that has no memory of its own (J14)."""
    git = glance.under(root, ".git") if root else ""
    seen = glance.look(git) if git else None
    if seen is None or seen.kind != "file":
        return ""
    for place in glance.upwards(start):
        if glance.look(glance.under(place, FOLDER)) is not None:
            return ""
        if place == root:
            break
    try:
        line = glance.read(git, max_bytes=_GIT_FILE_MAX_BYTES) or b""
    except OSError:
        return ""
    text = line.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
    word, _, target = text.partition(": ")
    tree, found, name = target.rpartition(_WORKTREES)
    if word != "gitdir" or not found or not name or "/" in name or "\n" in text or "\0" in text:
        return ""
    tree = glance.real(glance.under(root, tree or "/"))
    seen = glance.look(tree)
    return tree if seen is not None and seen.kind == "folder" else ""


def _repository_root(start: str) -> str:
    return next(
        (one for one in glance.upwards(start) if glance.look(glance.under(one, ".git"))), ""
    )


def _uncreated(start: str, root: str, too_wide: set[str]) -> str:
    """Find where the first writer makes a `.devcodex`: row 4."""
    if root and root not in too_wide:
        return root
    return next(
        (one for one in glance.upwards(start) if one not in too_wide and has_marker(one)), ""
    )


def has_marker(place: str) -> bool:
    """Tell whether a directory is a project by one of the names in it (J17)."""
    return any(glance.look(glance.under(place, name)) is not None for name in MARKERS)


def _is_foreign(seen: glance.Glance, uid: int) -> bool:
    return uid not in (0, seen.uid)


def _require_own(place: str, uid: int) -> None:
    seen = glance.look(glance.under(place, FOLDER))
    if seen is not None and _is_foreign(seen, uid):
        raise refuse(
            "MEMORY_WORKSPACE_FOREIGN_OWNER",
            "the workspace's .devcodex belongs to another user",
            hint="work as its owner, or name another directory with --workspace",
        )


def _blocked() -> AmuxError:
    return refuse(
        "MEMORY_PATH_REPARSE_BLOCKED",
        "a .devcodex on the way up is a link or no directory",
        hint="put a real directory there, or take it away",
    )


def _invalid(why: str) -> AmuxError:
    return refuse(
        "MEMORY_LAYOUT_INVALID",
        "the nearest layout.json cannot be used",
        hint=f"correct .devcodex/layout.json: {why}; amux workspace doctor says which",
        cause=why,
    )


def _unresolved(what: str) -> AmuxError:
    return refuse(
        "MEMORY_WORKSPACE_UNRESOLVED",
        what,
        hint="run amux workspace init in the project, or name it with --workspace",
    )
