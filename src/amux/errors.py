"""Every refusal of amux: its code, what it means on each face, and what the caller does next.

Rule 1: the class is the code. Words may change tomorrow, codes may not.
Rule 2: one row a code: HTTP status, exit status, when it is worth asking again.
Rule 3: a message says what happened, a hint what to do, details are data. None of them
        holds content, a token, or a path outside the caller's scope.

This module is imported by every start of the command line, so it imports almost nothing.
"""

from enum import StrEnum


class Code(StrEnum):
    """Names of the refusals, as they stand on the wire."""

    INVALID_ARGUMENT = "invalid_argument"
    SECRET_DETECTED = "secret_detected"
    LIMIT_EXCEEDED = "limit_exceeded"
    QUOTA_EXCEEDED = "quota_exceeded"
    NOT_FOUND = "not_found"
    AMBIGUOUS = "ambiguous"
    REVISION_CONFLICT = "revision_conflict"
    CURSOR_STALE = "cursor_stale"
    LEASE_LOST = "lease_lost"
    ADMISSION_DRIFT = "admission_drift"
    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    BINDING_REQUIRED = "binding_required"
    BINDING_MISMATCH = "binding_mismatch"
    CONFIRMATION_REQUIRED = "confirmation_required"
    MEMORY_DISABLED = "memory_disabled"
    UPGRADE_REQUIRED = "upgrade_required"
    LEASE_HELD = "lease_held"
    BUSY = "busy"
    RATE_LIMITED = "rate_limited"
    NOT_SAVED = "not_saved"
    UNAVAILABLE = "unavailable"
    OUTCOME_UNKNOWN = "outcome_unknown"
    UNSUPPORTED_AGENT = "unsupported_agent"
    LAUNCH_REFUSED = "launch_refused"
    CORRUPT = "corrupt"
    INTERNAL = "internal"


class Row:
    """What one code means on each face."""

    __slots__ = ("exit", "http", "retry", "when")

    def __init__(self, http: int | None, exit: int, retry: str, when: str) -> None:  # noqa: A002
        self.http = http
        self.exit = exit
        self.retry = retry
        self.when = when


# Exit status is the next move: 1 tell us, 2 change the request, 3 look again, 4 ask someone,
# 5 later, 6 find out first, 7 not on this agent.
TABLE: dict[Code, Row] = {
    Code.INVALID_ARGUMENT: Row(
        400,
        2,
        "never",
        "a bad path, query, range or revision; an unknown or doubled argument; invisible text",
    ),
    Code.SECRET_DETECTED: Row(
        422, 2, "never", "the content holds a value of a secret format; details.kind and line"
    ),
    Code.LIMIT_EXCEEDED: Row(
        413, 2, "never", "one thing is too big: an entry, a document, a query, a request body"
    ),
    Code.QUOTA_EXCEEDED: Row(507, 3, "make room", "the scope is full: 1,024 documents or 16 MiB"),
    Code.NOT_FOUND: Row(
        404,
        3,
        "never",
        "a named handle is gone: a continuation, an exported document, a route, a section, a task",
    ),
    Code.AMBIGUOUS: Row(
        409,
        3,
        "choose",
        "two workspaces or tasks fit and guessing is forbidden; details.candidates",
    ),
    Code.REVISION_CONFLICT: Row(
        412, 3, "reread", "the expected revision is not the one on disk; details.observed is"
    ),
    Code.CURSOR_STALE: Row(
        410, 3, "restart", "a cursor of another question or another caller, or its source moved"
    ),
    Code.LEASE_LOST: Row(
        412, 3, "reread", "the presented generation or nonce is not the one in force"
    ),
    Code.ADMISSION_DRIFT: Row(
        409, 3, "a person", "a replayed admission finds bytes that differ from its ingress"
    ),
    Code.UNAUTHENTICATED: Row(401, 4, "never", "no credential, or one that is not valid"),
    Code.PERMISSION_DENIED: Row(
        403, 4, "never", "a known actor, but not this; a root that may not be written"
    ),
    Code.BINDING_REQUIRED: Row(403, 4, "never", "a delegated agent sent no binding"),
    Code.BINDING_MISMATCH: Row(
        403, 4, "never", "the binding is not the scope now in force: start a new session"
    ),
    Code.CONFIRMATION_REQUIRED: Row(403, 4, "a person", "the checkpoint is not confirmed"),
    Code.MEMORY_DISABLED: Row(403, 4, "a person", "the system switch memory.enabled is off"),
    Code.UPGRADE_REQUIRED: Row(
        None, 4, "a person", "AMUX_HOME was written by a newer amux than this one"
    ),
    Code.LEASE_HELD: Row(
        409,
        5,
        "later",
        "somebody else owns it; details.observed says who, and details.blocking why",
    ),
    Code.BUSY: Row(
        503, 5, "later", "a lock or a pending write was not had in time; another Hub holds the root"
    ),
    Code.RATE_LIMITED: Row(
        429, 5, "later", "this credential asks too much at once; details.retry_after is in seconds"
    ),
    Code.NOT_SAVED: Row(
        507, 5, "later", "the disk did not take the bytes; the old document is intact"
    ),
    Code.UNAVAILABLE: Row(503, 5, "later", "the Hub is starting, stopping or out of reach"),
    Code.OUTCOME_UNKNOWN: Row(
        500, 6, "read first", "a write was sent and its outcome is not known; read before retrying"
    ),
    Code.UNSUPPORTED_AGENT: Row(
        None, 7, "never", "memory was required, and amux gives this agent none"
    ),
    Code.LAUNCH_REFUSED: Row(
        None,
        7,
        "never",
        "a step of a launch failed: details.step names it, details.cause the code behind it",
    ),
    Code.CORRUPT: Row(500, 1, "never", "a stored file breaks a rule of documents"),
    Code.INTERNAL: Row(500, 1, "never", "a bug; details.incident names the line of the log"),
}


class AmuxError(Exception):
    """A refusal: a code, a message, a hint, and details as data."""

    code: Code = Code.INTERNAL

    def __init__(self, message: str, *, hint: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def exit_status(self) -> int:
        """Tell the exit status of a command that ends with this refusal."""
        return TABLE[self.code].exit

    @property
    def http_status(self) -> int:
        """Tell the HTTP status; a refusal that never crosses HTTP counts as 500."""
        return TABLE[self.code].http or 500

    def body(self) -> dict[str, object]:
        """Give the one body that every face answers with."""
        error: dict[str, object] = {"code": str(self.code), "message": self.message}
        if self.hint:
            error["hint"] = self.hint
        if self.details:
            error["details"] = self.details
        return {"error": error}


class InvalidArgument(AmuxError):
    """The request is malformed; sending it again unchanged cannot help."""

    code = Code.INVALID_ARGUMENT


class SecretDetected(AmuxError):
    """The content holds what looks like a secret; the value is never shown."""

    code = Code.SECRET_DETECTED


class LimitExceeded(AmuxError):
    """One thing is larger than its limit."""

    code = Code.LIMIT_EXCEEDED


class QuotaExceeded(AmuxError):
    """The scope has no room for what the write would add."""

    code = Code.QUOTA_EXCEEDED


class NotFound(AmuxError):
    """A handle that the caller named does not exist."""

    code = Code.NOT_FOUND


class Ambiguous(AmuxError):
    """More than one thing fits, and guessing is forbidden; `details.candidates`."""

    code = Code.AMBIGUOUS


class RevisionConflict(AmuxError):
    """The document is not what the writer has seen; `details.observed` says what it is."""

    code = Code.REVISION_CONFLICT


class CursorStale(AmuxError):
    """The cursor belongs to another question."""

    code = Code.CURSOR_STALE


class LeaseLost(AmuxError):
    """What the caller quotes is not the lease in force."""

    code = Code.LEASE_LOST


class AdmissionDrift(AmuxError):
    """What an admission wrote, or was asked for, is no longer what it was."""

    code = Code.ADMISSION_DRIFT


class Unauthenticated(AmuxError):
    """Nobody is known by this credential, or none was sent."""

    code = Code.UNAUTHENTICATED


class PermissionDenied(AmuxError):
    """The actor is known and may not do this."""

    code = Code.PERMISSION_DENIED


class BindingRequired(AmuxError):
    """A delegated agent must say which binding it works under."""

    code = Code.BINDING_REQUIRED


class BindingMismatch(AmuxError):
    """The binding is of another Hub, or of a scope that is no longer in force."""

    code = Code.BINDING_MISMATCH


class ConfirmationRequired(AmuxError):
    """A person has not said yes to these bytes."""

    code = Code.CONFIRMATION_REQUIRED


class MemoryDisabled(AmuxError):
    """Memory is switched off for the whole system."""

    code = Code.MEMORY_DISABLED


class UpgradeRequired(AmuxError):
    """A newer amux wrote what is to be read."""

    code = Code.UPGRADE_REQUIRED


class LeaseHeld(AmuxError):
    """Somebody else owns it; `details.observed` says who."""

    code = Code.LEASE_HELD


class Busy(AmuxError):
    """Somebody holds what is needed; ask again later."""

    code = Code.BUSY


class RateLimited(AmuxError):
    """One credential asks too much at once."""

    code = Code.RATE_LIMITED


class NotSaved(AmuxError):
    """The disk refused the bytes; nothing changed."""

    code = Code.NOT_SAVED


class Unavailable(AmuxError):
    """The Hub cannot be reached; nothing was changed."""

    code = Code.UNAVAILABLE


class OutcomeUnknown(AmuxError):
    """A write may or may not have happened; read before anything else."""

    code = Code.OUTCOME_UNKNOWN


class UnsupportedAgent(AmuxError):
    """Memory was required, and amux gives this agent none."""

    code = Code.UNSUPPORTED_AGENT


class LaunchRefused(AmuxError):
    """A step of a launch failed; nothing was left running. `details.step` names the step."""

    code = Code.LAUNCH_REFUSED


class Corrupt(AmuxError):
    """A stored file breaks a rule of documents; `details.reason` says which."""

    code = Code.CORRUPT


class Internal(AmuxError):
    """A bug of amux; `details.incident` names the line of the log."""

    code = Code.INTERNAL


BY_CODE: dict[str, type[AmuxError]] = {str(kind.code): kind for kind in AmuxError.__subclasses__()}


def from_body(body: object) -> AmuxError | None:
    """Turn a refusal's body back into the refusal, or None where it is no such body."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    kind = BY_CODE.get(str(error.get("code")))
    if kind is None:
        return None
    refusal = kind(str(error.get("message", "")), hint=str(error.get("hint", "")))
    details = error.get("details")
    refusal.details = details if isinstance(details, dict) else {}
    return refusal
