"""Who asks, for whom, and in which scope.

Rule 1: the scope is derived from policy and actor, never from an argument (M65).
Rule 2: a missing or unknown identity is refused; nothing ever falls back to `global`.
"""

from dataclasses import dataclass
from typing import TypeAlias

OVERFLOW_UID = 65534  # what the kernel shows for a uid that this namespace does not know
LOCAL = "local"  # the principal of the uid that owns AMUX_HOME (M64)


@dataclass(frozen=True, slots=True)
class PeerActor:
    """A process on this machine, known by the uid that the kernel names (SO_PEERCRED)."""

    uid: int

    @property
    def alias(self) -> str:
        """Name the actor as identity records do."""
        return f"unix:{self.uid}"


Actor: TypeAlias = PeerActor


@dataclass(frozen=True, slots=True)
class Scope:
    """The partition that a call works in: `global` or `principal:<id>`."""

    name: str


GLOBAL = Scope("global")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The answer of access: this actor, for this principal, in this scope, now.

    `may_vouch`: this is a person, who may say that what looks like a secret is none (M77).
    """

    actor: Actor
    principal: str
    scope: Scope
    is_administrator: bool
    may_vouch: bool = False
