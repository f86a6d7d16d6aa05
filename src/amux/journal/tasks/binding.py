"""Where route hints are kept, written and read (T13).

Rule 1: in the ledger of the workspace's own root where projects have roots of their own, else of
        the project's; under that root's lock, once the first lock is released.
Rule 2: nothing rests on a hint: what fails here is said and refuses nothing.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

from amux.core.value import Value
from amux.disk import glance
from amux.errors import AmuxError
from amux.journal.call.errand import Errand
from amux.journal.ground import workspace
from amux.journal.ground.layout import PROJECT
from amux.journal.ground.workspace import Target
from amux.journal.ledger import meta, record, shape
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.state import RuntimeState
from amux.journal.store import root
from amux.journal.store.root import Held, Place
from amux.journal.tasks import retention, route
from amux.journal.tasks.route import Hint

BOUND, UNBOUND, SKIPPED, FAILED = "bound", "unbound", "skipped", "failed"
_LIFETIME = timedelta(seconds=route.LIFETIME_SECONDS)


class Done(Value, kw_only=False):
    """What became of a hint."""

    outcome: str
    warnings: tuple[dict[str, object], ...] = ()


def bind(
    errand: Errand,
    *,
    task_id: str,
    root_identity: str,
    route_revision: int,
    is_admission: bool,
) -> Done:
    """Note that the session works on a task of its target."""

    def made(before: Hint | None) -> Hint:
        project = errand.target.project
        return Hint(
            session_digest=errand.session_digest,
            project=project,
            project_root_identity_digest=root_identity,
            task_id=task_id,
            route_revision=route_revision,
            state=route.LIVE,
            trigger=route.trigger(before, project=project, is_admission=is_admission),
            expires_at=errand.now.later(_LIFETIME).iso,
        )

    return _changed(errand, made, BOUND)


def unbind(
    errand: Errand,
    *,
    task_id: str,
    root_identity: str,
    route_revision: int,
    receipt_digest: str,
) -> Done:
    """Note that the task is over, if it is the one that the session is bound to."""

    def made(before: Hint | None) -> Hint | None:
        if before is None or before.task_id != task_id:
            return None
        return Hint(
            session_digest=errand.session_digest,
            project=errand.target.project,
            project_root_identity_digest=root_identity,
            task_id=task_id,
            route_revision=route_revision,
            state=route.UNBOUND,
            trigger=route.TERMINAL,
            expires_at=errand.now.later(_LIFETIME).iso,
            last_terminal_receipt_digest=receipt_digest,
        )

    return _changed(errand, made, UNBOUND)


def hint(errand: Errand) -> dict[str, object] | None:
    """Give the session's hint as an answer shows it; None without one, or where it is broken."""
    try:
        with root.opened(_place(errand)) as ground:
            found = Ledger(RuntimeState(ground)).read("route", errand.session_digest)
    except AmuxError:
        return None
    known = None if found is None else route.read(found.body, now=errand.now.iso)
    return None if known is None else shape.encode(known)


def _changed(errand: Errand, make: Callable[[Hint | None], Hint | None], outcome: str) -> Done:
    try:
        return root.hold(
            _place(errand),
            wait_ms=errand.around.lock_wait_ms,
            act=lambda held: _change(errand, held, make, outcome),
        )
    except AmuxError as error:
        reason = str(error.details.get("reason", error.code))
        return Done(FAILED, ({"code": "route-pending", "reason": reason},))


def _change(
    errand: Errand, held: Held, make: Callable[[Hint | None], Hint | None], outcome: str
) -> Done:
    target, now = _target(errand), errand.now
    root_id = root.prepare(held, now=now, random_bytes=errand.around.random_bytes)
    ledger = Ledger(RuntimeState.of(held))
    # A copied or moved ledger lets go of the hints of the place that it came from.
    identity = root.identity(glance.real(target.active_root), target.project, root_id)
    meta.settle(ledger, identity, now.iso)
    before = ledger.read("route", errand.session_digest)
    known = None if before is None else _decoded(before.body)
    made = make(known)
    entry = None if made is None else route.entry(made)
    if entry is None or made is None:
        return Done(SKIPPED)
    if known is not None and before is not None and _says_it(known, before.body, made, errand):
        return Done(outcome)
    if before is None and not _has_room(ledger, errand):
        return Done(SKIPPED, ({"code": "route-index-full"},))
    key = errand.session_digest
    ledger.change(
        before, record.first("route", key, entry) if before is None else before.successor(entry)
    )
    return Done(outcome)


def _says_it(known: Hint, body: Mapping[str, object], made: Hint, errand: Errand) -> bool:
    """Tell whether a hint says already what is to be said, so that a repeat writes nothing."""
    is_live = route.read(body, now=errand.now.iso) is not None
    return (is_live or known.state == route.UNBOUND) and known.replace(
        trigger=made.trigger, expires_at=made.expires_at, entry_digest=""
    ) == made


def _has_room(ledger: Ledger, errand: Errand) -> bool:
    retention.drop_old_routes(ledger, errand.now)
    if len(ledger.keys("route")) < route.MAX_HINTS:
        return True
    retention.drop_routes(ledger, errand.now)
    return len(ledger.keys("route")) < route.MAX_HINTS


def _decoded(body: Mapping[str, object]) -> Hint | None:
    try:
        return shape.decode(Hint, body)
    except shape.Misshapen:
        return None


def _place(errand: Errand) -> Place:
    return Place.of(_target(errand), errand.around.uid)


def _target(errand: Errand) -> Target:
    layout = errand.target.layout
    if layout.kind == PROJECT:
        return errand.target
    return workspace.select(layout, scope=workspace.WORKSPACE_SCOPE)
