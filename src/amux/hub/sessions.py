"""Binding sessions: once, renewed while they live, ended with their run.

Rule 1: a binding is made once for a session and never changes (M66).
Rule 2: a delegated credential can do no more than who asked for it, and cannot mint.
Rule 3: renewing is no new binding: it is allowed while memory is off, and changes neither
        binding nor verbs (M67).
Rule 4: a session is renewed, resumed and ended by the principal that bound it or that it is of,
        or by the administrator; to everybody else it does not exist (M72).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from amux.core.identity import VERBS, Actor, Verb
from amux.errors import AmuxError, InvalidArgument, NotFound, PermissionDenied
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
        grant = self._access.new_binding(actor)
        if isolation and isolation not in ISOLATIONS:
            raise InvalidArgument(
                "there is no such isolation",
                hint="use " + ", ".join(ISOLATIONS),
                argument="isolation",
            )
        now = self._now()
        whose, run_as = self._whose(actor, grant.principal, uid if is_delegated else None)
        if isolation and is_delegated:  # a launch says so; others start no process
            self._access.require_apart(actor.uid if run_as is None else run_as, whose)
        record = BindRecord(
            session=session,
            agent=agent,
            principal=whose,
            binding=self._access.binding(whose),
            isolation=isolation or "none",
            protocol_version=protocol_version,
            bound_by=grant.principal,
            verbs=_verbs(verbs, actor),
            uid=run_as,
            token_id=None,
            bound=now,
        )
        if not is_delegated:
            self._bindings.change(lambda known: known.with_new(record))
            return _answer(record, None, None)
        self._bindings.value.with_new(record)  # refused before a credential is made for it
        token, text = self._mint(actor, record, now)
        record = replace(record, token_id=token.id)
        self._keep(token, lambda known: known.with_new(record))
        return _answer(record, text, token)

    def renew(self, actor: Actor, session: str, *, is_resumed: bool) -> dict[str, object]:
        """Give a session's credential another life; a resumed session gets another credential."""
        record = self._own(actor, session)
        now = self._now()
        if is_resumed:
            return self._resume(actor, record, now)
        if record.token_id is None:
            self._bindings.change(lambda known: known.with_renewed(record.key, now))
            return _answer(record, None, None)
        name = record.token_id
        token = self._identity.value.tokens.get(name)
        if record.ended is not None or token is None or token.revoked is not None:
            raise NotFound("the session's credential is gone", hint="resume the session")
        expires = now + tokens.DELEGATED_LIFE
        self._identity.change(lambda known: known.with_renewed(name, expires))
        self._bindings.change(lambda known: known.with_renewed(record.key, now))
        return _answer(record, None, self._identity.value.tokens[name])

    def end(self, actor: Actor, session: str) -> dict[str, object]:
        """End a session: its credential works no more."""
        record = self._own(actor, session)
        now = self._now()
        self._revoke(record, now)
        self._bindings.change(lambda known: known.with_ended(record.key, now))
        return {"session": session, "ended": True}

    def known(self) -> list[dict[str, object]]:
        """List the bind records, the newest first."""
        found = self._bindings.value.records.values()
        return [records.plain_record(record) for record in reversed(list(found))]

    def _resume(self, actor: Actor, record: BindRecord, now: datetime) -> dict[str, object]:
        """Go on with a session: the binding and the verbs that it had, a credential that is new.

        The launcher of the resumed run does not have the old one, which is revoked.
        """
        if record.token_id is None:
            self._bindings.change(lambda known: known.with_resumed(record.key, now, None))
            return _answer(record, None, None)
        self._whose(actor, record.principal, record.uid)
        runs_as = actor.uid if record.uid is None else record.uid
        self._access.require_apart(runs_as, record.principal)
        if not set(record.verbs) <= set(actor.verbs):
            raise PermissionDenied("a credential cannot give more than it has")
        self._revoke(record, now)
        token, text = self._mint(actor, record, now)
        self._keep(token, lambda known: known.with_resumed(record.key, now, token.id))
        return _answer(record, text, token)

    def _whose(self, actor: Actor, principal: str, uid: int | None) -> tuple[str, int | None]:
        """Tell whose memory a credential is for, and which uid may use it."""
        own = None if actor.has_token else int(actor.alias.removeprefix("unix:"))
        if uid is None or uid == own:
            return principal, own
        # A launch as another user: for that user's own principal, never for the caller's.
        registered = self._access.principal_of_uid(uid)
        if registered is None or registered != actor.principal:
            self._access.administrator(actor)
        if registered is None:
            raise PermissionDenied("the uid is no registered principal's", uid=uid)
        return registered, uid

    def _mint(self, actor: Actor, record: BindRecord, now: datetime) -> tuple[Token, str]:
        name, text = tokens.mint(self._random_bytes)
        token = Token(
            id=name,
            kind="agent",
            principal=record.principal,
            digest=tokens.digest_of(text),
            verbs=record.verbs,
            session=record.session,
            binding=record.binding,
            uid=record.uid,
            parent=actor.alias,
            created=now,
            expires=now + tokens.DELEGATED_LIFE,
        )
        return token, text

    def _keep(self, token: Token, transition: Callable[[Bindings], Bindings]) -> None:
        """Keep a credential, then the record that names it; where that fails, neither."""
        self._identity.change(lambda known: known.with_token(token))
        try:
            self._bindings.change(transition)
        except AmuxError:
            # Nobody has its text, so one that cannot be revoked is no danger either.
            with suppress(AmuxError):
                self._identity.change(lambda known: known.with_revoked(token.id, token.created))
            raise

    def _revoke(self, record: BindRecord, now: datetime) -> None:
        name = record.token_id
        if name is not None and name in self._identity.value.tokens:
            self._identity.change(lambda known: known.with_revoked(name, now))

    def _own(self, actor: Actor, session: str) -> BindRecord:
        grant = self._access.binder(actor)
        return self._bindings.value.of(grant.principal, session, is_administrator=actor.is_owner)


def _answer(record: BindRecord, text: str | None, token: Token | None) -> dict[str, object]:
    return {
        "session": record.session,
        "principal": record.principal,
        "binding": record.binding,
        "credential": text,
        "expires": token.expires.isoformat() if token and token.expires else None,
    }


def _verbs(text: str, actor: Actor) -> tuple[Verb, ...]:
    """Read the verbs that are asked for; never more than the asker's own (M75)."""
    wanted = [word.strip() for word in text.split(",") if word.strip()] or list(actor.verbs)
    if not set(wanted) <= set(VERBS):
        raise InvalidArgument("a verb is read or write", argument="verbs")
    if not set(wanted) <= set(actor.verbs):
        raise PermissionDenied("a credential cannot give more than it has")
    return tuple(verb for verb in VERBS if verb in wanted)
