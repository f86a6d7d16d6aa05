"""Which file a confirmation binds, by its bytes (T46).

Rule 1: path and digest are both given by the caller, and the server hashes the file itself; what
        it saw is told, so that the person can be asked about the right bytes.
"""

from collections.abc import Sequence

from amux.core.canonical import ABSENT
from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal import relative
from amux.journal.admission import planning
from amux.journal.machine import Refused
from amux.journal.refusals import refuse
from amux.journal.tasks import context, observing
from amux.journal.tasks.authority import Call
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.task import TaskState

_MEMORY = ".memory"


class Bound(Value):
    """What is confirmed: a file of the task, or nothing at all for an exemption."""

    is_exempt: bool = False
    path: str = ""
    sha256: str = ""


def bound(call: Call, task_root: str, facts: Facts, state: TaskState | None) -> Bound:
    """Judge the artifact of a confirmation, once the task is known to be admitted."""
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        raise known.error()
    errand = call.errand
    path, given = errand.text("artifactPath"), errand.text("artifactSha256")
    if errand.arguments.get("exempt") is True:
        return Bound(is_exempt=True)
    if path is None or given is None:
        raise refuse(
            "MEMORY_CP_CONFIRMATION_UNBOUND",
            "a confirmation binds a file by its digest",
            hint="show the person the file, then give artifactPath and artifactSha256",
            observed=None if path is None else _seen(call, task_root, path),
        )
    if relative.problem(path) is not None or path.split("/")[0] == _MEMORY:
        raise _invalid("path")
    found = _seen(call, task_root, path)
    if found is None:
        raise _invalid("file")
    if not found.startswith(given.lower()):
        raise refuse(
            "MEMORY_CP_ARTIFACT_DIGEST_MISMATCH",
            "the file is not the one that was shown",
            hint="show the person the file as it is now, and give its digest",
            observed=found,
        )
    return Bound(path=path, sha256=found)


def remarks(state: TaskState, phase: str, task_root: str) -> Sequence[dict[str, object]]:
    """Remark that the overview was bound: each later edit of it makes the checkpoint stale."""
    kept = state.checkpoints.slot(phase).confirmation
    if phase == "CP1" and kept is not None and kept.artifact_path in planning.OVERVIEWS:
        return [
            {"code": "artifact-is-living-document", "path": f"{task_root}/{kept.artifact_path}"}
        ]
    return []


def _seen(call: Call, task_root: str, path: str) -> str | None:
    if relative.problem(path) is not None:
        return None
    ground, whole = call.held.ground, f"{task_root}/{path}"
    found = observing.digest(ground, whole, max_bytes=observing.ARTIFACT_MAX_BYTES)
    if found is None or found == ABSENT or found.startswith("stat:"):
        return None
    return found


def _invalid(problem: str) -> AmuxError:
    return refuse(
        "MEMORY_CP_ARTIFACT_INVALID",
        "the artifact is no regular file of the task that could be bound",
        hint="name a file below the task's directory, outside .memory, of at most 8 MiB",
        problem=problem,
    )
