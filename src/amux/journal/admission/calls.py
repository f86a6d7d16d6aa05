"""Admitting, owning and confirming tasks: the tools of a task's authority (T36, T50, T73).

Rule 1: each is one authority call: judged under the lock, committed, read back, then answered.
Rule 2: a repeat is answered from the record, and writes nothing.
"""

from collections.abc import Iterable, Mapping

from amux.core import canonical
from amux.journal import remark
from amux.journal.admission import admissionlease, admitting, asking, confirming, hearing
from amux.journal.admission import request as requests
from amux.journal.admission.admitting import Admitted
from amux.journal.call import readplan
from amux.journal.call.errand import Errand
from amux.journal.ledger import shape
from amux.journal.machine import Accepted, Refused
from amux.journal.refusals import next_call
from amux.journal.tasks import authority, binding, checkpoint, ingress, owning, receipts
from amux.journal.tasks.admissionrecord import CP_STATE
from amux.journal.tasks.authority import Call, Loaded
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.lease import Lease
from amux.journal.tasks.owning import Release, Renew
from amux.journal.tasks.task import TaskState
from amux.journal.text import locale, namekey, secretscan

Result = dict[str, object]
MAX_NAMES_LOOKED_AT = 64  # directories among which a new task's name is looked for, to be short


def request_digest(errand: Errand) -> str:
    """Name a request by its arguments, but the project (T53)."""
    return canonical.digest(
        {name: value for name, value in errand.arguments.items() if name != "project"}
    )


def register(errand: Errand) -> Result:
    """Note what a person asked for, before it is admitted (T14 to T16)."""
    secretscan.scan({"routeKey": errand.arguments["routeKey"]})  # it will stand in `sessions.md`
    return authority.run(errand, lambda call: _register(call))


def admit(errand: Errand) -> Result:
    """Turn what a person asked for into a task, or into its next owner (T31, T32)."""
    request = requests.parse(errand)
    result, routed = authority.run(
        errand, lambda call: _admitted(call, admitting.admit(call, request))
    )
    result = _with_warnings(result, remark.as_json(request.remarks))
    if routed is None:
        return result
    done = binding.bind(
        errand,
        task_id=routed.task_id,
        root_identity=routed.root_identity_digest,
        route_revision=routed.project_lease.route_revision,
        is_admission=request.operation != "bind",
    )
    return _with_warnings({**result, "routeBinding": done.outcome}, done.warnings)


def own(errand: Errand) -> Result:
    """Acquire, renew or release the right to write a task (T51)."""
    return authority.run(errand, lambda call: _own(call))


def confirm(errand: Errand) -> Result:
    """Take a person's yes to one artifact (T45 to T48)."""
    remarks = secretscan.scan({"sourceMessage": errand.arguments["sourceMessage"]})
    result = authority.run(errand, lambda call: _confirm(call))
    return _with_warnings(result, remark.as_json(remarks))


def _register(call: Call) -> Result:
    errand = call.errand
    given = errand.arguments
    kind = str(given["taskKind"])
    # An ingress may be for adopt or bind, too: any variant that goes with the kind will do.
    variant = errand.text("entryVariant") or asking.TABLE[kind][0][0]
    if variant not in {*asking.TABLE[kind][0], *asking.TABLE[kind][1]}:
        asked_variant = asking.variant("admit", kind, variant)
        if isinstance(asked_variant, Refused):
            raise asked_variant.error()
    revision = given.get("routeRevision")
    route_revision = ingress.route_revision(
        revision if isinstance(revision, int) else None, call.session
    )
    if isinstance(route_revision, Refused):
        raise route_revision.error()
    call.at_revision(route_revision)
    instruction = str(given["instruction"])
    digest = ingress.instruction_digest(instruction)
    spoken = errand.text("locale")
    asked = ingress.Asked(
        instruction_digest=digest,
        instruction_chars=len(instruction),
        task_kind=kind,
        entry_variant=variant,
        route_key=str(given["routeKey"]),
        source_event_id=errand.text("sourceEventId") or ingress.default_event(digest),
        origin=str(given.get("origin", ingress.ORIGINS[0])),
        locale=None if spoken is None else locale.parse(spoken),
    )
    known = hearing.read(call, ingress.ref_of(ingress.key_of(asked, call.standing)))
    decided = ingress.register(asked, call.session, known, call.standing, errand.now)
    if isinstance(decided, Refused):
        raise decided.error()
    made = decided.state.ingress
    if not decided.state.is_replayed:
        call.require_room(3)
        call.save_session(decided.state.session)
        call.ledger.create("ingress", made.ingress_ref, shape.encode(made))
    is_expired = made.is_expired(errand.now)
    arguments = {"ingressRef": made.ingress_ref[:24], **call.target_arguments()}
    return {
        **shape.encode(made),
        "replayed": decided.state.is_replayed,
        "expired": is_expired,
        "nextCall": None
        if is_expired
        else next_call("memory_task_admit_v2", arguments, fill=["displayName", "overview"]),
        "warnings": [],
    }


def _own(call: Call) -> Result:
    errand = call.errand
    operation, digest = str(errand.arguments["operation"]), request_digest(errand)
    task_id, path = call.locate(str(errand.arguments["task"]))
    loaded = call.load(task_id)
    if operation == "renew" and errand.arguments.get("freshContext") is True:
        _fresh_context(call, loaded.state, digest)
    facts = call.facts(loaded.state, path=path, name=str(errand.arguments["task"]))
    if operation == "acquire":
        decided = admissionlease.acquire(
            loaded.state, errand.text("continuationLease") or "", digest, facts, errand.now
        )
    else:
        command = Renew if operation == "renew" else Release
        decided = owning.decide(
            loaded.state,
            command(owner=errand.text("owner") or "", request_digest=digest),
            facts,
            errand.now,
        )
    if isinstance(decided, Refused):
        raise decided.error()
    if decided.state != loaded.state:
        if operation != "release":
            call.save_session(ingress.renewed(call.session, call.standing))
        if operation == "acquire":  # the live file first: an owner is never without
            call.run_effects(decided.effects, task_id)
        loaded = call.commit(loaded, decided.state)
    if operation == "acquire" and loaded.state is not None:
        finished = admissionlease.finish(loaded.state, digest, facts, errand.now)
        if finished != loaded.state:
            loaded = call.commit(loaded, finished)
    call.run_effects(decided.effects, task_id)
    loaded, _ = call.render(loaded, digest)
    return _owner_receipt(call, loaded, path, decided)


def _fresh_context(call: Call, state: TaskState | None, digest: str) -> None:
    """Give the session a new context epoch, unless the call is a repeat (J51)."""
    errand = call.errand
    if state is not None and state.repeats(call.standing.session, digest):
        return
    call.renewed(readplan.new_epoch(errand.around.random_bytes(8)))


def _owner_receipt(
    call: Call, loaded: Loaded, path: str, decided: Accepted[TaskState, owning.Result]
) -> Result:
    state = _known(loaded)
    errand, done = call.errand, decided.result
    if errand.arguments.get("freshContext") is True and done.operation == "renew":
        errand.book.renew(errand.session_digest, call.standing.context_epoch)
    facts = call.facts(state, path=path, name=str(errand.arguments["task"]))
    call.saw(state)
    owner = state.owner
    return {
        "schemaVersion": "TaskWriteOwnerTransitionReceiptV1",
        "operation": done.operation,
        "transition": done.transition,
        "owner": receipts.reference(state, facts),
        "writerGeneration": state.generation,
        "status": None if owner is None else owner.status,
        "expiresAt": None if owner is None else owner.expires_at,
        "cpReadback": {
            "cpSetDigest": state.checkpoints.digest,
            "slots": receipts.slots(state, facts),
        },
        "settledOperation": receipts.operation(done.settled),
        **receipts.authority(state, facts),
        "replayed": done.is_replayed,
        "nextCall": receipts.next_call(state, facts),
        "warnings": call.warnings,
    }


def _confirm(call: Call) -> Result:
    errand, given = call.errand, call.errand.arguments
    task_id, path = call.locate(str(given["task"]))
    loaded, digest = call.load(task_id), request_digest(errand)
    facts = call.facts(loaded.state, path=path, name=str(given["task"]))
    bound = confirming.bound(call, path, facts, loaded.state)
    answer = checkpoint.Answer(
        phase=str(given["phase"]),
        is_exempt=bound.is_exempt,
        artifact_path=bound.path,
        artifact_sha256=bound.sha256,
        artifact_version=errand.text("artifactVersion") or "v1",
        source_message=str(given["sourceMessage"]),
        at=call.iso,
        session=call.standing.session,
        agent=errand.agent,
    )
    decided = owning.confirm(loaded.state, answer, digest, facts, errand.now)
    if isinstance(decided, Refused):
        raise decided.error()
    receipt: object = None
    if decided.state != loaded.state:
        loaded = call.commit(loaded, decided.state)
        call.run_effects(decided.effects, task_id)
    loaded, receipt = call.render(loaded, digest)
    state = _known(loaded)
    facts = call.facts(state, path=path, name=str(given["task"]))
    call.saw(state)
    call.warnings += confirming.remarks(state, answer.phase, path)
    slot = state.checkpoints.slot(answer.phase)
    kept = slot.confirmation
    assert kept is not None
    return {
        "schemaVersion": "MemoryCpConfirmationReceiptV1",
        "phase": answer.phase,
        "status": slot.status,
        "epoch": state.checkpoints.epoch,
        "artifactPath": kept.artifact_path or None,
        "artifactSha256": kept.artifact_sha256 or None,
        "artifactVersion": kept.artifact_version,
        "confirmedAt": kept.confirmed_at,
        "cpSetDigest": state.checkpoints.digest,
        "cpRowCount": len(checkpoint.PHASES),
        "ownerRenewed": decided.result.is_renewed,
        **receipts.authority(state, facts),
        "projection": state.projection,
        "transaction": receipt,
        "replayed": decided.result.is_replayed,
        "nextCall": receipts.next_call(state, facts),
        "warnings": call.warnings,
    }


def _admitted(call: Call, done: Admitted) -> tuple[Result, Lease | None]:
    """Spell the receipt of an admission, and give the lease of a session that owns the task."""
    state, ask = _known(done.loaded), done.understood.ask
    made, plan = state.admission, done.understood.plan
    named = call.errand.text("task") or _short_name(call, plan.identity.display_name, state)
    facts = call.facts(state, path=ask.task_root_relative, name=named)
    owner, reference = state.owner, receipts.reference(state, facts)
    overview = _overview(call, plan.overview, ask.task_root_relative)
    lease = state.admission_lease if made.phase == CP_STATE else None
    status = "admitting"
    if made.is_finalized:
        status = "finalized" if state.terminal is None else "terminal"
    result: Result = {
        "schemaVersion": "FormalTaskAdmissionReceiptV2",
        "status": status,
        "phase": made.phase,
        "admissionId": ask.ingress.admission_id,
        "ingressRef": ask.ingress.ingress_ref,
        "taskId": state.task_id,
        "taskIdentityDigest": state.identity_digest,
        "displayName": plan.identity.display_name,
        "project": state.project,
        "taskKind": plan.identity.task_kind,
        "entryVariant": ask.ingress.entry_variant,
        "taskRootRelative": state.task_root_relative,
        "overview": overview,
        "admissionGeneration": made.admission_generation,
        "routeKey": ask.ingress.route_key,
        "routeRevision": call.standing.route_revision,
        "transactionDigest": made.transaction_digest,
        "recovery": None if made.recovery is None else shape.encode(made.recovery),
        "admissionLease": None if lease is None else shape.encode(lease),
        "owner": reference,
        "ownerMoved": made.is_finalized and reference is None,
        "transition": None if owner is None else owner.last_transition.transition,
        "routeBinding": binding.SKIPPED,
        "reportDirectory": call.report_directory(state.task_root_relative),
        "replayed": done.is_replayed,
        **receipts.authority(state, facts),
        "nextCall": _next(state, facts, overview, reference),
        "warnings": _once(call.warnings),
    }
    return result, None if reference is None else owner


def _next(
    state: TaskState, facts: Facts, overview: Mapping[str, object], reference: str | None
) -> object:
    lease = state.admission_lease
    if reference is None and state.admission.phase == CP_STATE and lease is not None:
        return facts.call(
            "memory_task_write_owner", operation="acquire", continuationLease=lease.lease_id
        )
    found = receipts.next_call(state, facts)
    is_first = state.checkpoints.slot("CP1").status == checkpoint.WAITING
    if found is None or not is_first or overview["sha256"] is None:
        return found
    return facts.call(
        "memory_cp_confirm",
        fill=["sourceMessage"],
        phase="CP1",
        artifactPath=overview["path"],
        artifactSha256=str(overview["sha256"])[:16],
    )


def _overview(call: Call, path: str, task_root: str) -> dict[str, object]:
    """Show the overview as it is now, by its path below the task's root."""
    return {
        "path": path.removeprefix(f"{task_root}/"),
        "sha256": call.digest_of(path),
    }


def _short_name(call: Call, display_name: str, state: TaskState) -> str:
    """Give the name by which a next call finds the task: its own where it fits no other."""
    found = call.survey_at_most(MAX_NAMES_LOOKED_AT)
    key = namekey.name_key(display_name)
    if found is None or any(
        one.task_id != state.task_id and (one.key == key or key in one.alias_keys)
        for one in found.candidates
    ):
        return state.task_id
    return display_name


def _with_warnings(result: Result, more: Iterable[Mapping[str, object]]) -> Result:
    found = result["warnings"]
    assert isinstance(found, list)
    return {**result, "warnings": [*found, *more]}


def _known(loaded: Loaded) -> TaskState:
    assert loaded.state is not None
    return loaded.state


def _once(found: list[dict[str, object]]) -> list[dict[str, object]]:
    kept: list[dict[str, object]] = []
    for one in found:
        if one not in kept:
            kept.append(one)
    return kept
