"""Setting up a workspace: init, rules taken back, and the profile's hint (J20–J22).

Rule 1: what is missing is made, nothing else is touched, nothing is asked; done twice, the second
        time changes nothing. A dry run gives the same receipt and writes nothing.
Rule 2: a receipt names paths from the base.
"""

from collections.abc import Iterable

from amux.core import canonical
from amux.core.value import Value
from amux.disk import glance
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.call.surroundings import Surroundings
from amux.journal.ground import agent, layout, layouttext, namespace, workspace
from amux.journal.ground.layout import FILE, FOLDER, NAMESPACE_MODE, PROJECT_MODE
from amux.journal.moment import Moment
from amux.journal.refusals import next_call, refuse
from amux.journal.setup import handout
from amux.journal.setup.handout import Handed
from amux.journal.store import root, trouble
from amux.journal.store.files import Edited, Writer
from amux.journal.store.root import IGNORE, STATE, Held, Place

INIT_SCHEMA = "WorkspaceInitReceiptV1"
RULES_SCHEMA = "WorkspaceRulesReceiptV1"
PROFILE_SCHEMA = "WorkspaceProfileReceiptV1"
MODES = {"project": PROJECT_MODE, "workspace": NAMESPACE_MODE}
MAX_PROJECTS = 100  # of a receipt; a call names any of them
_IGNORED = f"{STATE}/"


class Asked(Value):
    """What `amux workspace init` was told."""

    directory: str = ""
    """Resolved; empty where none was given."""
    mode: str = "project"
    project: str = ""
    agents: tuple[str, ...] = ()
    is_dry: bool = False


def init(asked: Asked, around: Surroundings) -> dict[str, object]:
    """Make what is missing of a workspace, and hand its agents what they need."""
    base = _base_of(asked, around)
    mode = MODES[asked.mode]
    place = Place(
        base=base,
        steps=(FOLDER,) if mode == PROJECT_MODE else (FOLDER, workspace.WORKSPACE_SCOPE),
        uid=around.uid,
    )
    told = Handed()
    _warn_of_another(base, around, told)
    project = _plan(base, mode, asked.project, place, told)
    planned = Handed()
    handout.hand_out(base, asked.agents, around.uid, planned, is_dry=True)
    is_new = told.created or told.changed or planned.created or planned.changed
    # What seems to be a person's may be what another init has just written, not yet recorded.
    if (is_new or planned.left) and not asked.is_dry:

        def act(held: Held) -> Handed:
            _make(held, mode, project, around)
            handed = Handed()
            handout.hand_out(base, asked.agents, around.uid, handed, is_dry=False)
            return handed

        # Whoever sets the same workspace up at the same time waits, and finds it done.
        planned = root.hold(place, wait_ms=around.lock_wait_ms, act=act)
    told.add(planned)
    projects = workspace.discover(base) if mode == NAMESPACE_MODE else None
    return {
        "schemaVersion": INIT_SCHEMA,
        "root": base,
        "mode": mode,
        "project": project or None,
        "created": told.created,
        "changed": told.changed,
        "unchanged": told.unchanged,
        "projects": list(projects.projects[:MAX_PROJECTS]) if projects else [],
        "warnings": told.warnings,
        "nextCall": next_call("memory_status", {}, fill=["project"] if projects else []),
    }


def remove_rules(
    agents: Iterable[str], around: Surroundings, *, is_dry: bool = False
) -> dict[str, object]:
    """Take out what was handed out and still is as it was written."""
    found = _found(around)
    told = Handed()
    handout.take_back(found.base, agents, around.uid, told, is_dry=is_dry)
    return {
        "schemaVersion": RULES_SCHEMA,
        "root": found.base,
        "removed": told.removed,
        "changed": told.changed,
        "left": told.left,
        "warnings": told.warnings,
    }


def profile_init(around: Surroundings) -> dict[str, object]:
    """Write the agent that is at work here as a fallback hint, unless there is a profile."""
    found = _found(around)
    path = f"{FOLDER}/{agent.PROFILE}"
    host = agent.host(around.facts, around.client)
    told = Handed()
    with trouble.told(FOLDER):
        ground = Ground.make(found.base, (FOLDER,), uid=around.uid)
    with ground:
        if handout.read(ground, agent.PROFILE) is not None:
            told.note(path, "unchanged")
        elif not host.agent:
            # A hint that names nobody would stand against every agent that comes.
            told.warn("agent-not-detected", path=path)
        else:
            data = canonical.encode({"agent": host.agent}) + b"\n"
            handout.put(ground, agent.PROFILE, data, None)
            told.note(path, "created")
    return {
        "schemaVersion": PROFILE_SCHEMA,
        "root": found.base,
        "agent": host.agent or None,
        "source": host.source,
        "created": told.created,
        "unchanged": told.unchanged,
        "warnings": told.warnings,
    }


def _base_of(asked: Asked, around: Surroundings) -> str:
    base = asked.directory or around.start
    if not asked.directory and base in ("/", around.home) and not around.is_start_named:
        raise refuse(
            "MEMORY_WORKSPACE_TOO_WIDE",
            "the whole home directory, or the whole machine, would be one workspace",
            hint="go into a project's directory, or name one: amux workspace init DIR",
        )
    if FOLDER in base.split("/"):
        raise refuse(
            "MEMORY_PATH_UNSAFE",
            "a workspace cannot be inside a .devcodex",
            hint="name the directory that holds it",
        )
    seen = glance.look(base) if base else None
    if seen is None or seen.kind != "folder":
        raise refuse(
            "MEMORY_WORKSPACE_UNRESOLVED",
            "there is no such directory",
            hint="make it first, or name another",
        )
    if asked.project and asked.mode != "project":
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_INVALID",
            "a workspace of many projects has no project name of its own",
            hint="leave --project away",
            argument="project",
        )
    if asked.project:
        namespace.require(asked.project)
    return base


def _plan(base: str, mode: str, asked_project: str, place: Place, told: Handed) -> str:
    """Look at what is there, note what is to be made, and give the project's name."""
    with trouble.told(FOLDER):
        ground = Ground.open(base, (FOLDER,), uid=place.uid)
    if ground is None:
        project = _name(None, mode, asked_project, base)
        for path in ("", FILE, IGNORE):
            told.note(f"{FOLDER}/{path}", "created")
        told.note(_state(place), "created")
        return project
    with ground:
        told.note(f"{FOLDER}/", "unchanged")
        found = handout.read(ground, FILE)
        data = found.data if found else None
        if data is None and mode == NAMESPACE_MODE and ground.folder.look(".memory"):
            raise layouttext.conflict(PROJECT_MODE)
        project = _name(data, mode, asked_project, base)
        new = layouttext.kept(data, mode, project)
        told.note(f"{FOLDER}/{FILE}", _outcome(data, new))
        if project and not layout.parse(new).get("project"):
            told.warn("layout-not-extended", path=f"{FOLDER}/{FILE}")
        ignore = handout.read(ground, IGNORE)
        old = ignore.data if ignore else None
        told.note(f"{FOLDER}/{IGNORE}", _outcome(old, _ignoring(old)))
    with trouble.told(_state(place)):
        active = Ground.open(base, place.steps, uid=place.uid)
    known = root.root_id(active)
    if active is not None:
        active.close()
    told.note(_state(place), "created" if known is None else "unchanged")
    return project


def _make(held: Held, mode: str, project: str, around: Surroundings) -> None:
    """Write what `_plan` noted; under the lock it is decided anew from what is there then."""
    now = Moment.at(around.clock(), around.zone)
    with trouble.told(FOLDER):
        ground = Ground.make(held.place.base, (FOLDER,), uid=around.uid)
    with ground:
        writer = Writer(held.over(ground), now=now, random_bytes=around.random_bytes)
        writer.write(FILE, lambda data: Edited(layouttext.kept(data, mode, project), None))
        writer.write(IGNORE, lambda data: Edited(_ignoring(data), None))
    root.prepare(held, now=now, random_bytes=around.random_bytes)


def _name(data: bytes | None, mode: str, asked: str, base: str) -> str:
    """Give the name that a project has or gets; refuses another one than it has."""
    if mode != PROJECT_MODE:
        return ""
    there = str(layout.parse(data).get("project") or "") if data is not None else ""
    if there and asked and there != asked:
        raise refuse(
            "MEMORY_LAYOUT_CONFLICT",
            "the project has another name already",
            hint="leave --project away; the name is kept in .devcodex/layout.json",
            project=there,
        )
    return there or asked or layout.default_project(base)


def _ignoring(data: bytes | None) -> bytes:
    """Give a `.gitignore` that leaves the runtime state out of the repository."""
    old = data or b""
    if any(line.strip() == _IGNORED.encode() for line in old.splitlines()):
        return old
    newline = b"\r\n" if old.partition(b"\n")[0].endswith(b"\r") else b"\n"
    gap = newline if old and not old.endswith(b"\n") else b""
    return old + gap + _IGNORED.encode() + newline


def _outcome(old: bytes | None, new: bytes) -> str:
    if old is None:
        return "created"
    return "unchanged" if old == new else "changed"


def _state(place: Place) -> str:
    return "/".join((*place.steps, STATE, ""))


def _warn_of_another(base: str, around: Surroundings, told: Handed) -> None:
    """Say whose part this directory was until now."""
    try:
        found = layout.find(base, is_named=False, home=around.home, uid=around.uid)
    except AmuxError:
        return
    if found.base != base:
        code = "inside-another-workspace" if found.is_created else "inside-repository"
        told.warn(code, base=found.base)


def _found(around: Surroundings) -> layout.Layout:
    return layout.find(
        around.start, is_named=around.is_start_named, home=around.home, uid=around.uid
    )
