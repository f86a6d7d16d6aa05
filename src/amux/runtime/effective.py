"""What Codex goes by in a directory, as its own app-server tells: its memory, texts, servers (R14).

Rule 1: its memory is off when it says `false` three times; nothing said is not `false`.
Rule 2: of a person's servers the places and names are read, never the values of their secrets.
"""

from collections.abc import Mapping

from amux.core.late import Late
from amux.core.value import Value
from amux.errors import LaunchRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime import appserver
    from amux.runtime.appserver import AppServer
else:
    appserver = Late("amux.runtime.appserver")

INVENTED_THREAD = "00000000-0000-7000-8000-000000000000"
OFF = ("features.memories", "memories.use_memories", "memories.generate_memories")
ALIAS = "features.memory_tool"  # an older name of the first; where it is true it wins


class Entry(Value):
    """A server named `amux` in somebody's configuration file; never the values of its names."""

    place: str
    command: str
    """Empty where it is reached in another way than by starting a program."""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Tools that it says something about."""


class Effective(Value):
    """What Codex goes by, as it says itself."""

    on: tuple[str, ...] = ()
    """Settings of its own memory that are not `false`."""
    knows_memory_mode: bool = True
    has_alias: bool = False
    """Whether the older name of a setting of its memory is in use."""
    developer_instructions: str = ""
    has_approval_policy: bool = False
    is_judged: bool = True
    """Whether the directory, or one above it, was declared trusted or not."""
    has_daemon: bool = False
    """Whether its terminal interface may live in a shared process, which would take no flags."""
    entries: tuple[Entry, ...] = ()


def read(
    server: "AppServer", cwd: str, *, has_daemon: bool = False, knows_memory_mode: bool = False
) -> Effective:
    """Ask what is in force for a directory; raises `Gone` or `Refused`.

    Whether it can keep a thread out of its own memory is asked unless that is known.
    """
    answer = server.ask("config/read", {"includeLayers": True, "cwd": cwd})
    config = appserver.table(answer.get("config"))
    layers = [
        (_place(layer.get("name")), appserver.table(layer.get("config")))
        for layer in appserver.tables(answer.get("layers"))
    ]
    text = config.get("developer_instructions")
    return Effective(
        on=tuple(name for name in OFF if _at(config, name) is not False),
        knows_memory_mode=knows_memory_mode or _knows_memory_mode(server),
        has_alias=_at(config, ALIAS) is not None,
        developer_instructions=text if isinstance(text, str) else "",
        has_approval_policy=config.get("approval_policy") is not None,
        is_judged=any(
            cwd == path or cwd.startswith(path.rstrip("/") + "/")
            for _, layer in layers
            for path in appserver.table(layer.get("projects"))
        ),
        has_daemon=has_daemon,
        entries=tuple(
            _entry(place, appserver.table(entry))
            for place, layer in layers
            if (entry := _at(layer, "mcp_servers.amux")) is not None and place
        ),
    )


def require_off(effective: Effective) -> None:
    """Refuse to go on where Codex's own memory is on, or cannot be kept away from a thread."""
    if effective.on:
        raise LaunchRefused(
            "Codex does not say that its own memory is off",
            hint="take these settings away from its configuration, or start with --memory off",
            step="native_memory",
            cause="not_off",
            settings=list(effective.on),
        )
    if not effective.knows_memory_mode:
        raise LaunchRefused(
            "this Codex cannot keep a thread out of its own memory",
            hint="install a newer Codex, or start with --memory off",
            step="native_memory",
            cause="unknown_call",
        )


def unreadable(error: Exception) -> LaunchRefused:
    """Say that Codex did not tell its configuration."""
    return LaunchRefused(
        "Codex did not tell what it goes by, so nobody knows that its own memory is off",
        hint="try `codex doctor`; start with --memory off to do without memory",
        step="native_memory",
        cause=str(error),
    )


def _knows_memory_mode(server: "AppServer") -> bool:
    try:
        server.ask("thread/memoryMode/set", {"threadId": INVENTED_THREAD, "mode": "disabled"})
    except appserver.Refused as refused:
        return not refused.is_unknown_call
    return True


def _entry(place: str, told: Mapping[str, object]) -> Entry:
    args = told.get("args")
    is_program = isinstance(told.get("command"), str) and "url" not in told
    return Entry(
        place=place,
        command=str(told["command"]) if is_program else "",
        args=tuple(str(word) for word in args) if isinstance(args, list) else (),
        env=tuple(appserver.table(told.get("env"))),
        tools=tuple(appserver.table(told.get("tools"))),
    )


def _place(name: object) -> str:
    """Say where a layer comes from; nothing for the flags of the process itself."""
    about = appserver.table(name)
    if about.get("type") == "sessionFlags":
        return ""
    folder = about.get("dotCodexFolder")
    return str(about.get("file") or (f"{folder}/config.toml" if folder else about.get("type")))


def _at(config: Mapping[str, object], path: str) -> object:
    found: object = config
    for name in path.split("."):
        found = appserver.table(found).get(name)
    return found
