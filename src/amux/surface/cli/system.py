"""The verbs on the whole system: its settings and its status (M6, M47).

Rule 1: a Hub that runs is asked; with none, the same service works in process under the root's
        lock. No Hub is started for it.
"""

from amux.client import Answer
from amux.errors import NotFound, Unavailable
from amux.runtime.context import Answer as AnyAnswer
from amux.runtime.context import Context
from amux.surface.cli import calls, output, render
from amux.surface.cli.parse import Given


def set_value(ctx: Context, given: Given) -> int:
    """Save a setting, and say whether a restart is due."""
    found = _ask(ctx, "settings", given.wire("name", "value"))
    status = output.answer(ctx, found.text, as_json=given.has("json"), readable=render.setting)
    if found.value().get("restart_due"):
        output.notice(ctx, "a restart is due: `amux hub restart` puts it in force")
    return status


def get(ctx: Context, given: Given) -> int:
    """Show one setting as saved and as in force."""
    name = given.text("name")
    found = _ask(ctx, "status", {}).value()
    settings = found.get("settings")
    value = settings.get(name) if isinstance(settings, dict) else None
    if not isinstance(value, dict):
        raise NotFound("the Hub knows no such setting", argument="name")
    due = bool(found.get("restart_due")) and value.get("saved") != value.get("effective")
    answer = {"name": name, **value, "restart_due": due}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.setting)


def status(ctx: Context, given: Given) -> int:
    """Show the settings, and whether a restart is due."""
    found = _ask(ctx, "status", {})
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.system)


def _ask(ctx: Context, name: str, arguments: dict[str, object]) -> Answer | AnyAnswer:
    try:
        return calls.ask_running(ctx, name, arguments)
    except Unavailable as refusal:
        if not calls.nobody_listens(refusal):
            raise
    return ctx.offline().ask(name, arguments)
