"""One call as every tool sees it: what is asked, of which memory, by whom, when.

Rule 1: the desk makes it after the checks that all tools share (J7, J18, J28-J32, J27, J52, T71);
        a tool starts where they end and repeats none of them.
Rule 2: a tool gives its own result fields as a dict. What J56 has every result carry (activeRoot,
        project, scope, agent, planId, note) and the warnings of this value the desk adds.
Rule 3: the clock was read once, for `now`.
"""

from collections.abc import Mapping

from amux.core.value import Value
from amux.journal.call.book import Book
from amux.journal.call.readplan import ReadPlan
from amux.journal.call.surroundings import Surroundings
from amux.journal.ground.workspace import Target
from amux.journal.moment import Moment

Warning = dict[str, object]  # noqa: A001 - its name in J56


class Errand(Value):
    """One call of one tool, checked as far as all tools are checked alike."""

    tool: str
    arguments: Mapping[str, object]
    """As checked: JSON values, constant defaults filled in, `date` of a read too (YYYYMMDD)."""
    now: Moment
    target: Target
    agent: str
    """The agent id that J30 (a writer) or J31 (a read) gave."""
    agent_shown: Mapping[str, object]
    """J32's object: id, source, profileAgent, conflict, reason."""
    session_key: str
    session_digest: str
    owns_key: bool
    """False for a command line without a key of its own: it may not own (J27)."""
    epoch: str
    """The context epoch as this process knows it (J51)."""
    plan: ReadPlan | None
    """The open read plan of a query; None for the others."""
    around: Surroundings
    book: Book
    """What this process remembers: write contexts and renewed epochs of tasks (T56, J51)."""
    is_everywhere: bool = False
    """A resolve at a namespace base without project and scope: it looks through all of them; the
    target then is the workspace's memory (T39)."""
    warnings: tuple[Warning, ...] = ()
    """What target, agent and session had to say; the desk puts them before the tool's own."""

    @property
    def query(self) -> dict[str, object]:
        """Give J56's `query`: the arguments after defaults, but who, where, binding and cursor."""
        left_out = ("agent", "project", "scope", "contextBinding", "cursor")
        return {name: value for name, value in self.arguments.items() if name not in left_out}

    @property
    def where(self) -> dict[str, object]:
        """Repeat how the caller named this memory, for a call that is to come next."""
        names = ("agent", "project", "scope")
        return {name: self.arguments[name] for name in names if name in self.arguments}

    def text(self, name: str) -> str | None:
        """Give a text argument; None where it was not given."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int:
        """Give an integer that has a default."""
        value = self.arguments[name]
        return value if isinstance(value, int) else 0
