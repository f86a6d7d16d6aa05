"""The one table of verbs: parsing, help, completion and the man page are all made from it.

Rule 1: a verb is a row, in a module named `…_verbs.py`; nothing about verbs or options is said
        anywhere else.
Rule 2: an option's name means the same, and takes the same kind of value, in every verb but
        `--cursor`, which is an agent in `workspace`; which values there are is the verb's.
Rule 3: `handler` names a module beside this one and its function; only the module of the verb
        that was called is ever loaded (`main.py`).
Rule 4: the whole table is for those who need the whole; a command line that is right needs one
        module of rows (`rows.py`).
"""

from amux.surface.cli.core_verbs import LAST_ROWS
from amux.surface.cli.core_verbs import ROWS as CORE_ROWS
from amux.surface.cli.identity_verbs import ROWS as IDENTITY_ROWS
from amux.surface.cli.journal_verbs import ROWS as JOURNAL_ROWS
from amux.surface.cli.launch_verbs import ROWS as LAUNCH_ROWS
from amux.surface.cli.verb import Option
from amux.surface.cli.workspace_verbs import ROWS as WORKSPACE_ROWS

_ROWS = (
    *CORE_ROWS,
    *IDENTITY_ROWS,
    *LAUNCH_ROWS,
    *WORKSPACE_ROWS,
    *JOURNAL_ROWS,
    *LAST_ROWS,
)

VERBS = {verb.name: verb for verb in _ROWS}

GLOBAL_OPTIONS = (
    Option("help", "", "show help on amux, or on the verb named before", kind="flag"),
    Option("version", "", "show the release", kind="flag"),
)
_OPTIONS = [*GLOBAL_OPTIONS, *(option for verb in _ROWS for option in verb.options)]
# Of two with one name, the one with a value stands for both before a verb is known.
OPTIONS = {option.name: option for option in sorted(_OPTIONS, key=lambda one: one.kind != "flag")}
