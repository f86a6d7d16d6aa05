"""What a pure machine answers: the next state and what is to be done, or why not (T3).

Rule 1: `decide(state, command, facts, now)` has no I/O, clock, chance or environment; `facts` are
        what the ring saw under the lock, fresh random text included.
Rule 2: a refusal leaves the state as it was; it is a value here, and raised by the ring.
Rule 3: effects are a closed list. Admission runs each before the commit that records it; every
        other machine commits first and runs them after.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from amux.errors import AmuxError
from amux.journal.refusals import refuse

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Create:
    """Make a file with these bytes, whole, where none is."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Render:
    """Bring the checkpoint table and the status line of `sessions.md` up to the record."""


@dataclass(frozen=True, slots=True)
class BindRoute:
    """Note as a hint which task the session works on."""

    trigger: str


@dataclass(frozen=True, slots=True)
class UnbindRoute:
    """Note that the session's task is over."""


@dataclass(frozen=True, slots=True)
class HoldLive:
    """Keep the session's live file."""


@dataclass(frozen=True, slots=True)
class DropLive:
    """Let the session's live file go."""


Effect: TypeAlias = Create | Render | BindRoute | UnbindRoute | HoldLive | DropLive


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Generic[S, R]):
    """The command is taken: what to commit, what to do, what to tell."""

    state: S
    """Equal to the state decided on where nothing is to be committed: a repeat."""
    effects: tuple[Effect, ...] = ()
    result: R


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The command is not taken; nothing is to be done."""

    reason: str
    message: str
    hint: str = ""
    next_call: Mapping[str, object] | None = None
    details: Mapping[str, object] = field(default_factory=dict)

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
