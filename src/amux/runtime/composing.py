"""From a start state to a plan: what an agent is started with, and what must be known for it.

Rule 1: a new session is given the protocol and the tools of this release; a resumed one those of
        its record (R6).
Rule 2: an unbound session gets its names and nothing else (R20).
Rule 3: what a session was given by whoever started it is not passed on to those that it starts.
"""

import pkgutil
from contextlib import suppress

from amux.core import home
from amux.core.value import Value
from amux.disk import named
from amux.errors import AmuxError, Internal, LaunchRefused
from amux.runtime import adapters, probe, process, protocol
from amux.runtime.context import Context
from amux.runtime.effective import Effective
from amux.runtime.known import Agent
from amux.runtime.plan import Bound, Form, LaunchPlan, Start
from amux.runtime.programs import Programs
from amux.runtime.record import Protocol, StartState

PROTOCOL_VERSION = protocol.VERSION
READ_MAX_BYTES = 4 * 1024 * 1024  # of a person's file that an adapter merges
OF_A_SESSION = ("AMUX_MEMORY_BINDING", "AMUX_HUB", "AMUX_CREDENTIAL_FILE", "AMUX_CA_FILE")


class Tools(Value):
    """The tools that a new session is given."""

    names: tuple[str, ...]
    version: int
    """Of the table that they are from."""


class Composed(Value):
    """A plan, and the start state that it was made for."""

    plan: LaunchPlan
    state: StartState
    prompt: str | None
    notes: tuple[str, ...] = ()


def environment(ctx: Context, state: StartState) -> dict[str, str]:
    """Give the environment of an agent before its adapter adds to it."""
    taken = OF_A_SESSION if "AMUX_MEMORY_BINDING" in ctx.config.environment else ()
    kept = {name: value for name, value in ctx.config.environment.items() if name not in taken}
    return {**kept, "AMUX_SESSION": state.session, "AMUX_AGENT": state.agent_id}


def compose(
    ctx: Context,
    state: StartState,
    agent: Agent,
    program: str,
    programs: Programs,
    *,
    version: str,
    prompt: str | None,
    resume: str | None,
    tools: Tools,
    is_dry: bool = False,
) -> Composed:
    """Make the plan of one run; refuses native arguments by the adapter's table (R21)."""
    plan = LaunchPlan(argv=(program,), environment=environment(ctx, state), cwd=state.cwd)
    start = _start(ctx, state, version, resume=resume, prompt=prompt)
    if resume is None:
        state, start = _new(ctx, state, agent, plan, start, tools)
    bound = _bound(ctx, state)
    if bound is not None and bound.form == "cli":
        plan = _with_command(ctx, plan, bound)
    if state.via:
        plan = adapters.compose_sdk(_by_sdk(agent, plan), bound, start, _script())
    else:
        known = Effective()
        if bound is not None and agent.name == adapters.CODEX and not is_dry:
            known = probe.codex_effective(plan, bound, start, programs)
        plan = adapters.compose(agent.name, plan, bound, start, known)
    notes = () if version else (f"{agent.name} did not tell its version",)
    return Composed(plan=plan, state=state, prompt=prompt, notes=notes)


def asked_of_codex(
    ctx: Context,
    state: StartState,
    agent: Agent,
    program: str,
    version: str,
    environment: dict[str, str],
    tools: Tools,
) -> tuple[LaunchPlan, Bound, Start]:
    """Give what the probe of Codex is made from, in an environment of the caller's (R32)."""
    plan = LaunchPlan(argv=(program,), environment=environment, cwd=state.cwd)
    start = _start(ctx, state, version, resume=None, prompt=None)
    state, start = _new(ctx, state, agent, plan, start, tools)
    bound = _bound(ctx, state)
    if bound is None:
        raise Internal("a bound session was to be imagined")
    return plan, bound, start


def with_tools(state: StartState, tools: Tools) -> StartState:
    """Give a resumed session tools that can be served: its own, if they still are (R6)."""
    if state.tools is None or set(state.tools) <= set(tools.names):
        return state
    return state.replace(tools=tools.names, table_version=tools.version)


def _start(
    ctx: Context, state: StartState, version: str, *, resume: str | None, prompt: str | None
) -> Start:
    return Start(
        native=state.native_args,
        directory=named.join(_directory(ctx, state), home.FILES_DIR),
        version=version,
        session_id=None,
        resume=resume,
        prompt=prompt,
        read=lambda path: _read(state.cwd, path),
    )


def _new(
    ctx: Context, state: StartState, agent: Agent, plan: LaunchPlan, start: Start, tools: Tools
) -> tuple[StartState, Start]:
    """Choose what a new session will keep: its native id, and if it is bound text and tools."""
    if adapters.takes_session_id(agent.name, start):
        start = start.replace(session_id=_uuid(ctx.random_bytes(16)))
    state = state.replace(native=start.session_id)
    if not state.is_bound:
        return state, start
    form: Form = adapters.form(agent.name, plan, start)
    text = Protocol(
        version=protocol.VERSION, digest=protocol.digest(form), text=protocol.text(form)
    )
    state = state.replace(protocol=text, form=form, tools=tools.names, table_version=tools.version)
    return state, start


def _bound(ctx: Context, state: StartState) -> Bound | None:
    if state.binding is None or state.protocol is None:
        return None
    hub, ca_file = state.hub, ""
    with suppress(AmuxError):  # settings that cannot be read now; it had an address when it began
        hub, ca_file = ctx.config.connection.address.text, ctx.config.connection.ca_file
    return Bound(
        session=state.session,
        agent_id=state.agent_id,
        binding=state.binding,
        hub=hub,
        ca_file=ca_file,
        credential_file=named.join(_directory(ctx, state), home.CREDENTIAL_FILE),
        text=state.protocol.text,
        form="cli" if state.form == "cli" else "mcp",
        asks_writes=state.asks_writes,
        command=tuple(process.command()),
        tools=state.tools or (),
    )


def _with_command(ctx: Context, plan: LaunchPlan, bound: Bound) -> LaunchPlan:
    """See that an agent that calls `amux` finds one; last on its PATH, which is the person's."""
    if named.find_program("amux", ctx.config.search_path) is not None:
        return plan
    folder, _, name = bound.command[0].rpartition("/")
    if name != "amux":
        raise LaunchRefused(
            "this agent calls `amux`, which is not on the PATH",
            hint="install amux where the PATH finds it",
            step="cli",
            cause="not_found",
        )
    return plan.with_environment({"PATH": f"{ctx.config.search_path}:{folder}"})


def _by_sdk(agent: Agent, plan: LaunchPlan) -> LaunchPlan:
    python = named.find_program(agent.sdk_python, "") if agent.sdk_python else None
    if python is None:
        raise LaunchRefused(
            "no interpreter with claude_agent_sdk is known",
            hint='name one in agents.toml: [claude] sdk_python = "/path/to/python"',
            step="sidecar",
            cause="not_found",
        )
    return plan.replace(argv=(python, *plan.argv))


def _script() -> str:
    return (pkgutil.get_data("amux.runtime", "sidecar.py") or b"").decode("utf-8")


def _read(cwd: str, path: str) -> str | None:
    """Read a person's file for an adapter; None where it cannot be read."""
    try:
        data = named.read(named.join(cwd, path), max_bytes=READ_MAX_BYTES)
        return data.decode("utf-8") if len(data) <= READ_MAX_BYTES else None
    except (OSError, ValueError):
        return None


def _directory(ctx: Context, state: StartState) -> str:
    return named.join(ctx.config.home, home.SESSIONS_DIR, state.session)


def _uuid(random: bytes) -> str:
    """Spell a random UUID: a native id, as agents like them."""
    number = int.from_bytes(random, "big") & ~(0xF << 76) | (4 << 76)
    text = f"{number & ~(3 << 62) | (2 << 62):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
