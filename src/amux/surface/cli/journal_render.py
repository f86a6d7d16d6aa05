"""Answers of the journal as a person reads them on a terminal.

Rule 1: it shows what the JSON holds and computes nothing; a script gets the JSON.
Rule 2: who, where and which agent is the first line; what was noticed and what comes next the
        last ones; between them is a view of its own or, for receipts, an outline.
"""

from collections.abc import Callable, Mapping

Value = Mapping[str, object]

_HIDDEN = {
    "schemaVersion", "activeRoot", "project", "scope", "agent", "planId", "note", "query",
    "contentIdentity", "indexReceipt", "source", "warnings", "nextCall", "coverage", "pagination",
}  # fmt: skip
_CHECKPOINT = {"confirmed": "yes", "exempt": "exempt", "waiting": "waits", "unstarted": "-"}


def readable(tool: str, value: dict[str, object]) -> str:
    """Give an answer as text for a person."""
    view = _VIEWS.get(tool)
    lines = [_who(value)]
    if view is None:
        lines += _outline({key: one for key, one in value.items() if key not in _HIDDEN}, 0)
    else:
        lines += view(value)
    return "\n".join([*lines, *_warnings(value), *_following(value.get("nextCall"))])


def _who(value: Value) -> str:
    agent = _object(value.get("agent"))
    text = f"{value.get('project')} ({value.get('scope')}), agent {agent.get('id')}"
    if agent.get("conflict"):
        text += f"; the profile names {agent.get('profileAgent')}"
    return text


def _status(value: Value) -> list[str]:
    counts = _object(value.get("counts"))
    lines = [", ".join(f"{count} {state}" for state, count in counts.items())]
    lines += [f"open: {key}" for key in _list(value.get("openSessionKeys"))]
    lines += [f"card: {key}" for key in _list(value.get("cards"))]
    lines += _rows(value.get("latestRows"))
    for other in map(_object, _list(value.get("otherAgents"))):
        lines.append(f"agent {other.get('id')} left:")
        lines += [
            f"  {one.get('sessionKey')} {one.get('summary')}"
            for one in map(_object, _list(other.get("unresolved")))
        ]
    return lines


def _summary(value: Value) -> list[str]:
    lines = _rows(value.get("rows"))
    return [*lines, f"{value.get('totalMatched')} in all"]


def _rows(found: object) -> list[str]:
    return [
        f"{one.get('status')} {one.get('day')}#{one.get('sessionId')} "
        f"[{one.get('type')}] {one.get('summary')}"
        for one in map(_object, _list(found))
    ]


def _sections(value: Value) -> list[str]:
    lines: list[str] = []
    for one in map(_object, _list(value.get("matches"))):
        lines += [
            f"--- {one.get('date')}#{one.get('sessionId')} {one.get('title')} ({one.get('state')})",
            str(one.get("content", "")).rstrip("\n"),
        ]
        if one.get("truncated"):
            lines.append(f"… goes on at --content-offset {one.get('nextContentOffset')}")
    return lines


def _text(value: Value) -> list[str]:
    lines = [str(value.get("text", "")).rstrip("\n")]
    if value.get("truncated"):
        lines.append(f"… goes on at --start-char {value.get('nextStartChar')}")
    return lines


def _tasks(value: Value) -> list[str]:
    lines = []
    for one in map(_object, _list(value.get("tasks"))):
        owner = _object(one.get("owner"))
        held = f", {owner.get('agent')} owns it" if owner.get("status") == "active" else ""
        busy = ", an operation is open" if one.get("hasOpenOperation") else ""
        broken = f", {one.get('identityProblem')}" if one.get("identityProblem") else ""
        lines.append(
            f"{one.get('kind')}: {one.get('displayName')} "
            f"[{one.get('status')}] {one.get('checkpoints') or 'not admitted'}{held}{busy}{broken}"
        )
    return [*lines, f"{value.get('totalMatched')} in all"]


def _task(value: Value) -> list[str]:
    owner = _object(value.get("owner"))
    lines = [
        f"{value.get('kind')}: {value.get('displayName')} [{value.get('status')}]",
        f"taskId: {value.get('taskId')}",
        f"directory: {value.get('taskRoot')}",
    ]
    if value.get("identityProblem"):
        lines.append(f"identity: {value.get('identityProblem')}")
    if owner:
        lines.append(
            f"owner: {owner.get('agent')}, session {owner.get('session')}, "
            f"{owner.get('status')}, generation {owner.get('writerGeneration')}"
        )
    for slot in map(_object, _list(_object(value.get("checkpoints")).get("slots"))):
        said = _CHECKPOINT.get(str(slot.get("status")), str(slot.get("status")))
        stale = ", but the file changed since" if slot.get("stale") else ""
        path = f" {slot.get('artifactPath')}" if slot.get("artifactPath") else ""
        lines.append(f"{slot.get('phase')}: {said}{path}{stale}")
    operation = _object(value.get("operation"))
    if operation:
        targets = ", ".join(map(str, _list(operation.get("targets"))))
        lines.append(f"open operation: {operation.get('operationId')} on {targets}")
    if value.get("terminal"):
        lines.append("ended:")
        lines += _outline(value["terminal"], 1)
    lines += [
        f"  {one.get('at')} {one.get('op')} by {one.get('session')}"
        for one in map(_object, _list(value.get("transitions")))
    ]
    return lines


_VIEWS: dict[str, Callable[[Value], list[str]]] = {
    "memory_status": _status,
    "memory_summary_query": _summary,
    "memory_session_query": _sections,
    "memory_session_read": _text,
    "memory_summary_read": _text,
    "memory_task_list": _tasks,
    "memory_task_show": _task,
}


def _outline(value: object, depth: int) -> list[str]:
    space = "  " * depth
    if isinstance(value, dict):
        return [line for key, one in value.items() for line in _entry(key, one, depth)]
    if isinstance(value, list):
        lines: list[str] = []
        for one in value:
            first, *others = _outline(one, depth + 1) or [""]
            lines += [f"{space}- {first.strip()}", *others]
        return lines
    return [f"{space}{_word(value)}"]


def _entry(key: str, value: object, depth: int) -> list[str]:
    space = "  " * depth
    if value is None or value in ([], {}, ""):
        return []
    if isinstance(value, str) and "\n" in value:
        inner = [f"{space}  {line}" for line in value.rstrip("\n").split("\n")]
        return [f"{space}{key}:", *inner]
    if isinstance(value, dict | list):
        return [f"{space}{key}:", *_outline(value, depth + 1)]
    return [f"{space}{key}: {_word(value)}"]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _warnings(value: Value) -> list[str]:
    return [
        f"warning: {one.get('code')}" + (f", line {one['line']}" if one.get("line") else "")
        for one in map(_object, _list(value.get("warnings")))
    ]


def _following(found: object) -> list[str]:
    call = _object(found)
    if not call:
        return []
    given = ", ".join(f"{name}={_word(one)}" for name, one in _object(call["arguments"]).items())
    return [f"next: {call.get('tool')} {given}".rstrip()]


def _object(value: object) -> Value:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
