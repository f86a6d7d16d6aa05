"""The verbs that control the Hub: start, stop, restart, status, serve.

Rule 1: status and stop never start a Hub.
Rule 2: stopped means that the root's lock is free: the next one may start at once.
"""

import json

from amux.client import Client
from amux.core import home
from amux.disk import named
from amux.errors import Unavailable
from amux.runtime.context import Context
from amux.surface.cli import calls, output, render
from amux.surface.cli.parse import Given

STOP_SECONDS = 15.0  # answers on their way are waited for, and fsyncs may be slow


def start(ctx: Context, given: Given) -> int:
    """Start a Hub unless one runs, and say what it is."""
    process = ctx.late("process")
    process.require_local(ctx.config)
    before = running(ctx)
    if before is None:
        process.start_hub(ctx.config)
        output.notice(ctx, f"started a Hub in the background for {ctx.config.home}")
    return _described(ctx, given, {"started": before is None})


def stop(ctx: Context, given: Given) -> int:
    """Stop the Hub that runs; no Hub is no error."""
    stopped = end_hub(ctx)
    answer: dict[str, object] = {"running": False, "stopped": stopped, "root": ctx.config.home}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.hub)


def restart(ctx: Context, given: Given) -> int:
    """Stop the Hub, if one runs, and start one."""
    process = ctx.late("process")
    process.require_local(ctx.config)
    stopped = end_hub(ctx)
    process.start_hub(ctx.config)
    return _described(ctx, given, {"started": True, "stopped": stopped})


def status(ctx: Context, given: Given) -> int:
    """Tell whether a Hub runs, and what it is."""
    return _described(ctx, given, {})


def serve(ctx: Context, given: Given) -> int:
    """Run the Hub in this process until it is told to stop."""
    status: int = ctx.late("serve").serve(
        ctx.config,
        clock=ctx.clock,
        wall=ctx.wall,
        late=ctx.late,
        allow_network_fs=given.has("allow_network_fs"),
        is_background=given.has("background"),
    )
    return status


def running(ctx: Context) -> dict[str, object] | None:
    """Give the status of the Hub that runs, or None where nobody listens."""
    try:
        return calls.ask_running(ctx, "status", {}).value()
    except Unavailable as refusal:
        if calls.nobody_listens(refusal):
            return None
        raise


def end_hub(ctx: Context) -> bool:
    """Stop the Hub and wait until it has let go of its root; False where none ran."""
    process = ctx.late("process")
    lock = named.join(ctx.config.home, home.RUN_DIR, home.LOCK_FILE)
    try:
        # The one of this AMUX_HOME: what the settings name may be somebody else's.
        Client(ctx.config.local).ask("stop")
        stopped = True
    except Unavailable as refusal:
        if not calls.nobody_listens(refusal):
            raise
        # A Hub that is just ending closes its socket first; its lock is what counts.
        stopped = named.is_locked(lock)
    if not process.wait_until(lambda: not named.is_locked(lock), STOP_SECONDS):
        raise Unavailable(
            f"the Hub has not ended within {STOP_SECONDS:g} s",
            hint="see run/hub.log; its pid stands in run/hub.pid",
        )
    return stopped


def _described(ctx: Context, given: Given, before: dict[str, object]) -> int:
    found = running(ctx)
    shared = found.get("shared_socket") if found is not None else None
    if isinstance(shared, dict) and not shared.get("open"):
        output.notice(
            ctx,
            f"no shared socket {shared.get('path')} ({shared.get('reason')}): "
            "other users of this machine do not reach this Hub",
        )
    about: dict[str, object] = found if found is not None else {"root": ctx.config.home}
    answer = {"running": found is not None, **before, **about}
    return output.answer(
        ctx,
        json.dumps(answer, ensure_ascii=False, separators=(",", ":")),
        as_json=given.has("json"),
        readable=render.hub,
    )
