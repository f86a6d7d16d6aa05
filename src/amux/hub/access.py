"""Who may do what: a caller becomes an actor, an actor and a purpose a grant, or a refusal.

Rule 1: every call is authenticated, then authorised, then delegated (M63).
Rule 2: a token, if sent, decides alone; without one the kernel's word does, on a Unix socket;
        elsewhere there is no way in without a token.
Rule 3: the uid that owns AMUX_HOME is the administrator, with the principal `local` (M64). No
        other alias makes one of it, and none takes it away.
Rule 4: whoever is not known is refused under every policy; nothing falls back to `global`.
Rule 5: while memory is off, data calls and new bindings are refused and files untouched (M7).
"""

from collections.abc import Callable
from datetime import datetime

from amux.core.identity import (
    GLOBAL,
    LOCAL,
    OVERFLOW_UID,
    ROOT_UID,
    VERBS,
    Actor,
    Caller,
    Grant,
    Scope,
    Verb,
    binding_of,
)
from amux.errors import (
    BindingMismatch,
    BindingRequired,
    MemoryDisabled,
    PermissionDenied,
    Unauthenticated,
)
from amux.hub.credentials import Identity
from amux.hub.saved import Saved
from amux.hub.settings import Policy, Settings
from amux.hub.tokens import Token


class Access:
    """The Hub's gate, with the settings that were in force at its start."""

    def __init__(
        self,
        *,
        owner_uid: int,
        hub_id: str,
        effective: Settings,
        identity: Saved[Identity],
        now: Callable[[], datetime],
    ) -> None:
        self._owner_uid = owner_uid
        self._hub_id = hub_id
        self._effective = effective
        self._identity = identity
        self._now = now

    def authenticate(self, caller: Caller) -> Actor:
        """Find out who calls, or refuse who cannot prove it."""
        if caller.token is not None:
            token = self._identity.value.authenticate(caller.token, self._now())
            return self._of_token(token, caller)
        if caller.uid is None:
            raise Unauthenticated(
                "a token is required here", hint="send it as Authorization: Bearer"
            )
        return self._of_uid(caller.uid, caller)

    def data(self, actor: Actor, verb: Verb) -> Grant:
        """Admit an actor to the documents of its scope."""
        grant = self._grant(actor)
        self._require_enabled()
        self._require_binding(actor, grant.scope)
        if verb not in actor.verbs:
            raise PermissionDenied(
                f"this credential may not {verb}",
                hint="it was given fewer verbs when it was made",
                verb=verb,
            )
        return grant

    def binder(self, actor: Actor) -> Grant:
        """Admit an actor that binds sessions: anybody with a memory, but no delegated agent."""
        if actor.is_delegated:
            raise PermissionDenied("a delegated credential binds nothing")
        return self._grant(actor)

    def new_binding(self, actor: Actor) -> Grant:
        """Admit a new binding."""
        grant = self.binder(actor)
        self._require_enabled()
        return grant

    def binding(self, principal: str) -> str:
        """Spell the binding that a session of a principal is given now."""
        return binding_of(self._hub_id, scope_of(self._effective.isolation_policy, principal))

    def require_apart(self, uid: int | None, principal: str) -> None:
        """Refuse an agent that would run as the uid of another principal than its own (R30).

        File permissions would keep it from nothing of that one's. Without a uid it runs on
        another machine, which is another's business.
        """
        if self._effective.isolation_policy != "per_principal" or uid is None:
            return
        if self.principal_of_uid(uid) != principal:
            raise PermissionDenied(
                "the agent would run as a user who is another principal",
                hint="start it with --isolation linux-dac --user U",
                step="isolation",
            )

    def principal_of_uid(self, uid: int) -> str | None:
        """Tell whose uid it is, if it is that of somebody who may work."""
        if uid == OVERFLOW_UID:
            return None
        if uid == self._owner_uid:
            return LOCAL
        return self._identity.value.principal_of(f"unix:{uid}")

    def operator(self, actor: Actor) -> Actor:
        """Admit who runs the Hub: the administrator, or uid 0 of this machine."""
        if actor.is_owner or actor.alias == f"unix:{ROOT_UID}":
            return actor
        raise _not_administrator()

    def administrator(self, actor: Actor) -> Actor:
        """Admit the administrator alone."""
        if actor.is_owner:
            return actor
        raise _not_administrator()

    def _of_uid(self, uid: int, caller: Caller) -> Actor:
        principal = self.principal_of_uid(uid)
        if principal is None and uid != ROOT_UID:
            raise PermissionDenied(
                "this caller is not known to the Hub",
                hint="the administrator makes it known: `amux principal alias`",
            )
        return Actor(
            alias=f"unix:{uid}",
            principal=principal,
            kind="person",
            verbs=VERBS,
            binding=caller.binding,
            surface=caller.surface,
            uid=uid,
            is_owner=uid == self._owner_uid,
        )

    def _of_token(self, token: Token, caller: Caller) -> Actor:
        # Stolen from a run directory, a delegated token is of no use to another uid (M46).
        if token.uid is not None and caller.uid is not None and token.uid != caller.uid:
            raise PermissionDenied("the token was made for another uid")
        if token.uid is not None and self.principal_of_uid(token.uid) != token.principal:
            raise PermissionDenied("the uid of the token is not its principal's any more")
        return Actor(
            alias=token.alias,
            principal=token.acting_for,
            kind=token.kind,
            verbs=token.verbs,
            session=token.session,
            binding=caller.binding,
            bound_to=token.binding,
            surface=caller.surface,
            uid=caller.uid,
            is_owner=token.kind == "person" and token.acting_for == LOCAL,
        )

    def _grant(self, actor: Actor) -> Grant:
        if actor.principal is None:
            raise PermissionDenied(
                "uid 0 runs a Hub and owns no memory", hint="call as the user whose memory it is"
            )
        scope = scope_of(self._effective.isolation_policy, actor.principal)
        return Grant(actor, actor.principal, scope)

    def _require_enabled(self) -> None:
        if not self._effective.memory_enabled:
            raise MemoryDisabled(
                "agent memory is switched off",
                hint="an administrator turns it on with `amux system config set memory.enabled "
                "true`, then `amux hub restart`",
            )

    def _require_binding(self, actor: Actor, scope: Scope) -> None:
        if actor.is_delegated and actor.binding is None:
            raise BindingRequired(
                "a delegated credential must send its binding",
                hint="send AMUX_MEMORY_BINDING as the header Amux-Memory-Binding",
            )
        # What a call says can be made up; what its credential was made with cannot (M69, M70).
        for said in (actor.binding, actor.bound_to):
            if said is not None and said != binding_of(self._hub_id, scope):
                raise BindingMismatch(
                    "the binding is not the scope that is in force now", hint="start a new session"
                )


def scope_of(policy: Policy, principal: str) -> Scope:
    """Derive the scope; no argument, header or path ever has a say (M65)."""
    if policy == "per_principal":
        return Scope(f"principal:{principal}")
    return GLOBAL


def _not_administrator() -> PermissionDenied:
    return PermissionDenied("this is for the administrator", hint="ask the owner of this AMUX_HOME")
