"""The desk of one process: a tool's name and its arguments in, one JSON object out (J1).

Rule 1: one set of functions serves MCP and the command line; a refusal is raised, never returned.
Rule 2: before a tool runs, in this order: arguments (J7), target (J18), agent (J30-J32), child
        mode (T71), session key (J27), read plan (J52). The first that fails is the answer.
Rule 3: what is remembered between calls is in the book; the desk itself keeps nothing.
"""

import threading
from collections.abc import Callable, Mapping
from itertools import islice
from types import ModuleType

from amux.core.canonical import digest
from amux.disk import glance
from amux.errors import Ambiguous, AmuxError, Corrupt
from amux.journal.call import arguments, readplan, surroundings
from amux.journal.call.book import Book
from amux.journal.call.errand import Errand
from amux.journal.call.readplan import Asker, ReadPlan
from amux.journal.call.surroundings import Start, Surroundings
from amux.journal.call.tool import Tool
from amux.journal.call.tools import NOTE, SOURCES, TOOLS
from amux.journal.ground import agent as agents
from amux.journal.ground import layout, workspace
from amux.journal.ground.workspace import Target
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.state import RuntimeState
from amux.journal.moment import Moment
from amux.journal.refusals import refuse
from amux.journal.roster import WORK, Result, Work, names_a_task
from amux.journal.sessions import service
from amux.journal.store import trouble
from amux.journal.store.root import Place, opened

Late = Callable[[str], ModuleType]
"""Loads a module of the table of `app`."""

TASKS = "journal_tasks"
MAX_WARNINGS = 20  # J56
CLIENTS = ".memory/clients"
MAX_AGENTS = 256  # directories of `.memory/clients` that are looked at

# A session that cannot be told from its neighbours owns nothing (J27).
_OWNING = {
    "memory_ingress_register", "memory_task_admit_v2", "memory_task_write_owner",
    "memory_task_operation", "memory_artifact_mutation_reconcile_v1", "memory_task_terminal_v1",
    "memory_child_plan",
}  # fmt: skip
_OPENING = {readplan.STATUS, readplan.RESOLVE}
_PLANNED = {readplan.SUMMARY, readplan.SESSION}
_PLAN = "memory_context_plan"
_SUBMIT = "memory_child_submit"


class Desk:
    """The journal as one process has it: surroundings, and what is remembered between calls."""

    def __init__(self, around: Surroundings, late: Late) -> None:
        self._around = around
        self._late = late
        self._book = Book()
        self._loading = threading.Lock()

    @classmethod
    def of(
        cls,
        place: Start,
        *,
        environment: Mapping[str, str],
        client: str | None,
        session: str,
        host: str,
        posix_session: int,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        late: Late,
    ) -> "Desk":
        """Open the desk of a process; `client` is None for the command line."""
        return cls(
            surroundings.gather(
                place,
                environment=environment,
                client=client,
                session=session,
                host=host,
                posix_session=posix_session,
                clock=clock,
                random_bytes=random_bytes,
            ),
            late,
        )

    def call(self, name: str, given: object) -> Result:
        """Do what a tool does and give its result; raises the refusal."""
        tool = TOOLS[name]
        now = Moment.at(self._around.clock(), self._around.zone)
        found = arguments.check(tool, given, now)
        try:
            errand = self._errand(tool, found, now)
        except Ambiguous as refusal:
            raise _to_complete(refusal, tool, given) from None
        if name == _PLAN:
            return _finished(tool, errand, self._plan(errand))
        if name in _PLANNED:
            errand = errand.replace(plan=self._open_plan(errand))
        elif name in _OPENING:
            errand = self._opening(errand)
        answer = self._work(tool, errand)(errand)
        if name in _OPENING and errand.plan is not None:
            self._book.keep(errand.plan)
            self._open_others(errand, answer)
        return _finished(tool, errand, answer)

    def _work(self, tool: Tool, errand: Errand) -> Work:
        """Find who does it; the tasks are loaded with the first call that is about one."""
        if not tool.is_task and not names_a_task(errand):
            return WORK[tool.name]
        with self._loading:
            roster = self._late(TASKS)
        found: Work = roster.WORK[tool.name]
        return found

    def _errand(self, tool: Tool, found: arguments.Arguments, now: Moment) -> Errand:
        target, is_everywhere = self._target(tool, found)
        _require_spellable(target.active_root)
        host = agents.host(self._around.facts, self._around.client)
        agent = self._agent(tool, found, host, target)
        self._require_allowed(tool)
        key = agents.session_key(
            self._around.facts,
            host,
            given=self._around.session_named,
            fallback=self._around.session_fallback,
            is_mcp=self._around.is_mcp,
        )
        if tool.name in _OWNING and not key.is_own:
            raise refuse(
                "MEMORY_SESSION_KEY_REQUIRED",
                "a session that nothing names owns no task",
                hint="export AMUX_SESSION=… with a name of your own, then call again",
            )
        session_digest = digest(f"amux-session:{key.key}")
        return Errand(
            tool=tool.name,
            arguments=found,
            now=now,
            target=target,
            agent=agent.id,
            agent_shown=agent.plain(),
            session_key=key.key,
            session_digest=session_digest,
            owns_key=key.is_own,
            epoch=self._epoch(target, session_digest),
            plan=None,
            around=self._around,
            book=self._book,
            is_everywhere=is_everywhere,
            warnings=tuple(
                {"code": code} for code in (*target.warnings, *agent.warnings, *key.warnings)
            ),
        )

    def _target(self, tool: Tool, found: Mapping[str, object]) -> tuple[Target, bool]:
        """Choose the memory that a call means; tell whether a resolve means all of them (T39)."""
        project, scope = _text(found, "project"), _text(found, "scope")
        child = self._around.child
        if child is not None and child.active_root:
            return self._childs_target(tool, child.active_root, project, scope), False
        around = self._around
        where = layout.find(
            around.start, is_named=around.is_start_named, home=around.home, uid=around.uid
        )
        try:
            return workspace.select(where, project=project, scope=scope), False
        except AmuxError as refusal:
            is_open = refusal.details.get("reason") == "MEMORY_SCOPE_AMBIGUOUS"
            if tool.name != readplan.RESOLVE or not is_open or scope is not None:
                raise
        return workspace.select(where, scope=workspace.WORKSPACE_SCOPE), True

    def _childs_target(
        self, tool: Tool, active_root: str, project: str | None, scope: str | None
    ) -> Target:
        """Give the memory that the lease of a child names, whatever its worktree holds (T71)."""
        root = glance.real(active_root)
        try:
            where = layout.find(root, is_named=True, home=self._around.home, uid=self._around.uid)
        except AmuxError:
            self._require_allowed(tool)  # a writer is refused as a child's, whatever its lease says
            raise
        below = glance.within(root, where.folder)
        if project is None and scope is None and below and where.kind == layout.NAMESPACE:
            is_shared = below == workspace.WORKSPACE_SCOPE
            project, scope = (None, below) if is_shared else (below, None)
        target = workspace.select(where, project=project, scope=scope)
        if target.active_root != root:
            raise refuse(
                "MEMORY_PROJECT_MISMATCH",
                "a child works in the memory that its lease names, and in no other",
                hint="leave project and scope away",
            )
        return target

    def _agent(
        self, tool: Tool, found: Mapping[str, object], host: agents.Host, target: Target
    ) -> agents.Agent:
        folder = glance.under(target.base, layout.FOLDER)
        try:
            data = glance.read(
                glance.under(folder, agents.PROFILE), max_bytes=agents.PROFILE_MAX_BYTES
            )
        except OSError:
            data = b""  # it names nobody, and an agent is told so
        hint = agents.profile(data)
        named = _text(found, "agent")
        if not tool.is_read:
            return agents.for_write(host, named, hint)
        is_known = named or host.agent or hint.agent
        return agents.for_read(host, named, hint, [] if is_known else self._clients(target))

    def _clients(self, target: Target) -> list[str]:
        """Name the directories of agents, for a caller whom nothing else names (J31)."""
        with opened(Place.of(target, self._around.uid)) as ground, trouble.told(CLIENTS):
            folder = None if ground is None else ground.open_folder(CLIENTS)
            if folder is None:
                return []
            with folder:
                names = sorted(islice(folder.names(), MAX_AGENTS))
                looks = [(name, folder.look(name)) for name in names]
        return [name for name, seen in looks if seen is not None and seen.kind == "folder"]

    def _require_allowed(self, tool: Tool) -> None:
        if self._around.child is None or tool.is_read or tool.name == _SUBMIT:
            return
        raise refuse(
            "CHILD_AGENT_WRITE_FORBIDDEN",
            "a child agent writes no memory",
            hint="hand your evidence in with memory_child_submit; the root writes",
        )

    def _epoch(self, target: Target, session_digest: str) -> str:
        """Give the session's context: renewed here, or as the ledger has it, or its first (J51)."""
        renewed = self._book.epoch(session_digest)
        if renewed is not None:
            return renewed
        with opened(Place.of(target, self._around.uid)) as ground:
            try:
                found = Ledger(RuntimeState(ground)).read("session", session_digest)
            except Corrupt:
                found = None  # what needs the record refuses it by name (T7)
        epoch = None if found is None else found.body.get("contextEpoch")
        return epoch if isinstance(epoch, str) else readplan.first_epoch(session_digest)

    def _plan(self, errand: Errand) -> Result:
        """Replace the current plan by one of the caller's own choice, not yet open (J50)."""
        sources = errand.arguments.get("sources", SOURCES)
        version = errand.arguments["planVersion"]
        plan = readplan.new(
            _asker(errand),
            nonce=self._around.random_bytes(16),
            epoch=errand.epoch,
            session_digest=errand.session_digest,
            now=errand.now,
            intent=str(errand.arguments["intent"]),
            sources=tuple(map(str, sources)) if isinstance(sources, list) else SOURCES,
            version=1 if version == 1 else 2,
        )
        self._book.keep(plan)
        return plan.shown()

    def _opening(self, errand: Errand) -> Errand:
        """Give the errand its plan, opened: it is kept once the tool has answered."""
        binding = errand.arguments.get("contextBinding")
        if binding is not None:
            readplan.require_same(self._book.plan(_asker(errand)), binding, _where(errand))
        if errand.arguments.get("freshContext") is True and errand.tool == readplan.STATUS:
            epoch = readplan.new_epoch(self._around.random_bytes(8))
            self._book.renew(errand.session_digest, epoch)
            errand = errand.replace(epoch=epoch)
        return errand.replace(plan=self._current(errand).opened())

    def _open_others(self, errand: Errand, status: Result) -> None:
        """Open the memories of the agents that a status has shown: its next call may ask them."""
        others = status.get("otherAgents")
        for other in others if isinstance(others, list) else ():
            self._book.keep(self._current(errand.replace(agent=str(other["id"]))).opened())

    def _open_plan(self, errand: Errand) -> ReadPlan:
        """Give the open plan that a query goes by; a command line takes the status itself first."""
        current = self._book.plan(_asker(errand))
        if current is not None and current.epoch != errand.epoch:
            current = None  # of a context that is gone
        if not self._around.is_mcp and current is None:
            service.memory_status(
                errand.replace(
                    tool=readplan.STATUS,
                    arguments={"limit": 1, "freshContext": False},
                    plan=self._current(errand).opened(),
                )
            )
            current = self._current(errand).opened()
            self._book.keep(current)
        binding = errand.arguments.get("contextBinding")
        return readplan.require(current, errand.tool, binding, _where(errand))

    def _current(self, errand: Errand) -> ReadPlan:
        asker = _asker(errand)
        current = self._book.plan(asker)
        if current is not None and current.epoch == errand.epoch:
            return current
        # A new context asks anew, but for what the caller had chosen.
        return readplan.new(
            asker,
            nonce=self._around.random_bytes(16),
            epoch=errand.epoch,
            session_digest=errand.session_digest,
            now=errand.now,
            intent=current.intent if current else "normal",
            sources=current.sources if current else SOURCES,
            version=current.version if current else 2,
        )


def _to_complete(refusal: Ambiguous, tool: Tool, given: object) -> Ambiguous:
    """Give a refusal the call that succeeds once it says which memory is meant (J8)."""
    missing = "agent" if "agents" in refusal.details else "project"
    call = arguments.again(tool, given, missing) if isinstance(given, Mapping) else None
    if call is not None:
        refusal.details.setdefault("nextCall", call)
    return refusal


def _where(errand: Errand) -> Result:
    """Give the arguments by which another call finds the same memory."""
    names = ("agent", "project", "scope")
    return {name: errand.arguments[name] for name in names if name in errand.arguments}


def _require_spellable(path: str) -> None:
    """Refuse a workspace whose path no answer could spell: its bytes are not UTF-8."""
    if any("\udc80" <= character <= "\udcff" for character in path):
        raise refuse(
            "MEMORY_PATH_UNSAFE",
            "the path of the workspace is not UTF-8",
            hint="rename the directory, or work in one whose path is UTF-8",
        )


def _asker(errand: Errand) -> Asker:
    return Asker(
        active_root=errand.target.active_root,
        project=errand.target.project,
        scope=errand.target.scope,
        agent=errand.agent,
    )


def _finished(tool: Tool, errand: Errand, own: Result) -> Result:
    """Give a result with what every result carries (J32, J56, J9)."""
    shared: Result = {"schemaVersion": own["schemaVersion"]} if "schemaVersion" in own else {}
    shared |= {
        "activeRoot": errand.target.active_root,
        "project": errand.target.project,
        "scope": errand.target.scope,
        "agent": dict(errand.agent_shown),
    }
    if errand.plan is not None:
        shared["planId"] = errand.plan.plan_id
    shared |= own
    shared["warnings"] = _merged(errand, own.get("warnings"))
    if tool.is_read:
        shared["note"] = NOTE
    return shared


def _merged(errand: Errand, own: object) -> list[object]:
    found: list[object] = [*errand.warnings, *(own if isinstance(own, list) else [])]
    if len(found) <= MAX_WARNINGS:
        return found
    cut: dict[str, object] = {"code": "warnings-cut"}
    return [*[one for one in found if one != cut][:MAX_WARNINGS], cut]


def _text(found: Mapping[str, object], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None
