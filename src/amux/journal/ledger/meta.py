"""Which root the ledger speaks for, and in which run of numbers (T8).

Rule 1: a record of another root identity or generation is history, never authority.
Rule 2: the generation only grows: a new root identity, a lost meta record and a person's revoke
        each take one above the largest that any record knows.
Rule 3: a process that has seen a later state of a task than it reads now refuses meanwhile: the
        runtime state was put back from a backup, and with it nonces that were superseded.
"""

from amux.core.value import Value
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.record import Record, first
from amux.journal.refusals import refuse

KIND = KEY = "meta"


class Meta(Value, kw_only=False):
    """Root identity and generation in force."""

    root_identity: str
    generation: int

    def is_foreign(self, root_identity: object, generation: object) -> bool:
        """Tell whether a record with these was made for another root or before a revoke."""
        return (root_identity, generation) != (self.root_identity, self.generation)


def read(ledger: Ledger, root_identity: str) -> Meta | None:
    """Read which pair is in force, for a reader; None where the next authority call makes one."""
    found = ledger.read(KIND, KEY)
    meta = None if found is None else _of(found)
    return meta if meta is not None and meta.root_identity == root_identity else None


def settle(ledger: Ledger, root_identity: str, at: str) -> Meta:
    """Give the pair in force, made anew where the root changed or the record is gone.

    Under the lock. Routes are dropped when it is made anew.
    """
    found = ledger.read(KIND, KEY)
    if found is not None and _of(found).root_identity == root_identity:
        return _of(found)
    return _raise_generation(ledger, found, root_identity, at)


def revoke(ledger: Ledger, root_identity: str, at: str) -> Meta:
    """Take authority from every task until it is bound anew; under the lock, a person's verb."""
    return _raise_generation(ledger, ledger.read(KIND, KEY), root_identity, at)


def _of(found: Record) -> Meta:
    match found.body:
        case {"rootIdentityDigest": str(root), "runtimeGeneration": int(generation)}:
            return Meta(root, generation)
        case _:
            raise found.corrupt("body")


def _raise_generation(ledger: Ledger, found: Record | None, root_identity: str, at: str) -> Meta:
    known = [0 if found is None else _of(found).generation]
    known += [
        generation
        for one in ledger.every("task")
        if isinstance(generation := one.body.get("runtimeGeneration"), int)
    ]
    # Routes first: dropped and then killed, there is one hint less; the other way about, a hint
    # of another root would be taken for one of this.
    for key in ledger.keys("route"):
        ledger.remove("route", key)
    body = {
        "createdAt": at,
        "rootIdentityDigest": root_identity,
        "runtimeGeneration": max(known) + 1,
        "schemaVersion": "LedgerMetaV1",
    }
    ledger.change(found, first(KIND, KEY, body) if found is None else found.successor(body))
    return Meta(root_identity, max(known) + 1)


class Seen:
    """The latest state of each task that this process has seen."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], tuple[int, int]] = {}

    def note(self, root_identity: str, task_id: str, pair: tuple[int, int]) -> None:
        """Remember a pair (generation, state sequence), or refuse one that lies before it."""
        known = self._pairs.get((root_identity, task_id))
        if known is not None and pair < known:
            raise refuse(
                "TASK_LEDGER_REWOUND",
                "the task's record is older than one that this process has seen",
                hint="if .runtime-state was restored from a backup, a person runs amux task revoke",
                observed={"runtimeGeneration": pair[0], "stateSequence": pair[1]},
            )
        self._pairs[root_identity, task_id] = pair

    def forget(self, root_identity: str, task_id: str) -> None:
        """Begin anew with a task whose record a person removed and this call has made again."""
        self._pairs.pop((root_identity, task_id), None)
