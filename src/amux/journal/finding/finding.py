"""What `memory_task_resolve` answers: which task is meant, where it stands, what to do (§8, §14).

Rule 1: it reads, locates and grants nothing; `mutationAuthority` is false in every answer.
Rule 2: who owns a task is shown without anything by which to write it.
Rule 3: a locale chooses the words of `text`, and nothing else.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from amux.core.value import Value
from amux.disk import glance
from amux.journal import refusals
from amux.journal.call.errand import Errand
from amux.journal.finding import handoffs, taskdetails, tasktext
from amux.journal.finding.handoffs import Handoff
from amux.journal.finding.taskview import Reader
from amux.journal.ground import workspace
from amux.journal.ground.workspace import Target
from amux.journal.refusals import refuse
from amux.journal.store import root
from amux.journal.store.root import Place
from amux.journal.tasks import binding, resolve
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.resolve import Candidate, Found
from amux.journal.tasks.survey import Survey
from amux.journal.tasks.task import TaskState
from amux.journal.text import locale
from amux.journal.text.locale import Locale

Result = dict[str, object]
MEMORY = ".memory"


def task_resolve(errand: Errand) -> Result:
    """Find a task by its name, alias or taskId."""
    name = errand.text("name")
    if name is None or not name.strip():
        raise refuse(
            "TASK_NAME_REQUIRED",
            "nobody can be found without a name",
            hint="give name: what the person called the task, or its taskId",
            argument="name",
        )
    asked = errand.text("locale")
    if asked is not None:
        locale.parse(asked)
    with readers(errand) as opened:
        chosen = locale.choose(asked, _locale(opened))
        surveys = [reader.survey() for reader in opened]
        whole = sum(surveys, Survey())
        is_blocked = whole.is_blocked or any(one.is_blocked for one in surveys)
        found = resolve.scale_blocked() if is_blocked else resolve.find(name, whole.candidates)
        answer = _Answer(errand, found, _reader_of(opened, found), name)
        return answer.put_together(chosen, whole)


@contextmanager
def readers(errand: Errand) -> Iterator[list[Reader]]:
    """Open each memory that the call means: one, or all of the workspace (T39)."""
    with ExitStack() as stack:
        yield [
            Reader(
                errand,
                target,
                stack.enter_context(root.opened(Place.of(target, errand.around.uid))),
            )
            for target in _targets(errand)
        ]


def _targets(errand: Errand) -> list[Target]:
    if not errand.is_everywhere:
        return [errand.target]
    layout = errand.target.layout
    projects = workspace.discover(layout.base).projects
    return [errand.target, *(workspace.select(layout, project=one) for one in projects)]


def _locale(readers: Sequence[Reader]) -> str | None:
    return next((one for reader in readers if (one := reader.session_locale())), None)


def _reader_of(readers: Sequence[Reader], found: Found) -> Reader | None:
    if found.candidate is None:
        return None
    project = found.candidate.project
    return next(reader for reader in readers if reader.target.project == project)


class _Details(Value, kw_only=False):
    """What is told of the one task that was found."""

    rehydration: list[Result]
    checkpoints: Result | None
    owner: Result | None
    operation: Result | None
    card: str | None
    continuation: Result | None
    next_call: Result | None
    warnings: list[Result]


class _Answer:
    """One answer about what was found."""

    def __init__(self, errand: Errand, found: Found, reader: Reader | None, name: str) -> None:
        self._errand = errand
        self._found = found
        self._reader = reader
        self._name = name

    def put_together(self, chosen: Locale, whole: Survey) -> Result:
        """Give the answer as its fields (T73)."""
        candidate = self._found.candidate
        coverage, state = "absent", None
        stale: tuple[str, ...] = ()
        details = None
        if candidate is not None and self._reader is not None:
            read = self._reader.read(candidate.task_id or "-") if candidate.task_id else None
            coverage = "absent" if read is None else read.coverage
            state = None if read is None or candidate.problem is not None else read.state
            facts = self._reader.facts(candidate, state, self._name)
            if state is not None:
                stale = state.checkpoints.stale(facts.artifacts)
            details = self._details(self._reader, candidate, state, facts, coverage)
        outcome, code = self._outcome(stale)
        return {
            "schemaVersion": "TaskResolutionV1",
            "outcome": outcome,
            "code": code,
            "candidate": None
            if candidate is None or self._reader is None
            else self._shown(candidate, state, self._reader),
            "candidates": [one.listed() for one in self._found.several],
            "suggestions": [one.listed() for one in self._found.suggestions],
            "rehydration": [] if details is None else details.rehydration,
            "checkpoints": None if details is None else details.checkpoints,
            "staleCheckpoints": list(stale),
            "owner": None if details is None else details.owner,
            "pendingOperation": None if details is None else details.operation,
            "card": None if details is None else details.card,
            "continuation": None if details is None else details.continuation,
            "routeHint": binding.hint(self._errand),
            **chosen.fields(),
            "text": tasktext.sentence(
                outcome, chosen.text_locale, self._name, stale=stale,
                problem=None if candidate is None else candidate.problem,
                names=[one.display_name for one in self._found.suggestions],
            ),
            "scanned": {
                "directories": whole.folders,
                "bytes": whole.size,
                "budget": _budget(is_everywhere=self._errand.is_everywhere),
            },
            "ledgerCoverage": coverage,
            "warnings": [] if details is None else details.warnings,
            "nextCall": self._next_call(outcome, details),
            "mutationAuthority": False,
        }  # fmt: skip

    def _outcome(self, stale: Sequence[str]) -> tuple[str, str | None]:
        if self._found.outcome == resolve.RESOLVED and stale:
            return resolve.STALE, "TASK_CONFIRMATION_STALE"
        return self._found.outcome, self._found.code

    def _shown(self, candidate: Candidate, state: TaskState | None, reader: Reader) -> Result:
        return {
            "taskId": candidate.task_id,
            "displayName": candidate.display_name,
            "project": candidate.project,
            "kind": candidate.kind,
            "status": candidate.status,
            "legacy": candidate.is_legacy,
            "admissionPhase": None if state is None else state.admission.phase,
            "matchedBy": self._found.matched_by,
            "identityProblem": candidate.problem,
            "taskRoot": glance.under(reader.target.active_root, candidate.relative_path),
            "relativePath": candidate.relative_path,
        }

    def _details(
        self,
        reader: Reader,
        candidate: Candidate,
        state: TaskState | None,
        facts: Facts,
        coverage: str,
    ) -> _Details:
        warnings = taskdetails.warnings(reader, candidate, state, facts, coverage)
        found = self._handoff(reader, candidate)
        is_active = self._found.outcome == resolve.RESOLVED
        return _Details(
            rehydration=taskdetails.rehydration(reader, candidate, state),
            checkpoints=None if state is None else taskdetails.checkpoints(state, facts),
            owner=None if state is None else taskdetails.owner(state),
            operation=None if state is None else taskdetails.operation(state),
            card=found.text if found is not None else None,
            continuation=taskdetails.continuation(reader, candidate, state, facts, found)
            if is_active and self._errand.arguments.get("diff") is not False
            else None,
            next_call=taskdetails.next_call(candidate, state, facts),
            warnings=warnings,
        )

    def _handoff(self, reader: Reader, candidate: Candidate) -> Handoff | None:
        if candidate.task_id is None or candidate.problem is not None:
            return None
        return handoffs.newest(reader.ground, candidate.task_id, self._errand.now.today)

    def _next_call(self, outcome: str, details: _Details | None) -> Result | None:
        if outcome in {resolve.RESOLVED, resolve.STALE} and details is not None:
            return details.next_call
        if outcome == resolve.AMBIGUOUS or self._found.suggestions:
            return refusals.next_call("memory_task_resolve", {}, fill=["name"])
        return None


def _budget(*, is_everywhere: bool) -> Result:
    if is_everywhere:
        return {"directories": resolve.ALL_FOLDERS, "bytes": resolve.ALL_BYTES}
    return {"directories": resolve.PROJECT_FOLDERS, "bytes": resolve.PROJECT_BYTES}
