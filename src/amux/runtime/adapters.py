"""Which adapter speaks for which agent.

Rule 1: adapters do not know each other, and nobody but this module knows them all (R19).
Rule 2: whoever has no adapter is started as it would be without amux (R9).
"""

from amux.core.late import Late
from amux.errors import InvalidArgument
from amux.runtime.effective import Effective
from amux.runtime.heard import Turn
from amux.runtime.plan import Bound, LaunchPlan, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime.agents import claude, codex, pi
    from amux.runtime.plan import Form
else:
    claude = Late("amux.runtime.agents.claude")
    codex = Late("amux.runtime.agents.codex")
    pi = Late("amux.runtime.agents.pi")

CLAUDE, CODEX, PI = "claude", "codex", "pi"


def form(agent: str, plan: LaunchPlan, start: Start) -> "Form":
    """Tell how a session of an agent would reach memory."""
    return pi.form(plan, start) if agent == PI else "mcp"


def takes_session_id(agent: str, start: Start) -> bool:
    """Tell whether a new session of an agent can be given its native id."""
    return agent == CLAUDE or (agent == PI and pi.takes_session_id(start))


def compose(
    agent: str, plan: LaunchPlan, bound: Bound | None, start: Start, known: Effective
) -> LaunchPlan:
    """Add to a plan what an agent is started with; refuses native arguments by its table.

    `known` is what Codex goes by; for nobody else there is anything to know.
    """
    match agent, bound:
        case "claude", None:
            return claude.compose_unbound(plan, start)
        case "claude", Bound():
            return claude.compose(plan, bound, start)
        case "pi", None:
            return pi.compose_unbound(plan, start)
        case "pi", Bound():
            return pi.compose(plan, bound, start)
        case "codex", None:
            return codex.compose_unbound(plan, start)
        case "codex", Bound():
            return codex.compose(plan, bound, start, known)
        case _:
            return _as_it_is(agent, plan, start)


def compose_sdk(plan: LaunchPlan, bound: Bound | None, start: Start, script: str) -> LaunchPlan:
    """Start Claude by its SDK: a one-file script in the interpreter that argv begins with."""
    return claude.compose_sdk(plan, bound, start, script)


def turn(agent: str) -> Turn:
    """Listen to a headless turn of an agent that says lines of JSON."""
    match agent:
        case "pi":
            return pi.turn()
        case "codex":
            return codex.turn()
        case _:
            return claude.turn()


def app_turn() -> Turn:
    """Listen to a headless turn of Codex's app-server."""
    return codex.app_turn()


def _as_it_is(agent: str, plan: LaunchPlan, start: Start) -> LaunchPlan:
    if start.prompt is not None or start.resume is not None:
        raise InvalidArgument(
            f"amux knows no {'headless turn' if start.prompt is not None else 'resume'} of {agent}",
            hint="start it without, and pass its own arguments after --",
            argument="prompt" if start.prompt is not None else "session",
        )
    return plan.with_argv(*start.native)
