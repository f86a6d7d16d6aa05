"""What a pure machine answers: the next state and what is to be done, or why not (T3).

Rule 1: `decide(state, command, facts, now)` has no I/O, clock, chance or environment; `facts` are
        what the ring saw under the lock, fresh random text included.
Rule 2: a refusal leaves the state as it was; it is a value here, and raised by the ring.
Rule 3: effects are a closed list. Admission runs each before the commit that records it; every
        other machine commits first and runs them after.
"""

from collections.abc import Mapping
from typing import Generic, TypeAlias, TypeVar

from amux.core.value import NOTHING, Value
from amux.errors import AmuxError
from amux.journal.refusals import refuse

S = TypeVar("S")
R = TypeVar("R")


class Create(Value, kw_only=False):
    """Make a file with these bytes, whole, where none is."""

    path: str
    data: bytes


class Render(Value, kw_only=False):
    """Bring the checkpoint table and the status line of `sessions.md` up to the record."""


class BindRoute(Value, kw_only=False):
    """Note as a hint which task the session works on."""

    trigger: str


class UnbindRoute(Value, kw_only=False):
    """Note that the session's task is over."""


class HoldLive(Value, kw_only=False):
    """Keep the session's live file."""


class DropLive(Value, kw_only=False):
    """Let the session's live file go."""


Effect: TypeAlias = Create | Render | BindRoute | UnbindRoute | HoldLive | DropLive


class Accepted(Value, Generic[S, R]):
    """The command is taken: what to commit, what to do, what to tell."""

    state: S
    """Equal to the state decided on where nothing is to be committed: a repeat."""
    effects: tuple[Effect, ...] = ()
    result: R


class Refused(Value):
    """The command is not taken; nothing is to be done."""

    reason: str
    message: str
    hint: str = ""
    next_call: Mapping[str, object] | None = None
    details: Mapping[str, object] = NOTHING

    def error(self) -> AmuxError:
        """Make the refusal that the ring raises."""
        return refuse(
            self.reason,
            self.message,
            hint=self.hint,
            next_call=self.next_call,
            **dict(self.details),
        )


Decision: TypeAlias = Accepted[S, R] | Refused
