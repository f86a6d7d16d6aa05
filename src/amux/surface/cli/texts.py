"""The verbs that print what amux is: help, completion, man. All of it is made from the table."""

from amux.runtime.context import Context
from amux.surface.cli import completions, helptext, manpage, output
from amux.surface.cli.parse import Given, lead_of


def help_on(ctx: Context, given: Given) -> int:
    """Show help on amux, on a family of verbs, or on one verb."""
    words = given.help_words if given.help_words is not None else given.text("verb").split()
    return output.page(ctx, helptext.render(lead_of(list(words))))


def completion(ctx: Context, given: Given) -> int:
    """Print a completion script."""
    return output.page(ctx, completions.SCRIPTS[given.text("shell")]())


def man(ctx: Context, _given: Given) -> int:
    """Print the man page."""
    return output.page(ctx, manpage.render())
