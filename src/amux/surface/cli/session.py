"""The verbs on sessions that were started here: list, show, remove.

Rule 1: a session shows no document, no protocol text and no credential (M72).
Rule 2: a record that cannot be used is listed with the reason, and can be removed.
"""

from amux.errors import NotFound
from amux.runtime.context import Context
from amux.runtime.isolation import WORDS
from amux.runtime.record import Record
from amux.runtime.sessions import Sessions, Unreadable
from amux.surface.cli import launch_render, output
from amux.surface.cli.parse import Given


def list_sessions(ctx: Context, given: Given) -> int:
    """List all sessions, the newest first."""
    sessions = Sessions.open(ctx.config.home)
    rows = [_row(one) for one in sessions.known()] if sessions else []
    rows.sort(key=lambda row: (str(row["created"]), str(row["session"])), reverse=True)
    answer: dict[str, object] = {"sessions": rows}
    return output.own(ctx, answer, as_json=given.has("json"), readable=launch_render.sessions)


def show(ctx: Context, given: Given) -> int:
    """Show a record and its timeline."""
    sessions = _sessions(ctx)
    session = sessions.find(given.text("session"))
    record = sessions.read(session)
    answer = {
        "memory": record.start.outcome,
        "reason": record.start.reason,
        **_row(record),
        **_details(record),
        "timeline": [
            {"at": one.at, "run": one.run, "kind": one.event.kind, **one.event.data}
            for one in sessions.timeline(session)
        ],
    }
    return output.own(ctx, answer, as_json=given.has("json"), readable=launch_render.session)


def remove(ctx: Context, given: Given) -> int:
    """Remove a session that does not run."""
    sessions = _sessions(ctx)
    session = sessions.find(given.text("session"))
    sessions.remove(session)
    answer: dict[str, object] = {"session": session, "removed": True}
    return output.own(ctx, answer, as_json=given.has("json"), readable=launch_render.removed)


def _sessions(ctx: Context) -> Sessions:
    sessions = Sessions.open(ctx.config.home)
    if sessions is None:
        raise NotFound("there is no such session", hint="see `amux session list`")
    return sessions


def _row(one: Record | Unreadable) -> dict[str, object]:
    if isinstance(one, Unreadable):
        return {
            "session": one.session,
            "created": "",
            "refused": str(one.refusal.code),
            "reason": one.refusal.details.get("reason", one.refusal.message),
        }
    start = one.start
    return {
        "session": start.session,
        "name": start.name,
        "agent": start.agent,
        "memory": start.outcome,
        "cause": start.cause,
        "created": start.created,
        "runs": one.runs,
        "cwd": start.cwd,
    }


def _details(record: Record) -> dict[str, object]:
    start = record.start
    protocol = start.protocol
    return {
        "agent_version": start.agent_version,
        "amux": start.amux,
        "principal": start.principal,
        "binding": start.binding,
        "protocol": {"version": protocol.version, "digest": protocol.digest} if protocol else None,
        "form": start.form,
        "tools": list(start.tools) if start.tools is not None else None,
        "table_version": start.table_version,
        "verbs": start.verbs or "read,write",
        "ask_writes": start.asks_writes,
        "isolation": start.isolation,
        "isolation_means": WORDS.get(start.isolation, ""),
        "user": start.user,
        "natives": list(record.natives),
        "notes": list(record.notes),
    }
