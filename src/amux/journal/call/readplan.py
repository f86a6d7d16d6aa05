"""What a session may ask of the journal now: the read plan and the context epoch (J50-J53).

Rule 1: one current plan a target: a status makes or opens it, a plan of one's own replaces it.
Rule 2: a plan is kept in memory only, so that planning writes nothing; it is no access control.
Rule 3: what it covers has a name of its own, `planContentId`: equal plans, equal names.
"""

from collections.abc import Sequence

from amux.core.canonical import digest
from amux.core.value import Value
from amux.journal.call.tools import SOURCES
from amux.journal.moment import Moment
from amux.journal.refusals import next_call, refuse

STATUS = "memory_status"
RESOLVE = "memory_task_resolve"
SUMMARY = "memory_summary_query"
SESSION = "memory_session_query"


class Asker(Value):
    """For whom a plan is: one agent at one target. The key of its current plan."""

    active_root: str
    project: str
    scope: str
    agent: str


class ReadPlan(Value):
    """What may be asked, and whether asking has begun with a status."""

    asker: Asker
    plan_id: str
    version: int
    intent: str
    sources: tuple[str, ...]
    epoch: str
    session_digest: str
    issued_at: str
    is_open: bool = False

    @property
    def content_id(self) -> str:
        """Name what the plan covers (J50)."""
        return content_id(self.asker, self.intent, self.sources)

    def opened(self) -> "ReadPlan":
        """Give the same plan after its status was read."""
        return self.replace(is_open=True)

    def shown(self) -> dict[str, object]:
        """Spell it as an answer does."""
        found: dict[str, object] = {
            "schemaVersion": f"ContextReadPlanV{self.version}",
            "planId": self.plan_id,
            "planContentId": self.content_id,
            "contextEpoch": self.epoch,
            "activeRoot": self.asker.active_root,
            "project": self.asker.project,
            "scope": self.asker.scope,
            "intent": self.intent,
            "sources": list(self.sources),
            "requiredQueries": required_queries(self.intent),
            "sessionDigest": self.session_digest,
            "issuedAt": self.issued_at,
        }
        if self.version == 1:
            del found["planContentId"]
        return found


def content_id(asker: Asker, intent: str, sources: Sequence[str]) -> str:
    """Name what a plan for this asker, intent and these sources covers."""
    return digest(
        {
            "activeRoot": asker.active_root,
            "agent": asker.agent,
            "intent": intent,
            "project": asker.project,
            "scope": asker.scope,
            "sources": sorted(sources),
        }
    )


def new(
    asker: Asker,
    *,
    nonce: bytes,
    epoch: str,
    session_digest: str,
    now: Moment,
    intent: str = "normal",
    sources: Sequence[str] = SOURCES,
    version: int = 2,
) -> ReadPlan:
    """Make a plan that is not yet open; the status is always among its sources."""
    return ReadPlan(
        asker=asker,
        plan_id=f"plan-{nonce.hex()}",
        version=version,
        intent=intent,
        sources=tuple(sorted({STATUS, *sources}, key=SOURCES.index)),
        epoch=epoch,
        session_digest=session_digest,
        issued_at=now.iso,
    )


def require(plan: ReadPlan | None, tool: str, binding: object, call: dict[str, object]) -> ReadPlan:
    """Give the open plan that a query may go by, or refuse (J52).

    `call` holds the arguments by which a status finds the same target.
    """
    if plan is None or not plan.is_open:
        raise refuse(
            "CONTEXT_BINDING_REQUIRED",
            "nothing was read of this memory yet",
            hint="call memory_status first",
            next_call=next_call(STATUS, call),
        )
    if binding is not None:
        require_same(plan, binding, call)
    if tool not in plan.sources:
        raise refuse(
            "CONTEXT_BINDING_MISMATCH",
            "the current read plan does not cover this tool",
            hint="call memory_context_plan with this source",
            sources=list(plan.sources),
            next_call=next_call("memory_context_plan", {**call, "sources": [*plan.sources, tool]}),
        )
    return plan


def require_same(plan: ReadPlan | None, binding: object, call: dict[str, object]) -> None:
    """Refuse a binding that does not name the current plan."""
    if plan is None or binding != plan.plan_id:
        raise refuse(
            "CONTEXT_BINDING_MISMATCH",
            "another read plan is current",
            hint="leave contextBinding out, or call memory_status for the current planId",
            next_call=next_call(STATUS, call),
        )


def first_epoch(session_digest: str) -> str:
    """Name a session's first context (J51)."""
    return "ctx-" + digest(f"amux-context:{session_digest}")[:16]


def new_epoch(nonce: bytes) -> str:
    """Name a new context of a session, after compaction, clear, or a change of project."""
    return f"ctx-{nonce.hex()[:16]}"


_STATUS_FIRST: dict[str, object] = {"tool": STATUS, "arguments": {"limit": 5}, "when": "first"}
_RESUMED: tuple[dict[str, object], ...] = (
    _STATUS_FIRST,
    {
        "tool": SESSION,
        "arguments": {"limit": 1, "maxChars": 12_000},
        "when": "the last section; with handoffOnly if cards or otherAgents shows a card",
    },
    {
        "tool": SUMMARY,
        "arguments": {"status": "unresolved", "limit": 5},
        "when": "only if that, and what the card names, is not enough",
    },
    {
        "tool": SUMMARY,
        "arguments": {"status": "unresolved", "limit": 5},
        "fill": ["since"],
        "when": "the newest open row is older than 14 days: locate, tell the person date and "
        "session, then query exactly that section",
    },
    {
        "tool": STATUS,
        "arguments": {},
        "when": "nothing is open, of any agent: quote the last row and ask; never pick an old task",
    },
)
_ORDER: dict[str, tuple[dict[str, object], ...]] = {
    "named": (
        {"tool": RESOLVE, "arguments": {}, "fill": ["name"], "when": "before any resume query"},
        {
            "tool": STATUS,
            "arguments": {"limit": 5},
            "when": "one active task: read the files that rehydration names, then its resume diff",
        },
    ),
    "normal": (
        _STATUS_FIRST,
        {
            "tool": SUMMARY,
            "arguments": {"status": "unresolved", "limit": 5},
            "when": "only if the status shows need",
        },
    ),
    "resume": _RESUMED,
    "history": _RESUMED,
}


def required_queries(intent: str) -> list[dict[str, object]]:
    """Spell in which order to ask for this intent (J53)."""
    return [dict(row) for row in _ORDER[intent]]
