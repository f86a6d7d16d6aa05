"""A root's tasks as a reader sees them: names, status, and the ledger's word, without the lock.

Rule 1: nothing is written, locked, made or repaired; what cannot be read is told as unreadable.
Rule 2: all that the ledger says of a task in one answer is of one read of its record (T7).
Rule 3: a state that was made under another root identity or generation is no state (T8).
"""

from amux.core.value import Value
from amux.disk import glance
from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.call import readplan
from amux.journal.call.errand import Errand
from amux.journal.ground.layout import PROJECT
from amux.journal.ground.workspace import Target
from amux.journal.ledger import meta
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.meta import Meta
from amux.journal.ledger.state import RuntimeState
from amux.journal.store import root
from amux.journal.tasks import authority, observing, survey
from amux.journal.tasks.facts import Facts
from amux.journal.tasks.projectlease import NO_LAYOUT, Standing
from amux.journal.tasks.resolve import Candidate
from amux.journal.tasks.survey import Survey
from amux.journal.tasks.task import TaskState

COMPLETE, ABSENT, UNREADABLE = "complete", "absent", "unreadable"


class Read(Value, kw_only=False):
    """What the ledger says of one task, and how well it could be asked."""

    coverage: str
    state: TaskState | None


class Reader:
    """One active root, open for reading."""

    def __init__(self, errand: Errand, target: Target, ground: Ground | None) -> None:
        self.target = target
        self.ground = ground
        self._errand = errand
        self._ledger = Ledger(RuntimeState(ground))
        self._known: dict[str, Read] = {}
        self._identity = self._root_identity()
        self._meta, self._is_meta_damaged = self._read_meta()

    def survey(self) -> Survey:
        """Look at every task directory."""
        return survey.survey(self.ground, self.target.project, lambda key: self.read(key).state)

    def read(self, task_id: str) -> Read:
        """Read a task's record, once in a call."""
        if task_id not in self._known:
            self._known[task_id] = self._read(task_id)
        return self._known[task_id]

    def _read(self, task_id: str) -> Read:
        try:
            found = self._ledger.read("task", task_id)
            state = None if found is None else authority.state_of(found)
        except (AmuxError, ValueError):
            return Read(UNREADABLE, None)
        if state is None:
            return Read(ABSENT, None)
        if self._is_meta_damaged:
            return Read(UNREADABLE, None)
        if self._meta is None or self._meta.is_foreign(
            state.root_identity_digest, state.runtime_generation
        ):
            return Read(ABSENT, None)
        return Read(COMPLETE, state)

    def session_locale(self) -> str | None:
        """Give the locale that the session's record has."""
        try:
            found = self._ledger.read("session", self._errand.session_digest)
        except AmuxError:
            return None
        locale = None if found is None else found.body.get("locale")
        return locale if isinstance(locale, str) else None

    def facts(self, candidate: Candidate, state: TaskState | None, name: str) -> Facts:
        """Gather what receipts show of a task; of authority nothing is asked here."""
        errand = self._errand
        return Facts(
            standing=Standing(
                project=self.target.project,
                active_root=self.target.active_root,
                physical_root=glance.real(self.target.active_root),
                root_identity=self._identity or "",
                layout_identity=NO_LAYOUT,
                session=errand.session_digest,
                agent=errand.agent,
                context_epoch=readplan.first_epoch(errand.session_digest),
                route_revision=1,
                generation=0 if self._meta is None else self._meta.generation,
            ),
            name=name,
            target={} if self.target.layout.kind == PROJECT else {"project": self.target.project},
            artifacts={}
            if state is None or self.ground is None
            else observing.artifacts(self.ground, candidate.relative_path, state.checkpoints),
        )

    def _root_identity(self) -> str | None:
        root_id = root.root_id(self.ground)
        if not root_id:
            return None
        return root.identity(glance.real(self.target.active_root), self.target.project, root_id)

    def _read_meta(self) -> tuple[Meta | None, bool]:
        if self._identity is None:
            return None, False
        try:
            return meta.read(self._ledger, self._identity), False
        except AmuxError:
            return None, True
