"""Principals, aliases and tokens, as the administrator changes them.

Rule 1: a token is shown once, in the answer to its making, and never again (M63).
Rule 2: acting for another principal is a registration by the administrator, never a name in a
        request (M68).
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from amux.core.identity import LOCAL
from amux.errors import InvalidArgument
from amux.hub import tokens
from amux.hub.credentials import Identity
from amux.hub.saved import Saved
from amux.hub.tokens import Token

DAYS_MAX = 3650


class People:
    """Who is who at one Hub."""

    def __init__(
        self,
        *,
        identity: Saved[Identity],
        owner_uid: int,
        now: Callable[[], datetime],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._identity = identity
        self._owner_alias = f"unix:{owner_uid}"
        self._now = now
        self._random_bytes = random_bytes

    def add(self, principal: str) -> dict[str, object]:
        """Make a principal known, or enable it again."""
        self._identity.change(lambda known: known.with_principal(principal))
        return {"principal": principal, "enabled": True}

    def disable(self, principal: str) -> dict[str, object]:
        """Disable a principal: its aliases and tokens work no more, its documents stay."""
        self._identity.change(lambda known: known.without_work(principal))
        return {"principal": principal, "enabled": False}

    def alias(self, principal: str, alias: str) -> dict[str, object]:
        """Give a principal one more alias; that of the root's owner is the administrator's."""
        if alias == self._owner_alias:
            raise InvalidArgument(
                "the uid that owns AMUX_HOME is the administrator, always", argument="alias"
            )
        self._identity.change(lambda known: known.with_alias(alias, principal))
        return {"principal": principal, "alias": alias}

    def unalias(self, alias: str, principal: str) -> dict[str, object]:
        """Take an alias away; `principal`, if given, is whose it is thought to be."""
        self._identity.change(lambda known: known.without_alias(alias, principal))
        return {"alias": alias, "removed": True}

    def principals(self) -> list[dict[str, object]]:
        """List the principals with their aliases."""
        known = self._identity.value
        return [
            {
                "principal": name,
                "enabled": is_enabled,
                "aliases": sorted(
                    [alias for alias, who in known.aliases.items() if who == name]
                    + [self._owner_alias] * (name == LOCAL)
                ),
            }
            for name, is_enabled in sorted(known.principals.items())
        ]

    def create_token(
        self, *, kind: str, principal: str, acts_for: str, label: str, days: int
    ) -> dict[str, object]:
        """Make a token of a person, a service or a runtime."""
        try:
            kind_found = tokens.kind_of(kind)
        except ValueError as error:
            raise InvalidArgument(
                "a token is of kind person, service or runtime", argument="kind"
            ) from error
        if kind_found == "agent":
            raise InvalidArgument("an agent's token is made with its binding", argument="kind")
        if acts_for and kind_found == "person":
            raise InvalidArgument("a person acts for nobody else", argument="acts_for")
        if not 0 <= days <= DAYS_MAX:
            raise InvalidArgument(f"days are 0 (for ever) to {DAYS_MAX}", argument="days")
        if not principal and kind_found != "person":
            raise InvalidArgument("a service works as a principal of its own", argument="principal")
        now = self._now()
        name, text = tokens.mint(self._random_bytes)
        token = Token(
            id=name,
            kind=kind_found,
            principal=principal or LOCAL,
            digest=tokens.digest_of(text),
            label=label[:200],
            acts_for=acts_for or None,
            created=now,
            expires=now + timedelta(days=days) if days else None,
        )
        self._identity.change(lambda known: known.with_token(token))
        return self._shown(token) | {"token": text}

    def revoke_token(self, name: str) -> dict[str, object]:
        """Revoke a token, and with it what it has delegated."""
        now = self._now()
        self._identity.change(lambda known: known.with_revoked(name, now))
        return {"id": name, "revoked": True}

    def tokens(self) -> list[dict[str, object]]:
        """List the tokens, the newest first; the tokens themselves are known to nobody."""
        return [
            self._shown(token) for token in reversed(list(self._identity.value.tokens.values()))
        ]

    def _shown(self, token: Token) -> dict[str, object]:
        fields = tokens.plain(token)
        del fields["digest"]
        return fields | {"live": token.is_live(self._now())}
