"""Codex: how it is given the text and the server, and its own memory switched off (R14, R15).

Rule 1: what switches the own memory off stands last: later flags win, and `--enable` beats an
        earlier `-c`.
Rule 2: a person's own developer text comes first, then the protocol: Codex itself would drop the
        first for the second. Base instructions are not touched.
Rule 3: flags are merged key by key into an entry `amux` that a person has: each key that such an
        entry may hold is set here, so that nothing of an older one is left in force.
Rule 4: a headless turn with memory goes through the app-server, one without is a plain
        `codex exec`: nothing of amux is in it.
Rule 5: what a configuration profile or another app-server would do cannot be read back: refused.
"""

import json
from collections.abc import Iterable, Sequence

from amux.core import timeline
from amux.core.timeline import Event
from amux.errors import InvalidArgument, LaunchRefused
from amux.runtime import native
from amux.runtime.effective import ALIAS, OFF, Effective, Entry
from amux.runtime.heard import Turn
from amux.runtime.native import Given, Takes
from amux.runtime.plan import ARGUMENT_MAX_BYTES, Bound, LaunchPlan, Opening, Start

AGENT_ID = "codex"
SERVER = "mcp_servers.amux"
WRITING_TOOLS = ("memory_upsert", "memory_forget")
STARTUP_SECONDS = 15  # ours answers within 0.1 s; a machine under load is slower
TOOL_SECONDS = 60  # Codex's own default, which an older entry may have changed
NO_DAEMON = "--no-daemon"
TEXT = "developer_instructions"
LF = "\n"

NOTHING_KNOWN = Effective()

# Flags of Codex 0.171.0 and 0.153.4, as `codex --help` and `codex exec --help` name them.
_ONE = (
    "-c --config --enable --disable -m --model -p --profile -s --sandbox -a --ask-for-approval "
    "-C --cd --add-dir --local-provider --remote --remote-auth-token-env --thread-source "
    "--output-schema --color -o --output-last-message --cyber-access-program"
)
_NOTHING = (
    "--strict-config --oss --approve-for-me --dangerously-bypass-approvals-and-sandbox "
    "--dangerously-bypass-hook-trust --worktree --search --no-alt-screen --no-daemon -h --help "
    "-V --version --skip-git-repo-check --trust --ephemeral --ignore-user-config --ignore-rules "
    "--json --full-auto"
)
_FLAGS = {
    "-i": Takes.MANY,
    "--image": Takes.MANY,
    **dict.fromkeys(_ONE.split(), Takes.ONE),
    **dict.fromkeys(_NOTHING.split(), Takes.NOTHING),
}
_COMMANDS = (
    "agents exec e review login logout mcp plugin app-server remote-control completion update "
    "doctor sandbox debug apply a resume queue archive delete migrate-rollouts migrate-nfs-db "
    "unarchive fork cloud exec-server features help mcp-server proto"
)
_CONFIG = ("-c", "--config")
_FEATURES = ("--enable", "--disable")

_PLACE = ("amux gives the working directory", "use --cwd DIR of `amux run`")
_REFUSED = dict.fromkeys(("-C", "--cd", "--worktree"), _PLACE) | {
    flag: ("what it brings in cannot be read back, so nobody knows that Codex's own memory is off",
           hint)
    for flag, hint in (
        ("-p", "pass the profile's settings with -c"),
        ("--profile", "pass the profile's settings with -c"),
        ("--remote", "start without it"),
        ("--remote-auth-token-env", "start without it"),
        ("--ignore-user-config", "start without it"),
    )
}  # fmt: skip
# Of the flags that the app-server does not take, those that are settings.
_AS_SETTING = {
    "-m": "model", "--model": "model", "-s": "sandbox_mode", "--sandbox": "sandbox_mode",
    "-a": "approval_policy", "--ask-for-approval": "approval_policy",
}  # fmt: skip
_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_NEEDLESS = ("--skip-git-repo-check", "--no-alt-screen", NO_DAEMON, "--json")


def probe(plan: LaunchPlan, bound: Bound, start: Start, known: Effective) -> LaunchPlan:
    """Give the app-server that is asked what would be in force: the final line but for the text."""
    given = _read(start)
    words = _settings(given)
    return plan.with_argv("app-server", *words, *_server(bound, known, plan.cwd), *off(known))


def compose(plan: LaunchPlan, bound: Bound, start: Start, known: Effective) -> LaunchPlan:
    """Give a bound session its text, its server and its names; `known` is what the probe read."""
    given = _read(start)
    plan = plan.with_environment(bound.environment)
    ours = (*_server(bound, known, plan.cwd), *off(known))
    if start.is_headless:
        plan = plan.with_opening(
            Opening(
                cwd=plan.cwd,
                developer_instructions=merged(bound, known),
                tools=bound.tools,
                resume=start.resume,
                # As `codex exec` has it: nobody is there to be asked.
                approval_policy=None if known.has_approval_policy else "never",
                prompt=start.prompt or "",
            )
        )
        return plan.with_argv("app-server", *_settings(given), *_trust(plan, known), *ours)
    text = _flag(TEXT, _toml(merged(bound, known)))
    if len(text[1].encode()) > ARGUMENT_MAX_BYTES:
        raise LaunchRefused(
            "the developer instructions are too long for an argument",
            hint="shorten developer_instructions in Codex's configuration, or use --prompt",
            step="plan",
            cause="too_long",
        )
    flags = [word for one in given if one.flag and not _is_text(one) for word in one.words]
    own_process = (NO_DAEMON,) if known.has_daemon else ()
    if start.resume:
        return plan.with_argv("resume", *flags, *own_process, *text, *ours, start.resume)
    return plan.with_argv(*flags, *own_process, *text, *ours, *_words(given))


def compose_unbound(plan: LaunchPlan, start: Start) -> LaunchPlan:
    """Start it as it would start without amux."""
    given = native.read(start.native, _FLAGS, short=True)
    _require_no_command(given)
    if not start.is_headless:
        if not start.resume:
            return plan.with_argv(*start.native)
        flags = [word for one in given if one.flag for word in one.words]
        return plan.with_argv("resume", *flags, start.resume)
    _require_no_prompt(given)
    # Standing in a repository is not asked for (R12); a prompt is in nobody's list of processes.
    plan = plan.with_argv("exec", "--json", "--skip-git-repo-check")
    plan = plan.with_argv(*(w for one in given if one.flag not in _NEEDLESS for w in one.words))
    resumed = ("resume", start.resume) if start.resume else ()
    return plan.with_argv(*resumed, "-").with_stdin(start.prompt or "")


def merged(bound: Bound, known: Effective) -> str:
    """Give a person's own developer text, and then the protocol."""
    own = known.developer_instructions
    return f"{own.rstrip(LF)}\n\n{bound.text}" if own.strip() else bound.text


def require_own(known: Effective) -> None:
    """Refuse to start where a server `amux` is not ours to override."""
    for entry in known.entries:
        if not _is_ours(entry):
            raise LaunchRefused(
                "Codex's configuration has a server named amux that is no `amux mcp`",
                hint="give that server another name",
                step="mcp",
                cause="other_server",
                places=[entry.place, "the flags of this launch"],
            )


def off(known: Effective = NOTHING_KNOWN) -> list[str]:
    """Switch the own memory off; last, and by the older name too where somebody uses that."""
    words: list[str] = []
    for name in (*OFF, *((ALIAS,) if known.has_alias else ())):
        words += _flag(name, "false")
    return [*words, "--disable", "memories"]


def turn() -> Turn:
    """Listen to the JSON lines of a `codex exec`."""
    return Turn(_Ear().exec)


def app_turn() -> Turn:
    """Listen to what an app-server tells of a turn."""
    return Turn(_Ear().server)


# --- what the caller passes on -------------------------------------------------------------------


def _read(start: Start) -> tuple[Given, ...]:
    given = native.read(start.native, _FLAGS, short=True)
    _require_no_command(given)
    for one in given:
        _require_free(one)
    if start.is_headless:
        _require_no_prompt(given)
        _require_settings(given)
    # Twice is an error in Codex, and it is ours to pass.
    return tuple(one for one in given if one.flag != NO_DAEMON)


def _require_no_command(given: Sequence[Given]) -> None:
    first = next((one for one in given if not one.flag), None)
    if first is not None and first.value in _COMMANDS.split():
        raise _refused(
            first.value, "amux starts the agent itself", "use `amux run` and `amux resume`"
        )


def _require_no_prompt(given: Sequence[Given]) -> None:
    if any(not one.flag for one in given):
        raise _refused("a prompt argument", "amux gives the prompt", "use --prompt TEXT alone")


def _require_free(one: Given) -> None:
    if one.flag in _REFUSED:
        raise _refused(one.flag, *_REFUSED[one.flag])
    if one.flag in _FEATURES and "memor" in one.value:
        raise _refused(f"{one.flag} {one.value}", *_MEMORY)
    if one.flag in _CONFIG:
        key, _, value = one.value.partition("=")
        first, *rest = [part.strip().strip("\"'") for part in key.split(".")]
        names = f"{'.'.join(rest)} {value if not rest else ''}"
        if first == "memories" or (first == "features" and "memor" in names):
            raise _refused(f"-c {key}", *_MEMORY)
        if first == "mcp_servers" and (rest[:1] == ["amux"] or (not rest and "amux" in value)):
            raise _refused(f"-c {key}", "the server amux is this launch's", "name yours otherwise")


_MEMORY = (
    "a session with memory has Codex's own memory off",
    "start with --memory off to use Codex's own",
)


def _words(given: Iterable[Given]) -> list[str]:
    """Give what is no flag: the first prompt, which a resume does not repeat."""
    return [word for one in given if not one.flag for word in one.words]


def _settings(given: Iterable[Given]) -> list[str]:
    """Give the caller's flags as the app-server takes them."""
    words: list[str] = []
    for one in given:
        if one.flag in (*_CONFIG, *_FEATURES, "--strict-config"):
            words += one.words
        elif one.flag in _AS_SETTING:
            words += _flag(_AS_SETTING[one.flag], _toml(one.value))
        elif one.flag == _BYPASS:
            words += _flag("approval_policy", '"never"')
            words += _flag("sandbox_mode", '"danger-full-access"')
    return words


def _require_settings(given: Iterable[Given]) -> None:
    known = (*_CONFIG, *_FEATURES, "--strict-config", *_AS_SETTING, _BYPASS, *_NEEDLESS)
    for one in given:
        if one.flag and one.flag not in known:
            raise _refused(one.flag, "a headless turn does not take it", "use -c KEY=VALUE")


def _is_text(one: Given) -> bool:
    return one.flag in _CONFIG and one.value.partition("=")[0].strip() == TEXT


def _refused(argument: str, why: str, hint: str) -> InvalidArgument:
    return InvalidArgument(f"{argument} cannot be passed on: {why}", hint=hint, argument=argument)


# --- what amux passes ----------------------------------------------------------------------------


def _server(bound: Bound, known: Effective, cwd: str) -> list[str]:
    command, *args = bound.server
    env = {name: "" for entry in known.entries for name in entry.env} | bound.environment
    values = {
        "command": _toml(command),
        "args": _list(args),
        "env": "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in env.items()) + "}",
        "enabled": "true",
        "required": "true",
        "enabled_tools": _list(bound.tools),
        "startup_timeout_sec": str(STARTUP_SECONDS),
        "tool_timeout_sec": str(TOOL_SECONDS),
    }
    if known.entries:
        values |= {"disabled_tools": "[]", "env_vars": "[]", "cwd": _toml(cwd)}
    told = {name for entry in known.entries for name in entry.tools}
    if bound.asks_writes:
        asked = [name for name in WRITING_TOOLS if name not in told]
        values |= {f"tools.{name}.approval_mode": '"prompt"' for name in asked}
    else:
        values["default_tools_approval_mode"] = '"approve"'
        values |= {f"tools.{name}.approval_mode": '"approve"' for name in sorted(told)}
    return [word for key, value in values.items() for word in _flag(f"{SERVER}.{key}", value)]


def _trust(plan: LaunchPlan, known: Effective) -> list[str]:
    """Keep 0.153.4's app-server from noting in the person's file that it trusts the directory."""
    if known.is_judged:
        return []
    return _flag("projects", "{" + _toml(plan.cwd) + ' = {trust_level = "untrusted"}}')


def _is_ours(entry: Entry) -> bool:
    words = [word.rpartition("/")[2] for word in (entry.command, *entry.args)]
    return "mcp" in words and any(word in ("amux", "amux.pyz") for word in words)


def _flag(key: str, value: str) -> list[str]:
    return ["-c", f"{key}={value}"]


def _list(words: Iterable[str]) -> str:
    return "[" + ", ".join(_toml(word) for word in words) + "]"


def _toml(text: str) -> str:
    """Spell a text as TOML does: like JSON, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- what is heard -------------------------------------------------------------------------------

# Items of a turn that are uses of a tool; the names of `codex exec` and of the app-server.
_USES = {
    "command_execution": "shell", "commandExecution": "shell",
    "file_change": "apply_patch", "fileChange": "apply_patch",
    "web_search": "web_search", "webSearch": "web_search",
    "collab_tool_call": "sub_agent", "collabAgentToolCall": "sub_agent",
    "dynamicToolCall": "tool", "imageGeneration": "image_generation",
}  # fmt: skip
_FINE = ("completed", None)


class _Ear:
    """Remembers the last message, which is the answer once the turn has ended well."""

    def __init__(self) -> None:
        self._last = ""

    def exec(self, turn: Turn, said: dict[str, object]) -> list[Event]:
        match said.get("type"):
            case "thread.started":
                return [timeline.native(str(said.get("thread_id")))]
            case "item.completed":
                return self._item(turn, _object(said.get("item")))
            case "turn.completed":
                return [timeline.answer(self._last)]
            case "turn.failed":
                turn.failure = str(_object(said.get("error")).get("message"))
            case "error":
                turn.failure = str(said.get("message"))
            case _:
                pass
        return []

    def server(self, turn: Turn, said: dict[str, object]) -> list[Event]:
        match said.get("method"):
            case "item/completed":
                return self._item(turn, _object(said.get("item")))
            case "turn/completed":
                ended = _object(said.get("turn"))
                if ended.get("status") == "completed":
                    return [timeline.answer(self._last)]
                told = _object(ended.get("error")).get("message")
                turn.failure = str(told or f"the turn was {ended.get('status')}")
            case _:
                pass
        return []

    def _item(self, turn: Turn, item: dict[str, object]) -> list[Event]:
        kind = str(item.get("type"))
        if kind in ("agentMessage", "agent_message"):
            self._last = str(item.get("text") or "")
        elif kind in ("mcpToolCall", "mcp_tool_call"):
            name = f"mcp__{item.get('server')}__{item.get('tool')}"
            result, error = _object(item.get("result")), _object(item.get("error"))
            is_error = bool(error) or item.get("status") not in _FINE
            text = str(error.get("message") or _plain(result.get("content")))
            turn.began(str(item.get("id")), name, item.get("arguments"))
            return turn.ended(str(item.get("id")), text, is_error=is_error)
        elif kind in _USES:
            is_error = item.get("status") not in _FINE
            turn.began(str(item.get("id")), _USES[kind], None)
            return turn.ended(str(item.get("id")), "", is_error=is_error)
        return []


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _plain(content: object) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
