"""What changed since a hand-off: a card's state line against files and ledger (T65).

Rule 1: only the state line is compared, never prose; without one everything is new.
Rule 2: a state line is written here too, so that both sides say a thing in the same way.
Rule 3: the answer says what to do next; it writes nothing and grants nothing.
"""

import json
from collections.abc import Mapping, Sequence

from amux.core import canonical
from amux.core.value import Value
from amux.journal.tasks import checkpoint, operation
from amux.journal.tasks.task import TaskState

SAME, CHANGED, MISSING, NEW = "same", "changed", "missing", "new"
RECONCILE, ASK, RE_CONFIRM, CONTINUE = "reconcile", "ask", "re-confirm", "continue"
STALE = "stale"
_STATE_KEYS = {
    "artifacts", "checkpoints", "lifecycleRevision", "openOperation", "ownerStatus",
    "stateSequence", "writerGeneration",
}  # fmt: skip
_ACTIONS = {
    ASK: "ask the person which task is meant",
    RE_CONFIRM: "show the artifact to the person and ask for the checkpoint again",
}


def state_line(state: TaskState | None, artifacts: Sequence[tuple[str, str]]) -> str:
    """Write the `state` line of a hand-off card: the ledger's word at this moment (J69).

    `artifacts` are paths below the active root with the digests of their files.
    """
    said: dict[str, object] = {
        "artifacts": [{"path": path, "sha256": sha256} for path, sha256 in artifacts],
        "checkpoints": {} if state is None else _slots(state),
        "lifecycleRevision": None if state is None else state.lifecycle_revision,
        "openOperation": None
        if state is None or state.operation is None
        else state.operation.operation_id,
        "ownerStatus": None if state is None or state.owner is None else state.owner.status,
        "stateSequence": None if state is None else state.state_sequence,
        "writerGeneration": None if state is None else state.generation,
    }
    return canonical.encode(said).decode("utf-8")


def read_state_line(text: str) -> dict[str, object] | None:
    """Read a state line back; None for what is none. It is data that a file may claim."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or set(said) != _STATE_KEYS:
        return None
    artifacts, checkpoints = said["artifacts"], said["checkpoints"]
    if not isinstance(artifacts, list) or not isinstance(checkpoints, dict):
        return None
    are_named = all(
        isinstance(one, dict)
        and isinstance(one.get("path"), str)
        and isinstance(one.get("sha256"), str)
        for one in artifacts
    )
    return said if are_named else None


class Present(Value):
    """What files and ledger say now."""

    task_id: str | None
    identity_problem: str | None
    status: str
    state: TaskState | None
    """None without a ledger state that counts."""
    task_path: str
    """The task's directory below the active root."""
    stale: tuple[str, ...]
    """The confirmed checkpoints whose file is not what was confirmed."""
    artifacts: Mapping[str, str]
    """The present digests of files below the active root, by path; none where one is gone."""


class Card(Value, kw_only=False):
    """What the newest hand-off card says that can be compared."""

    task: str | None
    said: Mapping[str, object] | None
    next_action: str | None


def compare(card: Card | None, present: Present) -> dict[str, object]:
    """Tell item by item what is as the card says, and what to do next."""
    said = None if card is None else card.said
    items = [
        *_of_identity(card, said, present),
        *_of_ledger(said, present),
        *_of_checkpoints(said, present),
        *_of_artifacts(said, present),
        *_of_operations(said, present),
    ]
    overall = _overall(items, said, present)
    return {
        "schemaVersion": "SemanticContinuationDiff",
        "overall": overall,
        "nextAction": _next_action(overall, card, items, present),
        "items": items,
    }


def _item(key: str, asserted: object, observed: object, *, is_said: bool) -> dict[str, object]:
    if not is_said:
        verdict = NEW
    elif observed is None and asserted is not None:
        verdict = MISSING
    else:
        verdict = SAME if asserted == observed else CHANGED
    return {"key": key, "verdict": verdict, "asserted": asserted, "observed": observed}


def _of_identity(
    card: Card | None, said: Mapping[str, object] | None, present: Present
) -> list[dict[str, object]]:
    is_said = said is not None
    named = card.task if card is not None and is_said else None
    observed = present.task_id if present.identity_problem is None else None
    # A hand-off is of work that goes on; of a task that was over, the owner would be terminal.
    status = None if said is None else _status_said(said, present)
    return [
        _item("identity", named, observed, is_said=is_said),
        _item("status", status, present.status, is_said=is_said),
    ]


def _status_said(said: Mapping[str, object], present: Present) -> str:
    is_over = said["ownerStatus"] == "terminal"
    if not is_over:
        return "active"
    return present.status if present.status != "active" else "terminal"


def _of_ledger(said: Mapping[str, object] | None, present: Present) -> list[dict[str, object]]:
    state = present.state
    owner = admission = None
    if state is not None:
        status = None if state.owner is None else state.owner.status
        owner = {"ownerStatus": status, "writerGeneration": state.generation}
        admission = {
            "lifecycleRevision": state.lifecycle_revision,
            "stateSequence": state.state_sequence,
        }
    is_said = said is not None
    return [
        _item("owner", _part(said, "ownerStatus", "writerGeneration"), owner, is_said=is_said),
        _item(
            "admission", _part(said, "lifecycleRevision", "stateSequence"), admission,
            is_said=is_said,
        ),
    ]  # fmt: skip


def _part(said: Mapping[str, object] | None, *keys: str) -> dict[str, object] | None:
    return None if said is None else {key: said[key] for key in keys}


def _of_checkpoints(said: Mapping[str, object] | None, present: Present) -> list[dict[str, object]]:
    slots = {} if present.state is None else _slots(present.state)
    slots |= dict.fromkeys(present.stale, STALE)
    claimed = _mapping(said, "checkpoints")
    return [
        _item(f"cp:{phase}", claimed.get(phase), slots.get(phase), is_said=phase in claimed)
        for phase in checkpoint.PHASES
    ]


def _of_artifacts(said: Mapping[str, object] | None, present: Present) -> list[dict[str, object]]:
    claimed = dict(_artifacts_said(said))
    paths = [*claimed, *sorted(set(present.artifacts) - set(claimed))]
    return [
        _item(
            f"artifact:{path}",
            claimed.get(path),
            present.artifacts.get(path),
            is_said=path in claimed,
        )
        for path in paths
    ]


def claimed_artifacts(said: Mapping[str, object] | None) -> tuple[str, ...]:
    """Name the files that a state line lists, for whoever observes them."""
    return tuple(path for path, _ in _artifacts_said(said))


def _artifacts_said(said: Mapping[str, object] | None) -> list[tuple[str, str]]:
    found = [] if said is None else said["artifacts"]
    return [(one["path"], one["sha256"]) for one in found] if isinstance(found, list) else []


def _of_operations(said: Mapping[str, object] | None, present: Present) -> list[dict[str, object]]:
    known: dict[str, object] = {}
    if present.state is not None:
        known = {one.operation_id: one.effect for one in present.state.settled.newest}
        if present.state.operation is not None:
            known[present.state.operation.operation_id] = operation.DISPATCHED
    claimed = None if said is None else said["openOperation"]
    items = []
    if isinstance(claimed, str):
        items.append(
            _item(f"operation:{claimed}", operation.DISPATCHED, known.get(claimed), is_said=True)
        )
    opened = None if present.state is None else present.state.operation
    if opened is not None and opened.operation_id != claimed:
        items.append(
            _item(f"operation:{opened.operation_id}", None, operation.DISPATCHED, is_said=False)
        )
    return items


def _overall(
    items: Sequence[Mapping[str, object]], said: Mapping[str, object] | None, present: Present
) -> str:
    """Give the first that applies; the order is the table of T65."""
    state = present.state
    if state is not None and (state.operation is not None or not state.admission.is_finalized):
        return RECONCILE
    by_key = {str(one["key"]): one for one in items}
    is_other = said is not None and by_key["identity"]["verdict"] != SAME
    if present.identity_problem is not None or is_other or present.status != "active":
        return ASK
    confirmed = {
        phase for phase, what in _mapping(said, "checkpoints").items()
        if what == checkpoint.CONFIRMED
    }  # fmt: skip
    in_force = {} if state is None else _slots(state)
    if present.stale or any(in_force.get(phase) != checkpoint.CONFIRMED for phase in confirmed):
        return RE_CONFIRM
    return CONTINUE


def _next_action(
    overall: str, card: Card | None, items: Sequence[Mapping[str, object]], present: Present
) -> str:
    if overall == RECONCILE:
        is_open = present.state is not None and present.state.operation is not None
        return "reconcile the open operation" if is_open else "repeat the admission"
    if overall != CONTINUE:
        return _ACTIONS[overall]
    changed = [str(one["key"]) for one in items if one["verdict"] in {CHANGED, MISSING}]
    read_again = f"read again: {', '.join(changed)}; then " if changed else ""
    # Text of a card is quoted as what it is: something that somebody wrote.
    action = None if card is None else card.next_action
    then = "read the task's sessions.md" if action is None else f"the card's next-action: {action}"
    return read_again + then


def _slots(state: TaskState) -> dict[str, object]:
    return {slot.phase: slot.status for slot in state.checkpoints.slots}


def _mapping(said: Mapping[str, object] | None, key: str) -> Mapping[str, object]:
    found = None if said is None else said[key]
    return found if isinstance(found, dict) else {}
