"""Principals, aliases and tokens: who is who.

Rule 1: an alias belongs to one principal; an identity is never merged, chained or guessed (M64).
Rule 2: a wrong token is `unauthenticated`, with no hint about which part was wrong (M63).
Rule 3: no principal is deleted: a disabled one stays, so that its id is never given anew.
Rule 4: a delegated token dies with the token that it was made by: a parent that is revoked,
        expired, forgotten or was never known is none.
Rule 5: this is a value with transitions; `Saved` keeps it.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from amux.core import home
from amux.core.identity import LOCAL, OVERFLOW_UID, ROOT_UID
from amux.disk.tree import Root
from amux.errors import (
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    Unauthenticated,
)
from amux.hub import saved, tokens
from amux.hub.saved import Saved
from amux.hub.tokens import Token

MAX_PRINCIPALS = 1_000  # a team; more is another product
MAX_TOKENS = 10_000  # that live, or did so lately

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
        """Find the live token that this text is, or refuse it as `unauthenticated`.

        A right one whose principal is disabled is `permission_denied`: its holder is known (M65).
        """
        token = self.tokens.get(tokens.id_in(text) or "")
        # Compared in any case, so that the time tells nothing about which part was wrong.
        digest = token.digest if token else "0" * 64
        is_right = hmac.compare_digest(tokens.digest_of(text), digest)
        line = self._line(token) if token and is_right else []
        if token is None or not line or not all(one.is_live(now) for one in line):
            raise Unauthenticated(
                "the token is not valid", hint="get a new one from the Hub's administrator"
            )
        for one in line:
            if not (self.principals.get(one.principal) and self.principals.get(one.acting_for)):
                raise PermissionDenied(
                    "the principal of this token is disabled", hint="ask the administrator"
                )
        return token

    def _line(self, token: Token) -> list[Token]:
        """Give a token and the one that it was made by; nothing where that is none."""
        _, is_token, name = (token.parent or "").partition("token:")
        if not is_token:
            return [token]  # of whom the kernel named: access asks whose uid that is now
        parent = self.tokens.get(name)
        # One step and no more: a delegated credential mints nothing, so none is a parent.
        return [token, parent] if parent is not None and parent.kind != "agent" else []

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

    def without_alias(self, alias: str, principal: str) -> "Identity":
        """Take an alias away: whoever comes by it is unknown from now on."""
        if alias not in self.aliases or principal not in {"", self.aliases[alias]}:
            raise NotFound("there is no such alias", hint="see `amux principal list`")
        kept = {known: who for known, who in self.aliases.items() if known != alias}
        return replace(self, aliases=kept)

    def with_token(self, token: Token) -> "Identity":
        """Keep one more token, and forget those that died long ago."""
        self.require(token.principal)
        self.require(token.acting_for)
        if token.kind in {"service", "runtime"} and self._is_person(token.principal):
            raise InvalidArgument(
                "a service works as a principal of its own, and this one is a person's",
                hint="register for whom it acts: --acts-for",
                argument="principal",
            )
        now = token.created
        kept = {one.id: one for one in self.tokens.values() if one.is_remembered(now)}
        dead = sorted((one.end, one.id) for one in kept.values() if not one.is_live(now))
        for _, name in dead[: max(0, len(kept) + 1 - MAX_TOKENS)]:
            del kept[name]
        if len(kept) >= MAX_TOKENS:
            raise LimitExceeded(f"a Hub keeps at most {MAX_TOKENS} tokens", max=MAX_TOKENS)
        return replace(self, tokens={**kept, token.id: token})

    def _is_person(self, principal: str) -> bool:
        return (
            principal == LOCAL
            or any(
                who == principal and alias.startswith("feishu:")
                for alias, who in self.aliases.items()
            )
            or any(
                token.principal == principal and token.kind == "person"
                for token in self.tokens.values()
            )
        )

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
    if LOCAL not in {name for name, _ in saved.pairs(fields["principals"])}:
        raise ValueError("the administrator's principal is missing")
    identity = Identity()
    for name, is_enabled in saved.pairs(fields["principals"]):
        if not isinstance(is_enabled, bool):
            raise ValueError("a principal is neither true nor false")
        identity = identity.with_principal(name)
        identity = identity if is_enabled else identity.without_work(name)
    for alias, principal in saved.pairs(fields["aliases"]):
        if not isinstance(principal, str):
            raise ValueError("an alias names no principal")
        identity = identity.with_alias(alias, principal)
    read = [tokens.parse(row) for row in saved.rows(fields["tokens"])]
    for token in read:
        identity.require(token.principal)
        identity.require(token.acting_for)
    if len({token.id for token in read}) != len(read):
        raise ValueError("a token stands twice")
    return replace(identity, tokens={token.id: token for token in read})
