"""What the ledger lets go, by the call that would exceed a bound, and when it is full (T9).

Rule 1: only records are dropped, and only those that no present authority rests on. Text, task
        directories and the files of people are never removed for room.
Rule 2: the disk's time says where to look; what a record says of itself decides.
Rule 3: what is damaged is not dropped: a person looks at it.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from amux.errors import Corrupt
from amux.journal.ledger.ledger import MAX_RECORDS, Ledger
from amux.journal.ledger.record import Record
from amux.journal.moment import Moment
from amux.journal.refusals import refuse
from amux.journal.tasks import route

INGRESS_KEPT = timedelta(days=7)  # after its expiry
SESSION_KEPT = timedelta(days=30)
MAX_CLOSED_PLANS = 4  # of a task
FEW_TASKS = 128  # of which all are read to know the owners, whenever a session is old
_DAY_MS = 24 * 60 * 60 * 1000
_INGRESS_LIFE_MS = _DAY_MS  # T14


def require_room(ledger: Ledger, now: Moment, *, adding: int) -> None:
    """Make room for new records of an admission, or refuse (T9)."""
    drop_requests(ledger, now)
    if len(ledger.keys("task")) <= FEW_TASKS:
        drop_sessions(ledger, now)
    if ledger.count() + adding <= MAX_RECORDS:
        return
    drop_sessions(ledger, now)
    drop_routes(ledger, now)
    if ledger.count() + adding > MAX_RECORDS:
        raise refuse(
            "MEMORY_LEDGER_FULL",
            "the ledger of this memory has no room for another admission",
            hint="every other call works; a person archives records of tasks that are over",
            limit=MAX_RECORDS,
        )


def drop_requests(ledger: Ledger, now: Moment) -> None:
    """Drop requests that expired a week ago, with their use, unless an admission rests on them."""
    before = now.epoch_ms - _milliseconds(INGRESS_KEPT) - _INGRESS_LIFE_MS
    for key in ledger.old_keys("ingress", before):
        found = _read(ledger, "ingress", key)
        if found is None or not _is_past(found.body.get("expiresAt"), now, INGRESS_KEPT):
            continue
        use = _read(ledger, "use", key)
        if use is not None and _is_rested_on(ledger, use.body):
            continue
        # The use last: an ingress without it could start again, a use without ingress cannot.
        ledger.remove("ingress", key)
        if use is not None:
            ledger.remove("use", key)


def drop_sessions(ledger: Ledger, now: Moment) -> None:
    """Drop sessions that were not heard of for a month and own nothing."""
    old = ledger.old_keys("session", now.epoch_ms - _milliseconds(SESSION_KEPT))
    if not old:
        return
    owners = {_owner(found.body) for found in ledger.every("task")}
    for key in old:
        if key not in owners and _read(ledger, "session", key) is not None:
            ledger.remove("session", key)


def drop_routes(ledger: Ledger, now: Moment, *, keys: Iterable[str] | None = None) -> None:
    """Drop hints that have ended, of these keys or of all."""
    for key in ledger.keys("route") if keys is None else keys:
        found = _read(ledger, "route", key)
        if found is not None and route.read(found.body, now=now.iso) is None:
            ledger.remove("route", key)


def drop_old_routes(ledger: Ledger, now: Moment) -> None:
    """Drop the hints that were written so long ago that they have ended."""
    before = now.epoch_ms - 1000 * route.LIFETIME_SECONDS
    drop_routes(ledger, now, keys=ledger.old_keys("route", before))


def drop_plans(ledger: Ledger, task_id: str) -> None:
    """Drop the oldest closed child plans of a task."""
    closed = sorted(
        (str(found.body.get("closedAt")), found.key)
        for found in ledger.every("child")
        if found.body.get("taskId") == task_id and found.body.get("closedAt") is not None
    )
    for _, key in closed[: max(0, len(closed) - MAX_CLOSED_PLANS)]:
        ledger.remove("child", key)


def _is_rested_on(ledger: Ledger, use: Mapping[str, object]) -> bool:
    """Tell whether the present admission of a use's task is the one that it started."""
    task_id = use.get("taskId")
    if not isinstance(task_id, str):
        return False
    try:
        found = ledger.read("task", task_id)
    except Corrupt:
        return True  # nobody knows
    match None if found is None else found.body:
        case {"admission": {"ingressRef": str(ref)}}:
            return ref == use.get("ingressRef")
        case _:
            return False


def _owner(body: Mapping[str, object]) -> str | None:
    match body:
        case {"owner": {"status": "active", "sessionDigest": str(session)}}:
            return session
        case _:
            return None


def _is_past(expires_at: object, now: Moment, kept: timedelta) -> bool:
    return isinstance(expires_at, str) and expires_at < now.later(-kept).iso


def _read(ledger: Ledger, kind: str, key: str) -> Record | None:
    try:
        return ledger.read(kind, key)
    except Corrupt:
        return None


def _milliseconds(span: timedelta) -> int:
    return int(span / timedelta(milliseconds=1))
