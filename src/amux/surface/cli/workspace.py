"""The verbs that set a workspace up and tell how it stands (J20–J22).

Rule 1: the answer is the receipt, as JSON or readable on a terminal.
"""

from amux.journal.call import surroundings
from amux.journal.call.surroundings import Surroundings
from amux.journal.setup import doctor as examination
from amux.journal.setup import rules, setup
from amux.journal.setup.setup import Asked
from amux.runtime.context import Context
from amux.surface.cli import output, workspace_render
from amux.surface.cli.parse import Given


def init(ctx: Context, given: Given) -> int:
    """Make what is missing of a workspace."""
    around = around_of(ctx, given.text("directory"))
    asked = Asked(
        directory=around.start if given.has("directory") else "",
        mode=given.text("mode") or "project",
        project=given.text("project"),
        agents=_agents(given),
        is_dry=given.has("dry_run"),
    )
    receipt = setup.init(asked, around)
    return output.own(ctx, receipt, as_json=given.has("json"), readable=workspace_render.receipt)


def remove_rules(ctx: Context, given: Given) -> int:
    """Take out what was handed to agents."""
    receipt = setup.remove_rules(
        _agents(given) or rules.FLAGS,
        around_of(ctx, given.text("workspace")),
        is_dry=given.has("dry_run"),
    )
    return output.own(ctx, receipt, as_json=given.has("json"), readable=workspace_render.receipt)


def profile_init(ctx: Context, given: Given) -> int:
    """Write the profile's hint."""
    receipt = setup.profile_init(around_of(ctx, given.text("workspace")))
    return output.own(ctx, receipt, as_json=given.has("json"), readable=workspace_render.receipt)


def doctor(ctx: Context, given: Given) -> int:
    """Tell how the journal stands."""
    found = examination.examine(around_of(ctx, given.text("workspace")))
    return output.own(ctx, found, as_json=given.has("json"), readable=workspace_render.doctor)


def around_of(ctx: Context, workspace: str) -> Surroundings:
    """Put together what the journal knows of this process."""
    return surroundings.gather(
        ctx.place(workspace),
        environment=ctx.config.environment,
        client=None,
        session="",
        host="",
        posix_session=0,
        clock=ctx.wall,
        random_bytes=ctx.random_bytes,
    )


def _agents(given: Given) -> tuple[str, ...]:
    return tuple(flag for flag in rules.FLAGS if given.has(flag))
