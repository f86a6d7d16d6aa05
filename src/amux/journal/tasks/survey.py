"""Every directory of a root that may be a task, read within bounds (T20, T39).

Rule 1: a directory is looked into by handle, never through a link; what is odd about one is told
        by it alone, and hides no other.
Rule 2: names come first. Status, and with it the ledger, is read only of those whose name fits.
Rule 3: bytes are counted as if all were read that may be: the bound is the tree's, not the day's.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from amux.core import canonical
from amux.core.value import Value
from amux.disk import regular
from amux.disk.ground import BlockedError, Ground
from amux.disk.tree import Folder
from amux.errors import AmuxError
from amux.journal.refusals import refuse
from amux.journal.store import trouble
from amux.journal.tasks import identity as identities
from amux.journal.tasks import resolve, taskstatus
from amux.journal.tasks.directory import KINDS
from amux.journal.tasks.identity import FirstIdentity, Identity
from amux.journal.tasks.resolve import Candidate
from amux.journal.tasks.task import TaskState

MEMORY = ".memory"
SESSIONS = "sessions.md"
ARCHIVED = ".archived"
_TASK_FILE = identities.TASK_FILE.rpartition("/")[2]
_V2_FILE = identities.V2_FILE.rpartition("/")[2]

States = Callable[[str], TaskState | None]
"""Gives the ledger state of a taskId that counts: none where it is absent, foreign or damaged."""


class Survey(Value):
    """What was found, and whether it was more than may be read."""

    candidates: tuple[Candidate, ...] = ()
    folders: int = 0
    size: int = 0
    is_blocked: bool = False

    def __add__(self, other: "Survey") -> "Survey":
        folders, size = self.folders + other.folders, self.size + other.size
        return Survey(
            candidates=self.candidates + other.candidates,
            folders=folders,
            size=size,
            is_blocked=self.is_blocked
            or other.is_blocked
            or resolve.blocked(folders, size, is_everywhere=True),
        )


def survey(ground: Ground | None, project: str, states: States) -> Survey:
    """Look at every task directory of an active root."""
    if ground is None:
        return Survey()
    named = [(kind, segment) for kind in KINDS for segment in _segments(ground, kind)]
    if resolve.blocked(len(named), 0, is_everywhere=False):
        return Survey(folders=len(named), is_blocked=True)
    candidates, size = [], 0
    for kind, segment in named:
        found, read = _candidate(ground, project, kind, segment, states)
        candidates.append(found)
        size += read
    return Survey(
        candidates=tuple(candidates),
        folders=len(named),
        size=size,
        is_blocked=resolve.blocked(len(named), size, is_everywhere=False),
    )


def locate(name: str, found: Survey) -> Candidate:
    """Give the one task that a `task` argument names (T20), or refuse."""
    result = resolve.find(name, found.candidates)
    if result.candidate is not None:
        return result.candidate
    if result.several:
        raise refuse(
            "TASK_AMBIGUOUS",
            "more than one task of this memory has that name",
            hint="give the taskId of the one that is meant",
            candidates=[one.listed() for one in result.several],
        )
    raise not_found([one.listed() for one in result.suggestions])


def not_found(suggestions: Sequence[dict[str, object]] = ()) -> AmuxError:
    """Make the refusal of a name that no task has."""
    return refuse(
        "TASK_NOT_FOUND",
        "no task of this memory has that name",
        hint="memory_task_resolve finds a task by its name, alias or taskId",
        suggestions=list(suggestions),
    )


def read_status_line(ground: Ground, relative_path: str) -> str | None:
    """Read what people wrote of a task's status; None where they wrote nothing."""
    with suppress(OSError):
        folder = ground.open_folder(f"{relative_path}/{MEMORY}")
        if folder is not None:
            with folder:
                found = regular.read_start(folder, SESSIONS, max_bytes=taskstatus.READ_BYTES)
            return None if found is None else taskstatus.of_text(found.data)
    return None


def is_archived(ground: Ground, relative_path: str) -> bool:
    """Tell whether the mark of a finished task stands in its root; anything of the name does."""
    with suppress(OSError):
        folder = ground.open_folder(relative_path)
        if folder is not None:
            with folder:
                return folder.look(ARCHIVED) is not None
    return False


def _segments(ground: Ground, kind: str) -> list[str]:
    with trouble.told(kind):
        folder = ground.open_folder(kind)
        if folder is None:
            return []
        with folder:
            return sorted(folder.folders())


def _candidate(
    ground: Ground, project: str, kind: str, segment: str, states: States
) -> tuple[Candidate, int]:
    path = f"{kind}/{segment}"
    # A name of other bytes than UTF-8 can be looked into, but not told as it is.
    segment = segment.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    read: Identity | FirstIdentity | _Claimed | None = None
    size, problem = 0, None
    try:
        folder = ground.open_folder(f"{path}/{MEMORY}")
        if folder is not None:
            with folder:
                read, size = _identity(folder)
                sessions = regular.facts(folder, SESSIONS)
                size += min(sessions.size, taskstatus.READ_BYTES) if sessions else 0
    except _DamagedError as error:
        read, problem = error.claimed, error.problem
    except BlockedError:
        problem = "link"
    except OSError:
        problem = "unreadable"
    if isinstance(read, Identity) and read.task_root_relative != path:
        problem = "taskRootRelative"
    task_id = None if read is None else read.task_id

    def look_up() -> str:
        return taskstatus.status(
            is_archived=is_archived(ground, path),
            state=None if task_id is None or problem is not None else states(task_id),
            line=read_status_line(ground, path),
        )

    return (
        Candidate(
            task_id=task_id,
            display_name=segment if read is None else read.display_name,
            aliases=() if read is None else read.aliases,
            project=project,
            kind=kind,
            segment=segment,
            problem=problem,
            is_first_version=isinstance(read, FirstIdentity),
            look_up=look_up,
        ),
        size,
    )


class _DamagedError(Exception):
    """An identity is none; what it claims to be still locates it, and grants nothing."""

    def __init__(self, problem: str, claimed: "_Claimed | None") -> None:
        super().__init__(problem)
        self.problem = problem
        self.claimed = claimed


class _Claimed(Value, kw_only=False):
    task_id: str | None
    display_name: str
    aliases: tuple[str, ...]
    task_root_relative: str = ""


def _identity(folder: Folder) -> tuple[Identity | FirstIdentity | None, int]:
    first = _file(folder, _TASK_FILE)
    found = None if first is None else _parsed(first)
    if isinstance(found, Identity):
        return found, len(first or b"")
    # An adopted task keeps its first identity; the second lies beside it and counts (T21).
    second = _file(folder, _V2_FILE)
    size = len(first or b"") + len(second or b"")
    return (found if second is None else _parsed(second)), size


def _parsed(data: bytes) -> Identity | FirstIdentity:
    try:
        return identities.parse(data)
    except identities.Invalid as error:
        raise _DamagedError(str(error) or "identity", _claimed(data)) from error


def _claimed(data: bytes) -> _Claimed | None:
    match canonical.parsed(data):
        case {"displayName": str(name), **rest} if name:
            task_id, aliases = rest.get("taskId"), rest.get("aliases")
            return _Claimed(
                task_id if isinstance(task_id, str) else None,
                name,
                tuple(one for one in aliases if isinstance(one, str))
                if isinstance(aliases, list)
                else (),
            )
        case _:
            return None


def _file(folder: Folder, name: str) -> bytes | None:
    found = regular.read(folder, name, max_bytes=identities.MAX_BYTES)
    return None if found is None else found.data
