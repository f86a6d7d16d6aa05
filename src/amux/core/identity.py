"""Who asks, for whom, and in which scope.

Rule 1: what a face knows of a caller is a claim, but for the uid that the kernel names.
Rule 2: the scope is derived from policy and principal, never from an argument (M65).
Rule 3: a missing or unknown identity is refused; nothing ever falls back to `global`.
Rule 4: a binding is compared, never trusted: a forged one can only lead to a refusal (M69).
"""

import hashlib
from typing import Literal, TypeAlias

from amux.core.value import Value

OVERFLOW_UID = 65534  # what the kernel shows for a uid that this namespace does not know
ROOT_UID = 0
LOCAL = "local"  # the principal of the uid that owns AMUX_HOME (M64)

Kind: TypeAlias = Literal["person", "service", "runtime", "agent"]
Verb: TypeAlias = Literal["read", "write"]
KINDS: tuple[Kind, ...] = ("person", "service", "runtime", "agent")
VERBS: tuple[Verb, ...] = ("read", "write")


class Caller(Value):
    """What a face knows of who calls: the kernel's word, and what the request says."""

    uid: int | None
    """Of the peer on a Unix socket; None where the call came over a network."""
    token: str | None = None
    binding: str | None = None
    surface: str = "rpc"


class Actor(Value):
    """Who authenticated: a process of a uid, or the holder of a token."""

    alias: str
    principal: str | None
    """Whose memory it works in; None for uid 0, which runs a Hub and owns no memory."""
    kind: Kind
    verbs: tuple[Verb, ...]
    session: str | None = None
    binding: str | None = None
    """What the call says of its scope."""
    bound_to: str | None = None
    """The binding that a delegated credential was made with."""
    surface: str
    uid: int | None = None
    """Of whoever calls, by the kernel's word; None where the call came over a network."""
    is_owner: bool
    """Whether it is the administrator: the owner of AMUX_HOME, or a person's token of `local`."""

    @property
    def may_vouch(self) -> bool:
        """Tell whether it is a person, who may say that what looks like a secret is none (M77)."""
        return self.kind == "person"

    @property
    def is_delegated(self) -> bool:
        """Tell whether it holds a credential that was minted for one session."""
        return self.kind == "agent"

    @property
    def has_token(self) -> bool:
        """Tell whether a token says who it is, and not the kernel."""
        return self.alias.startswith("token:")


class Scope(Value, kw_only=False):
    """The partition that a call works in: `global` or `principal:<id>`."""

    name: str


GLOBAL = Scope("global")


class Grant(Value, kw_only=False):
    """The answer of access: this actor, for this principal, in this scope, now."""

    actor: Actor
    principal: str
    scope: Scope


def binding_of(hub_id: str, scope: Scope) -> str:
    """Spell the binding of a scope at a Hub: `amux1:<hub-id>:<global | sha256(principal)>`."""
    if scope == GLOBAL:
        return f"amux1:{hub_id}:global"
    principal = scope.name.removeprefix("principal:")
    return f"amux1:{hub_id}:{hashlib.sha256(principal.encode('utf-8')).hexdigest()}"


def hub_id_of(secret: bytes) -> str:
    """Name a Hub by what only it has, giving none of it away."""
    return hashlib.sha256(b"amux hub id\0" + secret).hexdigest()[:16]
