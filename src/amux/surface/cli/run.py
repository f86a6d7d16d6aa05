"""The verbs that start an agent, and go on with a session (R1).

Rule 1: standard output holds the answer of a turn and nothing else; all that amux says of a
        launch is a line on standard error.
Rule 2: the exit status is the agent's own.
"""

from amux.errors import InvalidArgument
from amux.runtime import launch
from amux.runtime.composing import Tools
from amux.runtime.context import Context
from amux.runtime.launch import Asked
from amux.runtime.running import Done
from amux.surface.cli import launch_render, output
from amux.surface.cli.parse import Given
from amux.wire.tools import TABLE_VERSION, TOOLS

TOOL_SET = Tools(names=tuple(TOOLS), version=TABLE_VERSION)


def run(ctx: Context, given: Given) -> int:
    """Start a new session, or only show what would be started."""
    asked = _asked(given)
    if given.has("dry_run"):
        plan = launch.dry_run(ctx, asked, TOOL_SET)
        return output.own(ctx, plan, as_json=given.has("json"), readable=launch_render.plan)
    return _told(ctx, launch.start(ctx, asked, TOOL_SET, lambda text: output.notice(ctx, text)))


def resume(ctx: Context, given: Given) -> int:
    """Go on with a session."""
    done = launch.resume(
        ctx,
        given.text("session"),
        lambda text: output.notice(ctx, text),
        native=given.text("native"),
        prompt=_prompt(given),
        tools=TOOL_SET,
    )
    return _told(ctx, done)


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
