"""Readable forms of what is known of launches, for a person at a terminal.

Rule 1: whether there is memory comes first, in one line with the reason (R1).
Rule 2: these are for eyes; scripts get JSON, whose form is promised.
"""

from collections.abc import Mapping

from amux.surface.cli.render import rows

Plain = Mapping[str, object]
_APART = ("memory", "reason", "cause", "timeline")
_HEAD = ("at", "run", "kind")


def sessions(value: Plain) -> str:
    """Show one session a line."""
    lines = []
    for row in rows(value, "sessions"):
        if "refused" in row:
            lines.append(f"{row['session']}  unreadable: {row['reason']}")
        else:
            name = f"  {row['name']}" if row["name"] else ""
            lines.append(
                f"{row['session']}  {str(row['created'])[:16]}  {row['agent']:<8}  "
                f"{row['memory']:<6}{name}"
            )
    return "\n".join(lines or ["no sessions were started here"])


def session(value: Plain) -> str:
    """Show the outcome, the record and the timeline."""
    lines = [outcome(value)]
    lines += [f"{key}: {_spelled(one)}" for key, one in value.items() if key not in _APART and one]
    for event in rows(value, "timeline"):
        about = "  ".join(
            f"{key}={_spelled(one)}" for key, one in event.items() if key not in _HEAD
        )
        lines.append(f"{event['at']}  run {event['run']}  {event['kind']}  {about}")
    return "\n".join(lines)


def outcome(value: Plain) -> str:
    """Say whether a session has memory, and why not."""
    cause = f" ({value['cause']})" if value.get("cause") else ""
    reason = f": {value['reason']}{cause}" if value.get("reason") else ""
    return f"{value['memory']}{reason}"


def removed(value: Plain) -> str:
    """Say what was removed."""
    return f"{value['session']} is removed"


def plan(value: Plain) -> str:
    """Show what would be started."""
    lines = [f"{value['agent']}, memory {value['memory']}"]
    for key, one in value.items():
        if isinstance(one, list):
            lines += [f"{key}:", *(f"  {part}" for part in one)]
        elif key not in ("agent", "memory"):
            lines.append(f"{key}: {one}")
    return "\n".join(lines)


def doctor(value: Plain) -> str:
    """Show each agent with its findings."""
    lines = []
    for agent in rows(value, "agents"):
        lines.append(f"{agent['agent']}: {agent['program'] or 'not installed'}")
        shown = ("version", "memory", "native_memory", "form", "login")
        lines += [f"  {key}: {agent[key]}" for key in shown if agent.get(key)]
        lines += [f"  seen, left alone: {path}" for path in _list(agent.get("seen"))]
        for finding in rows(agent, "findings"):
            lines.append(f"  - {finding['what']}")
            lines.append(f"    {finding['do']}")
    return "\n".join(lines)


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _spelled(one: object) -> str:
    if isinstance(one, list):
        return ", ".join(str(part) for part in one)
    if isinstance(one, dict):
        return ", ".join(f"{key} {part}" for key, part in one.items())
    return str(one)
