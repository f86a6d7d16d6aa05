"""Claude Code: how its command line carries the protocol, the server and the settings (R16, R17).

Rule 1: one `--append-system-prompt` and one `--settings`, the caller's first: of two flags Claude
        takes the last and drops the first without a word.
Rule 2: its own memory is off in the process and in the settings: the `env` of a user's or a
        project's settings would undo the process's. The names of this launch stand there too.
Rule 3: never `--strict-mcp-config`: the user's own servers stay. `alwaysLoad`, because tools that
        are loaded later change the prefix.
Rule 4: a prompt goes by standard input; in a terminal there is none, because with a prompt Claude
        does not wait for its servers.
Rule 5: sub-agents are not given the appended text: a hook gives them the session's own, from a
        file of the run.
Rule 6: pure: files are read by `Start.read`, and made by whoever starts the plan.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from amux.core import timeline
from amux.core.timeline import Event
from amux.errors import InvalidArgument
from amux.runtime import heard, native
from amux.runtime.agents import claude_settings
from amux.runtime.agents.claude_settings import OFF, SERVER
from amux.runtime.heard import Turn
from amux.runtime.native import Given, Takes
from amux.runtime.plan import ARGUMENT_MAX_BYTES, Bound, LaunchPlan, Start

HOOK_FILE = "subagent.json"
TEXT_FILE = "append.md"
SETTINGS_FILE = "settings.json"
HEADLESS = ("-p", "--output-format", "stream-json", "--verbose")
# With the stream Claude asks the model for its thinking in another form: not as a plain start.
HEADLESS_UNBOUND = ("-p", "--output-format", "json")

# Flags of Claude Code 2.1.332, as `claude --help` and its SDK name them.
_ONE = (
    "--agent --agents --append-system-prompt --append-system-prompt-file --autocompact "
    "--debug-file --effort --environment --fallback-model --input-format --json-schema "
    "--max-budget-usd --max-thinking-tokens --max-turns --model -n --name --output-format "
    "--permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url "
    "--remote-control-session-name-prefix --session-id --setting-sources --settings "
    "--system-prompt --system-prompt-file --system-prompt-snapshot"
)
_MANY = (
    "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools "
    "--file --mcp-config --tools"
)
_MAYBE = (
    "--cloud -d --debug --from-pr --prompt-suggestions --remote-control -r --resume --teleport "
    "-w --worktree"
)
_NOTHING = (
    "--allow-dangerously-skip-permissions --ax-screen-reader --background --bare --bg --brief "
    "--chrome -c --continue --dangerously-skip-permissions --desktop --disable-slash-commands "
    "--exclude-dynamic-system-prompt-sections --fork-session --forward-subagent-text -h --help "
    "--ide --include-hook-events --include-partial-messages --no-chrome "
    "--no-session-persistence -p --print --replay-user-messages --restricted --safe-mode "
    "--strict-mcp-config --tmux --verbose -v --version"
)
_FLAGS = {
    flag: takes
    for flags, takes in (
        (_ONE, Takes.ONE), (_MANY, Takes.MANY), (_MAYBE, Takes.MAYBE), (_NOTHING, Takes.NOTHING),
    )
    for flag in flags.split()
}  # fmt: skip

_RESUMES = ("amux names the session", "use `amux resume` to continue one")
_PROMPT = ("amux gives the prompt", "use `--prompt TEXT`, or type it in the terminal")
_AWAY = ("the session would outlive its run", "start it in this terminal")
_REFUSED = (
    dict.fromkeys(
        (
            "--session-id", "-r", "--resume", "-c", "--continue", "--fork-session", "--from-pr",
            "--teleport",
        ),
        _RESUMES,
    )
    | dict.fromkeys(("-p", "--print", "--input-format", "--output-format", ""), _PROMPT)
    | dict.fromkeys(("--bg", "--background", "--cloud", "--desktop"), _AWAY)
)  # fmt: skip
_MERGED = ("--append-system-prompt", "--append-system-prompt-file", "--settings")
_DENYING = ("--disallowedTools", "--disallowed-tools")
_DISABLING = {
    "--safe-mode": "--safe-mode starts no servers and no hooks: there will be no memory",
    "--bare": "--bare runs no hooks: sub-agents will not be told about memory",
}


def compose(plan: LaunchPlan, bound: Bound, start: Start) -> LaunchPlan:
    """Give a bound session its text, its server, its settings and its names."""
    given = _read(start)
    plan = _warned(plan, given, start)
    plan = plan.with_argv(*_kept(given)).with_environment({OFF: "1", **bound.environment})
    text, settings = _text(given, bound, start), _settings(given, bound, start)
    if _is_long(text):
        path = f"{start.directory}/{TEXT_FILE}"
        plan = plan.with_file(path, text).with_argv("--append-system-prompt-file", path)
    else:
        plan = plan.with_argv("--append-system-prompt", text)
    if _is_long(settings):
        path = f"{start.directory}/{SETTINGS_FILE}"
        plan = plan.with_file(path, settings).with_argv("--settings", path)
    else:
        plan = plan.with_argv("--settings", settings)
    plan = plan.with_file(f"{start.directory}/{HOOK_FILE}", _hook_answer(bound))
    plan = plan.with_argv("--mcp-config", _json({"mcpServers": {SERVER: server(bound)}}))
    return _asked(plan, start)


def compose_unbound(plan: LaunchPlan, start: Start) -> LaunchPlan:
    """Start it as it would start without amux, but for the id of its session."""
    _read(start)
    return _asked(plan.with_argv(*start.native), start, HEADLESS_UNBOUND)


def compose_sdk(plan: LaunchPlan, bound: Bound | None, start: Start, script: str) -> LaunchPlan:
    """Start the one-file script in the interpreter that the plan's argv names (R17).

    `plan.argv` is the interpreter, then Claude's own executable. The script gets what it needs
    as one JSON object on its standard input.
    """
    interpreter, claude = plan.argv
    given = _read(start)
    if bound is not None:
        plan = _warned(plan, given, start)
        plan = plan.with_environment({OFF: "1", **bound.environment})
        plan = plan.with_file(f"{start.directory}/{HOOK_FILE}", _hook_answer(bound))
    options: dict[str, object] = {"cli_path": claude, "cwd": plan.cwd}
    options |= {"resume": start.resume} if start.resume else {"session_id": start.session_id}
    prompt: dict[str, str] = {"type": "preset", "preset": "claude_code"}
    extra = _extra(given, keep_all=bound is None)
    if bound is not None:
        text, settings = _text(given, bound, start), _settings(given, bound, start)
        if _is_long(text):
            path = f"{start.directory}/{TEXT_FILE}"
            plan, extra["append-system-prompt-file"] = plan.with_file(path, text), path
        else:
            prompt["append"] = text
        if _is_long(settings):
            path = f"{start.directory}/{SETTINGS_FILE}"
            plan, settings = plan.with_file(path, settings), path
        options |= {"settings": settings, "mcp_servers": {SERVER: server(bound)}}
    options |= {"system_prompt": prompt, "extra_args": extra}
    path = f"{start.directory}/sidecar.py"
    plan = plan.with_file(path, script)
    asked = _json({"prompt": start.prompt or "", "options": options})
    return plan.replace(argv=(interpreter, path)).with_stdin(asked)


def server(bound: Bound) -> dict[str, object]:
    """Make the entry of amux's own MCP server, its environment explicit (R20)."""
    command, *arguments = bound.server
    return {
        "type": "stdio",
        "command": command,
        "args": arguments,
        "env": bound.environment,
        "alwaysLoad": True,
    }


def turn() -> Turn:
    """Listen to a headless turn of Claude, or of the script that runs its SDK."""
    return Turn(_said)


# --- the caller's arguments ----------------------------------------------------------------------


def _read(start: Start) -> tuple[Given, ...]:
    """Read what the caller passes on; refuses what amux must say itself (R21)."""
    given = native.read(start.native, _FLAGS, short=True)
    for one in given:
        if one.flag in _REFUSED:
            reason, hint = _REFUSED[one.flag]
            name = one.flag or "a prompt or command"
            raise InvalidArgument(
                f"{name} cannot be passed on to claude: {reason}",
                hint=hint,
                argument=one.flag or "prompt",
                reason=reason,
            )
    return given


def _kept(given: Sequence[Given]) -> list[str]:
    return [word for one in given if one.flag not in _MERGED for word in one.words]


def _last(given: Sequence[Given], flag: str) -> str | None:
    """Give the value that Claude would take: the last one."""
    return next((one.value for one in reversed(given) if one.flag == flag), None)


def _extra(given: Sequence[Given], *, keep_all: bool) -> dict[str, str | None]:
    """Give flags as the SDK takes them: once each, with one value at most."""
    extra: dict[str, str | None] = {}
    for one in given:
        if one.flag in _MERGED and not keep_all:
            continue
        if not one.flag.startswith("--") or len(one.values) > 1 or one.flag[2:] in extra:
            raise InvalidArgument(
                f"{one.flag} cannot be passed on by the SDK as it stands",
                hint="use the long flag, once, with one value; or run without `--via sdk`",
                argument=one.flag,
                reason="the SDK takes each flag once, with one value at most",
            )
        extra[one.flag[2:]] = one.values[0] if one.values else None
    return extra


def _warned(plan: LaunchPlan, given: Sequence[Given], start: Start) -> LaunchPlan:
    """Refuse a second amux server; add what a person should know of flags and settings."""
    for one in given:
        for value in one.values if one.flag == "--mcp-config" else ():
            _refuse_own_server(value, start)
    for finding in (*_of_flags(given), *_of_settings(plan, given, start)):
        plan = plan.with_warning(finding)
    return plan


def _of_flags(given: Sequence[Given]) -> Iterator[str]:
    for one in given:
        specs = " ".join(one.values).replace(",", " ").split() if one.flag in _DENYING else ()
        if any(claude_settings.denies(spec) for spec in specs):
            yield f"{one.flag} denies tools of amux"
        if one.flag in _DISABLING:
            yield _DISABLING[one.flag]


def _of_settings(plan: LaunchPlan, given: Sequence[Given], start: Start) -> Iterator[str]:
    sources = _last(given, "--setting-sources")
    kept = None if sources is None else {"managed", *sources.split(",")}
    for path, source in claude_settings.places(plan.environment, plan.cwd).items():
        text = start.read(path) if kept is None or source in kept else None
        yield from claude_settings.findings(path, text) if text is not None else ()
    own = _last(given, "--settings")
    if own is not None:
        yield from claude_settings.findings_in("--settings", _own_settings(own, start))


def _refuse_own_server(value: str, start: Start) -> None:
    text = value if value.lstrip().startswith("{") else start.read(value)
    servers = heard.parsed(text or "").get("mcpServers")
    if isinstance(servers, dict) and SERVER in servers:
        reason = f"it names a server `{SERVER}`, which amux passes itself"
        raise InvalidArgument(
            f"this --mcp-config cannot be passed on to claude: {reason}",
            hint="take that entry away, or give it another name",
            argument="--mcp-config",
            reason=reason,
        )


# --- what is passed ------------------------------------------------------------------------------


def _text(given: Sequence[Given], bound: Bound, start: Start) -> str:
    """Join the caller's append text, from flag and file, and the protocol."""
    parts = [_last(given, "--append-system-prompt")]
    path = _last(given, "--append-system-prompt-file")
    if path is not None:
        parts.append(_file("--append-system-prompt-file", path, start))
    return "\n\n".join([part.rstrip("\n") for part in parts if part] + [bound.text])


def _settings(given: Sequence[Given], bound: Bound, start: Start) -> str:
    """Merge the caller's settings with what a bound session needs."""
    own = _last(given, "--settings")
    settings = _own_settings(own, start) if own is not None else {}
    command = f"cat {shlex.quote(f'{start.directory}/{HOOK_FILE}')}"
    return _json(claude_settings.merged(settings, bound, command))


def _own_settings(value: str, start: Start) -> dict[str, object]:
    is_text = value.strip().startswith("{")
    return claude_settings.parsed(value if is_text else _file("--settings", value, start))


def _file(flag: str, path: str, start: Start) -> str:
    text = start.read(path)
    if text is None:
        raise claude_settings.unusable(flag, "its file cannot be read")
    return text


def _hook_answer(bound: Bound) -> str:
    told = {"hookEventName": "SubagentStart", "additionalContext": bound.text}
    return _json({"hookSpecificOutput": told}) + "\n"


def _asked(plan: LaunchPlan, start: Start, headless: tuple[str, ...] = HEADLESS) -> LaunchPlan:
    """Name the session, and give the prompt if there is one."""
    if start.resume:
        plan = plan.with_argv("--resume", start.resume)
    elif start.session_id:
        plan = plan.with_argv("--session-id", start.session_id)
    if start.prompt is None:
        return plan
    return plan.with_argv(*headless).with_stdin(start.prompt)


def _is_long(text: str) -> bool:
    return len(text.encode()) > ARGUMENT_MAX_BYTES


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- what is heard -------------------------------------------------------------------------------


def _said(turn: Turn, said: dict[str, object]) -> list[Event]:
    match said.get("type"):
        case "system" if said.get("subtype") == "init":
            turn.is_named = True
            return [timeline.native(str(said.get("session_id")))]
        case "assistant":
            for block in _blocks(said, "tool_use"):
                turn.began(str(block.get("id")), str(block.get("name")), block.get("input"))
        case "user":
            results = [_ended(turn, block) for block in _blocks(said, "tool_result")]
            return [event for events in results for event in events]
        case "result":
            return _answered(turn, said)
        case "amux_refused":
            turn.refused_step, turn.failure = "sidecar", str(said.get("cause"))
        case _:
            pass
    return []


def _answered(turn: Turn, said: Mapping[str, object]) -> list[Event]:
    text = str(said.get("result") or "")
    if said.get("is_error"):
        turn.failed(text or str(said.get("subtype")))
    else:
        turn.answered(text)
    if turn.is_named:
        return []
    turn.is_named = True
    return [timeline.native(str(said.get("session_id")))]


def _ended(turn: Turn, block: Mapping[str, object]) -> list[Event]:
    text, is_error = _plain(block.get("content")), bool(block.get("is_error"))
    return turn.ended(str(block.get("tool_use_id")), text, is_error=is_error)


def _blocks(said: Mapping[str, object], kind: str) -> list[dict[str, object]]:
    message = said.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    found = content if isinstance(content, list) else []
    return [block for block in found if isinstance(block, dict) and block.get("type") == kind]


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
