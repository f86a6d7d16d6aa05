"""A writer of the journal in a test: one process's surroundings, and its four tools by name.

It goes the desk's way (arguments, target, agent, session) without the read plans; run as a program
it is a process of its own: `python -m tests.support.writers BASE`, calls as JSON lines on stdin.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from amux.core.canonical import digest
from amux.errors import AmuxError
from amux.journal.call import arguments
from amux.journal.call.book import Book
from amux.journal.call.errand import Errand
from amux.journal.call.surroundings import Surroundings
from amux.journal.call.tools import TOOLS
from amux.journal.ground import agent as agents
from amux.journal.ground import layout, workspace
from amux.journal.moment import Moment
from amux.journal.sessions import writing
from amux.journal.sessions.taskpart import TaskPart
from tests.support.roots import SECONDS
from tests.support.workspaces import around

Receipt = dict[str, object]

CALLS: dict[str, Callable[[Errand], Receipt]] = {
    "allocate": writing.allocate,
    "write": writing.write,
    "append": writing.append,
    "decide": writing.decide,
}


class Writer:
    """One process that writes."""

    def __init__(
        self,
        base: Path,
        *,
        client: str | None = "codex-mcp-client",
        session: str = "sess-1",
        at: float = SECONDS,
        uid: int | None = None,
        tasks: TaskPart | None = None,
        chance: Callable[[int], bytes] = os.urandom,
        **environment: str,
    ) -> None:
        environment = {"AMUX_TZ": "Asia/Shanghai", "AMUX_SESSION": session} | environment
        given = around(base, client=client, at=at, uid=uid, **environment)
        self.around: Surroundings = _with_chance(given, chance)
        self.tasks = tasks

    def errand(self, name: str, **given: object) -> Errand:
        """Check a call as the desk does."""
        tool = TOOLS[f"memory_{_TOOLS[name]}"]
        around = self.around
        now = Moment.at(around.clock(), around.zone)
        found = arguments.check(tool, given, now)
        where = layout.find(
            around.start, is_named=around.is_start_named, home=around.home, uid=around.uid
        )
        target = workspace.select(
            where, project=_text(found, "project"), scope=_text(found, "scope")
        )
        host = agents.host(around.facts, around.client)
        agent = agents.for_write(host, _text(found, "agent"), agents.profile(None))
        key = agents.session_key(
            around.facts, host, given="", fallback=around.session_fallback, is_mcp=around.is_mcp
        )
        return Errand(
            tool=tool.name, arguments=found, now=now, target=target, agent=agent.id,
            agent_shown=agent.plain(), session_key=key.key,
            session_digest=digest(f"amux-session:{key.key}"), owns_key=key.is_own, epoch="ctx-0",
            plan=None, around=around, book=Book(),
        )  # fmt: skip

    def call(self, name: str, **given: object) -> Receipt:
        """Do what a tool does."""
        errand = self.errand(name, **given)
        if name == "write":
            return writing.write(errand, self.tasks)
        return CALLS[name](errand)

    def write(self, content: str | None = None, **given: object) -> Receipt:
        """Write to a section."""
        if content is not None:
            given["content"] = content
        return self.call("write", **given)


_TOOLS = {
    "allocate": "session_allocate",
    "write": "session_write",
    "append": "summary_append",
    "decide": "decision_append",
}


def workspace_in(base: Path) -> Path:
    """Make a repository without a `.devcodex`."""
    (base / ".git").mkdir(parents=True)
    return base


def _with_chance(given: Surroundings, chance: Callable[[int], bytes]) -> Surroundings:
    return given.replace(random_bytes=chance)


def _text(found: dict[str, object], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


def main(base: str, *options: str) -> None:
    """Serve calls: a line `[tool, arguments]` in, its receipt or refusal out."""
    settings = dict(option.split("=", 1) for option in options)
    at = float(settings.pop("at", time.time()))
    client = settings.pop("client", "codex-mcp-client")
    session = settings.pop("session", "sess-1")
    writer = Writer(Path(base), client=client, session=session, at=at, **settings)
    print("ready", flush=True)
    for line in sys.stdin:
        name, given = json.loads(line)
        try:
            answer = writer.call(name, **given)
        except AmuxError as refusal:
            answer = refusal.body()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
