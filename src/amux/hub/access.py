"""Who may do what: an actor and a purpose become a grant, or a refusal.

Rule 1: every call is authenticated, then authorised, then delegated (M63).
Rule 2: the uid that owns AMUX_HOME is the administrator, with the principal `local` (M64).
Rule 3: nobody else is known yet; whoever is not known is refused, never given `global`.
Rule 4: while memory is off, data calls are refused and files stay untouched (M7).
"""

from amux.core.identity import GLOBAL, LOCAL, Grant, PeerActor, Scope
from amux.errors import MemoryDisabled, PermissionDenied
from amux.hub.settings import Policy, Settings


class Access:
    """The Hub's gate, with the settings that were in force at its start."""

    def __init__(self, owner_uid: int, effective: Settings) -> None:
        self._owner_uid = owner_uid
        self._effective = effective

    def administrator(self, actor: PeerActor) -> Grant:
        """Admit the administrator alone."""
        if actor.uid != self._owner_uid:
            raise PermissionDenied(
                "this caller is not known to the Hub",
                hint="ask the owner of this AMUX_HOME",
            )
        return Grant(
            actor=actor,
            principal=LOCAL,
            scope=scope_of(self._effective.isolation_policy, LOCAL),
            is_administrator=True,
            may_vouch=True,  # the owner's own socket (M77)
        )

    def data(self, actor: PeerActor) -> Grant:
        """Admit a caller to the documents of its scope."""
        grant = self.administrator(actor)
        if not self._effective.memory_enabled:
            raise MemoryDisabled(
                "agent memory is switched off",
                hint="an administrator turns it on with `amux system config set memory.enabled "
                "true`, then `amux hub restart`",
            )
        return grant


def scope_of(policy: Policy, principal: str) -> Scope:
    """Derive the scope; no argument, header or path ever has a say (M65)."""
    if policy == "per_principal":
        return Scope(f"principal:{principal}")
    return GLOBAL
