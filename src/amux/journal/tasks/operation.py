"""One announced change of named files: begun before, settled after, by their bytes (T58 to T60).

Rule 1: it is committed before the agent acts, with what each target was.
Rule 2: what was done is told by the targets' present digests, not by an exit code or a word.
Rule 3: at most one is open; an unknown effect blocks retry, takeover and completion.
"""

from collections.abc import Mapping
from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape

DISPATCHED, SETTLED = "dispatched", "settled"
UNKNOWN, APPLIED, NOT_APPLIED = "unknown", "known-applied", "known-not-applied"
KINDS = ("edit", "create", "delete", "command")
MAX_KEPT = 8  # settled ones, of a task that is not terminal (T9)
EMPTY_CHAIN = "0" * 64


class Target(Value):
    """One file, by its digest before and after; `absent` where there was none."""

    path: str
    before: str
    after: str | None = None


class Operation(Value):
    """One operation."""

    SCHEMA: ClassVar[str] = "TaskOperationRecordV1"
    DIGEST: ClassVar[str] = "record_digest"

    operation_id: str
    kind: str
    targets: tuple[Target, ...]
    phase: str
    effect: str
    writer_generation: int
    expected_state_sequence: int
    request_digest: str
    began_at: str
    ended_at: str | None = None
    record_digest: str = ""


class Settled(Value):
    """The operations that are over: how many, chained by digest, and the newest."""

    count: int = 0
    digest: str = EMPTY_CHAIN
    newest: tuple[Operation, ...] = ()


def chain(digest: str, record_digest: str) -> str:
    """Chain one more record to the digest of those that are over.

    >>> chain("0" * 64, "1" * 64)
    '6d9a88eb7907e66d60425f0c13d60eeaa8eff25a92f2b6c5b285e336f2d564a8'
    """
    return canonical.digest(f"{digest}\n{record_digest}")


Observed = Mapping[str, str]
"""The present digest of each target by its path; one that cannot be observed has no entry."""


# phase before, command -> phase after; by what the targets show, never by what a caller says.
TABLE: dict[tuple[str | None, str], str] = {
    (None, "begin"): DISPATCHED,
    (DISPATCHED, "settle"): SETTLED,
    (DISPATCHED, "reconcile"): SETTLED,
}


def settle(opened: Operation, observed: Observed, at: str) -> Operation | None:
    """Give the operation as its targets show it; None where one cannot be observed."""
    if any(target.path not in observed for target in opened.targets):
        return None
    targets = tuple(one.replace(after=observed[one.path]) for one in opened.targets)
    is_changed = any(one.after != one.before for one in targets)
    return shape.seal(
        opened.replace(
            targets=targets,
            phase=TABLE[opened.phase, "settle"],
            effect=APPLIED if is_changed else NOT_APPLIED,
            ended_at=at,
        )
    )


def unseen(opened: Operation, observed: Observed) -> list[str]:
    """Name the targets that cannot be observed."""
    return [target.path for target in opened.targets if target.path not in observed]


def add(settled: Settled, done: Operation) -> Settled:
    """Note one more operation that is over."""
    return Settled(
        count=settled.count + 1,
        digest=chain(settled.digest, done.record_digest),
        newest=(*settled.newest, done)[-MAX_KEPT:],
    )
