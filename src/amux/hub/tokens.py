"""Tokens: what proves who calls where the kernel cannot.

Rule 1: 256 random bits, shown once, kept as SHA-256: nothing to guess, so nothing slow is needed
        to check it (M63).
Rule 2: the text names its kind of thing and checks itself, so that scanners find a leak (M75).
Rule 3: a delegated token can only narrow: fewer verbs, one session, one binding, a short life.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import NoneType

from amux.core.identity import KINDS, VERBS, Kind, Verb
from amux.hub import saved

SECRET_BYTES = 32
DELEGATED_LIFE = timedelta(hours=12)  # a working day; the launcher renews it while it lives (M67)
REMEMBERED = timedelta(days=30)  # a dead token stays so long, so that a list can name it
# Of a dead delegated one its bind record tells more; a launcher may come back next day for it.
DELEGATED_REMEMBERED = timedelta(days=2)

_TEXT = re.compile(r"amux_([0-9a-f]{12})_([A-Za-z0-9_-]{43})_([0-9a-f]{8})")
_ID = re.compile(r"[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS: saved.Kinds = {
    "id": str,
    "kind": str,
    "principal": str,
    "digest": str,
    "verbs": list,
    "label": str,
    "acts_for": (str, NoneType),
    "session": (str, NoneType),
    "binding": (str, NoneType),
    "uid": (int, NoneType),
    "parent": (str, NoneType),
    "created": str,
    "expires": (str, NoneType),
    "revoked": (str, NoneType),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is kept of a token: everything but the token."""

    id: str
    kind: Kind
    principal: str
    digest: str
    verbs: tuple[Verb, ...] = VERBS
    label: str = ""
    acts_for: str | None = None
    session: str | None = None
    binding: str | None = None
    uid: int | None = None
    parent: str | None = None
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    @property
    def alias(self) -> str:
        """Name the token as an actor."""
        return f"token:{self.id}"

    @property
    def acting_for(self) -> str:
        """Tell whose memory it works in: its own principal's, or the one it is registered for."""
        return self.acts_for or self.principal

    @property
    def end(self) -> datetime:
        """Tell when it died, or will."""
        return self.revoked or self.expires or datetime.max.replace(tzinfo=self.created.tzinfo)

    def is_live(self, now: datetime) -> bool:
        """Tell whether it is neither revoked nor expired."""
        return self.revoked is None and now < self.end

    def is_remembered(self, now: datetime) -> bool:
        """Tell whether it lives, or died not long ago."""
        kept = DELEGATED_REMEMBERED if self.kind == "agent" else REMEMBERED
        return self.is_live(now) or now - self.end < kept


def mint(random_bytes: Callable[[int], bytes]) -> tuple[str, str]:
    """Make a token's id and its text; only the caller of this ever sees the text."""
    name = random_bytes(6).hex()
    secret = base64.urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode("ascii").rstrip("=")
    return name, f"amux_{name}_{secret}_{zlib.crc32(secret.encode('ascii')):08x}"


def id_in(text: str) -> str | None:
    """Find the id in a token's text; None where it is no such text."""
    found = _TEXT.fullmatch(text)
    return found[1] if found else None


def digest_of(text: str) -> str:
    """Give what is kept of a token's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def plain(token: Token) -> dict[str, object]:
    """Give the saved form."""
    return {name: getattr(token, name) for name in _FIELDS} | {
        "verbs": list(token.verbs),
        "created": saved.spelled(token.created),
        "expires": saved.spelled(token.expires),
        "revoked": saved.spelled(token.revoked),
    }


def parse(found: object) -> Token:
    """Read the saved form; `ValueError` says what is wrong with it."""
    fields = saved.record(found, _FIELDS, "a token")
    text = {name: value for name, value in fields.items() if isinstance(value, str)}
    if not _ID.fullmatch(text["id"]) or not _DIGEST.fullmatch(text["digest"]):
        raise ValueError("a token has a malformed id or digest")
    created = saved.moment(text["created"])
    if created is None:
        raise ValueError("a token has no time of creation")
    token = Token(
        id=text["id"],
        kind=kind_of(text["kind"]),
        principal=text["principal"],
        digest=text["digest"],
        verbs=verbs_of(fields["verbs"]),
        label=text["label"],
        acts_for=text.get("acts_for"),
        session=text.get("session"),
        binding=text.get("binding"),
        uid=fields["uid"] if isinstance(fields["uid"], int) else None,
        parent=text.get("parent"),
        created=created,
        expires=saved.moment(fields["expires"]),
        revoked=saved.moment(fields["revoked"]),
    )
    is_whole = bool(token.session and token.binding and token.parent and token.expires)
    if is_whole != (token.kind == "agent"):
        raise ValueError("a token has what only a delegated one has, or lacks it")
    return token


def verbs_of(found: object) -> tuple[Verb, ...]:
    """Read the verbs of a credential; `ValueError` where one is unknown."""
    verbs = found if isinstance(found, list | tuple) else []
    if any(verb not in VERBS for verb in verbs):
        raise ValueError("there is no such verb")
    return tuple(verb for verb in VERBS if verb in verbs)


def kind_of(text: str) -> Kind:
    """Read a kind of token; `ValueError` where there is no such kind."""
    for kind in KINDS:
        if kind == text:
            return kind
    raise ValueError("there is no such kind of token")
