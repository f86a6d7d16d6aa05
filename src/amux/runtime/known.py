"""The agents that can be started: what each is called, and by which program it is run.

Rule 1: three have adapters and get memory; every other starts as it would without amux, and says
        so (R9).
Rule 2: `agents.toml` is the person's: read, never written. An unknown key is refused by name.
Rule 3: a program is found as a shell finds it, before anything else happens.
"""

import re
from collections.abc import Mapping

from amux.core.late import Late
from amux.core.value import Value
from amux.disk import named
from amux.errors import InvalidArgument, LaunchRefused
from amux.runtime import sources
from amux.runtime.context import Context
from amux.runtime.sources import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.disk import as_user
else:
    as_user = Late("amux.disk.as_user")

FILE = "agents.toml"
FILE_MAX_BYTES = 64 * 1024  # a page of settings has a hundredth of this
UNKNOWN_ID = "unknown-agent"  # the journal's word for an agent that it has none for (J28)

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_TEXTS = ("executable", "sdk_python", "credentials", "variable")
_KEYS = (*_TEXTS, "files")


class Agent(Value):
    """One agent that can be started."""

    name: str
    agent_id: str
    """As the journal names it (J28)."""
    program: str
    """What is looked for on the PATH, or an absolute path."""
    has_memory: bool = False
    install: str = ""
    sdk_python: str = ""
    """The interpreter that has the agent's SDK (R17)."""
    source: Source = Source()
    """Where an isolated home has its login from (R26)."""


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            name="codex",
            agent_id="codex",
            program="codex",
            has_memory=True,
            install="npm install -g @openai/codex",
        ),
        Agent(
            name="claude",
            agent_id="claude-code",
            program="claude",
            has_memory=True,
            install="npm install -g @anthropic-ai/claude-code",
        ),
        Agent(
            name="pi",
            agent_id="pi",
            program="pi",
            has_memory=True,
            install="npm install -g @earendil-works/pi-coding-agent",
        ),
        Agent(
            name="gemini",
            agent_id="gemini-cli",
            program="gemini",
            install="npm install -g @google/gemini-cli",
        ),
        Agent(
            name="opencode",
            agent_id="opencode",
            program="opencode",
            install="npm install -g opencode-ai",
        ),
    )
}


def known(ctx: Context) -> dict[str, Agent]:
    """Name all agents that can be started here: ours, and those of `agents.toml`."""
    agents = dict(AGENTS)
    for name, table in _tables(ctx).items():
        if not _NAME.fullmatch(name) or not isinstance(table, dict):
            raise _refused(name, "write a table for each agent: [name], in lower case")
        base = agents.get(name) or Agent(name=name, agent_id=UNKNOWN_ID, program=name)
        for key, value in table.items():
            if key not in _KEYS:
                raise _refused(f"{name}.{key}", "known are " + ", ".join(_KEYS))
            if key in _TEXTS and (not isinstance(value, str) or not value or "\0" in value):
                raise _refused(f"{name}.{key}", "write a string in quotes")
        try:
            source = sources.parse(name, table)
        except ValueError as error:
            raise sources.misspelt(FILE, name, error) from error
        agents[name] = base.replace(
            program=table.get("executable", base.program),
            sdk_python=table.get("sdk_python", ""),
            source=source,
        )
    return agents


def agent(ctx: Context, name: str) -> Agent:
    """Find an agent by its name."""
    agents = known(ctx)
    if name not in agents:
        raise InvalidArgument(
            "amux knows no such agent",
            hint=f"use one of {', '.join(agents)}, or give it a table in {FILE}",
            argument="agent",
        )
    return agents[name]


def executable(found: Agent, search_path: str) -> str:
    """Find an agent's program, absolutely."""
    path = named.find_program(found.program, search_path)
    if path is None:
        raise LaunchRefused(
            "the agent's program is not installed",
            hint=f"install it: {found.install}" if found.install else f"see {FILE}",
            step="executable",
            cause="not_found",
            agent=found.name,
        )
    return path


def _tables(ctx: Context) -> dict[str, object]:
    try:
        path = named.join(ctx.config.home, FILE)
        if not named.exists(path):
            return {}
        data = as_user.read(path, max_bytes=FILE_MAX_BYTES)
        if named.may_others_write(path):
            raise _refused("", f"others may write it: chmod 600 {FILE}")
        if len(data) > FILE_MAX_BYTES:
            raise _refused("", f"it may have {FILE_MAX_BYTES} bytes")
        # Few have the file, and `tomllib` costs a start 5 ms.
        found: dict[str, object] = ctx.late("agents_file").parse(data.decode("utf-8"))
        return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _refused("", f"make it a TOML file in UTF-8 ({type(error).__name__})") from error


def _refused(argument: str, hint: str) -> InvalidArgument:
    return InvalidArgument(
        f"{FILE} is not as it should be", hint=hint, file=FILE, argument=argument
    )
