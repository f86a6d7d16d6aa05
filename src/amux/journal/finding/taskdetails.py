"""What is told of one task to whoever found it: its files, and the ledger's word (T41, T44, T65).

Rule 1: it is data to go on by, and nothing to write by: no nonce, no reference, no lease.
Rule 2: which files to read again is said with what they are now; reading them replaces nothing.
"""

from amux.core.canonical import ABSENT
from amux.journal import refusals
from amux.journal.admission import asking
from amux.journal.finding import diff
from amux.journal.finding.diff import Present
from amux.journal.finding.handoffs import Handoff
from amux.journal.finding.taskview import UNREADABLE, Reader
from amux.journal.tasks import checkpoint, observing, receipts, resolve, settling, survey, view
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.resolve import Candidate
from amux.journal.tasks.task import SESSION_CHARS, TaskState
from amux.journal.tasks.taskfiles import read as read_file

Result = dict[str, object]
MEMORY = ".memory"


def checkpoints(state: TaskState, facts: Facts) -> Result:
    """Show the checkpoints of a task as they are now."""
    return {
        "epoch": state.checkpoints.epoch,
        "cpSetDigest": state.checkpoints.digest,
        "slots": receipts.slots(state, facts),
    }


def owner(state: TaskState) -> Result | None:
    """Show who owns a task: nothing by which to write it (T44)."""
    lease = state.owner
    if lease is None:
        return None
    return {
        "agent": lease.agent,
        "session": lease.session_digest[:SESSION_CHARS],
        "writerGeneration": lease.writer_generation,
        "status": lease.status,
        "expiresAt": lease.expires_at,
    }


def operation(state: TaskState) -> Result | None:
    """Show the operation that is open."""
    opened = state.operation
    if opened is None:
        return None
    return {
        "operationId": opened.operation_id,
        "phase": opened.phase,
        "targets": [target.path for target in opened.targets],
        "recordDigest": opened.record_digest,
    }


def next_call(candidate: Candidate, state: TaskState | None, facts: Facts) -> Result | None:
    """Name the call that takes the task on: what is open is closed first."""
    if candidate.problem is not None:
        return None
    if state is not None and state.operation is not None:
        return settling.reconcile_call(state.operation, facts)
    if candidate.is_legacy or candidate.is_first_version:
        named = candidate.relative_path if candidate.is_legacy else facts.name
        return refusals.next_call(
            "memory_task_admit_v2",
            {"operation": "adopt", "task": named, **facts.target},
            fill=["instruction"],
        )
    return facts.call("memory_task_admit_v2", operation="bind", fill=["instruction"])


def warnings(
    reader: Reader, candidate: Candidate, state: TaskState | None, facts: Facts, coverage: str
) -> list[Result]:
    """Tell what of the ledger, or of what people see of it, is not as it should be (T7, T49)."""
    found: list[Result] = []
    if coverage == UNREADABLE:
        found.append({"code": "ledger-unreadable"})
    if state is None or reader.ground is None:
        return found
    data = read_file(reader.ground, f"{candidate.relative_path}/{MEMORY}/{survey.SESSIONS}") or b""
    shown = view.View(
        checkpoints=state.checkpoints,
        stale=state.checkpoints.stale(facts.artifacts),
        task_root=candidate.relative_path,
        zone=None,
    )
    found += view.drift(data, shown)
    line = survey.read_status_line(reader.ground, candidate.relative_path)
    if line is not None and line != _plain(candidate.status):
        found.append({"code": "status-view-drift"})
    return found


def _plain(status: str) -> str:
    return resolve.REJECTED if status in resolve.ENDED else status


def rehydration(reader: Reader, candidate: Candidate, state: TaskState | None) -> list[Result]:
    """Name the files to read before going on: identity, notes, overview, confirmed artifacts."""
    task_root = candidate.relative_path
    named = [
        ("identity", f"{task_root}/{MEMORY}/task.json"),
        ("identity", f"{task_root}/{MEMORY}/task-identity-v2.json"),
        ("notes", f"{task_root}/{MEMORY}/{survey.SESSIONS}"),
        *(("overview", f"{task_root}/{name}") for name in _overviews(candidate.kind)),
    ]
    if state is not None:
        named += [
            (slot.phase, f"{task_root}/{slot.confirmation.artifact_path}")
            for slot in state.checkpoints.slots
            if slot.status == checkpoint.CONFIRMED and slot.confirmation is not None
        ]
    found: dict[str, Result] = {}
    for role, path in named:
        if path in found:
            found[path]["roles"] = [*_list(found[path]["roles"]), role]
            continue
        digest = observing.digest(reader.ground, path)
        if digest is not None and digest != ABSENT:
            found[path] = {"path": path, "roles": [role], "sha256": digest}
    return list(found.values())


def _overviews(kind: str) -> tuple[str, ...]:
    if kind in asking.OVERVIEWS:
        return (asking.OVERVIEWS[kind],)
    return (asking.CHANGE_OVERVIEW, asking.OVERVIEW, asking.PRODUCT)


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def continuation(
    reader: Reader,
    candidate: Candidate,
    state: TaskState | None,
    facts: Facts,
    found: Handoff | None,
) -> Result:
    """Compare the newest hand-off card with the present (T65)."""
    said = None if found is None else found.compared.said
    paths = list(diff.claimed_artifacts(said))
    if state is not None:
        paths += [
            f"{candidate.relative_path}/{slot.confirmation.artifact_path}"
            for slot in state.checkpoints.slots
            if slot.status == checkpoint.CONFIRMED and slot.confirmation is not None
        ]
    present = {}
    for path in dict.fromkeys(paths):
        digest = observing.digest(reader.ground, path)
        if digest is not None and digest != ABSENT:
            present[path] = digest
    return diff.compare(
        None if found is None else found.compared,
        Present(
            task_id=candidate.task_id,
            identity_problem=candidate.problem,
            status=candidate.status,
            state=state,
            task_path=candidate.relative_path,
            stale=() if state is None else state.checkpoints.stale(facts.artifacts),
            artifacts=present,
        ),
    )
