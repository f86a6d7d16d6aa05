"""Answers of the journal as a person reads them on a terminal.

Rule 1: it shows what the JSON holds and computes nothing; a script gets the JSON.
Rule 2: what every answer carries (who, where, which plan) is one line; the rest is an outline.
"""

from collections.abc import Mapping

_HIDDEN = {
    "schemaVersion", "activeRoot", "project", "scope", "agent", "planId", "note", "query",
    "contentIdentity", "indexReceipt", "source", "warnings", "nextCall",
}  # fmt: skip


def readable(_tool: str, value: dict[str, object]) -> str:
    """Give an answer as an outline."""
    lines = [_who(value)] if "agent" in value else []
    lines += _outline({key: one for key, one in value.items() if key not in _HIDDEN}, 0)
    lines += _warnings(value.get("warnings"))
    lines += _following(value.get("nextCall"))
    return "\n".join(lines)


def _who(value: Mapping[str, object]) -> str:
    agent = value["agent"]
    name = agent.get("id") if isinstance(agent, dict) else agent
    text = f"{value.get('project', '')} ({value.get('scope', '')}), agent {name}"
    if isinstance(agent, dict) and agent.get("conflict"):
        text += f"; the profile names {agent.get('profileAgent')}"
    return text


def _outline(value: object, depth: int) -> list[str]:
    space = "  " * depth
    if isinstance(value, dict):
        lines = []
        for key, one in value.items():
            if one is None or one in ([], {}, ""):
                continue
            if isinstance(one, str) and "\n" in one:
                lines.append(f"{space}{key}:")
                lines += [f"{space}  {line}" for line in one.rstrip("\n").split("\n")]
            elif isinstance(one, dict | list):
                lines.append(f"{space}{key}:")
                lines += _outline(one, depth + 1)
            else:
                lines.append(f"{space}{key}: {_word(one)}")
        return lines
    if isinstance(value, list):
        lines = []
        for one in value:
            inner = _outline(one, depth + 1)
            first = inner[0].strip() if inner else ""
            lines += [f"{space}- {first}", *inner[1:]]
        return lines
    return [f"{space}{_word(value)}"]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _warnings(found: object) -> list[str]:
    if not isinstance(found, list):
        return []
    lines = []
    for one in found:
        if isinstance(one, dict):
            where = f", line {one['line']}" if one.get("line") else ""
            lines.append(f"warning: {one.get('code')}{where}")
    return lines


def _following(found: object) -> list[str]:
    if not isinstance(found, dict):
        return []
    return [f"next: {found.get('tool')} {found.get('arguments')}"]
