"""What one process offers an agent: memory's tools, the journal's, and the pages of both.

Rule 1: memory's and the journal's tools do not know each other; a set is told with `--tools`.
Rule 2: a child has no writer at all, so memory's tools are left out beside its own (T71, J70).
Rule 3: `result_continue` is there with whichever set can answer at length.
"""

from amux.core.text import to_json
from amux.errors import AmuxError, InvalidArgument
from amux.runtime.context import Context
from amux.surface.mcp.journal import JournalTools
from amux.surface.mcp.memory import MemoryTools
from amux.surface.mcp.paging import Paging
from amux.wire import strict
from amux.wire.tools import CONTINUE, shown

# `both` is what a launched session in a workspace keeps: memory's and the twelve.
SETS = ("memory", "journal", "both", "all", "none")


class Offer:
    """The tools of one process."""

    def __init__(self, context: Context, fixed: str | None) -> None:
        if fixed is not None and fixed not in SETS:
            raise InvalidArgument(
                "unknown set of tools", hint="known are " + ", ".join(SETS), argument="tools"
            )
        self._context = context
        self._paging = Paging(random_bytes=context.random_bytes, clock=context.clock)
        self._journal = JournalTools(context, fixed)
        is_child = self._journal.is_child and not self._journal.is_empty
        self._memory = MemoryTools(
            context,
            is_offered=not is_child and fixed not in ("journal", "none"),
            is_fixed=fixed is not None,
            paging=self._paging,
        )

    @property
    def is_empty(self) -> bool:
        """Tell whether this process was told to offer nothing at all."""
        return self._journal.is_empty and self._memory.is_empty

    @property
    def has_memory(self) -> bool:
        """Tell whether memory may be among what is offered."""
        return not self._memory.is_empty

    def ask_once(self) -> None:
        """Begin to ask the Hub what it may offer, where that matters."""
        self._memory.ask_once()

    def knows(self, name: object) -> bool:
        """Tell whether a tool may be called here."""
        if not isinstance(name, str):
            return False
        if name == CONTINUE.name:
            return not self.is_empty
        return self._journal.knows(name) or self._memory.knows(name)

    def listed(self) -> list[dict[str, object]]:
        """Give the tools as `tools/list` shows them: always the same ones."""
        ours = self._journal.listed()
        found = self._memory.listed()
        if ours and not found:
            found = [shown(CONTINUE.name, CONTINUE)]
        return [*found, *ours]

    def call(self, name: str, given: object, *, client: str) -> tuple[str, bool]:
        """Call a tool: the text that the model sees, and whether it is a refusal."""
        try:
            return self._answer(name, given, client), False
        except AmuxError as refusal:
            return refused(refusal), True

    def notice(self, text: str) -> None:
        """Tell a person something, on standard error."""
        self._memory.notice(text)

    def _answer(self, name: str, given: object, client: str) -> str:
        if name == CONTINUE.name:
            return self._paging.resume(str(strict.arguments(CONTINUE, given)["continuation"]))
        if self._journal.knows(name):
            return self._paging.open(self._journal.call(name, given, client=client))
        return self._memory.call(name, given)


def refused(refusal: AmuxError) -> str:
    """Spell a refusal as the text of a tool's answer."""
    return to_json(refusal.body()).decode("utf-8", "replace")
