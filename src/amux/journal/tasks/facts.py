"""What the ring saw under the lock before a machine decides, and calls that it may name.

Rule 1: these are observations; the core believes them and makes none of its own.
Rule 2: random text among them is fresh for each call.
"""

from collections.abc import Mapping, Sequence

from amux.core.value import NOTHING, Value
from amux.journal import refusals
from amux.journal.tasks.projectlease import Standing


class Facts(Value):
    """All that a machine may ask for; what a tool does not need stays empty."""

    standing: Standing
    name: str = ""
    """How a caller names the task in the next call: short, and fitting no other."""
    target: Mapping[str, object] = NOTHING
    """What a next call adds to mean the same project: `project`, or nothing."""
    artifacts: Mapping[str, str] = NOTHING
    """The present digest of each confirmed artifact, by phase; none where it is gone."""
    is_archived: bool = False
    is_identity_valid: bool = True
    is_owner_live: bool = False
    """Whether some process of the owner's session holds its live file (T10)."""
    targets: Mapping[str, str] = NOTHING
    """The present digest of each target of the open operation; none where it cannot be seen."""
    seen_context: str | None = None
    """The context digest that the caller quotes, else the last that this process returned."""
    nonce: str = ""
    """40 random hex."""
    lease_id: str = ""
    """`adl-` and 32 random hex."""
    operation_id: str = ""
    """`op-` and 16 random hex."""

    def call(
        self, tool: str, *, fill: Sequence[str] = (), **arguments: object
    ) -> dict[str, object]:
        """Name a next call about this task, in this project."""
        named = {"task": self.name, **arguments, **self.target}
        return refusals.next_call(tool, named, fill=fill)
