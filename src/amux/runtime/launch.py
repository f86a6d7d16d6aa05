"""Starting a session, and going on with one: the steps, in their one order (R3).

executable -> binding -> what the agent says of itself -> plan -> record -> files -> process -> end

Rule 1: a step that fails names itself, leaves nothing running and no live credential (M67).
Rule 2: what could not be bound starts without memory and says so, once more at its end in a
        terminal; only `required` makes that a refusal (R5, R9).
Rule 3: a session stays as it began: a resume reads its record, and no setting of today (R6).
Rule 4: nothing of a person's configuration is changed, and nothing written where they work (R11,
        R12).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from amux import __version__
from amux.core.value import Value
from amux.disk import named
from amux.errors import (
    AmuxError,
    InvalidArgument,
    LaunchRefused,
    NotFound,
    PermissionDenied,
    UnsupportedAgent,
)
from amux.runtime import binding, composing, isolation, known, record, terminal
from amux.runtime.binding import HasFailed, IsBound, IsOff, Outcome
from amux.runtime.composing import Composed, Tools
from amux.runtime.context import Context
from amux.runtime.isolation import Place
from amux.runtime.known import Agent
from amux.runtime.programs import Programs
from amux.runtime.record import Record, StartState
from amux.runtime.running import PLACEHOLDER, Done, Run
from amux.runtime.sessions import Sessions, new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Memory: TypeAlias = Literal["", "off", "required"]
Tell = Callable[[str], None]
UNSUPPORTED = "unsupported_agent"
IMAGINED = "s-000000000000"


class Asked(Value):
    """What a person asked to be started."""

    agent: str
    name: str = ""
    cwd: str = "."
    isolation: str = "none"
    user: str = ""
    memory: "Memory" = ""
    verbs: str = ""
    asks_writes: bool = False
    via: str = ""
    prompt: str | None = None
    native: tuple[str, ...] = ()


def start(ctx: Context, asked: Asked, tools: Tools, tell: Tell) -> Done:
    """Start a new session and stay with it until its process ends."""
    session = new_id(ctx.random_bytes)
    agent, program, cwd, place = _found(ctx, asked, session)
    with _step("record"):
        sessions = Sessions.create(ctx.config.home)
        swept = sessions.sweep_dead()
    programs = Programs(ctx.config.home)
    if asked.memory != "off" and agent.has_memory:
        place = isolation.with_python(ctx, place, programs)
    with terminal.interruptible():
        outcome = _outcome(ctx, asked, agent, place, session, tell)
        with _revoked(ctx, session, outcome, tell):
            _end_dead(ctx, outcome, swept)
            _require(asked.memory, agent, outcome)
            state = _state(ctx, asked, agent, outcome, session=session, cwd=cwd)
            with _step("isolation"):
                place.make_home(agent.name)
            state = state.replace(agent_version=_version(programs, program, place, state))
            with _step("plan"):
                made = composing.compose(
                    ctx, state, place, agent, program, programs, version=state.agent_version,
                    prompt=asked.prompt, resume=None, tools=tools,
                )  # fmt: skip
            began = Record(start=made.state, natives=_chosen(made.state))
            credential = outcome.credential if isinstance(outcome, IsBound) else ""
            run = Run(ctx=ctx, sessions=sessions, record=began, tell=tell, place=place)
            return _go(run, made, outcome, credential)


def resume(
    ctx: Context, text: str, tell: Tell, *, native: str, prompt: str | None, tools: Tools
) -> Done:
    """Go on with a session as it began, and stay until its process ends."""
    sessions = Sessions.open(ctx.config.home)
    if sessions is None:
        raise NotFound("there is no such session", hint="see `amux session list`")
    swept = sessions.sweep_dead()
    kept = sessions.read(sessions.find(text))
    state = kept.start
    agent = known.agent(ctx, state.agent)
    if not named.is_directory(state.cwd):
        raise InvalidArgument(
            "the session's directory is gone", hint="make it again", argument="cwd"
        )
    place = isolation.place(ctx, agent, state.isolation, state.user, state.session, state.cwd)
    program = known.executable(agent, place.search_path)
    place, programs = place.with_program(program), Programs(ctx.config.home)
    if state.is_bound:
        place = isolation.with_python(ctx, place, programs)
    with terminal.interruptible(), sessions.held(state.session):
        credential, missing = _renewed(ctx, state, tell)
        outcome = _kept_outcome(state)
        with _revoked(ctx, state.session, outcome, tell):
            if missing is None:
                _end_dead(ctx, outcome, [one for one in swept if one != state.session])
            with _step("isolation"):
                place.make_home(agent.name)
            with _step("plan"):
                made = composing.compose(
                    ctx, composing.with_tools(state, tools), place, agent, program, programs,
                    version=_version(programs, program, place, state), prompt=prompt,
                    resume=_native(kept, native), tools=tools,
                )  # fmt: skip
            if made.state.tools != state.tools:
                kept = kept.with_note("the tools of its release are gone: it has those of today")
            run = Run(
                ctx=ctx, sessions=sessions, record=kept, tell=tell, place=place, is_resumed=True
            )
            if missing is not None:
                run.warn(f"memory is not reached yet: {missing.message}; it is tried again")
            return _go(run, made, outcome, credential, is_held=True)


def dry_run(ctx: Context, asked: Asked, tools: Tools) -> dict[str, object]:
    """Say what would be started if memory is on; binds, starts and writes nothing."""
    agent, program, cwd, place = _found(ctx, asked, IMAGINED)
    programs = Programs(ctx.config.home)
    state = imagined(ctx, asked.replace(cwd=cwd), agent)
    state = state.replace(agent_version=programs.known_version(program) or "")
    made = composing.compose(
        ctx, state, place, agent, program, programs, version=state.agent_version,
        prompt=asked.prompt, resume=None, tools=tools, is_dry=True,
    )  # fmt: skip
    about = {"agent": agent.name, "memory": state.outcome, "isolation": place.isolation}
    return {**about, **made.plan.shown(), "copies": [*place.copy_paths()]}


def imagined(ctx: Context, asked: Asked, agent: Agent) -> StartState:
    """Give the start state of a session that is bound if it may be; nobody is asked."""
    outcome: Outcome = IsOff(cause="", reason="")
    if asked.memory != "off" and agent.has_memory:
        outcome = IsBound(binding="amux1:HUB:SCOPE", principal=None, credential="", hub="HUB")
    return _state(ctx, asked, agent, outcome, session=IMAGINED, cwd=asked.cwd)


# --- the steps -----------------------------------------------------------------------------------


def _found(ctx: Context, asked: Asked, session: str) -> tuple[Agent, str, str, Place]:
    """Check what can be checked before anything is asked or made."""
    record.require_name(asked.name)
    cwd = named.absolute(asked.cwd)
    if not named.is_directory(cwd):
        raise InvalidArgument("there is no such directory", argument="cwd")
    agent = known.agent(ctx, asked.agent)
    if asked.via and (agent.name != "claude" or asked.prompt is None):
        raise InvalidArgument(
            "only headless turns of claude go by the SDK", hint="give --prompt", argument="via"
        )
    place = isolation.place(ctx, agent, asked.isolation, asked.user, session, cwd)
    program = known.executable(agent, place.search_path)
    return agent, program, cwd, place.with_program(program)


def _outcome(
    ctx: Context, asked: Asked, agent: Agent, place: Place, session: str, tell: Tell
) -> Outcome:
    if not agent.has_memory:
        return IsOff(cause=UNSUPPORTED, reason=f"amux gives {agent.name} no memory")
    if asked.memory == "off":
        return IsOff(cause="asked", reason="this session was asked to have none")
    try:
        outcome = binding.resolve(
            ctx,
            session=session,
            agent_id=agent.agent_id,
            isolation=asked.isolation,
            protocol_version=composing.PROTOCOL_VERSION,
            verbs=asked.verbs,
            uid=place.user.uid if place.user else None,
            tell=tell,
        )
    except BaseException:
        binding.end_if_known(ctx, session)  # interrupted: the question may have been answered
        raise
    if not isinstance(outcome, IsBound):
        return outcome
    hub = isolation.address(ctx, place)
    if hub:
        return outcome.replace(hub=hub)
    binding.end_if_known(ctx, session)
    return HasFailed(
        cause="no_shared_socket",
        reason="the Hub has no socket for other users; see hub.shared_socket in config.toml",
        may_be_bound=False,
    )


def _end_dead(ctx: Context, outcome: Outcome, swept: Iterable[str]) -> None:
    """Revoke the credentials of runs that were killed, now that the Hub is known to answer."""
    for session in swept if isinstance(outcome, IsBound) else ():
        binding.end_if_known(ctx, session)


def _version(programs: Programs, program: str, place: Place, state: StartState) -> str:
    environment = composing.environment(place, state)
    return programs.version(program, environment, state.cwd, place.user)


def _require(memory: "Memory", agent: Agent, outcome: Outcome) -> None:
    if memory != "required" or isinstance(outcome, IsBound):
        return
    if outcome.cause == UNSUPPORTED:
        raise UnsupportedAgent(
            f"amux gives {agent.name} no memory", hint="start it without --memory required"
        )
    raise LaunchRefused(
        f"memory is required, and could not be had: {outcome.reason}",
        hint="see `amux system status`, or start it without --memory required",
        step="binding",
        cause=outcome.cause,
    )


def _state(
    ctx: Context, asked: Asked, agent: Agent, outcome: Outcome, *, session: str, cwd: str
) -> StartState:
    bound = outcome if isinstance(outcome, IsBound) else None
    return StartState(
        session=session,
        name=asked.name,
        agent=agent.name,
        agent_id=agent.agent_id,
        agent_version="",
        amux=__version__,
        outcome=outcome.outcome,
        reason=outcome.reason,
        cause=outcome.cause,
        principal=bound.principal if bound else None,
        native=None,
        binding=bound.binding if bound else None,
        hub=bound.hub if bound else "",
        protocol=None,
        form=None,
        tools=None,
        table_version=None,
        asks_writes=asked.asks_writes,
        verbs=asked.verbs,
        isolation=asked.isolation,
        user=asked.user,
        via=asked.via,
        native_args=asked.native,
        cwd=cwd,
        created=record.instant(ctx.wall()),
    )


def _renewed(ctx: Context, state: StartState, tell: Tell) -> tuple[str, AmuxError | None]:
    """Get a bound session a credential again; where that fails now, it may work later (R7)."""
    if not state.is_bound:
        return "", None
    try:
        return binding.renew(ctx, state.session, tell), None
    except PermissionDenied:
        raise  # somebody else's session is not gone on with (M72)
    except AmuxError as refusal:
        return PLACEHOLDER, refusal


def _kept_outcome(state: StartState) -> Outcome:
    if state.binding is not None:
        return IsBound(
            binding=state.binding,
            principal=state.principal,
            credential="",
            hub=state.hub,
        )
    if state.outcome == "failed":
        return HasFailed(cause=state.cause, reason=state.reason, may_be_bound=False)
    return IsOff(cause=state.cause, reason=state.reason)


def _native(kept: Record, asked: str) -> str:
    if asked and asked not in kept.natives:
        raise NotFound(
            "the session has no such native session",
            hint="see `amux session show`",
            known=list(kept.natives),
        )
    found = asked or kept.first_native
    if found is None:
        raise NotFound(
            "the agent's own session is not known",
            hint="it ended before it began one; start a new session",
        )
    return found


def _chosen(state: StartState) -> tuple[str, ...]:
    return (state.native,) if state.native else ()


def _go(
    run: Run, made: Composed, outcome: Outcome, credential: str, *, is_held: bool = False
) -> Done:
    """Save the record, make the files, start the process, and stay until it ends."""
    with _step("record"):
        run.begin()
    try:
        if is_held:
            return run.through(made, outcome, credential)
        with run.sessions.held(run.session):
            return run.through(made, outcome, credential)
    except LaunchRefused:
        if not run.is_resumed:
            run.sessions.remove(run.session)  # it never began
        raise


@contextmanager
def _revoked(ctx: Context, session: str, outcome: Outcome, tell: Tell) -> Iterator[None]:
    """Have no credential of a session outlive the block (M67)."""
    try:
        yield
    finally:
        with terminal.undisturbed():
            _revoke(ctx, session, outcome, tell)


def _revoke(ctx: Context, session: str, outcome: Outcome, tell: Tell) -> None:
    if isinstance(outcome, IsBound):
        try:
            binding.end(ctx, session)
        except AmuxError as refusal:
            tell(f"the session's credential is not revoked ({refusal.code}); it dies in 12 h")
    elif isinstance(outcome, HasFailed) and outcome.may_be_bound:
        # Nobody received that credential; a Hub that is well again need not keep it.
        binding.end_if_known(ctx, session)


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Name the step that a refusal comes from; what the caller can better stays as it is."""
    try:
        yield
    except (LaunchRefused, InvalidArgument, NotFound):
        raise
    except AmuxError as refusal:
        raise LaunchRefused(
            f"a step of the launch failed: {refusal.message}",
            hint=refusal.hint,
            step=name,
            cause=str(refusal.code),
        ) from refusal
