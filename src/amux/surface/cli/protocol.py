"""The verb `protocol`: the text of a session with memory, for clients that amux does not start.

Rule 1: amux switches the agent's own memory off where it starts the agent, and only there; so
        whoever takes the text elsewhere is told, each time (M61).
"""

from amux.runtime import protocol as texts
from amux.runtime.context import Context
from amux.surface.cli import output
from amux.surface.cli.parse import Given


def protocol(ctx: Context, given: Given) -> int:
    """Print the text in one form."""
    form = given.text("form")
    output.notice(ctx, "the agent's own memory stays on; switch it off where you paste this")
    if given.has("json"):
        answer: dict[str, object] = {
            "form": form,
            "version": texts.VERSION,
            "digest": texts.digest(form),
            "text": texts.text(form),
        }
        return output.own(ctx, answer, as_json=True, readable=lambda _: "")
    return output.page(ctx, texts.text(form))
