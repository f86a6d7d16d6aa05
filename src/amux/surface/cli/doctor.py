"""The verb `doctor`: what a start would do, what amux cannot stop, and the workspace (R32, J22).

Rule 1: it is a read: no Hub is started for it, and it ends well whatever it finds.
"""

from amux.disk import named
from amux.errors import AmuxError
from amux.journal.setup import doctor as workspace_examination
from amux.runtime import doctor as examination
from amux.runtime import known
from amux.runtime.context import Context
from amux.surface.cli import calls, launch_render, output, workspace_render
from amux.surface.cli.parse import Given
from amux.surface.cli.run import tools_of
from amux.surface.cli.workspace import around_of


def doctor(ctx: Context, given: Given) -> int:
    """Examine one agent, or each that is known."""
    agents = known.known(ctx)
    names = [given.text("agent")] if given.has("agent") else list(agents)
    memory, cwd = _memory(ctx), named.absolute(".")
    found = [
        examination.examine(ctx, name, cwd, tools_of(ctx, cwd), memory).plain() for name in names
    ]
    workspace = workspace_examination.examine(around_of(ctx, ""))
    answer: dict[str, object] = {"memory": memory, "agents": found, "workspace": workspace}
    return output.own(ctx, answer, as_json=given.has("json"), readable=_readable)


def _readable(value: dict[str, object]) -> str:
    workspace = value["workspace"]
    shown = workspace_render.doctor(workspace) if isinstance(workspace, dict) else ""
    return f"{launch_render.doctor(value)}\n\nworkspace\n{shown}"


def _memory(ctx: Context) -> str:
    """Say what the Hub would answer, without starting one."""
    try:
        settings = calls.ask_running(ctx, "status", {}).value().get("settings")
    except AmuxError as refusal:
        details = refusal.details.get("cause")
        if details in calls.NOBODY:
            return "not known: no Hub runs; a start would start one and ask it"
        return f"not known: {refusal.message} ({refusal.code})"
    enabled = settings.get("memory.enabled") if isinstance(settings, dict) else None
    is_on = isinstance(enabled, dict) and enabled.get("effective") is True
    return "would be bound" if is_on else "off: agent memory is switched off (memory_disabled)"
