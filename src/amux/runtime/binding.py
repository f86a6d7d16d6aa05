"""What a session's memory is: resolved once, before its agent starts, and kept alive with it.

Rule 1: one question to the Hub, at most three seconds with the start of a Hub (R3). Whatever goes
        wrong is an outcome, not an end: a session without memory starts as well (R5). But one that
        would run as somebody whose principal is another does not (R30).
Rule 2: nothing falls back: not to another scope, not to another Hub, not to a copy (R5).
Rule 3: the credential lives as long as its run: renewed while the process lives, revoked when it
        ends or when its launch fails (M67).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from amux.client import Client
from amux.core.value import Value
from amux.errors import (
    AmuxError,
    Code,
    LaunchRefused,
    MemoryDisabled,
    OutcomeUnknown,
    PermissionDenied,
    Unavailable,
)
from amux.runtime import process, reach
from amux.runtime.context import Context

SECONDS = 3.0  # for the binding and the start of a Hub together (R3), and for a renewal (R7)
RENEW_SECONDS = 60 * 60  # a credential lives 12 hours (M67)
AGAIN_SECONDS = 10 * 60  # after a renewal that failed: there are hours left
MISSING_SECONDS = 1.0  # between attempts to get one at all: an agent may be waiting for it
LOOK_SECONDS = 60.0  # a machine that slept has missed a renewal that the wall clock still tells

_NOBODY = ("FileNotFoundError", "ConnectionRefusedError")  # what `connect` fails with then


class IsBound(Value):
    """Memory is on, and the identity good."""

    binding: str
    principal: str | None
    credential: str
    hub: str
    cause: str = ""
    reason: str = ""

    @property
    def outcome(self) -> str:
        """Name it as records do."""
        return "bound"


class IsOff(Value):
    """No memory is wanted: the system's switch, the caller, or an agent that has no means."""

    cause: str
    reason: str

    @property
    def outcome(self) -> str:
        """Name it as records do."""
        return "off"


class HasFailed(Value):
    """Memory may be wanted, and the Hub could not be asked, or refused."""

    cause: str
    reason: str
    may_be_bound: bool
    """Whether the Hub may have minted a credential that nobody received."""

    @property
    def outcome(self) -> str:
        """Name it as records do."""
        return "failed"


Outcome = IsBound | IsOff | HasFailed


def resolve(
    ctx: Context,
    *,
    session: str,
    agent_id: str,
    isolation: str,
    protocol_version: int,
    verbs: str,
    tell: Callable[[str], None],
    uid: int | None = None,
) -> Outcome:
    """Bind a new session, starting a Hub if none runs; `uid` is whose process it will be.

    What the Hub does is an outcome, but for one refusal: of an agent that may not run so (R30).
    """
    arguments: dict[str, object] = {
        "session": session,
        "agent": agent_id,
        "isolation": isolation,
        "protocol_version": protocol_version,
        "delegate": True,
    } | ({"verbs": verbs} if verbs else {})
    if uid is not None:
        arguments["uid"] = uid
    try:
        answer = _ask(ctx, "bind", arguments, tell)
        return _bound(ctx, answer)
    except MemoryDisabled as refusal:
        return IsOff(cause=str(refusal.code), reason="agent memory is switched off")
    except OutcomeUnknown as refusal:
        reason = f"the Hub did not answer within {SECONDS:g} s"
        return HasFailed(cause=str(refusal.code), reason=reason, may_be_bound=True)
    except AmuxError as refusal:
        if refusal.details.get("step") == "isolation":
            raise _not_apart(refusal) from refusal
        return HasFailed(cause=str(refusal.code), reason=refusal.message, may_be_bound=False)


def renew(ctx: Context, session: str, tell: Callable[[str], None]) -> str:
    """Get a resumed session another credential; raises the refusal where there is none (R7)."""
    try:
        answer = _ask(ctx, "renew", {"session": session, "resume": True}, tell)
    except PermissionDenied as refusal:
        if refusal.details.get("step") == "isolation":
            raise _not_apart(refusal) from refusal
        raise
    return str(answer.get("credential") or "")


def end(ctx: Context, session: str) -> None:
    """Revoke the credential of a session; raises the refusal where that is not known to be done."""
    _client(ctx, SECONDS).ask("end", {"session": session})


def end_if_known(ctx: Context, session: str) -> None:
    """Revoke what a Hub may have minted, if it can be asked; nobody waits long for that."""
    with suppress(AmuxError):
        _client(ctx, MISSING_SECONDS).ask("end", {"session": session})


@contextmanager
def kept_alive(
    ctx: Context,
    session: str,
    renewed: Callable[[str], None] | None,
    warn: Callable[[AmuxError], None],
) -> Iterator[None]:
    """Renew a session's credential while the block runs.

    With `renewed`, a resumed session still has to get one: that is tried until it is had, and
    given to `renewed`.
    """
    ended = threading.Event()

    def keep() -> None:
        if renewed is not None and not _had(ctx, session, renewed, ended):
            return
        due = ctx.wall() + RENEW_SECONDS
        while not ended.wait(LOOK_SECONDS):
            if ctx.wall() < due:
                continue
            try:
                _client(ctx, SECONDS).ask("renew", {"session": session})
                due = ctx.wall() + RENEW_SECONDS
            except AmuxError as refusal:
                warn(refusal)
                due = ctx.wall() + AGAIN_SECONDS

    thread = threading.Thread(target=keep, name="renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(SECONDS)


def _had(
    ctx: Context, session: str, renewed: Callable[[str], None], ended: threading.Event
) -> bool:
    """Ask for a credential until it is had; False where the run ended before."""
    while not ended.wait(MISSING_SECONDS):
        with suppress(AmuxError, OSError):
            answer = _client(ctx, SECONDS).ask("renew", {"session": session, "resume": True})
            credential = answer.value().get("credential")
            if isinstance(credential, str):
                renewed(credential)
                return True
    return False


def _ask(
    ctx: Context, name: str, arguments: dict[str, object], tell: Callable[[str], None]
) -> dict[str, object]:
    """Ask within the time, in a thread: a resolver of names knows no deadline."""
    found: list[dict[str, object] | BaseException] = []

    def ask() -> None:
        try:
            found.append(_asked(ctx, name, arguments, tell))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            found.append(error)

    thread = threading.Thread(target=ask, name=name, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not found:
        raise OutcomeUnknown(f"the Hub did not answer within {SECONDS:g} s")
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _asked(
    ctx: Context, name: str, arguments: dict[str, object], tell: Callable[[str], None]
) -> dict[str, object]:
    deadline = ctx.clock() + SECONDS
    try:
        return _client(ctx, SECONDS).ask(name, arguments).value()
    except Unavailable as refusal:
        if refusal.details.get("cause") not in _NOBODY:
            raise
    process.ensure_hub(ctx.config, tell, max(0.1, deadline - ctx.clock()))
    return _client(ctx, max(0.1, deadline - ctx.clock())).ask(name, arguments).value()


def _not_apart(refusal: AmuxError) -> LaunchRefused:
    """Say that a principal's agent may not run as this user: there is no start without memory.

    Without it too the agent could read what is another principal's (R30).
    """
    return LaunchRefused(
        refusal.message, hint=refusal.hint, step="isolation", cause=str(refusal.code)
    )


def _client(ctx: Context, seconds: float) -> Client:
    return reach.client(ctx, seconds)


def _bound(ctx: Context, answer: dict[str, object]) -> Outcome:
    binding, credential = answer.get("binding"), answer.get("credential")
    if not isinstance(binding, str) or not isinstance(credential, str):
        return HasFailed(
            cause=str(Code.INTERNAL),
            reason="the Hub answered without a binding or a credential",
            may_be_bound=True,
        )
    principal = answer.get("principal")
    return IsBound(
        binding=binding,
        principal=principal if isinstance(principal, str) else None,
        credential=credential,
        hub=ctx.config.connection.address.text,
    )
