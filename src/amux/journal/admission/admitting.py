"""Making an ingress a task, under the lock: the ring of an admission (T15 to T18, T31 to T36).

Rule 1: all checks come before the first effect: a call that is refused leaves nothing.
Rule 2: use first, then the task's record; each effect before the commit that records it.
Rule 3: a step that fails is recorded and said with the phase that stands; the same call goes on.
"""

from contextlib import suppress
from typing import TypeVar

from amux.core import canonical
from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal.admission import admission, asking, hearing, planning
from amux.journal.admission.asking import Ask, Begun
from amux.journal.admission.planning import Plan, There
from amux.journal.admission.request import Request
from amux.journal.ground import layouttext
from amux.journal.ground.layout import PROJECT, PROJECT_MODE
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Create, Refused, Render
from amux.journal.store.files import Edited
from amux.journal.tasks import directory, identity, retention, taskfiles, view
from amux.journal.tasks.admissionrecord import Recovery
from amux.journal.tasks.authority import Call, Loaded
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.ingress import Ingress, Registered, Use
from amux.journal.tasks.presence import LAYOUT
from amux.journal.tasks.task import TaskState
from amux.journal.tasks.view import View

T = TypeVar("T")
R = TypeVar("R")
_RECORDS = 4  # session, ingress, use and task: what an admission may add
_REF_PREFIX = "ingress-"
_MIN_HEX = 16


class Understood(Value):
    """A request, and what it means of what is there."""

    ask: Ask
    plan: Plan
    loaded: Loaded
    registered: Registered | None
    """The ingress that the call's own words make; None where one was given."""


class Admitted(Value):
    """What an admission came to."""

    loaded: Loaded
    understood: Understood
    facts: Facts
    is_replayed: bool


def admit(call: Call, request: Request) -> Admitted:
    """Run an admission to its end, or to where it may be finished later."""
    understood, decision = _decide(call, request)
    if decision.result.is_started and _keep_layout(call):
        # The project's name is kept now: what the session means is judged with the new layout.
        understood, decision = _decide(call, request)
    loaded = understood.loaded
    if decision.result.is_replayed:
        loaded, _ = call.render(loaded, request.digest)  # whoever committed may have died then
        return _ended(call, understood, loaded, is_replayed=True)
    if decision.result.is_started:
        _note_claims(call, understood)
        loaded = _start(call, understood, decision)
    recovery = decision.result.recovery
    is_waiting = not decision.result.is_started and loaded == understood.loaded
    while not _is_done(loaded, understood.ask, call):
        is_waiting = False
        loaded = _step(call, understood, loaded, recovery)
    loaded, _ = call.render(loaded, request.digest)
    return _ended(call, understood, loaded, is_replayed=is_waiting)


def _decide(call: Call, request: Request) -> tuple[Understood, Accepted[TaskState, Begun]]:
    understood = _understand(call, request)
    path = understood.ask.task_root_relative
    facts = call.facts(understood.loaded.state, path=path, name=request.task or "")
    present = _present(call, understood.ask)
    decision = admission.start(
        understood.loaded.state, understood.ask, present, facts, call.errand.now
    )
    return understood, _accepted(decision)


def _understand(call: Call, request: Request) -> Understood:
    place = None if request.is_admit else planning.there(call, request)
    found, registered = hearing.hear(call, request, place)
    _require_route(request, found, place)
    use = hearing.use(call, found)
    task_id = _task_id(found, place)
    loaded = call.load(task_id)
    state = loaded.state
    if place is None:
        path = _new_path(call, request, found, use, task_id)
        plan = planning.new(call, request, found, path)
    else:
        is_settled = (
            state is not None
            and not state.is_foreign(call.standing)
            and state.admission.is_finalized
        )
        plan = planning.known(call, request, found, place, is_settled=is_settled)
    if plan.is_overview_ignored:
        call.warnings.append({"code": "overview-ignored"})
    ask = Ask(
        operation=request.operation,
        ingress=found,
        use=use,
        request_digest=request.digest,
        acquires_owner=request.acquires_owner,
        task_id=task_id,
        task_root_relative=plan.identity.task_root_relative,
        identity_digest=plan.identity.identity_digest,
        files=plan.files,
        needs_block=plan.needs_block,
    )
    return Understood(ask=ask, plan=plan, loaded=loaded, registered=registered)


def _require_route(request: Request, found: Ingress, place: There | None) -> None:
    """Refuse arguments that are not the ingress's (T29)."""
    wanted = {
        "taskKind": (request.kind or (None if place is None else place.kind), found.task_kind),
        "entryVariant": (request.variant, found.entry_variant),
        "routeKey": (request.route_key, found.route_key),
    }
    for name, (given, known) in wanted.items():
        if given is not None and given != known:
            raise Refused(
                reason="TASK_ADMISSION_ROUTE_INVALID",
                message="the request was registered for something else",
                hint="leave kind, variant and route out: they are the ingress's",
                details={"argument": name, "observed": known},
            ).error()
    variant = asking.variant(request.operation, found.task_kind, found.entry_variant)
    if isinstance(variant, Refused):
        raise variant.error()


def _task_id(found: Ingress, place: There | None) -> str:
    if place is not None and place.found is not None:
        return place.found.task_id
    return identity.task_id_of(found.ingress_key)


def _new_path(call: Call, request: Request, found: Ingress, use: Use | None, task_id: str) -> str:
    """Give the path of a new task: as it was noted when it began, else chosen now (T22)."""
    if use is not None:
        return use.task_root_relative
    taken = planning.siblings(call, found.task_kind, request.segment, task_id)
    segment = directory.choose(request.segment, task_id, taken)
    if isinstance(segment, Refused):
        raise segment.error()
    return f"{found.task_kind}/{segment}"


def _start(call: Call, understood: Understood, decision: Accepted[TaskState, Begun]) -> Loaded:
    """Note the words, their use, and the state that begins (T17)."""
    ask, registered = understood.ask, understood.registered
    retention.require_room(call.ledger, call.errand.now, adding=_RECORDS)
    if registered is not None and not registered.is_replayed:
        call.save_session(registered.session)
        call.ledger.create("ingress", ask.ingress.ingress_ref, shape.encode(ask.ingress))
    if ask.use is None:
        use = Use(
            ingress_ref=ask.ingress.ingress_ref,
            task_id=ask.task_id,
            task_root_relative=ask.task_root_relative,
            operation=ask.operation,
            request_digest=ask.request_digest,
            at=call.iso,
        )
        call.ledger.create("use", ask.ingress.ingress_ref, shape.encode(use))
    _run_effects(call, understood, decision)
    return call.commit(understood.loaded, decision.state)


def _step(call: Call, understood: Understood, loaded: Loaded, recovery: Recovery | None) -> Loaded:
    """Take one more step; a step that fails is noted, and refused with what stands."""
    ask, state = understood.ask, loaded.state
    assert state is not None
    facts = call.facts(state, path=ask.task_root_relative)
    try:
        present = _present(call, ask)
    except AmuxError as error:
        raise _failed(call, loaded, ask, facts, error) from error
    decision = admission.step(state, ask, present, facts, call.errand.now, recovery)
    if decision.result is not None:
        if decision.state != state:
            call.commit(loaded, decision.state)
        raise _stopped(decision.result.error(), state)
    try:
        _run_effects(call, understood, decision)
    except AmuxError as error:
        raise _failed(call, loaded, ask, facts, error) from error
    return call.commit(loaded, decision.state)


def _failed(call: Call, loaded: Loaded, ask: Ask, facts: Facts, error: AmuxError) -> AmuxError:
    """Note that a step failed, if the disk lets us, and give its refusal with what stands."""
    state = loaded.state
    assert state is not None
    reason = str(error.details.get("reason", error.code))
    failed = admission.failed(state, reason, facts, ask, call.errand.now)
    with suppress(AmuxError):
        if failed != state:
            call.commit(loaded, failed)
    return _stopped(error, state)


def _run_effects(call: Call, understood: Understood, decision: Accepted[TaskState, T]) -> None:
    for effect in decision.effects:
        if isinstance(effect, Render):
            _append_block(call, understood.plan, decision.state)
        else:
            call.run_effects((effect,), decision.state.task_id)
    made = [one.path for one in decision.effects if isinstance(one, Create)]
    present = taskfiles.present(call.held.ground, made)
    for effect in decision.effects:
        if isinstance(effect, Create) and present[effect.path] != canonical.digest(effect.data):
            raise Refused(
                reason="TASK_ADMISSION_RECONCILIATION_DRIFT",
                message="a file of the admission is not what was written",
                hint="look who changes it, then send the same call again",
                details={"path": effect.path},
            ).error()


def _append_block(call: Call, plan: Plan, state: TaskState) -> None:
    shown = View(checkpoints=state.checkpoints, stale=(), task_root=state.task_root_relative)
    call.writer().write(
        plan.sessions,
        lambda data: Edited(
            data if data is not None and view.has_block(data) else view.render(data or b"", shown),
            None,
        ),
    )


def _keep_layout(call: Call) -> bool:
    """Keep the project's name in `layout.json` (J15); tell whether that changed it."""
    target = call.errand.target
    if target.layout.kind != PROJECT:
        return False
    before = call.standing.layout_identity
    there = taskfiles.read(call.held.ground, LAYOUT)
    if there is not None and layouttext.kept(there, PROJECT_MODE, target.project) == there:
        return False
    call.writer().write(
        LAYOUT,
        lambda data: Edited(layouttext.kept(data, PROJECT_MODE, target.project), None),
    )
    call.at_layout()
    return call.standing.layout_identity != before


def _note_claims(call: Call, understood: Understood) -> None:
    """Remark rows that say confirmed where the ledger knows of nothing (T49)."""
    state = understood.loaded.state
    if state is not None and not state.is_foreign(call.standing):
        return
    data = taskfiles.read(call.held.ground, understood.plan.sessions)
    for claim in view.claims(data or b""):
        path = f"{understood.ask.task_root_relative}/{claim.path}"
        with suppress(AmuxError):
            if taskfiles.present(call.held.ground, [path])[path] == claim.sha256:
                call.warnings.append({"code": "cp-claimed", "phase": claim.phase})


def _ended(call: Call, understood: Understood, loaded: Loaded, *, is_replayed: bool) -> Admitted:
    state = loaded.state
    assert state is not None
    facts = call.facts(state, path=understood.ask.task_root_relative)
    owner = state.owner
    if owner is not None and owner.is_active and owner.session_digest == call.standing.session:
        active = call.errand.target.active_root
        call.errand.book.live.hold(call.state, active, call.standing.session, state.task_id)
    call.saw(state)
    return Admitted(loaded=loaded, understood=understood, facts=facts, is_replayed=is_replayed)


def _is_done(loaded: Loaded, ask: Ask, call: Call) -> bool:
    assert loaded.state is not None
    return admission.is_done(loaded.state, ask, call.errand.now)


def _present(call: Call, ask: Ask) -> dict[str, str]:
    return taskfiles.present(call.held.ground, [one.path for one in ask.files])


def _stopped(error: AmuxError, state: TaskState) -> AmuxError:
    error.details["phase"] = state.admission.reached
    return error


def _accepted(decision: Accepted[T, R] | Refused) -> Accepted[T, R]:
    if isinstance(decision, Refused):
        raise decision.error()
    return decision
