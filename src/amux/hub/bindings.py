"""Bind records: which session was bound to which scope, renewed, and ended.

Rule 1: a binding names its Hub and its scope and is no secret: it is compared, never trusted (M66).
Rule 2: a record is history as well as state: an ended one stays for a while, so that "from which
        session" can be answered (M73).
Rule 3: a session's name is its binder's own: what others named so is neither found nor in the
        way (M71).
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import NoneType
from typing import TypeAlias

from amux.core import home
from amux.core.identity import Verb
from amux.disk.tree import Root
from amux.errors import InvalidArgument, NotFound, PermissionDenied
from amux.hub import saved, tokens
from amux.hub.saved import Saved

REMEMBERED = timedelta(days=90)  # since it was last heard of
MAX_RECORDS = 10_000  # a hundred sessions a day for the time that they are remembered

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_AGENT = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindRecord:
    """What the Hub keeps of one binding."""

    session: str
    agent: str
    principal: str
    binding: str
    isolation: str
    protocol_version: int
    bound_by: str
    """The principal that bound it: the session's own, or an administrator's for another uid."""
    verbs: tuple[Verb, ...] = ()
    uid: int | None = None
    token_id: str | None
    """Its delegated credential; None where the session was given none."""
    bound: datetime
    renewed: datetime | None = None
    ended: datetime | None = None

    @property
    def key(self) -> "Key":
        """Name it at this Hub."""
        return self.bound_by, self.session

    @property
    def heard(self) -> datetime:
        """Tell when it was last heard of."""
        return max(moment for moment in (self.bound, self.renewed, self.ended) if moment)


Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Bindings:
    """All bind records, by who bound a session and its name."""

    records: Mapping[Key, BindRecord] = field(default_factory=dict)

    def with_new(self, record: BindRecord) -> "Bindings":
        """Keep a new record; a session is bound once and never again (M66)."""
        if not _SESSION.fullmatch(record.session):
            raise InvalidArgument("a session id is 1-64 plain characters", argument="session")
        if not _AGENT.fullmatch(record.agent):
            raise InvalidArgument("an agent id is lower-case words and dashes", argument="agent")
        if record.key in self.records:
            raise InvalidArgument(
                "the session is bound already",
                hint="renew it, or bind a new session",
                argument="session",
            )
        kept = {
            known.key: known
            for known in self.records.values()
            if record.bound - known.heard < REMEMBERED
        }
        if len(kept) >= MAX_RECORDS:
            del kept[_dispensable(kept)]
        return Bindings({**kept, record.key: record})

    def with_renewed(self, key: Key, now: datetime) -> "Bindings":
        """Note a renewal of a session that has not ended."""
        record = self.records[key]
        if record.ended is not None:
            raise NotFound("the session has ended", hint="resume it, or start a new session")
        return Bindings({**self.records, key: replace(record, renewed=now)})

    def with_resumed(self, key: Key, now: datetime, token_id: str | None) -> "Bindings":
        """Note that a session goes on, with another credential and the same binding (M67)."""
        resumed = replace(self.records[key], renewed=now, ended=None, token_id=token_id)
        return Bindings({**self.records, key: resumed})

    def with_ended(self, key: Key, now: datetime) -> "Bindings":
        """Note the end of a session; a second time changes nothing."""
        record = self.records[key]
        if record.ended is not None:
            return self
        return Bindings({**self.records, key: replace(record, ended=now)})

    def of(self, principal: str, session: str, *, is_administrator: bool) -> BindRecord:
        """Find a session that a principal bound, or that is its own.

        Somebody else's session is refused like one that never was (M71, M72).
        """
        own = self.records.get((principal, session))
        if own is not None:
            return own
        named = [record for record in self.records.values() if record.session == session]
        for record in named:
            if record.principal == principal:
                return record
        if not is_administrator:
            raise PermissionDenied("no session of this id is yours", hint="start a new session")
        if len(named) != 1:
            raise NotFound("no session of this id was bound here, or more than one")
        return named[0]


def _dispensable(records: Mapping[Key, BindRecord]) -> Key:
    """Choose what is forgotten for a new record: the oldest of whoever has the most.

    So nobody can make the Hub forget the sessions of others.
    """
    ((most, _),) = Counter(record.bound_by for record in records.values()).most_common(1)
    mine = (record for record in records.values() if record.bound_by == most)
    return min(mine, key=lambda record: record.heard).key


# --- as it is saved ---

_FIELDS: saved.Kinds = {
    "session": str,
    "agent": str,
    "principal": str,
    "binding": str,
    "isolation": str,
    "protocol_version": int,
    "bound_by": str,
    "verbs": list,
    "uid": (int, NoneType),
    "token_id": (str, NoneType),
    "bound": str,
    "renewed": (str, NoneType),
    "ended": (str, NoneType),
}


def opened(root: Root) -> Saved[Bindings]:
    """Open the bind records of a root."""
    path = f"{home.HUB_DIR}/{home.BINDINGS_FILE}"
    return Saved(root, path, parse=parse, plain=plain, default=Bindings())


def plain(bindings: Bindings) -> list[dict[str, object]]:
    """Give the saved form."""
    return [plain_record(record) for record in bindings.records.values()]


def plain_record(record: BindRecord) -> dict[str, object]:
    """Give the saved form of one record."""
    return {name: getattr(record, name) for name in _FIELDS} | {
        "verbs": list(record.verbs),
        "bound": saved.spelled(record.bound),
        "renewed": saved.spelled(record.renewed),
        "ended": saved.spelled(record.ended),
    }


def parse(found: object) -> Bindings:
    """Read the saved form; `ValueError` says what is wrong with it."""
    if not isinstance(found, list):
        raise ValueError("it is no list of records")
    records: dict[Key, BindRecord] = {}
    for row in found:
        record = _parse_record(row)
        if record.key in records:
            raise ValueError("a session stands twice")
        records[record.key] = record
    return Bindings(records)


def _parse_record(row: object) -> BindRecord:
    fields = saved.record(row, _FIELDS, "a record")
    text = {name: value for name, value in fields.items() if isinstance(value, str)}
    bound = saved.moment(text["bound"])
    if bound is None or not _SESSION.fullmatch(text["session"]):
        raise ValueError("a record has a malformed session, or no time of binding")
    return BindRecord(
        session=text["session"],
        agent=text["agent"],
        principal=text["principal"],
        binding=text["binding"],
        isolation=text["isolation"],
        protocol_version=int(str(fields["protocol_version"])),
        bound_by=text["bound_by"],
        verbs=tokens.verbs_of(fields["verbs"]),
        uid=fields["uid"] if isinstance(fields["uid"], int) else None,
        token_id=text.get("token_id"),
        bound=bound,
        renewed=saved.moment(fields["renewed"]),
        ended=saved.moment(fields["ended"]),
    )
