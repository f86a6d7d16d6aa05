"""The journal's tools: which are offered here, and what a call answers.

Rule 1: they need no Hub and ask none (J1). The journal itself is loaded with the first call.
Rule 2: the list is fixed with the process: twelve where a workspace is (rows 1 to 3 of J13), all
        where they are asked for, those of a child under a child's lease (J70, T71).
Rule 3: a tool that is not listed is unknown here; the command line has its verb.
"""

import threading

from amux.core.text import to_json
from amux.journal.call.tools import CHILD, DEFAULT, EVERY, listing
from amux.journal.ground import layout
from amux.runtime.context import Context, Desk


class JournalTools:
    """The journal's tools of one process."""

    def __init__(self, context: Context, fixed: str | None) -> None:
        self._context = context
        self._opening = threading.Lock()
        self._desk: Desk | None = None
        self._names: tuple[str, ...] = ()
        if fixed not in ("memory", "none"):
            # J12: where this process started, whatever becomes of its working directory.
            self._place = context.place("")
            self._names = self._offered(fixed)

    @property
    def is_empty(self) -> bool:
        """Tell whether none is offered."""
        return not self._names

    @property
    def is_child(self) -> bool:
        """Tell whether this process serves a child, which hands in evidence and writes nothing."""
        return bool(self._context.config.child_lease)

    def knows(self, name: str) -> bool:
        """Tell whether a tool may be called here; to a child a writer is refused by name (T71)."""
        return name in self._names or (self.is_child and name in EVERY)

    def listed(self) -> list[dict[str, object]]:
        """Give the tools as `tools/list` shows them."""
        return listing(self._names) if self._names else []

    def call(self, name: str, given: object, *, client: str) -> str:
        """Call a tool and give its answer; `client` is what the MCP client calls itself."""
        with self._opening:
            if self._desk is None:
                self._desk = self._context.desk(self._place, client=client)
        return to_json(self._desk.call(name, given)).decode("utf-8")

    def _offered(self, fixed: str | None) -> tuple[str, ...]:
        if self.is_child:
            return CHILD
        if fixed is not None:
            return EVERY if fixed == "all" else DEFAULT
        place = self._place
        is_there = layout.is_there(
            place.start, is_named=place.is_named, home=place.home, uid=place.uid
        )
        return DEFAULT if is_there else ()
