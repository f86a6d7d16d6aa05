"""Work on a task that is owned: announced changes, their end, and the end of the task (§12, §13).

Rule 1: what files are is seen here, under the lock; what that means is decided by the machines.
Rule 2: each commit is one record; what follows it is done again by the next call where it failed.
"""

from typing import TypeVar

from amux.journal import relative
from amux.journal.admission.calls import request_digest
from amux.journal.call.errand import Errand
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused
from amux.journal.refusals import refuse
from amux.journal.tasks import authority, binding, context, observing, settling
from amux.journal.tasks.authority import Call, Loaded
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.projectlease import Standing
from amux.journal.tasks.settling import Begin, Reconcile, Settle
from amux.journal.tasks.task import CLEAN, TaskState, Terminal
from amux.journal.work import closeout, evidence
from amux.journal.work.closeout import Finish

R = TypeVar("R")
Result = dict[str, object]


def operation(errand: Errand) -> Result:
    """Begin or settle an operation."""
    return authority.run(errand, lambda call: _operation(errand, call))


def reconcile(errand: Errand) -> Result:
    """Close an operation that its session left open."""
    return authority.run(errand, lambda call: _reconcile(errand, call))


def finish(errand: Errand) -> Result:
    """End a task on its evidence, and let its route go once its own lock is released."""
    found, terminal, standing = authority.run(errand, lambda call: _finish(errand, call))
    done = binding.unbind(
        errand,
        task_id=terminal.task_id,
        root_identity=standing.root_identity,
        route_revision=standing.route_revision,
        receipt_digest=terminal.receipt_digest,
    )
    closed, warnings = found["closeout"], found["warnings"]
    assert isinstance(closed, dict)
    assert isinstance(warnings, list)
    closed["routeBinding"] = done.outcome
    return {**found, "warnings": [*warnings, *done.warnings]}


def _operation(errand: Errand, call: Call) -> Result:
    loaded, path = _task(errand, call)
    facts = call.facts(loaded.state, path=path, name=str(errand.text("task")))
    owner, digest = str(errand.text("owner")), request_digest(errand)
    command: Begin | Settle
    if errand.text("op") == "begin":
        command = Begin(
            owner=owner,
            request_digest=digest,
            kind=str(errand.text("kind")),
            targets=_before(errand, call),
        )
    else:
        command = Settle(owner=owner, request_digest=digest)
    taken = _taken(settling.decide(loaded.state, command, facts, errand.now))
    after = _committed(errand, call, loaded, taken)
    made, present = taken.result, _write_context(call, after, facts)
    return {
        **shape.encode(made.operation),
        "settledOperation": None if made.settled is None else shape.encode(made.settled),
        "replayed": made.is_replayed,
        "writeContext": present,
        "mutationAuthority": present["mutationAuthority"],
        "nextCall": facts.call("memory_task_operation", op="settle", owner=owner)
        if after.operation is not None
        else facts.call("memory_task_operation", op="begin", owner=owner, fill=["targets"]),
        "warnings": call.warnings,
    }


def _before(errand: Errand, call: Call) -> dict[str, str]:
    """See what each target is before; one that cannot be seen cannot be announced."""
    given = errand.arguments.get("targets")
    if not isinstance(given, list):
        raise refuse(
            "MEMORY_WRITER_ARGUMENT_REQUIRED",
            "a begin needs the files that are to change",
            hint="name them as targets, relative to the project; active: before memory files",
            argument="targets",
        )
    paths = [_target(str(one)) for one in given]
    seen = observing.targets(call.held.ground, errand.target.source, paths)
    unseen = [path for path in paths if path not in seen]
    if unseen:
        raise Refused(
            reason="TASK_OPERATION_UNSETTLED",
            message="a target cannot be observed, so nobody could tell what becomes of it",
            hint="make it readable, or leave it out",
            details={"targets": unseen},
        ).error()
    return {path: seen[path] for path in paths}


def _target(path: str) -> str:
    relative.require(path.removeprefix(observing.ACTIVE))
    return path


def _reconcile(errand: Errand, call: Call) -> Result:
    loaded, path = _task(errand, call)
    facts = call.facts(loaded.state, path=path, name=str(errand.text("task")))
    command = Reconcile(
        record_digest=str(errand.text("expectedCloseoutDigest")),
        request_digest=request_digest(errand),
    )
    taken = _taken(settling.decide(loaded.state, command, facts, errand.now))
    after = _committed(errand, call, loaded, taken)
    return {
        "schemaVersion": "ArtifactMutationReconciliationResultV1",
        "status": "reconciled",
        "operation": shape.encode(taken.result.operation),
        "writeContext": _write_context(call, after, facts),
        "mutationAuthority": False,
        "replayed": taken.result.is_replayed,
        "nextCall": _after_reconcile(after, facts),
        "warnings": call.warnings,
    }


def _after_reconcile(state: TaskState, facts: Facts) -> dict[str, object]:
    owner = state.owner
    if owner is not None and owner.is_active and owner.session_digest == facts.standing.session:
        return facts.call("memory_task_write_owner", operation="renew", owner=owner.reference)
    return facts.call("memory_task_admit_v2", operation="bind", fill=["instruction"])


def _finish(errand: Errand, call: Call) -> tuple[Result, Terminal, Standing]:
    loaded, path = _task(errand, call)
    facts = call.facts(loaded.state, path=path, name=str(errand.text("task")))
    found_files, problem = evidence.gather(call.held.ground, errand.arguments.get("evidence"), path)
    command = Finish(
        owner=str(errand.text("owner")),
        request_digest=request_digest(errand),
        status=str(errand.text("terminalStatus")),
        evidence=found_files,
        problem=problem,
    )
    taken = _taken(closeout.decide(loaded.state, command, facts, errand.now))
    after = _committed(errand, call, loaded, taken)
    made = taken.result
    found: Result = {
        "schemaVersion": "WorkflowTaskTerminalResultV1",
        "receipt": shape.encode(made.terminal),
        "closeout": {"projection": after.projection, "routeBinding": binding.SKIPPED},
        "settledOperation": None if made.settled is None else shape.encode(made.settled),
        "writeContext": _write_context(call, after, facts),
        "mutationAuthority": False,
        "replayed": made.is_replayed,
        "nextCall": None if after.projection == CLEAN else _same_again(errand),
        "warnings": call.warnings,
    }
    return found, made.terminal, call.standing


def _same_again(errand: Errand) -> dict[str, object]:
    return {"tool": errand.tool, "arguments": dict(errand.arguments), "fill": []}


def _committed(
    errand: Errand, call: Call, before: Loaded, taken: Accepted[TaskState, R]
) -> TaskState:
    """Commit what was decided, do what follows, and give the state as it then stands."""
    if taken.state != before.state:
        before = call.commit(before, taken.state)
    call.run_effects(taken.effects, taken.state.task_id)
    after, _ = call.render(before, request_digest(errand))
    assert after.state is not None
    return after.state


def _write_context(call: Call, state: TaskState, facts: Facts) -> Result:
    call.saw(state)
    return context.shown(state, facts)


def _task(errand: Errand, call: Call) -> tuple[Loaded, str]:
    task_id, path = call.locate(str(errand.text("task")))
    return call.load(task_id), path


def _taken(decided: Accepted[TaskState, R] | Refused) -> Accepted[TaskState, R]:
    if isinstance(decided, Refused):
        raise decided.error()
    return decided
