"""Bind records: which session was bound to which scope, renewed, and ended.

Rule 1: a binding names its Hub and its scope and is no secret: it is compared, never trusted (M66).
Rule 2: a record is history as well as state: an ended one stays for a while, so that "from which
        session" can be answered (M73).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import NoneType

from amux.core import home
from amux.disk.tree import Root
from amux.errors import InvalidArgument, NotFound
from amux.hub import saved
from amux.hub.saved import Saved

REMEMBERED = timedelta(days=90)
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
    token_id: str | None
    bound: datetime
    renewed: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bindings:
    """All bind records, by session."""

    records: Mapping[str, BindRecord] = field(default_factory=dict)

    def with_new(self, record: BindRecord) -> "Bindings":
        """Keep a new record; a session is bound once and never again (M66)."""
        if not _SESSION.fullmatch(record.session):
            raise InvalidArgument("a session id is 1-64 plain characters", argument="session")
        if not _AGENT.fullmatch(record.agent):
            raise InvalidArgument("an agent id is lower-case words and dashes", argument="agent")
        if record.session in self.records:
            raise InvalidArgument(
                "the session is bound already",
                hint="renew it, or bind a new session",
                argument="session",
            )
        kept = {
            known.session: known
            for known in self.records.values()
            if known.ended is None or record.bound - known.ended < REMEMBERED
        }
        while len(kept) >= MAX_RECORDS:
            del kept[next(iter(kept))]
        return Bindings({**kept, record.session: record})

    def with_renewed(self, session: str, now: datetime) -> "Bindings":
        """Note a renewal of a session that has not ended."""
        record = self.require(session)
        if record.ended is not None:
            raise NotFound("the session has ended", hint="start a new session")
        return Bindings({**self.records, session: replace(record, renewed=now)})

    def with_ended(self, session: str, now: datetime) -> "Bindings":
        """Note the end of a session; a second time changes nothing."""
        record = self.require(session)
        if record.ended is not None:
            return self
        return Bindings({**self.records, session: replace(record, ended=now)})

    def require(self, session: str) -> BindRecord:
        """Find the record of a session."""
        record = self.records.get(session)
        if record is None:
            raise NotFound("no session of this id was bound here")
        return record


# --- as it is saved ---

_FIELDS: saved.Kinds = {
    "session": str,
    "agent": str,
    "principal": str,
    "binding": str,
    "isolation": str,
    "protocol_version": int,
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
        "bound": saved.spelled(record.bound),
        "renewed": saved.spelled(record.renewed),
        "ended": saved.spelled(record.ended),
    }


def parse(found: object) -> Bindings:
    """Read the saved form; `ValueError` says what is wrong with it."""
    if not isinstance(found, list):
        raise ValueError("it is no list of records")
    records: dict[str, BindRecord] = {}
    for row in found:
        record = _parse_record(row)
        if record.session in records:
            raise ValueError("a session stands twice")
        records[record.session] = record
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
        token_id=text.get("token_id"),
        bound=bound,
        renewed=saved.moment(fields["renewed"]),
        ended=saved.moment(fields["ended"]),
    )
