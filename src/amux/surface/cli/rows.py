"""One verb of the table, found without loading the rest of it: a start must cost little."""

from amux.core.late import Late
from amux.surface.cli import core_verbs
from amux.surface.cli.verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.surface.cli import identity_verbs, journal_verbs, launch_verbs, workspace_verbs
else:
    identity_verbs = Late("amux.surface.cli.identity_verbs")
    journal_verbs = Late("amux.surface.cli.journal_verbs")
    launch_verbs = Late("amux.surface.cli.launch_verbs")
    workspace_verbs = Late("amux.surface.cli.workspace_verbs")


def find(name: str) -> Verb | None:
    """Find a verb by its whole name; its first word tells whose row it is."""
    return next((verb for verb in _rows(name.partition(" ")[0]) if verb.name == name), None)


def _rows(lead: str) -> tuple[Verb, ...]:
    match lead:
        case "run" | "resume" | "session" | "doctor":
            return launch_verbs.ROWS
        case "principal" | "token" | "audit":
            return identity_verbs.ROWS
        case "workspace":
            return workspace_verbs.ROWS
        case "journal" | "task":
            return journal_verbs.ROWS
        case _:
            return (*core_verbs.ROWS, *core_verbs.LAST_ROWS)
