"""What a session's write asks of the tasks: where its text goes too, and a card's state (T27, J69).

Rule 1: the write asks under the root's lock, before its first commit, and lets the answer refuse.
Rule 2: the tasks answer with a place and with text; the write does the writing.
"""

from collections.abc import Sequence
from typing import Protocol

from amux.core.value import Value
from amux.journal.call.errand import Errand
from amux.journal.store.root import Held


class TaskNotes(Value):
    """Where the notes of a task are."""

    task_id: str
    path: str
    """Its `sessions.md`, in the active root."""


class TaskStanding(Value):
    """What a handoff card says of a task."""

    task_id: str
    state: str
    """Canonical JSON, as J69 has it."""


class TaskPart(Protocol):
    """The tasks of a root, as a session's write needs them."""

    def notes(self, errand: Errand, held: Held, task: str, *, status: str | None) -> TaskNotes:
        """Give the notes of the task that a write names, if this session may write them (T27).

        `status` is the write's: `completed` before the terminal is refused.
        """

    def standing(
        self, errand: Errand, held: Held, task: str, *, artifacts: Sequence[tuple[str, str]]
    ) -> TaskStanding:
        """Give what the card of a handoff says of a task; `artifacts` are paths and digests."""
