"""Who does the work of which tool: a function of an errand each.

Rule 1: a tool is here once; the desk knows no tool by another way.
Rule 2: a function gives its own result fields or raises a refusal (see `errand.py`).
"""

from collections.abc import Callable

from amux.journal import childwork, finding, listing, service, sessionpart, tasks, work, writing
from amux.journal.errand import Errand

Result = dict[str, object]
Work = Callable[[Errand], Result]


def _write(errand: Errand) -> Result:
    return writing.write(errand, sessionpart.Tasks())


WORK: dict[str, Work] = {
    "memory_status": service.memory_status,
    "memory_summary_query": service.summary_query,
    "memory_session_query": service.session_query,
    "memory_session_read": service.session_read,
    "memory_summary_read": service.summary_read,
    "memory_session_allocate": writing.allocate,
    "memory_session_write": _write,
    "memory_summary_append": writing.append,
    "memory_decision_append": writing.decide,
    "memory_task_resolve": finding.task_resolve,
    "memory_ingress_register": tasks.register,
    "memory_task_admit_v2": tasks.admit,
    "memory_task_write_owner": tasks.own,
    "memory_cp_confirm": tasks.confirm,
    "memory_task_operation": work.operation,
    "memory_artifact_mutation_reconcile_v1": work.reconcile,
    "memory_task_terminal_v1": work.finish,
    "memory_child_plan": childwork.plan,
    "memory_child_submit": childwork.submit,
    "memory_task_list": listing.task_list,
    "memory_task_show": listing.task_show,
    "memory_task_revoke": listing.task_revoke,
}
