"""What one process remembers between its calls: read plans, context epochs, write contexts.

Rule 1: all of it may be lost: a new process begins with a status (J52) and with a renew (T56).
Rule 2: it is never written anywhere; what outlives a process is the ledger's.
Rule 3: calls run side by side: each step here is whole.
"""

import threading

from amux.journal.call.readplan import Asker, ReadPlan
from amux.journal.ledger.live import Live
from amux.journal.ledger.meta import Seen

MAX_PLANS = 64  # targets of one process; beyond, the oldest must be opened anew
MAX_CONTEXTS = 1024


class Book:
    """The memory of one process."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._plans: dict[Asker, ReadPlan] = {}
        self._epochs: dict[str, str] = {}
        self._contexts: dict[tuple[str, str], str] = {}
        self.live = Live()
        """The live files that this process holds (T10)."""
        self.seen = Seen()
        """The latest state of each task that this process has seen (T8)."""

    def plan(self, asker: Asker) -> ReadPlan | None:
        """Give the current plan of a target."""
        return self._plans.get(asker)

    def keep(self, plan: ReadPlan) -> None:
        """Make a plan its target's current one."""
        with self._writing:
            self._plans.pop(plan.asker, None)
            self._plans[plan.asker] = plan
            if len(self._plans) > MAX_PLANS:
                del self._plans[next(iter(self._plans))]

    def epoch(self, session_digest: str) -> str | None:
        """Give the context epoch that this process last renewed for a session (J51)."""
        return self._epochs.get(session_digest)

    def renew(self, session_digest: str, epoch: str) -> None:
        """Remember a session's new context epoch."""
        with self._writing:
            self._epochs[session_digest] = epoch

    def context(self, active_root: str, task_id: str) -> str | None:
        """Give the digest of the write context that this process last returned (T56)."""
        return self._contexts.get((active_root, task_id))

    def saw(self, active_root: str, task_id: str, context_digest: str) -> None:
        """Remember the write context that a receipt returns."""
        with self._writing:
            self._contexts.pop((active_root, task_id), None)
            self._contexts[active_root, task_id] = context_digest
            if len(self._contexts) > MAX_CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
