"""Which agent is at work, and whose session it is: one resolver for all calls (J27–J32).

Rule 1: it judges words that it is given; it reads no environment and no file.
Rule 2: an MCP client's name tells who calls; a variable may be inherited from an outer agent.
Rule 3: directories never decide a write, and nothing defaults to one agent.
"""

from collections.abc import Mapping, Sequence

from amux.core import strict
from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal.refusals import refuse

UNKNOWN = "unknown-agent"
AGENTS = (
    "copilot", "vscode-copilot", "claude-code", "codex", "cursor", "jetbrains-copilot", "grok",
    UNKNOWN, "pi", "gemini-cli", "opencode",
)  # fmt: skip
PROFILE = "profile/config.json"  # below `.devcodex`
PROFILE_MAX_BYTES = 64 * 1024

# The variables that a process is asked for (J27, J29).
_OVERRIDES = ("AMUX_AGENT", "DEVCODEX_AGENT")
_STRONG: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("claude-code", ("CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_VERSION", "CLAUDE_HOOK_COMMAND")),
    ("pi", ("PI_SESSION_ID", "PI_CODING_AGENT_DIR", "AI_AGENT=pi")),
    ("gemini-cli", ("GEMINI_CLI",)),
    (
        "grok",
        ("GROK_AGENT", "GROK_SESSION", "GROK_SESSION_ID", "GROK_BUILD", "XAI_GROK", "XAI_AGENT"),
    ),
    ("codex", ("CODEX_SANDBOX", "OPENAI_CODEX", "CODEX_ENV_PWD")),
)
_WEAK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cursor", ("CURSOR_TRACE_ID", "CURSOR_USER_ID")),
    ("codex", ("CODEX_HOME",)),
    ("grok", ("GROK_HOME",)),
    ("jetbrains-copilot", ("IDEA_INITIAL_DIRECTORY", "JETBRAINS_IDE")),
    ("vscode-copilot", ("TERM_PROGRAM=vscode", "VSCODE_PID")),
)
_EXACT = {name: name for name in ("claude-code", "opencode", "pi")}
_PREFIXES = (
    ("codex", "codex"), ("cursor", "cursor"), ("gemini-cli", "gemini-cli"), ("pi-", "pi"),
    ("grok", "grok"), ("visual studio code", "vscode-copilot"), ("vscode", "vscode-copilot"),
)  # fmt: skip
_PARTS = (("jetbrains", "jetbrains-copilot"), ("intellij", "jetbrains-copilot"))
_SESSIONS = {
    "claude-code": "CLAUDE_CODE_SESSION_ID",
    "pi": "PI_SESSION_ID",
    "grok": "GROK_SESSION_ID",
}
VARIABLES = frozenset(one.partition("=")[0] for _, names in (*_STRONG, *_WEAK) for one in names) | {
    *_OVERRIDES,
    "AMUX_SESSION",
}

_LOOKED_FOR = "no client name, variable, argument or profile names an agent"
_ILLEGAL_PROFILE = "no client name, variable or argument names an agent, and the profile none known"


class Host(Value):
    """The agent that the facts show, before any argument or profile."""

    agent: str
    """Empty where no fact names one."""
    is_strong: bool
    source: str
    """`client`, `environment` or `terminal`; `unknown` where no fact names one."""
    fact: str
    """What named it: a variable, or `clientInfo.name`."""
    is_inner: bool
    """An agent inside another: what the outer one exported is not its own."""
    warnings: tuple[str, ...]


class Agent(Value):
    """The agent of one call, as every result tells it (J32)."""

    id: str
    source: str
    profile: str
    """The agent that the profile names; empty where it names none."""
    reason: str
    warnings: tuple[str, ...]

    @property
    def is_conflict(self) -> bool:
        """Tell whether the profile names another agent than the one used."""
        return bool(self.profile) and not _agree(self.profile, self.id)

    def plain(self) -> dict[str, object]:
        """Give the `agent` of a result."""
        return {
            "id": self.id,
            "source": self.source,
            "profileAgent": self.profile or None,
            "conflict": self.is_conflict,
            "reason": self.reason or None,
        }


class Profile(Value):
    """What `profile/config.json` hints."""

    agent: str = ""
    is_illegal: bool = False


class SessionKey(Value):
    """The key of the session at work, and where it came from (J27)."""

    key: str
    source: str
    """`argument`, a variable's name, or `random`."""
    is_own: bool
    """Whether it can own a task: a command line without a key of its own cannot."""
    warnings: tuple[str, ...]


def legal(text: object) -> str | None:
    """Give the agent id that a text means, trimmed and lower-cased; None for no id (J28)."""
    if not isinstance(text, str):
        return None
    word = text.strip()
    word = word.lower() if word.isascii() else word
    return word if word in AGENTS else None


def host(facts: Mapping[str, str], client: str = "") -> Host:
    """Find the agent that the facts show: the first row of J29 that hits."""
    by_client = _by_client(client, facts)
    override, fact, warnings = _by_override(facts)
    named = legal(facts.get("AMUX_AGENT"))
    is_inner = bool(by_client and named and not _agree(by_client, named))
    if by_client:
        return _host(by_client, "client", "clientInfo.name", (), is_inner=is_inner)
    if override:
        return _host(override, "environment", fact, warnings)
    strong = _hits(_STRONG, facts)
    if strong:
        if len(strong) > 1:
            warnings = (*warnings, "several-hosts")
        return _host(*strong[0], warnings=warnings)
    weak = _hits(_WEAK, facts)
    if weak:
        return _host(weak[0][0], "terminal", weak[0][2], warnings, is_strong=False)
    return _host("", "unknown", "", warnings, is_strong=False)


def profile(data: bytes | None) -> Profile:
    """Read the profile's hint; what is no JSON or names no legal agent counts as absent (J30)."""
    if data is None:
        return Profile()
    try:
        value = strict.decode(data) if len(data) <= PROFILE_MAX_BYTES else None
    except AmuxError:
        value = None
    if isinstance(value, dict) and "agent" not in value:
        return Profile()
    agent = legal(value["agent"]) if isinstance(value, dict) else None
    return Profile(agent=agent) if agent else Profile(is_illegal=True)


def for_write(found: Host, argument: str | None, hint: Profile) -> Agent:
    """Decide whose memory a write goes to (J30).

    Refuses as MEMORY_AGENT_CONFLICT an argument against a strong fact.
    """
    if found.agent and found.is_strong:
        if argument and not _agree(argument, found.agent):
            raise _conflict(found, argument)
        return _agent(found.agent, found.source, found, hint)
    return _decided(found, argument, hint)


def for_read(
    found: Host, argument: str | None, hint: Profile, directories: Sequence[str] = ()
) -> Agent:
    """Decide whose memory a read looks at (J31); `directories` are those of `.memory/clients`."""
    agent = _agent(argument, "argument", found, hint) if argument else for_write(found, None, hint)
    if agent.source != "unknown":
        return agent
    known = sorted(one for one in directories if one in AGENTS)
    if len(known) > 1:
        raise refuse(
            "MEMORY_SCOPE_AMBIGUOUS",
            "several agents have memory here, and nothing tells which one asks",
            hint="add agent, one of the details",
            agents=known,
        )
    if not known:
        return agent
    return Agent(
        id=known[0],
        source="directory",
        profile=agent.profile,
        reason=agent.reason if known[0] == UNKNOWN else "",
        warnings=(*agent.warnings, "agent-inferred-from-directory"),
    )


def session_key(
    facts: Mapping[str, str], found: Host, *, given: str = "", fallback: str, is_mcp: bool
) -> SessionKey:
    """Decide whose session is at work (J27); `fallback` is the key where nothing names one."""
    if given:
        return SessionKey(key=given, source="argument", is_own=True, warnings=())
    warnings: tuple[str, ...] = ()
    exported = facts.get("AMUX_SESSION", "")
    if exported and found.is_inner:
        warnings = ("inherited-session",)
    elif exported:
        return SessionKey(key=exported, source="AMUX_SESSION", is_own=True, warnings=())
    variable = _SESSIONS.get(found.agent, "")
    if facts.get(variable):
        return SessionKey(key=facts[variable], source=variable, is_own=True, warnings=warnings)
    return SessionKey(key=fallback, source="random", is_own=is_mcp, warnings=warnings)


def _decided(found: Host, argument: str | None, hint: Profile) -> Agent:
    if argument:
        return _agent(argument, "argument", found, hint)
    if found.agent:
        return _agent(found.agent, found.source, found, hint)
    if hint.agent:
        return _agent(hint.agent, "profile-fallback", found, hint)
    return _agent(UNKNOWN, "unknown", found, hint)


def _agent(agent: str, source: str, found: Host, hint: Profile) -> Agent:
    illegal = ("profile-agent-illegal",) if hint.is_illegal else ()
    reason = ""
    if agent == UNKNOWN:
        reason = _ILLEGAL_PROFILE if hint.is_illegal else _LOOKED_FOR
    return Agent(
        id=agent,
        source=source,
        profile=hint.agent,
        reason=reason,
        warnings=(*found.warnings, *illegal),
    )


def _host(
    agent: str,
    source: str,
    fact: str,
    warnings: tuple[str, ...],
    *,
    is_strong: bool = True,
    is_inner: bool = False,
) -> Host:
    return Host(
        agent=agent,
        source=source,
        fact=fact,
        is_strong=is_strong,
        is_inner=is_inner,
        warnings=warnings,
    )


def _by_client(client: str, facts: Mapping[str, str]) -> str:
    """Name the agent of an MCP client (rows 1 to 3)."""
    name = client.lower()
    is_grok = bool(facts.get("GROK_AGENT")) or any(
        legal(facts.get(one)) == "grok" for one in _OVERRIDES
    )
    if name.startswith("codex") and is_grok:
        return "grok"
    if name in _EXACT:
        return _EXACT[name]
    for prefix, agent in _PREFIXES:
        if name.startswith(prefix):
            return agent
    return next((agent for part, agent in _PARTS if part in name), "")


def _by_override(facts: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """Name the agent of the first legal override, its variable, and warnings (row 4)."""
    warnings: tuple[str, ...] = ()
    for variable in _OVERRIDES:
        text = facts.get(variable)
        if not text:
            continue
        agent = legal(text)
        if agent:
            return agent, variable, warnings
        warnings = ("agent-override-illegal",)
    return "", "", warnings


def _hits(
    rows: Sequence[tuple[str, tuple[str, ...]]], facts: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Give each row that hits: its agent, where that came from, and the variable."""
    found = []
    for agent, signals in rows:
        for signal in signals:
            variable, _, value = signal.partition("=")
            text = facts.get(variable)
            if text and (not value or text == value):
                found.append((agent, "environment", variable))
                break
    return found


def _agree(one: str, other: str) -> bool:
    copilots = {"copilot", "vscode-copilot"}
    return one == other or {one, other} == copilots


def _conflict(found: Host, argument: str) -> AmuxError:
    return refuse(
        "MEMORY_AGENT_CONFLICT",
        "the argument names another agent than the one that calls",
        hint="leave agent away, or name the one in the details",
        argument=argument,
        agent=found.agent,
        fact=found.fact,
    )
