"""One request for an admission, as the ring understood it, and how it begins (T29 to T31).

Rule 1: planned bytes follow from the request alone, so that a repeat plans the same.
Rule 2: a file that is kept has no planned bytes and need only be there.
"""

from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Refused
from amux.journal.tasks.admissionrecord import Recovery, Transaction
from amux.journal.tasks.identity import VARIANTS
from amux.journal.tasks.ingress import Ingress, Use
from amux.journal.tasks.operation import Operation
from amux.journal.tasks.task import TaskState

OPERATIONS = ("admit", "adopt", "bind")
REOPEN = "reopen"
# kind -> what admit may mean, the first by default; adopt and bind have one row for all kinds.
_NEW = ("new",)
TABLE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "requirements": (("new", "product-provided", "change"), ("continue", "change", REOPEN)),
    "bugs": (("fix", "new"), ("continue", REOPEN)),
    "optimizations": (_NEW, ("continue", REOPEN)),
    "scenario-tests": (_NEW, ("continue", REOPEN)),
}
OVERVIEWS = {"bugs": "00-问题概况.md"}
CHANGE_OVERVIEW, OVERVIEW, PRODUCT = "00-需求变更概况.md", "00-需求概况.md", "01-产品需求.md"


class PlannedFile(Value):
    """One file of T31, by its path below the active root."""

    path: str
    phase: str
    data: bytes | None
    """None where what is there is kept."""


class Ask(Value):
    """One request."""

    operation: str
    ingress: Ingress
    use: Use | None
    request_digest: str
    acquires_owner: bool
    task_id: str
    task_root_relative: str
    identity_digest: str
    files: tuple[PlannedFile, ...]
    needs_block: bool = False
    """Whether `sessions.md` is there and has no checkpoint block."""


class Begun(Value):
    """How a request begins."""

    is_started: bool = False
    """It starts now: its use is to be noted before the state is committed."""
    is_replayed: bool = False
    """It was answered before."""
    recovery: Recovery | None = None
    """It was interrupted before, and this is what it finds."""
    settled: Operation | None = None


def variant(operation: str, kind: str, given: str | None) -> str | Refused:
    """Give the entry variant of a request (T29)."""
    allowed = TABLE[kind][0 if operation == "admit" else 1]
    if operation == "adopt":
        allowed = tuple(one for one in allowed if one != REOPEN)
    if given is None:
        return allowed[0]
    if given in allowed:
        return given
    return Refused(
        reason="TASK_ADMISSION_ENTRY_VARIANT_INVALID",
        message="this entry variant does not go with the operation and kind",
        hint=f"give one of: {', '.join(allowed)}",
        details={"allowed": list(allowed)},
    )


def overview_name(kind: str, entry_variant: str) -> str:
    """Name the overview of a task of this kind (T25)."""
    if kind == "requirements" and entry_variant == "change":
        return CHANGE_OVERVIEW
    return OVERVIEWS.get(kind, OVERVIEW)


def is_variant(text: str) -> bool:
    """Tell whether a word is an entry variant at all."""
    return text in VARIANTS


def was_begun(state: TaskState, ingress_ref: str) -> bool:
    """Tell whether an ingress has begun an admission of this task, as far back as is known."""
    mark = mark_of(ingress_ref)
    if any(one.op.endswith(mark) for one in state.transitions):
        return True
    # Older transitions are forgotten: then it may have, and what may have happened is not redone.
    return state.transitions[0].seq > 1


def mark_of(ingress_ref: str) -> str:
    """Spell by what a transition names the ingress that began it."""
    return f"@{ingress_ref.removeprefix('ingress-')[:12]}"


def transaction(ask: Ask, generation: int, phase: str) -> Transaction:
    """Make the record of an admission."""
    return shape.seal(
        Transaction(
            admission_id=ask.ingress.admission_id,
            ingress_ref=ask.ingress.ingress_ref,
            ingress_digest=ask.ingress.snapshot_digest,
            request_digest=ask.request_digest,
            operation=ask.operation,
            admission_generation=generation,
            phase=phase,
        )
    )
