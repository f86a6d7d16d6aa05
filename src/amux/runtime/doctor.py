"""What a start would do, and what amux cannot stop (R32, R33).

Rule 1: nothing is changed: no Hub is started, nothing is kept, and Codex is asked in a scratch
        configuration folder with a copy of its `config.toml` and no credential.
Rule 2: a finding says what was found and what to do about it.
Rule 3: files are named, and looked at for what works against memory; none is shown.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from amux.disk import named
from amux.errors import AmuxError, InvalidArgument, LaunchRefused
from amux.runtime import (
    adapters,
    composing,
    heard,
    isolation,
    known,
    launch,
    probe,
    process,
    sources,
)
from amux.runtime.agents import claude_settings
from amux.runtime.composing import Tools
from amux.runtime.context import Context
from amux.runtime.known import Agent
from amux.runtime.launch import Asked
from amux.runtime.programs import Programs

FILE_MAX_BYTES = 1024 * 1024
SCRATCH_PREFIX = "amux-doctor-"

# What a finding's words call for; the first that fits.
_ADVICE = (
    ("switches hooks off", "take that setting away, if sub-agents should know about memory"),
    ("denies tools of amux", "take that rule out of permissions.deny"),
    ("is no JSON", "correct the file"),
    ("sets AMUX_", "nothing has to be done; take it away to be rid of this line"),
    ("sets CLAUDE_CODE", "nothing has to be done; take it away to be rid of this line"),
    ("", "see what it says"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a person should know, and what to do about it."""

    what: str
    do: str


@dataclass(slots=True, kw_only=True)
class Examined:
    """What is known of one agent here."""

    agent: str
    program: str = ""
    version: str = ""
    memory: str
    native_memory: str = ""
    isolation: Mapping[str, str] = field(default_factory=lambda: isolation.WORDS)
    login: str = ""
    """Where an isolated home would have its login from."""
    passes: Mapping[str, object] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def plain(self) -> dict[str, object]:
        """Give it as data."""
        return {
            "agent": self.agent,
            "program": self.program,
            "version": self.version,
            "memory": self.memory,
            "native_memory": self.native_memory,
            "isolation": dict(self.isolation),
            "login": self.login,
            "passes": dict(self.passes),
            "seen": self.seen,
            "findings": [{"what": one.what, "do": one.do} for one in self.findings],
        }


def examine(ctx: Context, name: str, cwd: str, tools: Tools, memory: str) -> Examined:
    """Look at one agent; `memory` says what the Hub would answer."""
    agent = known.agent(ctx, name)
    found = Examined(agent=name, memory=memory if agent.has_memory else "no: amux gives it none")
    try:
        found.program = known.executable(agent, ctx.config.search_path)
    except LaunchRefused as refusal:
        found.findings.append(Finding(what=refusal.message, do=refusal.hint))
        return found
    programs = Programs(ctx.config.home, keeps=False)
    environment = ctx.config.environment
    found.version = programs.version(found.program, environment, cwd)
    if not found.version:
        what = "it did not tell its version"
        found.findings.append(Finding(what=what, do=f"try {found.program} --version"))
    if not agent.has_memory:
        return found
    _isolated(ctx, agent, found)
    try:
        found.passes = launch.dry_run(ctx, Asked(agent=name, cwd=cwd), tools)
    except AmuxError as refusal:
        found.findings.append(Finding(what=refusal.message, do=refusal.hint))
    home = environment.get("HOME", "")
    match name:
        case adapters.CODEX:
            _codex(ctx, agent, found, environment, home, cwd, tools)
        case adapters.CLAUDE:
            _claude(found, environment, home, cwd)
        case _:
            _pi(found, environment, home, cwd)
    return found


# --- isolation -----------------------------------------------------------------------------------


def _isolated(ctx: Context, agent: Agent, found: Examined) -> None:
    """Tell what stands in the way of an isolated start, as far as it can be told without one."""
    found.login = {
        "own-login": "a login of its own, in that home",
        "api-key": f"{agent.source.variable}, of the caller's environment",
        "copy": "a copy of " + ", ".join(agent.source.files),
    }[agent.source.kind]
    try:
        sources.passed(agent.source, ctx.config.environment)
        _, warnings = sources.copied(agent.name, agent.source)
    except LaunchRefused as refusal:
        found.findings.append(Finding(what=refusal.message, do=refusal.hint))
    else:
        hint = "log in once in that home; see credentials in agents.toml"
        found.findings += [Finding(what=text, do=hint) for text in warnings]


# --- Codex ---------------------------------------------------------------------------------------


def _codex(
    ctx: Context,
    agent: Agent,
    found: Examined,
    environment: Mapping[str, str],
    home: str,
    cwd: str,
    tools: Tools,
) -> None:
    own = environment.get("CODEX_HOME") or f"{home}/.codex"
    _saw(found, f"{own}/config.toml", f"{own}/AGENTS.md", f"{cwd}/AGENTS.md")
    _saw(found, f"{cwd}/.codex/config.toml")
    for path in named.names_in(own):
        if path.rpartition("/")[2].startswith("memories"):
            found.seen.append(path)
            found.findings.append(
                Finding(
                    what=f"{path} holds what Codex remembered by itself; an agent can read it",
                    do="move it away if no session should find it",
                )
            )
    for path in (f"{own}/hooks.json", f"{cwd}/.codex/hooks.json"):
        if named.exists(path):
            found.findings.append(_of_hooks(path))
    with _scratch_codex(ctx, own) as scratch:
        asked = Asked(agent=agent.name, cwd=cwd)
        state = launch.imagined(ctx, asked, agent)
        place = isolation.place(ctx, agent, isolation.NONE, "", state.session, cwd)
        elsewhere = {**environment, "CODEX_HOME": scratch}
        plan, bound, start = composing.asked_of_codex(
            ctx, state, agent, found.program, found.version, elsewhere, tools, place
        )
        try:
            probe.codex_effective(plan, bound, start, Programs(ctx.config.home, keeps=False))
        except LaunchRefused as refusal:
            found.native_memory = f"not known to be off: {refusal.message}"
            found.findings.append(Finding(what=refusal.message, do=refusal.hint))
        else:
            found.native_memory = "off, as Codex says itself"


@contextmanager
def _scratch_codex(ctx: Context, own: str) -> Iterator[str]:
    """Make a configuration folder for one question, and remove it."""
    scratch = named.join(ctx.config.temp_dir, process.random_name(SCRATCH_PREFIX))
    try:
        named.make_private(scratch, "config.toml", _data(f"{own}/config.toml") or b"")
    except OSError as error:
        raise InvalidArgument(
            "no scratch folder could be made", hint="see TMPDIR", cause=type(error).__name__
        ) from error
    try:
        yield scratch
    finally:
        for path in named.walk(scratch):
            named.remove(path)


# --- Claude --------------------------------------------------------------------------------------


def _claude(found: Examined, environment: Mapping[str, str], home: str, cwd: str) -> None:
    own = environment.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    _saw(found, f"{own}/CLAUDE.md", f"{cwd}/CLAUDE.md", f"{cwd}/CLAUDE.local.md")
    found.native_memory = "off by the process and by the launch's settings"
    for path in claude_settings.places(environment, cwd):
        text = _text(path)
        if text is None:
            continue
        _saw(found, path)
        for what in claude_settings.findings(path, text):
            found.findings.append(Finding(what=what, do=_advice(what)))
        if heard.parsed(text).get("hooks"):
            found.findings.append(_of_hooks(path))
    folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)
    for path in (f"{own}/projects/{folder}/memory", f"{own}/agent-memory"):
        if named.exists(path):
            found.seen.append(path)
            found.findings.append(
                Finding(
                    what=f"{path} holds what Claude remembered by itself; an agent can read it",
                    do="move it away if no session should find it",
                )
            )


# --- Pi ------------------------------------------------------------------------------------------


def _pi(found: Examined, environment: Mapping[str, str], home: str, cwd: str) -> None:
    own = environment.get("PI_CODING_AGENT_DIR") or f"{home}/.pi/agent"
    _saw(found, f"{own}/APPEND_SYSTEM.md", f"{own}/AGENTS.md", f"{own}/settings.json")
    _saw(found, f"{cwd}/.pi/APPEND_SYSTEM.md", f"{cwd}/AGENTS.md", f"{own}/mcp.json")
    found.native_memory = "none: Pi has no memory of its own"
    for folder in (f"{own}/extensions", f"{cwd}/.pi/extensions"):
        found.findings += [_of_extension(path) for path in named.names_in(folder)]
    for path in (f"{own}/settings.json", f"{cwd}/.pi/settings.json"):
        settings = heard.parsed(_text(path) or "")
        for kind in ("packages", "extensions"):
            listed = settings.get(kind)
            names = listed if isinstance(listed, list) else []
            found.findings += [_of_extension(f"{one} of {path}") for one in names]


def _of_extension(what: str) -> Finding:
    words = "remembers things by itself" if "memor" in what.lower() else "may remember things"
    return Finding(
        what=f"the extension {what} {words}; amux cannot stop it",
        do="take it away, or start with `-- --no-extensions`, if memory should have one place",
    )


# --- what all have -------------------------------------------------------------------------------


def _of_hooks(path: str) -> Finding:
    return Finding(
        what=f"{path} has hooks; amux cannot stop what they write",
        do="see that none of them keeps a memory",
    )


def _advice(what: str) -> str:
    return next(advice for words, advice in _ADVICE if words in what)


def _saw(found: Examined, *paths: str) -> None:
    found.seen += [path for path in paths if named.exists(path)]


def _text(path: str) -> str | None:
    data = _data(path)
    return data.decode("utf-8", "replace") if data is not None else None


def _data(path: str) -> bytes | None:
    try:
        data = named.read(path, max_bytes=FILE_MAX_BYTES)
    except OSError:
        return None
    return data if len(data) <= FILE_MAX_BYTES else None
