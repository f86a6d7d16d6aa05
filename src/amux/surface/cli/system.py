"""The verbs on the whole system: its settings and its status (M6, M47).

Rule 1: they work with and without a running Hub, and start none.
"""

from amux.errors import NotFound
from amux.runtime.context import Context
from amux.surface.cli import offline, output, render
from amux.surface.cli.parse import Given


def set_value(ctx: Context, given: Given) -> int:
    """Save a setting, and say whether a restart is due."""
    found = offline.ask(ctx, "settings", given.wire("name", "value"))
    status = output.answer(ctx, found.text, as_json=given.has("json"), readable=render.setting)
    if found.value().get("restart_due"):
        output.notice(ctx, "a restart is due: `amux hub restart` puts it in force")
    return status


def get(ctx: Context, given: Given) -> int:
    """Show one setting as saved and as in force."""
    name = given.text("name")
    found = offline.ask(ctx, "status", {}).value()
    settings = found.get("settings")
    value = settings.get(name) if isinstance(settings, dict) else None
    if not isinstance(value, dict):
        raise NotFound("the Hub knows no such setting", argument="name")
    due = bool(found.get("restart_due")) and value.get("saved") != value.get("effective")
    answer = {"name": name, **value, "restart_due": due}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.setting)


def status(ctx: Context, given: Given) -> int:
    """Show the settings, and whether a restart is due."""
    found = offline.ask(ctx, "status", {})
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.system)
