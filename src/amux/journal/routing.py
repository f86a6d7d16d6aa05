"""Keeping the hint of which task a session works on, after the call that changed it (T13).

Rule 1: it is written under its own root's lock, once the first one is released; no call holds two.
Rule 2: what goes wrong here is said and changes nothing: a hint grants nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from amux.errors import AmuxError
from amux.journal import record, retention, root, route
from amux.journal.errand import Errand
from amux.journal.layout import PROJECT
from amux.journal.ledger import Ledger
from amux.journal.record import Record
from amux.journal.root import Held, Place
from amux.journal.route import MAX_HINTS, UNBOUND, Hint
from amux.journal.state import RuntimeState
from amux.journal.workspace import WORKSPACE_SCOPE

BOUND, SKIPPED, FAILED = "bound", "skipped", "failed"
FULL = "route-index-full"


def bind(
    errand: Errand, *, task_id: str, root_identity: str, revision: int, is_admission: bool
) -> tuple[str, list[dict[str, object]]]:
    """Note that the session works on a task; tell what became of it, and what to remark."""
    expires = errand.now.later(timedelta(seconds=route.LIFETIME_SECONDS)).iso

    def act(held: Held) -> str:
        ledger = Ledger(RuntimeState.of(held))
        before = ledger.read("route", errand.session_digest)
        known = None if before is None else route.read(before.body, now=errand.now.iso)
        hint = Hint(
            session_digest=errand.session_digest,
            project=errand.target.project,
            project_root_identity_digest=root_identity,
            task_id=task_id,
            route_revision=revision,
            state=route.LIVE,
            trigger=route.trigger(known, project=errand.target.project, is_admission=is_admission),
            expires_at=expires,
        )
        if known is not None and _is_same(known, hint):
            return BOUND
        if before is None and len(ledger.keys("route")) >= MAX_HINTS:
            retention.drop_routes(ledger, errand.now)
            if len(ledger.keys("route")) >= MAX_HINTS:
                return FULL
        body = route.entry(hint)
        return SKIPPED if body is None else _put(ledger, before, errand.session_digest, body)

    return _done(errand, act)


def unbind(
    errand: Errand, *, task_id: str, receipt_digest: str
) -> tuple[str, list[dict[str, object]]]:
    """Note that the session's task is over, if its hint names that task."""

    def act(held: Held) -> str:
        ledger = Ledger(RuntimeState.of(held))
        before = ledger.read("route", errand.session_digest)
        known = None if before is None else route.read(before.body, now=errand.now.iso)
        if before is None or known is None or known.task_id != task_id:
            return SKIPPED
        body = route.entry(
            replace(
                known,
                state=UNBOUND,
                trigger=route.TERMINAL,
                last_terminal_receipt_digest=receipt_digest,
            )
        )
        return SKIPPED if body is None else _put(ledger, before, errand.session_digest, body)

    return _done(errand, act)


def _done(errand: Errand, act: Callable[[Held], str]) -> tuple[str, list[dict[str, object]]]:
    try:
        done = root.hold(_place(errand), wait_ms=errand.around.lock_wait_ms, act=act)
    except AmuxError as error:
        return FAILED, [
            {"code": "route-failed", "reason": str(error.details.get("reason", error.code))}
        ]
    return (SKIPPED, [{"code": FULL}]) if done == FULL else (done, [])


def _place(errand: Errand) -> Place:
    """Give the root whose ledger has the hints: the workspace's, or the project's own."""
    target = errand.target
    if target.layout.kind == PROJECT:
        return Place.of(target, errand.around.uid)
    return Place(base=target.base, steps=(root.FOLDER, WORKSPACE_SCOPE), uid=errand.around.uid)


def _put(ledger: Ledger, before: Record | None, session: str, body: dict[str, object]) -> str:
    made = record.first("route", session, body) if before is None else before.successor(body)
    ledger.change(before, made)
    return BOUND


def _is_same(known: Hint, hint: Hint) -> bool:
    """Tell whether a hint says nothing new, so that a repeat writes nothing."""
    return (known.task_id, known.project, known.route_revision, known.state) == (
        hint.task_id,
        hint.project,
        hint.route_revision,
        hint.state,
    ) and known.project_root_identity_digest == hint.project_root_identity_digest
