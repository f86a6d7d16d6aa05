"""Claude Code's settings: what a bound session adds, and what works against memory (R16, R33).

Rule 1: the caller's own settings stay as they are; lists are lengthened, names of ours replaced.
Rule 2: what a person set elsewhere is told, never changed.
"""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase

from amux.errors import InvalidArgument
from amux.runtime.plan import Bound

OFF = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
SERVER = "amux"
ALL_TOOLS = "mcp__amux"
READING_TOOLS = (
    "mcp__amux__memory_get", "mcp__amux__memory_search", "mcp__amux__result_continue",
)  # fmt: skip
TOOLS = (*READING_TOOLS, "mcp__amux__memory_upsert", "mcp__amux__memory_forget")
MANAGED = "/etc/claude-code/managed-settings.json"


def places(environment: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Name the files of settings that would be in force: path -> source, the weakest first."""
    home = environment.get("HOME", "")
    folder = environment.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    return {
        f"{folder}/settings.json": "user",
        f"{cwd}/.claude/settings.json": "project",
        f"{cwd}/.claude/settings.local.json": "local",
        MANAGED: "managed",
    }


def findings(name: str, text: str) -> tuple[str, ...]:
    """Tell what in one file of settings works against memory (R16, R33)."""
    try:
        settings = json.loads(text)
    except ValueError:
        return (f"{name} is no JSON: Claude ignores it",)
    return findings_in(name, settings) if isinstance(settings, dict) else ()


def findings_in(name: str, settings: Mapping[str, object]) -> tuple[str, ...]:
    """Tell the same of settings that are read already."""
    environment = settings.get("env")
    named = environment if isinstance(environment, dict) else {}
    found = [
        f"{name} sets {key}; this launch's own value is used"
        for key in sorted(named)
        if key.startswith("AMUX_") or (key == OFF and named[key] != "1")
    ]
    if settings.get("disableAllHooks") is True or settings.get("allowManagedHooksOnly") is True:
        found.append(f"{name} switches hooks off: sub-agents will not be told about memory")
    permissions = settings.get("permissions")
    denied = permissions.get("deny") if isinstance(permissions, dict) else None
    if isinstance(denied, list) and any(denies(str(spec)) for spec in denied):
        found.append(f"{name} denies tools of amux")
    return tuple(found)


def denies(spec: str) -> bool:
    """Tell whether a rule of permissions means a tool of amux."""
    name = spec.partition("(")[0].strip()
    return name == ALL_TOOLS or any(fnmatchcase(tool, name) for tool in TOOLS)


def merged(settings: Mapping[str, object], bound: Bound, hook: str) -> dict[str, object]:
    """Add what a bound session needs to the caller's own; `hook` is a command of the shell."""
    env = {**_table(settings, "env"), OFF: "1", **bound.environment}
    permissions = _table(settings, "permissions")
    allowed = READING_TOOLS if bound.asks_writes else (ALL_TOOLS,)
    permissions["allow"] = [*_list(permissions, "allow"), *allowed]
    hooks = _table(settings, "hooks")
    entry = {"hooks": [{"type": "command", "command": hook}]}
    hooks["SubagentStart"] = [*_list(hooks, "SubagentStart"), entry]
    return {**settings, "env": env, "permissions": permissions, "hooks": hooks}


def parsed(text: str) -> dict[str, object]:
    """Read the caller's settings, which must be as they should be to be merged."""
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise unusable("--settings", "it is no JSON object")
    return settings


def unusable(flag: str, reason: str) -> InvalidArgument:
    """Make the refusal of a flag whose value cannot be merged."""
    return InvalidArgument(
        f"{flag} cannot be merged: {reason}",
        hint="correct it, or take it away",
        argument=flag,
        reason=reason,
    )


def _table(settings: Mapping[str, object], name: str) -> dict[str, object]:
    found = settings.get(name, {})
    if not isinstance(found, dict):
        raise unusable("--settings", f"its {name} is no object")
    return dict(found)


def _list(settings: Mapping[str, object], name: str) -> list[object]:
    found = settings.get(name, [])
    if not isinstance(found, list):
        raise unusable("--settings", f"its {name} is no list")
    return found
