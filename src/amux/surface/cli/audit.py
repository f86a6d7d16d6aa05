"""The verb on the audit trail: who did what, when, from which session (M73).

Rule 1: lines are printed as they are read, page by page: a trail may be longer than memory.
Rule 2: following goes on over restarts of the Hub and starts none.
"""

import time

from amux.errors import Unavailable
from amux.runtime.context import Context
from amux.surface.cli import calls, offline, output, render
from amux.surface.cli.parse import Given

FOLLOW_SECONDS = 0.5  # a person watches


def audit(ctx: Context, given: Given) -> int:
    """Print the lines of the trail that are asked for; with --follow, those to come too."""
    wanted = given.wire("principal", "path", "session", "since")
    is_more = True
    while is_more:
        found = offline.ask(ctx, "audit", wanted).value()
        if not _is_shown(ctx, given, found):
            return 0
        wanted["after"], is_more = found["after"], bool(found["more"])
    while given.has("follow"):
        time.sleep(FOLLOW_SECONDS)
        try:
            found = calls.ask_running(ctx, "audit", wanted).value()
        except Unavailable as refusal:
            if calls.nobody_listens(refusal):
                continue
            raise
        wanted["after"] = found["after"]
        if not _is_shown(ctx, given, found):
            return 0
    return 0


def _is_shown(ctx: Context, given: Given, found: dict[str, object]) -> bool:
    lines = render.rows(found, "lines")
    return output.rows(ctx, lines, as_json=given.has("json"), readable=render.audit)
