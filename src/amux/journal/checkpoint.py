"""What a person said yes to, bound to bytes (T45 to T47).

Rule 1: a slot is unstarted, waiting, confirmed or exempt; each confirmation binds one file by its
        digest, and has its own answer of a person.
Rule 2: stale is an observation and never stored: restored bytes are good again.
Rule 3: CP1 confirmed anew starts an epoch; the one before is history.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from amux.core import canonical
from amux.journal import shape

PHASES = ("CP1", "CP2", "CP3")
UNSTARTED, WAITING, CONFIRMED, EXEMPT = "unstarted", "waiting", "confirmed", "exempt"
MAX_EPOCHS = 8  # kept, the present one not counted (T9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """One yes."""

    artifact_path: str
    """Relative to the task root; empty where the slot was exempted."""
    artifact_version: str
    artifact_sha256: str
    source_message: str
    confirmed_at: str
    session_digest: str
    agent: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One checkpoint."""

    phase: str
    status: str
    confirmation: Confirmation | None = None
    versions: tuple[str, ...] = ()
    """The artifact versions that this slot has had in its epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The slots of one epoch that is over."""

    epoch: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """The three slots of a task, and what they were before."""

    epoch: int
    slots: tuple[Slot, ...]
    history: tuple[Epoch, ...] = ()

    @property
    def digest(self) -> str:
        """Name the slots as they are (`cpSetDigest`)."""
        return canonical.digest([shape.encode(slot) for slot in self.slots])

    def slot(self, phase: str) -> Slot:
        """Give one slot."""
        return self.slots[PHASES.index(phase)]

    def stale(self, observed: Mapping[str, str]) -> tuple[str, ...]:
        """Name the confirmed slots whose file is not what was confirmed.

        `observed` has the present digest of each confirmed file, by phase; none where it is gone.
        """
        return tuple(
            slot.phase
            for slot in self.slots
            if slot.status == CONFIRMED
            and slot.confirmation is not None
            and observed.get(slot.phase) != slot.confirmation.artifact_sha256
        )


def start(epoch: int = 1) -> Checkpoints:
    """Give the slots of an epoch in which nothing is confirmed."""
    return Checkpoints(
        epoch=epoch,
        slots=tuple(
            Slot(phase=phase, status=WAITING if phase == "CP1" else UNSTARTED) for phase in PHASES
        ),
    )
