"""One run of the `amux` command: read the line, load the verb's module, call it.

Rule 1: only the module of the verb that was called is imported: a start must cost little.
Rule 2: a refusal ends here as the last line of standard error, and as an exit status.
"""

from importlib import import_module
from types import ModuleType

from amux import __version__
from amux.errors import AmuxError
from amux.runtime.context import Context
from amux.surface.cli import output, parse

PACKAGE = "amux.surface.cli"


def run(argv: list[str], ctx: Context) -> int:
    """Run one command line (without the program's name) and give its exit status."""
    try:
        given = parse.parse(parse.utf8(argv))
        if given.wants_version:
            return output.page(ctx, f"amux {__version__}\n")
        if given.verb is None:
            return int(_load("texts").help_on(ctx, given))
        module, _, function = given.verb.handler.partition(":")
        return int(getattr(_load(module), function)(ctx, given))
    except AmuxError as refusal:
        return output.refuse(ctx, refusal)
    except KeyboardInterrupt:
        return output.interrupted(ctx)


def _load(module: str) -> ModuleType:
    return import_module(f"{PACKAGE}.{module}")
