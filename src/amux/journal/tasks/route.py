"""Which task a session worked on last: a hint to find it by (T13).

Rule 1: a hint never selects a project, a task or an owner, and holds nothing that was confirmed;
        lost or broken, everything but the hint works.
Rule 2: it ends by itself after a day, and with the task. One that has ended may be dropped to make
        room, a live one never.
"""

from collections.abc import Mapping
from typing import ClassVar

from amux.core import canonical
from amux.core.value import Value
from amux.journal.ledger import shape

LIFETIME_SECONDS = 24 * 60 * 60
MAX_BYTES = 1024
MAX_HINTS = 1024
LIVE, UNBOUND = "live", "unbound"
ADMISSION, TASK, SWITCH, TERMINAL = (
    "admission-bind", "task-bind", "project-switch", "terminal-unbind",
)  # fmt: skip


class Hint(Value):
    """Which task a session worked on last."""

    SCHEMA: ClassVar[str] = "WorkspaceSessionRouteIndexV1"
    DIGEST: ClassVar[str] = "entry_digest"

    session_digest: str
    project: str
    project_root_identity_digest: str
    task_id: str
    route_revision: int
    state: str
    trigger: str
    expires_at: str
    last_terminal_receipt_digest: str | None = None
    authority: bool = False
    hint_only: bool = True
    entry_digest: str = ""


def entry(hint: Hint) -> dict[str, object] | None:
    """Spell a hint as the body of its record; None for one that is longer than hints may be."""
    body = shape.encode(shape.seal(hint))
    return body if len(canonical.encode(body)) <= MAX_BYTES else None


def read(body: Mapping[str, object], *, now: str) -> Hint | None:
    """Give a hint that says something now; None for one that ended, and for what is no hint.

    `now` is spelled as the hint's own time is, so that they compare as texts.
    """
    try:
        hint = shape.decode(Hint, body)
    except shape.Misshapen:
        return None
    is_whole = shape.is_sealed(hint) and hint.hint_only and not hint.authority
    return hint if is_whole and hint.state == LIVE and hint.expires_at > now else None


def trigger(before: Hint | None, *, project: str, is_admission: bool) -> str:
    """Name what binds a session to a task: the admission, another project, or another task."""
    if before is not None and before.project != project:
        return SWITCH
    return ADMISSION if is_admission else TASK
