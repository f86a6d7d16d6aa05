"""Principals, aliases and tokens: who is who.

Rule 1: an alias belongs to one principal; an identity is never merged, chained or guessed (M64).
Rule 2: a wrong token is `unauthenticated`, with no hint about which part was wrong (M63).
Rule 3: nothing is deleted: a disabled principal stays, so that its id is never given anew.
Rule 4: this is a value with transitions; `Saved` keeps it.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from amux.core import home
from amux.core.identity import LOCAL, OVERFLOW_UID, ROOT_UID
from amux.disk.tree import Root
from amux.errors import InvalidArgument, LimitExceeded, NotFound, Unauthenticated
from amux.hub import saved, tokens
from amux.hub.saved import Saved
from amux.hub.tokens import Token

MAX_PRINCIPALS = 1_000  # a team; more is another product
MAX_TOKENS = 10_000

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ALIAS = re.compile(r"unix:(0|[1-9][0-9]{0,9})|feishu:[A-Za-z0-9_-]{1,128}")
_NEVER = {f"unix:{ROOT_UID}", f"unix:{OVERFLOW_UID}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """All that a Hub knows about who is who."""

    principals: Mapping[str, bool] = field(default_factory=lambda: {LOCAL: True})
    """Principal -> whether it may work."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, Token] = field(default_factory=dict)

    def principal_of(self, alias: str) -> str | None:
        """Find the principal of an alias, if it may work."""
        found = self.aliases.get(alias)
        return found if found is not None and self.principals.get(found) else None

    def authenticate(self, text: str, now: datetime) -> Token:
        """Find the live token that this text is, or refuse it as `unauthenticated`."""
        token = self.tokens.get(tokens.id_in(text) or "")
        # Compared in any case, so that the time tells nothing about which part was wrong.
        digest = token.digest if token else "0" * 64
        is_right = hmac.compare_digest(tokens.digest_of(text), digest)
        if token is None or not is_right or not self._is_usable(token, now):
            raise Unauthenticated(
                "the token is not valid", hint="get a new one from the Hub's administrator"
            )
        return token

    def _is_usable(self, token: Token, now: datetime) -> bool:
        parent = self.tokens.get((token.parent or "").removeprefix("token:"))
        return (
            token.is_live(now)
            and (parent is None or self._is_usable(parent, now))
            and bool(self.principals.get(token.principal))
            and bool(self.principals.get(token.effective_principal))
        )

    def with_principal(self, name: str) -> "Identity":
        """Add a principal, or enable it again."""
        if not _NAME.fullmatch(name):
            raise InvalidArgument(
                "a principal is 1 to 64 lower-case letters, digits, dots, dashes or underscores",
                argument="principal",
            )
        if name not in self.principals and len(self.principals) >= MAX_PRINCIPALS:
            raise LimitExceeded(
                f"a Hub knows at most {MAX_PRINCIPALS} principals", max=MAX_PRINCIPALS
            )
        return replace(self, principals={**self.principals, name: True})

    def without_work(self, name: str) -> "Identity":
        """Disable a principal: nothing of it is deleted, nothing of it works."""
        self.require(name)
        if name == LOCAL:
            raise InvalidArgument(
                "the administrator's principal stays enabled", argument="principal"
            )
        return replace(self, principals={**self.principals, name: False})

    def with_alias(self, alias: str, principal: str) -> "Identity":
        """Give a principal one more alias; one that another has is refused."""
        self.require(principal)
        if not _ALIAS.fullmatch(alias):
            raise InvalidArgument("an alias is unix:<uid> or feishu:<open id>", argument="alias")
        if alias in _NEVER:
            raise InvalidArgument(
                "uid 0 and the overflow uid are never a principal", argument="alias"
            )
        if self.aliases.get(alias, principal) != principal:
            raise InvalidArgument(
                "the alias belongs to another principal",
                hint="take it away there first",
                argument="alias",
            )
        return replace(self, aliases={**self.aliases, alias: principal})

    def without_alias(self, alias: str) -> "Identity":
        """Take an alias away: whoever comes by it is unknown from now on."""
        if alias not in self.aliases:
            raise NotFound("there is no such alias", hint="see `amux principal list`")
        kept = {known: who for known, who in self.aliases.items() if known != alias}
        return replace(self, aliases=kept)

    def with_token(self, token: Token) -> "Identity":
        """Keep one more token, and forget those that died long ago."""
        self.require(token.principal)
        self.require(token.effective_principal)
        kept = {
            known.id: known
            for known in self.tokens.values()
            if token.created - known.end < tokens.REMEMBERED
        }
        if len(kept) >= MAX_TOKENS:
            raise LimitExceeded(f"a Hub keeps at most {MAX_TOKENS} tokens", max=MAX_TOKENS)
        return replace(self, tokens={**kept, token.id: token})

    def with_revoked(self, name: str, now: datetime) -> "Identity":
        """Revoke a token; one that is dead already stays as it is."""
        token = self._token(name)
        if token.revoked is not None:
            return self
        return replace(self, tokens={**self.tokens, name: replace(token, revoked=now)})

    def with_renewed(self, name: str, expires: datetime) -> "Identity":
        """Give a delegated token a longer life and nothing else (M67)."""
        renewed = replace(self._token(name), expires=expires)
        return replace(self, tokens={**self.tokens, name: renewed})

    def require(self, principal: str) -> None:
        """Refuse a principal that is not known."""
        if principal not in self.principals:
            raise NotFound("there is no such principal", hint="see `amux principal list`")

    def _token(self, name: str) -> Token:
        token = self.tokens.get(name)
        if token is None:
            raise NotFound("there is no such token", hint="see `amux token list`")
        return token


def opened(root: Root) -> Saved[Identity]:
    """Open the identity of a root; only `local` is known where nothing was ever saved."""
    path = f"{home.HUB_DIR}/{home.IDENTITY_FILE}"
    return Saved(root, path, parse=parse, plain=plain, default=Identity())


def plain(identity: Identity) -> dict[str, object]:
    """Give the saved form."""
    return {
        "principals": dict(identity.principals),
        "aliases": dict(identity.aliases),
        "tokens": [tokens.plain(token) for token in identity.tokens.values()],
    }


def parse(found: object) -> Identity:
    """Read the saved form; `ValueError`, or a refusal, says what is wrong with it."""
    fields = saved.record(found, {"principals": dict, "aliases": dict, "tokens": list}, "it")
    identity = Identity()
    for name, is_enabled in saved.pairs(fields["principals"]):
        if not isinstance(is_enabled, bool):
            raise ValueError("a principal is neither true nor false")
        identity = identity.with_principal(name)
        identity = identity if is_enabled else identity.without_work(name)
    for alias, principal in saved.pairs(fields["aliases"]):
        identity = identity.with_alias(alias, str(principal))
    read = [tokens.parse(row) for row in saved.rows(fields["tokens"])]
    for token in read:
        identity.require(token.principal)
        identity.require(token.effective_principal)
    if len({token.id for token in read}) != len(read):
        raise ValueError("a token stands twice")
    return replace(identity, tokens={token.id: token for token in read})
