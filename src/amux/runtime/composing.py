"""From a start state to a plan: what an agent is started with, and what must be known for it.

Rule 1: a new session is given the protocol and the tools of this release; a resumed one those of
        its record (R6).
Rule 2: an unbound session gets its names and nothing else (R20).
Rule 3: where a run happens, and with what before its adapter adds to it, `isolation` says.
"""

from contextlib import suppress

from amux.core.late import Late
from amux.core.value import Value
from amux.disk import named
from amux.errors import AmuxError, Internal, LaunchRefused
from amux.runtime import adapters, isolation, process, protocol, scripts
from amux.runtime.context import Context
from amux.runtime.effective import Effective
from amux.runtime.isolation import Place
from amux.runtime.known import Agent
from amux.runtime.plan import Bound, LaunchPlan, Start
from amux.runtime.programs import Programs
from amux.runtime.record import Protocol, StartState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime import probe
else:
    probe = Late("amux.runtime.probe")

PROTOCOL_VERSION = protocol.VERSION


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


def environment(place: Place, state: StartState) -> dict[str, str]:
    """Give the environment of an agent before its adapter adds to it."""
    return {**place.environment, "AMUX_SESSION": state.session, "AMUX_AGENT": state.agent_id}


def compose(
    ctx: Context,
    state: StartState,
    place: Place,
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
    plan = LaunchPlan(
        argv=(program,),
        environment=environment(place, state),
        cwd=state.cwd,
        runs_as=place.user,
        warnings=place.warnings,
    )
    start = _start(place, state, version, resume=resume, prompt=prompt)
    if resume is None:
        state, start = _new(ctx, state, agent, plan, start, tools)
    bound = _bound(ctx, state, place)
    if bound is not None:
        plan = _with_command(ctx, plan, place, bound)
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
    place: Place,
) -> tuple[LaunchPlan, Bound, Start]:
    """Give what the probe of Codex is made from, in an environment of the caller's (R32)."""
    plan = LaunchPlan(argv=(program,), environment=environment, cwd=state.cwd)
    start = _start(place, state, version, resume=None, prompt=None)
    state, start = _new(ctx, state, agent, plan, start, tools)
    bound = _bound(ctx, state, place)
    if bound is None:
        raise Internal("a bound session was to be imagined")
    return plan, bound, start


def with_tools(state: StartState, tools: Tools) -> StartState:
    """Give a resumed session tools that can be served: its own, if they still are (R6)."""
    if state.tools is None or set(state.tools) <= set(tools.names):
        return state
    return state.replace(tools=tools.names, table_version=tools.version)


def _start(
    place: Place, state: StartState, version: str, *, resume: str | None, prompt: str | None
) -> Start:
    return Start(
        native=state.native_args,
        directory=place.files,
        version=version,
        session_id=None,
        resume=resume,
        prompt=prompt,
        read=place.read,
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
    form = adapters.form(agent.name, plan, start)
    text = Protocol(
        version=protocol.VERSION, digest=protocol.digest(form), text=protocol.text(form)
    )
    state = state.replace(protocol=text, form=form, tools=tools.names, table_version=tools.version)
    return state, start


def _bound(ctx: Context, state: StartState, place: Place) -> Bound | None:
    if state.binding is None or state.protocol is None:
        return None
    hub, ca_file = state.hub, ""
    with suppress(AmuxError):  # settings that cannot be read now; it had an address when it began
        hub = isolation.address(ctx, place) or hub
        ca_file = ctx.config.connection.ca_file
    if ca_file and place.directory is not None:
        ca_file = place.directory.ca_file
    return Bound(
        session=state.session,
        agent_id=state.agent_id,
        binding=state.binding,
        hub=hub,
        ca_file=ca_file,
        credential_file=place.credential_file,
        text=state.protocol.text,
        form="cli" if state.form == "cli" else "mcp",
        asks_writes=state.asks_writes,
        command=place.command or tuple(process.command()),
        tools=state.tools or (),
    )


def _with_command(ctx: Context, plan: LaunchPlan, place: Place, bound: Bound) -> LaunchPlan:
    """See that an agent finds `amux`: the copy of its run first, or the installed one last."""
    folder, _, name = bound.command[0].rpartition("/")
    if place.command:
        path = plan.environment["PATH"]
        return plan.with_environment({"PATH": f"{folder}:{path}"})
    if bound.form != "cli" or named.find_program("amux", ctx.config.search_path) is not None:
        return plan
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
    return scripts.text("sidecar.py")


def _uuid(random: bytes) -> str:
    """Spell a random UUID: a native id, as agents like them."""
    number = int.from_bytes(random, "big") & ~(0xF << 76) | (4 << 76)
    text = f"{number & ~(3 << 62) | (2 << 62):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
