"""Asking the Hub on behalf of a verb.

Rule 1: the first try is the call itself; only where nobody listens is a Hub started (M53), so a
        running Hub is never probed.
Rule 2: nothing was sent where nobody listened, so asking again there repeats nothing.
Rule 3: a Hub of another release is told to the person, once an answer is there.
"""

from amux import __version__
from amux.client import Answer
from amux.core.text import to_json
from amux.errors import LimitExceeded, Unavailable
from amux.memory import limits
from amux.runtime import reach
from amux.runtime.context import Context
from amux.surface.cli import output

NOBODY = ("FileNotFoundError", "ConnectionRefusedError")  # what `connect` fails with then


def ask(ctx: Context, name: str, arguments: dict[str, object]) -> Answer:
    """Make a call, starting a Hub if none runs; raises the refusal that the Hub answered with."""
    _require_sendable(arguments)
    try:
        found = ask_running(ctx, name, arguments)
    except Unavailable as refusal:
        if not nobody_listens(refusal):
            raise
        hub = ctx.late("process").ensure_hub(ctx.config, lambda text: output.notice(ctx, text))
        found = hub.ask(name, arguments)
    if found.hub_version and found.hub_version != __version__:
        is_ours = ctx.config.connection.may_start
        due = "a restart is due (amux hub restart)" if is_ours else "bring both to one release"
        output.notice(
            ctx, f"the Hub runs release {found.hub_version}, this is {__version__}: {due}"
        )
    return found


def ask_running(ctx: Context, name: str, arguments: dict[str, object]) -> Answer:
    """Make a call of the Hub that runs; `unavailable` where none does."""
    return reach.client(ctx).ask(name, arguments)


def nobody_listens(refusal: Unavailable) -> bool:
    """Tell whether a refusal means that no Hub is there at all."""
    return refusal.details.get("cause") in NOBODY


def _require_sendable(arguments: dict[str, object]) -> None:
    """Refuse a body that the Hub would refuse, without sending it."""
    content = arguments.get("content")
    if not isinstance(content, str) or len(content) * 6 < limits.BODY_MAX_BYTES // 2:
        return
    if len(to_json(arguments)) > limits.BODY_MAX_BYTES:
        raise LimitExceeded(
            f"a request body may have {limits.BODY_MAX_BYTES} bytes",
            hint="split the document by topic",
            max_bytes=limits.BODY_MAX_BYTES,
        )
