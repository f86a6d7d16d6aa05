"""Project namespaces: the names that memory of a project may have (J16).

Rule 1: the name is judged by itself; whether such a project is there is asked elsewhere.
Rule 2: it is light: `layout.py` uses it at the start of `amux mcp`.
"""

import re

from amux.journal.refusals import refuse

RULES = (
    "required", "invalid-shape", "absolute-path", "traversal-segment", "reserved-root",
    "workspace-escape",
)  # fmt: skip
_MAX_SEGMENTS = 4
_SEGMENT = r"[A-Za-z0-9_.-]{1,64}"
_RESERVED_FIRST = {
    "workspace", "profile", "reports", "migrations", "layout.json", "rules.json", "task-index.md",
    "readme.md", ".devcodex",
}  # fmt: skip
_RESERVED_ANYWHERE = {
    ".memory", ".runtime-state", "requirements", "bugs", "optimizations", "scenario-tests",
}  # fmt: skip


def broken_rule(value: object) -> str | None:
    """Name the first rule that a project namespace breaks; None for a legal one."""
    if not isinstance(value, str) or not value:
        return "required"
    if value.startswith(("/", "\\")) or re.match("[A-Za-z]:", value):
        return "absolute-path"
    segments = value.split("/")
    if any(one in {".", ".."} for one in value.replace("\\", "/").split("/")):
        return "traversal-segment"
    if len(segments) > _MAX_SEGMENTS or not all(re.fullmatch(_SEGMENT, one) for one in segments):
        return "invalid-shape"
    lowered = [one.lower() for one in segments]
    if lowered[0] in _RESERVED_FIRST or not _RESERVED_ANYWHERE.isdisjoint(lowered):
        return "reserved-root"
    return None


def require(value: object) -> str:
    """Give a legal project namespace, or refuse it as PROJECT_NAMESPACE_INVALID."""
    rule = broken_rule(value)
    if rule is not None or not isinstance(value, str):
        raise invalid(rule or "required")
    return value


def invalid(rule: str) -> Exception:
    """Make the refusal of a name that breaks a rule."""
    return refuse(
        "PROJECT_NAMESPACE_INVALID",
        "this is no project namespace",
        hint="1 to 4 segments of letters, digits, _ . - joined by /; none of them reserved",
        rule=rule,
    )
