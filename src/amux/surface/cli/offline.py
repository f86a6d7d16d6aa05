"""Asking the Hub, or doing without one: for what an administrator must be able to do at any time.

Rule 1: a Hub that runs is asked; with none, the same service works in process under the root's
        lock. No Hub is started for it (M47).
Rule 2: a process that was given a credential has what the credential gives, and a Hub to ask; it
        does not become the owner of the root by finding no Hub (M63).
"""

from amux.errors import Unavailable
from amux.runtime.context import Answer, Context
from amux.surface.cli import calls


def ask(ctx: Context, name: str, arguments: dict[str, object]) -> Answer:
    """Make a call of the Hub that runs, or in process where none does."""
    try:
        return calls.ask_running(ctx, name, arguments)
    except Unavailable as refusal:
        if not calls.nobody_listens(refusal) or ctx.config.connection.token:
            raise
    return ctx.offline().ask(name, arguments)
