"""One headless turn of a bound Codex session, through its app-server (R14).

Rule 1: no turn is made before its own process has said that its memory is off, the thread is
        marked, and the tools are there.
Rule 2: what was passed at the start is passed again at every resume: after a compaction Codex
        renders what it was given last.
Rule 3: a turn ends when it is told to be over, or with the process.
"""

from collections.abc import Iterator

from amux.core import timeline
from amux.core.timeline import Event
from amux.errors import LaunchRefused
from amux.runtime.appserver import AppServer, Gone, Refused, table, tables
from amux.runtime.effective import read, require_off, unreadable
from amux.runtime.heard import Turn
from amux.runtime.plan import Opening

START_SECONDS = 40.0  # of a thread: it waits for its required servers
THREADS_MAX = 50  # of one run of a terminal
_TERMINAL = {"cli", "codex-tui"}  # a source; an originator, where a shared process has it


def converse(server: AppServer, opening: Opening, turn: Turn) -> Iterator[Event]:
    """Run one headless turn, and give what happens in it; `turn.failure` says what went wrong.

    Refuses as `launch_refused`, before any turn, where the own memory is not off (step
    `native_memory`) or the tools are missing (step `mcp`).
    """
    try:
        server.introduce()
        # What this program knows was asked before its plan was made; the thread asks it again.
        require_off(read(server, opening.cwd, knows_memory_mode=True))
    except (Gone, Refused) as error:
        raise unreadable(error) from error
    thread = _thread(server, opening)
    yield timeline.native(thread)
    try:
        server.ask("thread/memoryMode/set", {"threadId": thread, "mode": "disabled"})
    except (Gone, Refused) as error:
        raise LaunchRefused(
            "Codex does not keep this thread out of its own memory",
            hint="start with --memory off, or ask Codex why",
            step="native_memory",
            cause=str(error),
        ) from error
    _require_tools(server, thread, opening.tools)
    try:
        asked = [{"type": "text", "text": opening.prompt}]
        server.ask("turn/start", {"threadId": thread, "input": asked}, START_SECONDS)
        yield from _turn(server, thread, turn)
    except (Gone, Refused) as error:
        turn.failure = turn.failure or str(error)
    yield from turn.end()


def threads(server: AppServer, cwd: str, since: float) -> list[str]:
    """Name the threads that a terminal began in a directory since a time, the oldest first."""
    asked = {"cwd": cwd, "limit": THREADS_MAX, "sortKey": "created_at"}
    found = tables(server.ask("thread/list", asked).get("data"))
    own = [one for one in found if _TERMINAL & {one.get("source"), one.get("originator")}]
    new = [one for one in own if _number(one.get("createdAt")) >= int(since)]
    return [str(one.get("id")) for one in sorted(new, key=lambda one: _number(one["createdAt"]))]


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _thread(server: AppServer, opening: Opening) -> str:
    given: dict[str, object] = {
        "cwd": opening.cwd,
        "developerInstructions": opening.developer_instructions,
    }
    if opening.approval_policy:
        given["approvalPolicy"] = opening.approval_policy
    try:
        if opening.resume:
            given |= {"threadId": opening.resume, "excludeTurns": True}
            answer = server.ask("thread/resume", given, START_SECONDS)
        else:
            answer = server.ask("thread/start", given, START_SECONDS)
    except (Gone, Refused) as error:
        is_ours = "mcp" in str(error).lower()
        raise LaunchRefused(
            "Codex could not begin the thread" + (" with amux's server" if is_ours else ""),
            hint="try `amux doctor codex`" if is_ours else "try the same in plain Codex",
            step="mcp" if is_ours else "start",
            cause=str(error),
        ) from error
    return str(table(answer.get("thread")).get("id"))


def _require_tools(server: AppServer, thread: str, tools: tuple[str, ...]) -> None:
    try:
        found = _tools(server, thread)
    except (Gone, Refused) as error:
        raise _no_tools(str(error)) from error
    missing = [name for name in tools if name not in found]
    if missing:
        raise _no_tools("missing: " + ", ".join(missing))


def _tools(server: AppServer, thread: str) -> set[str]:
    found: set[str] = set()
    cursor: object = None
    while True:
        asked = {"threadId": thread, "cursor": cursor, "detail": "toolsAndAuthOnly"}
        answer = server.ask("mcpServerStatus/list", asked, START_SECONDS)
        for status in tables(answer.get("data")):
            if status.get("name") == "amux":
                found |= set(table(status.get("tools")))
        cursor = answer.get("nextCursor")
        if not cursor:
            return found


def _no_tools(cause: str) -> LaunchRefused:
    return LaunchRefused(
        "Codex does not have amux's tools",
        hint="try `amux doctor codex`",
        step="mcp",
        cause=cause,
    )


def _turn(server: AppServer, thread: str, turn: Turn) -> Iterator[Event]:
    for method, told in server.notices():
        yield from turn.tell({"method": method, **told})
        if method == "turn/completed" and told.get("threadId") == thread:
            return
