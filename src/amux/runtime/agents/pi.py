"""Pi: how its command line carries the protocol, and on newer releases the server (R18).

Rule 1: a person's APPEND_SYSTEM.md is passed first, by its path: the flag would replace it. Where
        the caller passes a text of their own, that has replaced it already.
Rule 2: with the MCP form an extension of the run registers the server, its tools in the prompt
        from the start; with the CLI form the agent calls `amux`, which is on its PATH.
Rule 3: a file in an untrusted project is no file of a person's: what Pi would not read is not
        passed.
Rule 4: a prompt goes by standard input: as an argument a leading `@` would name a file.
Rule 5: pure: files are read by `Start.read`, and made by whoever starts the plan.
"""

import json
from collections.abc import Mapping, Sequence

from amux.core import timeline
from amux.core.timeline import Event
from amux.errors import InvalidArgument
from amux.runtime import heard, native
from amux.runtime.heard import Turn
from amux.runtime.native import Given, Takes
from amux.runtime.plan import ARGUMENT_MAX_BYTES, Bound, LaunchPlan, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime.plan import Form

SERVER = "amux"
APPEND = "--append-system-prompt"
APPEND_FILE = "APPEND_SYSTEM.md"
TEXT_FILE = "append.md"
EXTENSION_FILE = "amux-server.cjs"
HEADLESS = ("-p", "--mode", "json")
MCP_SINCE = (0, 99)  # registerMcpServer
SESSION_ID_SINCE = (0, 76)
TRUST_SINCE = (0, 79)  # before, a project's APPEND_SYSTEM.md was read wherever Pi stood

_ONE = (
    "--api-key --append-system-prompt -e --export --extension --exclude-tools --fork --mode "
    "--model --models -n --name --prompt-template --provider --session --session-dir --session-id "
    "--skill --system-prompt -t --theme --thinking --tools --tui-mode --use-theme -xt"
)
_MAYBE = "--list-models"
_NOTHING = (
    "-a --approve -c --continue -h --help -na -nbt -nc -ne --no-approve --no-builtin-tools "
    "--no-context-files --no-extensions --no-mcp --no-prompt-templates --no-session --no-skills "
    "--no-themes --no-tools -np -ns -nt --offline -p --print -r --resume -v --verbose --version"
)
_FLAGS = {
    flag: takes
    for flags, takes in ((_ONE, Takes.ONE), (_MAYBE, Takes.MAYBE), (_NOTHING, Takes.NOTHING))
    for flag in flags.split()
}
_RESUMES = ("amux names the session", "use `amux resume` to continue one")
_PROMPT = ("amux gives the prompt", "use `--prompt TEXT`, or type it in the terminal")
_REFUSED = dict.fromkeys(
    ("-c", "--continue", "-r", "--resume", "--session", "--session-id", "--fork"), _RESUMES
) | dict.fromkeys(("-p", "--print", "--mode", ""), _PROMPT)
_NO_TOOLS = ("-nt", "--no-tools")
_NO_MCP = ("--no-mcp", *_NO_TOOLS)


def form(plan: LaunchPlan, start: Start) -> "Form":
    """Tell how this session reaches memory: by tools, or by the command line (R18).

    By the command line too where a person's own `mcp.json` has an `amux`, which would be taken
    instead of ours, or where MCP is switched off.
    """
    if not start.version or not start.is_at_least(*MCP_SINCE):
        return "cli"
    given = _read(start)
    if any(one.flag in _NO_MCP for one in given):
        return "cli"
    folders = [_agent_folder(plan.environment), f"{plan.cwd}/.pi"]
    is_taken = any(_has_server(start.read(f"{folder}/mcp.json")) for folder in folders)
    return "cli" if is_taken else "mcp"


def compose(plan: LaunchPlan, bound: Bound, start: Start) -> LaunchPlan:
    """Give a bound session its text, after the person's own, and its server or its command."""
    given = _read(start)
    if any(one.flag in _NO_TOOLS for one in given):
        plan = plan.with_warning("tools are switched off: there will be no memory")
    if not any(one.flag == APPEND for one in given):
        own, doubt = _own_text(plan, given, start)
        plan = plan.with_argv(APPEND, own) if own else plan
        plan = plan.with_warning(doubt) if doubt else plan
    plan = plan.with_argv(*start.native).with_environment(bound.environment)
    text = bound.text
    if len(text.encode()) > ARGUMENT_MAX_BYTES:
        path = f"{start.directory}/{TEXT_FILE}"
        plan, text = plan.with_file(path, text), path
    plan = plan.with_argv(APPEND, text)
    if bound.form == "mcp":
        path = f"{start.directory}/{EXTENSION_FILE}"
        plan = plan.with_file(path, _extension(bound)).with_argv("-e", path)
    return _asked(plan, start)


def compose_unbound(plan: LaunchPlan, start: Start) -> LaunchPlan:
    """Start it as it would start without amux, but for the id of its session."""
    _read(start)
    return _asked(plan.with_argv(*start.native), start)


def takes_session_id(start: Start) -> bool:
    """Tell whether a new session can be given its native id."""
    return bool(start.version) and start.is_at_least(*SESSION_ID_SINCE)


def turn() -> Turn:
    """Listen to a headless turn of Pi."""
    return Turn(_said)


# --- the caller's arguments, and their files -----------------------------------------------------


def _read(start: Start) -> tuple[Given, ...]:
    """Read what the caller passes on; refuses what amux must say itself (R21)."""
    given = native.read(start.native, _FLAGS, short=False)
    for one in given:
        flag = "" if one.flag.startswith("@") else one.flag
        if flag in _REFUSED:
            reason, hint = _REFUSED[flag]
            raise InvalidArgument(
                f"{flag or 'a prompt, file or command'} cannot be passed on to pi: {reason}",
                hint=hint,
                argument=flag or "prompt",
                reason=reason,
            )
    return given


def _own_text(plan: LaunchPlan, given: Sequence[Given], start: Start) -> tuple[str, str]:
    """Give the path of the APPEND_SYSTEM.md that Pi would read, and a doubt about it."""
    doubt = ""
    project = f"{plan.cwd}/.pi/{APPEND_FILE}"
    if start.read(project) is not None:
        trusted = _is_trusted(plan, given, start)
        if trusted:
            return project, ""
        if trusted is None and not start.is_headless:
            doubt = f"{project} is not passed: pi has not been told whether to trust this folder"
    own = f"{_agent_folder(plan.environment)}/{APPEND_FILE}"
    return (own if start.read(own) is not None else ""), doubt


def _is_trusted(plan: LaunchPlan, given: Sequence[Given], start: Start) -> bool | None:
    """Decide as Pi does whether it may read the project's own files; None: it would ask."""
    if not start.is_at_least(*TRUST_SINCE):
        return True
    flags = [one.flag for one in given]
    if any(flag in flags for flag in ("-na", "--no-approve")):
        return False
    if any(flag in flags for flag in ("-a", "--approve")):
        return True
    folder = _agent_folder(plan.environment)
    told = heard.parsed(start.read(f"{folder}/trust.json") or "")
    place = plan.cwd
    while place:
        if isinstance(decision := told.get(place), bool):
            return decision
        place = "" if place == "/" else (place.rpartition("/")[0] or "/")
    settings = heard.parsed(start.read(f"{folder}/settings.json") or "")
    return {"always": True, "never": False}.get(str(settings.get("defaultProjectTrust")))


def _has_server(text: str | None) -> bool:
    servers = heard.parsed(text or "").get("mcpServers")
    return isinstance(servers, dict) and SERVER in servers


def _agent_folder(environment: Mapping[str, str]) -> str:
    return environment.get("PI_CODING_AGENT_DIR") or f"{environment.get('HOME', '')}/.pi/agent"


# --- what is passed ------------------------------------------------------------------------------


def _extension(bound: Bound) -> str:
    command, *arguments = bound.server
    # Pi reads `$NAME` in these as the value of a variable.
    environment = {name: value.replace("$", "$$") for name, value in bound.environment.items()}
    entry = {
        "command": command,
        "args": arguments,
        "env": environment,
        "exposure": "direct",
    }
    spelled = json.dumps(entry, ensure_ascii=True)
    # CommonJS: a module of the newer kind is compiled by Pi first, 100 ms for each new file.
    return f'module.exports = (pi) => pi.registerMcpServer("{SERVER}", {spelled});\n'


def _asked(plan: LaunchPlan, start: Start) -> LaunchPlan:
    """Name the session, and give the prompt if there is one."""
    if start.resume:
        plan = plan.with_argv("--session", start.resume)
    elif start.session_id and takes_session_id(start):
        plan = plan.with_argv("--session-id", start.session_id)
    if start.prompt is None:
        return plan
    return plan.with_argv(*HEADLESS).with_stdin(start.prompt)


# --- what is heard -------------------------------------------------------------------------------


def _said(turn: Turn, said: dict[str, object]) -> list[Event]:
    match said.get("type"):
        case "session":
            return [timeline.native(str(said.get("id")))]
        case "tool_execution_start":
            name, arguments = str(said.get("toolName")), said.get("args")
            turn.began(str(said.get("toolCallId")), name, arguments)
        case "tool_execution_end":
            result = said.get("result")
            content = result.get("content") if isinstance(result, dict) else None
            is_error = bool(said.get("isError"))
            return turn.ended(str(said.get("toolCallId")), _plain(content), is_error=is_error)
        case "agent_end" if not said.get("willRetry"):
            _answered(turn, said.get("messages"))
        case _:
            pass
    return []


def _answered(turn: Turn, messages: object) -> None:
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "assistant":
        return
    if last.get("stopReason") in ("error", "aborted"):
        turn.failed(str(last.get("errorMessage") or last.get("stopReason")))
    else:
        turn.answered(_plain(last.get("content")))


def _plain(content: object) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
