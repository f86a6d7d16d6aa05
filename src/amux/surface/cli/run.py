"""The verbs that start an agent, and go on with a session (R1).

Rule 1: standard output holds the answer of a turn and nothing else; all that amux says of a
        launch is a line on standard error.
Rule 2: the exit status is the agent's own.
"""

from amux.errors import InvalidArgument
from amux.journal.call.tools import DEFAULT as JOURNAL_TOOLS
from amux.journal.ground import layout
from amux.runtime import launch
from amux.runtime.composing import Tools
from amux.runtime.context import Context
from amux.runtime.launch import Asked
from amux.runtime.running import Done
from amux.surface.cli import launch_render, output
from amux.surface.cli.parse import Given
from amux.wire.tools import TABLE_VERSION, TOOLS

MEMORY = Tools(names=tuple(TOOLS), version=TABLE_VERSION)
BOTH = Tools(names=(*TOOLS, *JOURNAL_TOOLS), version=TABLE_VERSION)


def run(ctx: Context, given: Given) -> int:
    """Start a new session, or only show what would be started."""
    asked = _asked(given)
    tools = tools_of(ctx, asked.cwd)
    if given.has("dry_run"):
        plan = launch.dry_run(ctx, asked, tools)
        return output.own(ctx, plan, as_json=given.has("json"), readable=launch_render.plan)
    return _told(ctx, launch.start(ctx, asked, tools, lambda text: output.notice(ctx, text)))


def resume(ctx: Context, given: Given) -> int:
    """Go on with a session."""
    done = launch.resume(
        ctx,
        given.text("session"),
        lambda text: output.notice(ctx, text),
        native=given.text("native"),
        prompt=_prompt(given),
        tools=BOTH,  # of which a session keeps those that it began with
    )
    return _told(ctx, done)


def tools_of(ctx: Context, cwd: str) -> Tools:
    """Choose the tools of a new session: the journal's too, where a workspace is (J70)."""
    place = ctx.place(cwd)
    is_there = layout.is_there(place.start, is_named=False, home=place.home, uid=place.uid)
    return BOTH if is_there else MEMORY


def _asked(given: Given) -> Asked:
    memory = given.text("memory")
    return Asked(
        agent=given.text("agent"),
        name=given.text("name"),
        cwd=given.text("cwd") or ".",
        isolation=given.text("isolation") or "none",
        user=given.text("user"),
        memory="off" if memory == "off" else "required" if memory == "required" else "",
        verbs=given.text("memory_verbs"),
        asks_writes=given.has("ask_writes"),
        via=given.text("via"),
        prompt=_prompt(given),
        native=given.rest,
    )


def _prompt(given: Given) -> str | None:
    if not given.has("prompt"):
        return None
    text = given.text("prompt")
    if not text.strip() or "\0" in text:
        raise InvalidArgument("a prompt says something, without NUL", argument="prompt")
    return text


def _told(ctx: Context, done: Done) -> int:
    if done.failure:
        output.notice(ctx, f"the turn failed: {done.failure}")
    elif done.answer is not None:
        output.stored(ctx, done.answer.rstrip("\n").encode("utf-8", "replace") + b"\n")
    return done.status
