"""What a person said yes to, bound to bytes (T45 to T47).

Rule 1: a slot is unstarted, waiting, confirmed or exempt; each confirmation binds one file by its
        digest, and has its own answer of a person.
Rule 2: stale is an observation and never stored: restored bytes are good again.
Rule 3: CP1 confirmed anew starts an epoch; the one before is history.
"""

from collections.abc import Mapping

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused

PHASES = ("CP1", "CP2", "CP3")
UNSTARTED, WAITING, CONFIRMED, EXEMPT = "unstarted", "waiting", "confirmed", "exempt"
MAX_EPOCHS = 8  # kept, the present one not counted (T9)
MAX_VERSIONS = 32  # of a slot that are remembered: a record stays small (TP5)


class Confirmation(Value):
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


class Slot(Value):
    """One checkpoint."""

    phase: str
    status: str
    confirmation: Confirmation | None = None
    versions: tuple[str, ...] = ()
    """The artifact versions that this slot has had in its epoch."""


class Epoch(Value):
    """The slots of one epoch that is over."""

    epoch: int
    slots: tuple[Slot, ...]


class Checkpoints(Value):
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


class Answer(Value):
    """A person's answer, as it is to be kept."""

    phase: str
    is_exempt: bool
    artifact_path: str
    artifact_sha256: str
    artifact_version: str
    source_message: str
    at: str
    session: str
    agent: str


# status of the slot, what is asked -> what follows; the guards are beside `decide`.
TABLE: dict[tuple[str, str], str] = {
    (WAITING, "confirm"): CONFIRMED,
    (WAITING, "exempt"): EXEMPT,
    (CONFIRMED, "confirm"): CONFIRMED,
}


def decide(
    before: Checkpoints, answer: Answer, observed: Mapping[str, str]
) -> Accepted[Checkpoints, bool] | Refused:
    """Take an answer (T45, T47); the result tells whether it was taken before.

    `observed` has the present digest of each confirmed file, by phase.
    """
    slot = before.slot(answer.phase)
    if answer.is_exempt and answer.phase != PHASES[-1]:
        return _refused("MEMORY_CP_CONFIRMATION_UNBOUND", "only CP3 may be exempted")
    if _is_again(slot, answer):
        return Accepted(state=before, result=True)
    step = TABLE.get((slot.status, "exempt" if answer.is_exempt else "confirm"))
    if slot.status == UNSTARTED or not _is_ready(before, answer.phase, observed):
        return _refused(
            "CHECKPOINT_EPOCH_CP_PREDECESSOR_MISSING",
            "the checkpoint before it is not confirmed, or its file has changed",
            slot=slot.phase,
        )
    if step is None or (slot.status == CONFIRMED and answer.artifact_version in slot.versions):
        return _refused(
            "TASK_ADMISSION_CP_STATE_CONFLICT",
            "the checkpoint is settled already, and this version with other bytes",
            slot=slot.phase,
            versions=list(slot.versions),
        )
    return Accepted(state=_put(before, answer, step), result=False)


def _is_again(slot: Slot, answer: Answer) -> bool:
    """Tell whether the slot has this very answer already."""
    known = slot.confirmation
    if known is None or answer.is_exempt or slot.status != CONFIRMED:
        return slot.status == EXEMPT and answer.is_exempt
    return (known.artifact_path, known.artifact_sha256) == (
        answer.artifact_path,
        answer.artifact_sha256,
    )


def _put(before: Checkpoints, answer: Answer, status: str) -> Checkpoints:
    """Give the slots after an answer: later ones start anew; CP1 anew is a new epoch."""
    at = PHASES.index(answer.phase)
    old = before.slots[at]
    is_new_epoch = answer.phase == "CP1" and old.status == CONFIRMED
    epoch = before.epoch + 1 if is_new_epoch else before.epoch
    made = Slot(
        phase=answer.phase,
        status=status,
        confirmation=Confirmation(
            artifact_path=answer.artifact_path,
            artifact_version=answer.artifact_version,
            artifact_sha256=answer.artifact_sha256,
            source_message=answer.source_message,
            confirmed_at=answer.at,
            session_digest=answer.session,
            agent=answer.agent,
            epoch=epoch,
        ),
        versions=(*old.versions, answer.artifact_version)[-MAX_VERSIONS:],
    )
    later = [
        Slot(phase=phase, status=WAITING if index == 0 else UNSTARTED)
        for index, phase in enumerate(PHASES[at + 1 :])
    ]
    history = before.history
    if is_new_epoch:
        history = _with_epoch(before)
    return Checkpoints(epoch=epoch, slots=(*before.slots[:at], made, *later), history=history)


def reopened(before: Checkpoints) -> Checkpoints:
    """Give the slots of a task that is reopened: a new epoch, nothing confirmed (T32)."""
    return (start(before.epoch + 1)).replace(history=_with_epoch(before))


def _with_epoch(before: Checkpoints) -> tuple[Epoch, ...]:
    """Give the history with the present epoch; what versions there were is of no more use."""
    slots = tuple(slot.replace(versions=()) for slot in before.slots)
    return (*before.history, Epoch(epoch=before.epoch, slots=slots))[-MAX_EPOCHS:]


def _is_ready(before: Checkpoints, phase: str, observed: Mapping[str, str]) -> bool:
    """Tell whether the checkpoint before this one is confirmed and its file still the same."""
    at = PHASES.index(phase)
    if at == 0:
        return True
    earlier = before.slots[at - 1]
    return earlier.status == CONFIRMED and earlier.phase not in before.stale(observed)


def _refused(reason: str, message: str, **details: object) -> Refused:
    hints = {
        "MEMORY_CP_CONFIRMATION_UNBOUND": "give artifactPath and artifactSha256 of what was shown",
        "CHECKPOINT_EPOCH_CP_PREDECESSOR_MISSING": "show and confirm the earlier one first",
        "TASK_ADMISSION_CP_STATE_CONFLICT": "give an artifactVersion that the slot has not had",
    }
    return Refused(reason=reason, message=message, hint=hints[reason], details=details)
