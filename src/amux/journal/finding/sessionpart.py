"""What the tasks of a root answer to a session's write: may it, and where a task stands (T27, J69).

Rule 1: only the session that owns the task adds to its notes; no checkpoint is needed for that.
Rule 2: nobody writes that a task is completed before it has ended on evidence.
"""

from collections.abc import Sequence

from amux.journal.call.errand import Errand
from amux.journal.finding import diff
from amux.journal.machine import Refused
from amux.journal.sessions.taskpart import TaskNotes, TaskStanding
from amux.journal.store.root import Held
from amux.journal.tasks import context
from amux.journal.tasks.authority import Call
from amux.journal.tasks.lease import RELEASED
from amux.journal.tasks.task import TaskState
from amux.journal.tasks.view import NAME


class Tasks:
    """The tasks of a root, for `memory_session_write`; called under the root's lock."""

    def notes(self, errand: Errand, held: Held, task: str, *, status: str | None) -> TaskNotes:
        """Give the notes of the task that a write names, if this session may write them."""
        call = Call.begin(errand, held)
        task_id, path = call.locate(task)
        state = call.load(task_id).state
        refused = _refused(state, call, path, task, status)
        if refused is not None:
            raise refused.error()
        return TaskNotes(task_id=task_id, path=f"{path}/.memory/{NAME}")

    def standing(
        self, errand: Errand, held: Held, task: str, *, artifacts: Sequence[tuple[str, str]]
    ) -> TaskStanding:
        """Give what the card of a handoff says of a task."""
        call = Call.begin(errand, held)
        task_id, _ = call.locate(task)
        state = call.load(task_id).state
        if state is not None and state.is_foreign(call.standing):
            state = None
        return TaskStanding(task_id=task_id, state=diff.state_line(state, artifacts))


def _refused(
    state: TaskState | None, call: Call, path: str, task: str, status: str | None
) -> Refused | None:
    facts = call.facts(state, path=path, name=task)
    known = context.admitted(state, facts)
    if isinstance(known, Refused):
        return known
    owner = known.owner
    # Who has ended a task may still say so in its notes.
    is_own = (
        owner is not None
        and owner.status != RELEASED
        and owner.session_digest == call.standing.session
    )
    if not is_own:
        return Refused(
            reason="TASK_WRITE_OWNER_SESSION_MISMATCH",
            message="another session owns the task, or none does",
            hint="bind the task first, or leave task out and write into the day alone",
            details={"observed": None if owner is None else owner.observed},
        )
    if status == "completed" and known.terminal is None:
        return Refused(
            reason="TASK_TERMINAL_REQUIRED",
            message="the task has not ended",
            hint="finish it on its evidence first, or write with status active",
            next_call=facts.call("memory_task_terminal_v1", fill=["owner", "evidence"]),
        )
    return None
