"""Which memory a call means: the target in its workspace, and its active root (J15, J17, J18).

Rule 1: one function chooses for every tool, before anything else is read or written.
Rule 2: nothing falls back to workspace memory: what is ambiguous is refused with candidates.
Rule 3: a project is found by looking, never through a link, and within bounds.
"""

from amux.core.value import Value
from amux.disk import glance
from amux.errors import AmuxError
from amux.journal.ground import layout as layouts
from amux.journal.ground import namespace
from amux.journal.ground.layout import PROJECT, Layout
from amux.journal.refusals import refuse

PROJECT_SCOPE, WORKSPACE_SCOPE = "project", "workspace"
MAX_CANDIDATES = 20
MAX_DEPTH = 4  # the segments of a namespace
MAX_FOLDERS = 4096
MAX_NAMES = 65_536  # of one directory, files included
_SKIPPED = {
    "node_modules", "dist", "build", "coverage", "target", "vendor", "venv", "__pycache__",
}  # fmt: skip
_THROUGH = {"packages", "apps", "services", "libs", "modules", "projects"}
_AMBIGUOUS = "workspace-namespace memory scope is ambiguous"


class Target(Value):
    """The memory that a call means."""

    layout: Layout
    scope: str
    """`project` or `workspace`."""
    project: str
    """The `project` value of plans, ledgers and results."""
    below: str
    """Where the active root lies below `.devcodex`; empty is `.devcodex` itself."""
    source: str
    """Where the code is: the project's directory."""

    @property
    def base(self) -> str:
        """Give the directory that holds `.devcodex`."""
        return self.layout.base

    @property
    def active_root(self) -> str:
        """Give the path of the active root; it need not be there yet."""
        return glance.under(self.layout.folder, self.below)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Name what was odd on the way here."""
        return self.layout.warnings


class Discovered(Value, kw_only=False):
    """The projects below a base; `incomplete` where the bound ended the search."""

    projects: tuple[str, ...]
    incomplete: bool


def select(
    layout: Layout,
    *,
    project: str | None = None,
    scope: str | None = None,
    route_hint: object = None,
) -> Target:
    """Choose the target of a call (J18)."""
    if project is not None:
        namespace.require(project)
    if layout.kind == PROJECT:
        if scope == WORKSPACE_SCOPE or project not in (None, layout.project):
            raise _mismatch(layout.project)
        return _target(layout, layout.project, "", layout.base)
    if scope == WORKSPACE_SCOPE:
        if project is not None:
            raise _mismatch(WORKSPACE_SCOPE)
        return Target(
            layout=layout,
            scope=WORKSPACE_SCOPE,
            project=WORKSPACE_SCOPE,
            below=WORKSPACE_SCOPE,
            source=layout.base,
        )
    if project is None:
        project = enclosing(layout)
        if project is None:
            raise _ambiguous(layout, route_hint)
    else:
        project = resolve(layout.base, project)
    return _target(layout, project, project, glance.under(layout.base, project))


def enclosing(layout: Layout) -> str | None:
    """Name the deepest project that the start directory lies in."""
    for place in glance.upwards(layout.start):
        below = glance.within(place, layout.base)
        if not below:
            return None
        if namespace.broken_rule(below) is None and layouts.has_marker(place):
            return below
    return None


def resolve(base: str, project: str) -> str:
    """Give the project that a request names: itself, or the one whose last segment it is (J17)."""
    if _is_project(base, project):
        return project
    if "/" in project:
        raise _no_project(())
    found = discover(base)
    named = [one for one in found.projects if one.rpartition("/")[2] == project]
    # An unfinished search cannot tell that a name is unique.
    if len(named) > 1 or (named and found.incomplete):
        raise refuse(
            "PROFILE_TARGET_AMBIGUOUS",
            "more than one project has this name",
            hint="name one of the candidates in full as project",
            candidates=named[:MAX_CANDIDATES],
        )
    if not named:
        raise _no_project(found.projects)
    return named[0]


def discover(base: str) -> Discovered:
    """Find the projects below a base, breadth first, within J17's bounds."""
    projects: list[str] = []
    waiting = [("", False)]
    seen, incomplete = 0, False
    for below, is_inside in waiting:  # grows while it is read
        depth = below.count("/") + 1 if below else 0
        if depth == MAX_DEPTH:
            continue
        is_project = below in projects
        names, is_cut = glance.folders_or_cut(glance.under(base, below), limit=MAX_NAMES)
        incomplete = incomplete or is_cut
        for name in names:
            if seen == MAX_FOLDERS:
                return Discovered(tuple(projects), incomplete=True)
            if name.startswith(".") or name in _SKIPPED:
                continue
            if is_project and name not in _THROUGH:
                continue
            path = f"{below}/{name}" if below else name
            if namespace.broken_rule(path) is not None:
                continue
            seen += 1
            if layouts.has_marker(glance.under(base, path)):
                projects.append(path)
                waiting.append((path, True))
            elif not is_inside or name in _THROUGH:
                waiting.append((path, is_inside))
    return Discovered(tuple(projects), incomplete)


def _target(layout: Layout, project: str, below: str, source: str) -> Target:
    return Target(layout=layout, scope=PROJECT_SCOPE, project=project, below=below, source=source)


def _is_project(base: str, project: str) -> bool:
    """Tell whether a name is a real directory with a marker; no step may be a link."""
    place = base
    for step in project.split("/"):
        place = glance.under(place, step)
        seen = glance.look(place)
        if seen is None:
            return False
        if seen.kind == "link" and glance.within(glance.real(place), base) is None:
            raise namespace.invalid("workspace-escape")
        if seen.kind != "folder":
            return False
    return layouts.has_marker(place)


def _mismatch(project: str) -> AmuxError:
    return refuse(
        "MEMORY_PROJECT_MISMATCH",
        "this workspace has no such memory beside the project that it means",
        hint="leave project and scope away, or give the project of the details alone",
        project=project,
    )


def _ambiguous(layout: Layout, route_hint: object) -> AmuxError:
    found = discover(layout.base)
    refusal = refuse(
        "MEMORY_SCOPE_AMBIGUOUS",
        f'{_AMBIGUOUS}: give project or scope:"workspace"',
        hint='add project, one of the candidates, or scope:"workspace"',
        candidates=list(found.projects[:MAX_CANDIDATES]),
        incomplete=found.incomplete or len(found.projects) > MAX_CANDIDATES,
    )
    if route_hint is not None:
        refusal.details["routeHint"] = route_hint
    return refusal


def _no_project(projects: tuple[str, ...]) -> AmuxError:
    return refuse(
        "HOST_WORKSPACE_UNRESOLVED",
        "no project of this name is in the workspace",
        hint="name a directory below the base that holds a project's marker, such as .git",
        candidates=list(projects[:MAX_CANDIDATES]),
    )
