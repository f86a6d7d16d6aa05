"""Who does the work of the tools on sessions: a function of an errand each.

Rule 1: a tool is in this roster or in that of tasks, once; the desk knows no tool by another way.
Rule 2: a function gives its own result fields or raises a refusal (see `errand.py`).
"""

from collections.abc import Callable

from amux.journal.call.errand import Errand
from amux.journal.sessions import service, writing

Result = dict[str, object]
Work = Callable[[Errand], Result]

WRITE = "memory_session_write"

WORK: dict[str, Work] = {
    "memory_status": service.memory_status,
    "memory_summary_query": service.summary_query,
    "memory_session_query": service.session_query,
    "memory_session_read": service.session_read,
    "memory_summary_read": service.summary_read,
    "memory_session_allocate": writing.allocate,
    WRITE: writing.write,
    "memory_summary_append": writing.append,
    "memory_decision_append": writing.decide,
}


def names_a_task(errand: Errand) -> bool:
    """Tell whether a session's write is about a task too (T27, J69)."""
    handoff = errand.arguments.get("handoff")
    in_card = isinstance(handoff, dict) and "task" in handoff
    return errand.tool == WRITE and (in_card or "task" in errand.arguments)
