"""Binding sessions: once, renewed while they live, ended with their run.

Rule 1: a binding is made once for a session and never changes (M66).
Rule 2: a delegated credential can do no more than who asked for it, and cannot mint.
Rule 3: renewing is no new binding: it is allowed while memory is off, and changes neither
        binding nor verbs (M67).
Rule 4: a session is renewed and ended by the principal that bound it, or by the administrator.
"""

from collections.abc import Callable
from datetime import datetime

from amux.core.identity import LOCAL, VERBS, Actor, Verb
from amux.errors import InvalidArgument, NotFound, PermissionDenied
from amux.hub import bindings as records
from amux.hub import tokens
from amux.hub.access import Access
from amux.hub.bindings import Bindings, BindRecord
from amux.hub.credentials import Identity
from amux.hub.saved import Saved
from amux.hub.tokens import Token

ISOLATIONS = ("none", "private-home", "linux-dac")


class Sessions:
    """The bind records of one Hub, and the credentials that were minted with them."""

    def __init__(
        self,
        *,
        access: Access,
        identity: Saved[Identity],
        bindings: Saved[Bindings],
        now: Callable[[], datetime],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._access = access
        self._identity = identity
        self._bindings = bindings
        self._now = now
        self._random_bytes = random_bytes

    def bind(
        self,
        actor: Actor,
        *,
        session: str,
        agent: str,
        isolation: str,
        protocol_version: int,
        is_delegated: bool,
        verbs: str,
        uid: int | None,
    ) -> dict[str, object]:
        """Bind a new session, and mint its credential if one is asked for."""
        grant, binding = self._access.new_binding(actor)
        if isolation not in ISOLATIONS:
            raise InvalidArgument(
                "there is no such isolation",
                hint="use " + ", ".join(ISOLATIONS),
                argument="isolation",
            )
        now = self._now()
        token, text = None, None
        if is_delegated:
            token, text = self._mint(actor, session, binding, _verbs(verbs, actor), uid, now)
        record = BindRecord(
            session=session,
            agent=agent,
            principal=token.principal if token else grant.principal,
            binding=binding,
            isolation=isolation,
            protocol_version=protocol_version,
            token_id=token.id if token else None,
            bound=now,
        )
        self._bindings.change(lambda known: known.with_new(record))
        if token is not None:
            minted = token
            self._identity.change(lambda known: known.with_token(minted))
        return {
            "session": session,
            "binding": binding,
            "credential": text,
            "expires": token.expires.isoformat() if token and token.expires else None,
        }

    def renew(self, actor: Actor, session: str) -> dict[str, object]:
        """Give a session's credential another life."""
        record = self._own(actor, session)
        now = self._now()
        expires = now + tokens.DELEGATED_LIFE
        self._bindings.change(lambda known: known.with_renewed(session, now))
        if record.token_id is not None:
            name = record.token_id
            token = self._identity.value.tokens.get(name)
            if token is None or token.revoked is not None:
                raise NotFound("the session's credential is gone", hint="start a new session")
            self._identity.change(lambda known: known.with_renewed(name, expires))
        return {"session": session, "binding": record.binding, "expires": expires.isoformat()}

    def end(self, actor: Actor, session: str) -> dict[str, object]:
        """End a session: its credential works no more."""
        record = self._own(actor, session)
        now = self._now()
        if record.token_id is not None and record.token_id in self._identity.value.tokens:
            name = record.token_id
            self._identity.change(lambda known: known.with_revoked(name, now))
        self._bindings.change(lambda known: known.with_ended(session, now))
        return {"session": session, "ended": True}

    def known(self) -> list[dict[str, object]]:
        """List the bind records, the newest first."""
        found = self._bindings.value.records.values()
        return [records.plain_record(record) for record in reversed(list(found))]

    def _mint(
        self,
        actor: Actor,
        session: str,
        binding: str,
        verbs: tuple[Verb, ...],
        uid: int | None,
        now: datetime,
    ) -> tuple[Token, str]:
        principal = actor.principal or LOCAL
        own_uid = actor.alias.removeprefix("unix:") if actor.alias.startswith("unix:") else None
        if uid is not None and str(uid) != own_uid:
            # A launch as another user: for that user's own principal, never for the caller's.
            self._access.administrator(actor)
            registered = self._identity.value.principal_of(f"unix:{uid}")
            if registered is None:
                raise PermissionDenied("the uid is no registered principal's", uid=uid)
            principal = registered
        name, text = tokens.mint(self._random_bytes)
        token = Token(
            id=name,
            kind="agent",
            principal=principal,
            digest=tokens.digest_of(text),
            verbs=verbs,
            session=session,
            binding=binding,
            uid=uid if uid is not None else (int(own_uid) if own_uid else None),
            parent=actor.alias if actor.alias.startswith("token:") else None,
            created=now,
            expires=now + tokens.DELEGATED_LIFE,
        )
        return token, text

    def _own(self, actor: Actor, session: str) -> BindRecord:
        grant = self._access.binder(actor)
        record = self._bindings.value.records.get(session)
        # Somebody else's session is no different from none (M71).
        if record is None or (record.principal != grant.principal and not actor.is_owner):
            raise NotFound("no session of this id was bound here")
        return record


def _verbs(text: str, actor: Actor) -> tuple[Verb, ...]:
    """Read the verbs that are asked for; never more than the asker's own (M75)."""
    wanted = [word.strip() for word in text.split(",") if word.strip()] or list(actor.verbs)
    if not set(wanted) <= set(VERBS):
        raise InvalidArgument("a verb is read or write", argument="verbs")
    if not set(wanted) <= set(actor.verbs):
        raise PermissionDenied("a credential cannot give more than it has")
    return tuple(verb for verb in VERBS if verb in wanted)
