"""What the journal knows of the process that it serves, as plain values (J12, J25, J27, J71).

Rule 1: it is gathered once, and fixed for the life of the process; nobody below looks again.
Rule 2: here are words as they were given; what they mean (which agent, which session) is decided
        by one resolver, in `agent.py`.
Rule 3: a setting that cannot be meant is refused when it is first needed, naming the variable.
"""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from amux.core.value import Value
from amux.journal.ground import agent
from amux.journal.refusals import refuse

LOCK_WAIT_MS = 2_000  # J25
LOCK_WAIT_MAX_MS = 30_000


class ChildLease(Value, kw_only=False):
    """What `AMUX_CHILD_LEASE` says: this process is a child and does as children do (T71).

    A malformed one is a child all the same, of no lease and no root.
    """

    lease_id: str
    active_root: str

    @classmethod
    def parse(cls, text: str) -> "ChildLease":
        """Read `<leaseId>@<active root>`."""
        lease_id, at, root = text.partition("@")
        return cls(lease_id, root) if at and root.startswith("/") else cls("", "")


class Surroundings(Value):
    """The process that a desk works for."""

    face: str
    """`mcp` or `cli`."""
    start: str
    """The start directory, resolved (J12); empty where there is none any more."""
    is_start_named: bool
    """Whether a flag or a variable named it: only then may it be `/` or the home directory."""
    facts: Mapping[str, str]
    """The variables of J27 and J29 that are set and not empty."""
    client: str
    """`clientInfo.name` of the MCP client, as it was sent; empty for the command line."""
    session_named: str
    """`--session`; empty where it was not given."""
    session_fallback: str
    """The key of a session that nothing names (J27)."""
    zone: tzinfo | None
    """AMUX_TZ; None is the machine's."""
    lock_wait_ms: int
    child: ChildLease | None
    clock: Callable[[], float]
    """Seconds since the epoch; a call reads it once (J6)."""
    random_bytes: Callable[[int], bytes]
    home: str
    """The home directory, resolved."""
    uid: int
    """The effective one."""

    @property
    def is_mcp(self) -> bool:
        """Tell whether an MCP client asks: rows 1 to 3 of J29 exist only then."""
        return self.face == "mcp"


class Start(Protocol):
    """Where a process works."""

    @property
    def start(self) -> str:
        """Give the start directory."""

    @property
    def is_named(self) -> bool:
        """Tell whether a person named it."""

    @property
    def home(self) -> str:
        """Give the home directory."""

    @property
    def uid(self) -> int:
        """Give the effective user."""


def gather(
    place: Start,
    *,
    environment: Mapping[str, str],
    client: str | None,
    session: str,
    host: str,
    posix_session: int,
    clock: Callable[[], float],
    random_bytes: Callable[[int], bytes],
) -> Surroundings:
    """Put together what the journal knows; `client` is None for the command line."""
    facts = {name: text for name in _VARIABLES if (text := environment.get(name))}
    is_mcp = client is not None
    return Surroundings(
        face="mcp" if is_mcp else "cli",
        start=place.start,
        is_start_named=place.is_named,
        facts=facts,
        client=client or "",
        session_named=session,
        session_fallback=random_bytes(16).hex() if is_mcp else f"cli-{host}-{posix_session}",
        zone=zone_of(facts),
        lock_wait_ms=lock_wait_of(facts),
        child=child_of(facts),
        clock=clock,
        random_bytes=random_bytes,
        home=place.home,
        uid=place.uid,
    )


_VARIABLES = agent.VARIABLES | {"AMUX_TZ", "AMUX_LOCK_WAIT_MS", "AMUX_CHILD_LEASE"}


def zone_of(facts: Mapping[str, str]) -> tzinfo | None:
    """Give the zone that AMUX_TZ names; None where it is not set."""
    name = facts.get("AMUX_TZ", "")
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _unusable("AMUX_TZ", "there is no such time zone", "such as Asia/Shanghai") from error


def lock_wait_of(facts: Mapping[str, str]) -> int:
    """Give the milliseconds that a writer waits for the lock (J25)."""
    text = facts.get("AMUX_LOCK_WAIT_MS", "")
    if not text:
        return LOCK_WAIT_MS
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= LOCK_WAIT_MAX_MS):
        raise _unusable(
            "AMUX_LOCK_WAIT_MS", "this is no time to wait", f"0 to {LOCK_WAIT_MAX_MS} milliseconds"
        )
    return int(text)


def child_of(facts: Mapping[str, str]) -> ChildLease | None:
    """Give the lease under which this process is a child, if it is one."""
    text = facts.get("AMUX_CHILD_LEASE", "")
    return ChildLease.parse(text) if text else None


def _unusable(name: str, message: str, hint: str) -> Exception:
    return refuse("MEMORY_QUERY_INVALID", message, hint=f"set {name}: {hint}", argument=name)
