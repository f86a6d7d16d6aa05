"""Who does the work of the tools on tasks: a function of an errand each.

Rule 1: it is loaded with the first call that is about a task: it is half of the journal, and a
        command line that reads a status must not pay for it.
"""

from amux.journal.admission import calls as admission
from amux.journal.call.errand import Errand
from amux.journal.children import childwork
from amux.journal.finding import finding, listing, sessionpart
from amux.journal.roster import WRITE, Result, Work
from amux.journal.sessions import writing
from amux.journal.work import calls as work


def _write(errand: Errand) -> Result:
    return writing.write(errand, sessionpart.Tasks())


WORK: dict[str, Work] = {
    WRITE: _write,
    "memory_task_resolve": finding.task_resolve,
    "memory_ingress_register": admission.register,
    "memory_task_admit_v2": admission.admit,
    "memory_task_write_owner": admission.own,
    "memory_cp_confirm": admission.confirm,
    "memory_task_operation": work.operation,
    "memory_artifact_mutation_reconcile_v1": work.reconcile,
    "memory_task_terminal_v1": work.finish,
    "memory_child_plan": childwork.plan,
    "memory_child_submit": childwork.submit,
    "memory_task_list": listing.task_list,
    "memory_task_show": listing.task_show,
    "memory_task_revoke": listing.task_revoke,
}
