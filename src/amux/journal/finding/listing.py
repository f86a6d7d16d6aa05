"""Tasks as a person looks at them: a list of them, and one in full; and a person's revoke (T8).

Rule 1: both are reads of what a resolve reads: nothing is shown that it would not show.
Rule 2: a list is bounded and says so; of each task it tells where it stands and who has it.
Rule 3: a revoke voids every present authority of a root; it takes no text away.
"""

from amux.disk import glance
from amux.journal.call.errand import Errand
from amux.journal.finding import finding, handoffs, taskdetails
from amux.journal.finding.taskview import Reader
from amux.journal.ledger import meta, shape
from amux.journal.store import root
from amux.journal.store.root import Place
from amux.journal.tasks import authority, resolve, survey
from amux.journal.tasks.authority import Call
from amux.journal.tasks.resolve import Candidate
from amux.journal.tasks.survey import Survey
from amux.journal.tasks.task import TaskState

Result = dict[str, object]
_MARKS = {"unstarted": "·", "waiting": "?", "confirmed": "✓", "exempt": "-"}
_STALE = "!"
SHOWN_TRANSITIONS = 16


def task_list(errand: Errand) -> Result:
    """List the tasks of a memory."""
    wanted, limit = str(errand.arguments["status"]), errand.number("limit")
    with finding.readers(errand) as opened:
        whole, rows = Survey(), []
        for reader in opened:
            found = reader.survey()
            whole += found
            rows += [(one, reader) for one in found.candidates]
        rows.sort(key=lambda one: one[0].place)
        fitting = [(one, reader) for one, reader in rows if _fits(one.status, wanted)]
        return {
            "schemaVersion": "AmuxTaskListV1",
            "tasks": [_row(one, reader) for one, reader in fitting[:limit]],
            "totalMatched": len(fitting),
            "truncated": len(fitting) > limit,
            "incomplete": whole.is_blocked,
            "scanned": {"directories": whole.folders, "bytes": whole.size},
            "warnings": [],
        }


def _fits(status: str, wanted: str) -> bool:
    if wanted in ("all", status):
        return True
    if wanted == "rejected":
        return status in resolve.ENDED
    # Of tasks nothing is told as blocked: that counts as active (T28).
    return wanted in ("unresolved", "blocked") and status == resolve.ACTIVE


def _row(one: Candidate, reader: Reader) -> Result:
    state = None
    if one.task_id is not None and one.problem is None:
        state = reader.read(one.task_id).state
    return {
        **one.listed(),
        "relativePath": one.relative_path,
        "identityProblem": one.problem,
        "checkpoints": None if state is None else _marks(one, state, reader),
        "owner": None if state is None else taskdetails.owner(state),
        "hasOpenOperation": state is not None and state.operation is not None,
    }


def _marks(one: Candidate, state: TaskState, reader: Reader) -> str:
    """Show three checkpoints in three characters: ✓ confirmed, ! stale, ? waiting."""
    stale = state.checkpoints.stale(reader.facts(one, state, "").artifacts)
    return "".join(
        _STALE if slot.phase in stale else _MARKS[slot.status] for slot in state.checkpoints.slots
    )


def task_show(errand: Errand) -> Result:
    """Show one task in full."""
    name = str(errand.arguments["task"])
    with root.opened(Place.of(errand.target, errand.around.uid)) as ground:
        reader = Reader(errand, errand.target, ground)
        found = survey.locate(name, reader.survey())
        read = reader.read(found.task_id) if found.task_id is not None else None
        state = None if read is None or found.problem is not None else read.state
        facts = reader.facts(found, state, name)
        card = (
            None
            if found.task_id is None
            else handoffs.newest(ground, found.task_id, errand.now.today)
        )
        coverage = "absent" if read is None else read.coverage
        return {
            "schemaVersion": "AmuxTaskShownV1",
            **found.listed(),
            "aliases": list(found.aliases),
            "legacy": found.is_legacy,
            "identityProblem": found.problem,
            "taskRoot": glance.under(errand.target.active_root, found.relative_path),
            "files": taskdetails.rehydration(reader, found, state),
            "admission": None if state is None else _admission(state),
            "owner": None if state is None else taskdetails.owner(state),
            "checkpoints": None if state is None else taskdetails.checkpoints(state, facts),
            "operation": None if state is None else taskdetails.operation(state),
            "settled": None if state is None else state.settled.count,
            "terminal": None
            if state is None or state.terminal is None
            else shape.encode(state.terminal),
            "transitions": [] if state is None else _transitions(state),
            "card": None if card is None else card.text,
            "ledgerCoverage": coverage,
            "warnings": taskdetails.warnings(reader, found, state, facts, coverage),
            "nextCall": taskdetails.next_call(found, state, facts),
        }


def _admission(state: TaskState) -> Result:
    made = state.admission
    return {
        "admissionId": made.admission_id,
        "operation": made.operation,
        "admissionGeneration": made.admission_generation,
        "phase": made.phase,
        "lifecycleRevision": state.lifecycle_revision,
        "stateSequence": state.state_sequence,
    }


def _transitions(state: TaskState) -> list[Result]:
    newest = state.transitions[-SHOWN_TRANSITIONS:]
    return [
        {
            "seq": one.seq,
            "at": one.at,
            "op": one.op,
            "session": one.session,
            "writerGeneration": one.writer_generation,
        }
        for one in reversed(newest)
    ]


def task_revoke(errand: Errand) -> Result:
    """Void every present authority of a root, by a person's word (T8)."""
    return authority.run(errand, _revoke)


def _revoke(call: Call) -> Result:
    before = call.standing.generation
    made = meta.revoke(call.ledger, call.standing.root_identity, call.iso)
    return {
        "schemaVersion": "AmuxAuthorityRevocationV1",
        "rootIdentityDigest": made.root_identity,
        "previousGeneration": before,
        "runtimeGeneration": made.generation,
        "tasks": len(call.ledger.keys("task")),
        "warnings": [],
    }
