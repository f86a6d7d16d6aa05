"""The rows of the verbs on a workspace's sessions and tasks: made from the table of tools.

Rule 1: a verb is a tool, and a flag is an argument in kebab-case (J72); nothing of the table is
        said again here. What a command line adds is examples, --args, --workspace and --session.
Rule 2: values are not checked here: the journal does, so that both faces refuse alike (J1).
"""

from amux.errors import Code
from amux.journal.call.tool import Field, Tool
from amux.journal.call.tools import TOOLS
from amux.surface.cli.verb import JSON, Option, Verb

_WORKSPACE = Option("workspace", "DIR", "where to look for the workspace; here if not given")
_SESSION = Option("session", "KEY", "whose session this is; AMUX_SESSION if not given")
_ARGS = Option("args", "FILE", "read the object of arguments from this file; - is standard input")

_READS = (
    Code.NOT_FOUND, Code.AMBIGUOUS, Code.PERMISSION_DENIED, Code.CORRUPT,
)  # fmt: skip
_QUERIES = (*_READS, Code.CURSOR_STALE)
_WRITES = (
    *_READS, Code.SECRET_DETECTED, Code.LIMIT_EXCEEDED, Code.NOT_SAVED, Code.REVISION_CONFLICT,
    Code.BUSY, Code.UNAVAILABLE, Code.OUTCOME_UNKNOWN,
)  # fmt: skip
_TASKS = (
    *_WRITES, Code.QUOTA_EXCEEDED, Code.LEASE_LOST, Code.LEASE_HELD, Code.ADMISSION_DRIFT,
    Code.CONFIRMATION_REQUIRED,
)  # fmt: skip

_METAVARS = {
    "date": "YYYYMMDD", "since": "DATE", "day": "DATE", "project": "P", "agent": "A", "cursor": "C",
    "task": "TASK", "name": "NAME",
}  # fmt: skip
_MEANINGS = {
    "acquireOwner": "whether to own it at once",
    "agent": "whose memory, where nothing else tells: claude-code, codex, pi, …",
    "artifactPath": "the file that was confirmed, from the task's directory",
    "artifactSha256": "digest of the artifact that the person has seen",
    "artifactVersion": "a new name for it, where a confirmed one is replaced",
    "content": "the text, in Markdown",
    "contentOffset": "nextContentOffset of a body that was cut; with --session-id",
    "contextBinding": "the planId of the status before",
    "contextDigest": "of the write context of the last receipt",
    "continuationLease": "leaseId of the admission's receipt",
    "cursor": "nextCursor of the answer before",
    "date": "which day; today if not given",
    "day": "the date that it belongs to",
    "decision": "what was decided",
    "diff": "whether to compare the handoff card with what stands now",
    "displayName": "what the task is called",
    "entryVariant": "new, change, fix, continue, reopen or product-provided, by kind",
    "exempt": "CP3 is not needed here",
    "expectedCloseoutDigest": "recordDigest of the operation that is open",
    "freshContext": "the context is new, after a compaction or clear",
    "handoffOnly": "only sections with a handoff card, and of them the card",
    "impact": "what it touches",
    "ingressRef": "which registered request this is",
    "instruction": "the person's sentence that asked for it",
    "intent": "what for: dev, fix, analyze, audit, self-fix, chat, resume, other",
    "kind": "what is done to the files",
    "layer": "whose SUMMARY",
    "lease": "leaseId of the child; the environment's if not given",
    "limit": "how many at most",
    "locale": "language of the answer's text, such as zh-CN",
    "maxChars": "how much text at most",
    "name": "its name, alias or taskId",
    "op": "what to do",
    "operation": "what to do",
    "origin": "who says so",
    "overview": "the first overview of the task, in Markdown",
    "owner": "the owner reference of the last receipt",
    "phase": "which checkpoint",
    "planDigest": "of the plan of the children",
    "planVersion": "of the plan's shape",
    "productSource": "what the product asks for, verbatim",
    "project": "which project of the workspace",
    "reason": "why",
    "routeKey": "what tells two requests of one message apart",
    "routeRevision": "of the session's route, where a hook has it",
    "row": "a row of the SUMMARY",
    "scope": "whose memory",
    "section": "the handle of a receipt; else a section is opened",
    "sessionBinding": "token of the section, the long form of --section",
    "sessionId": "id of the section",
    "since": "only what is of this date or later",
    "sourceEventId": "names the person's message",
    "sourceMessage": "what the person said",
    "startChar": "nextStartChar of the answer before",
    "status": "which state",
    "task": "its taskId, name or alias",
    "taskKind": "which kind of task",
    "terminalStatus": "how it ended",
    "title": "of the section that is opened",
    "ttlSeconds": "how long the children's leases live",
}
_EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "memory_context_plan": (("amux journal plan --intent resume", "how to take up again"),),
    "memory_status": (("amux journal status", "what is going on here"),),
    "memory_summary_query": (
        ("amux journal summary --status unresolved", "what is still open"),
        ("amux journal summary --status all --limit 50", "the last events"),
    ),
    "memory_session_query": (
        ("amux journal sessions --handoff-only", "the last handoff card"),
        ("amux journal sessions --date 20260314 --session-id 03", "one section, whole"),
    ),
    "memory_session_allocate": (
        ("amux journal allocate --title 'Fix the totals' --intent fix", "open a section"),
    ),
    "memory_session_write": (
        ("amux journal write --content 'Found the cause.' --row 'cause found'", "open and write"),
        ("amux journal write --args note.json", "with a handoff card or artifacts"),
    ),
    "memory_summary_append": (
        ("amux journal append --args row.json", "an event, as the object `entry`"),
    ),
    "memory_decision_append": (
        ("amux journal decide --decision 'Dates are local'", "a decision of the project"),
    ),
    "memory_session_read": (("amux journal session-read --date 20260314", "a day's text"),),
    "memory_summary_read": (("amux journal summary-read --layer project", "all decisions"),),
    "memory_task_resolve": (("amux task resolve --name 'export endpoint'", "where a task stands"),),
    "memory_task_list": (("amux task list", "the active tasks"),),
    "memory_task_show": (("amux task show --task 'export endpoint'", "one task for a person"),),
    "memory_ingress_register": (
        ("amux task ingress --args request.json", "from a hook of the agent's"),
    ),
    "memory_task_admit_v2": (
        ("amux task admit --args task.json", "a new task"),
        (
            "amux task admit --operation bind --task 'export endpoint' --instruction 'go on'",
            "take it over",
        ),
    ),
    "memory_task_write_owner": (
        (
            "amux task own --operation release --task 'export endpoint' --owner OWNER",
            "hand it on",
        ),
    ),
    "memory_cp_confirm": (
        (
            (
                "amux task confirm --task 'export endpoint' --phase CP1 --source-message 'yes' "
                "--artifact-path FILE --artifact-sha256 DIGEST"
            ),
            "a person said yes to this file",
        ),
    ),
    "memory_task_operation": (
        ("amux task operation --args change.json", "announce which files change"),
    ),
    "memory_artifact_mutation_reconcile_v1": (
        (
            "amux task reconcile --task 'export endpoint' --expected-closeout-digest DIGEST",
            "after a crash",
        ),
    ),
    "memory_task_terminal_v1": (("amux task finish --args evidence.json", "end a task"),),
    "memory_child_plan": (("amux task children --args plan.json", "leases for helpers"),),
    "memory_child_submit": (("amux task submit --args evidence.json", "as a helper"),),
    "memory_task_revoke": (("amux task revoke", "after a backup was put back"),),
}
_ALIASES = {"task start": "memory_task_admit_v2"}
_ORDER = (
    "journal plan", "journal status", "journal summary", "journal sessions", "journal allocate",
    "journal write", "journal append", "journal decide", "journal session-read",
    "journal summary-read", "task list", "task show", "task resolve", "task ingress", "task start",
    "task admit", "task own", "task confirm", "task operation", "task reconcile", "task finish",
    "task children", "task submit", "task revoke",
)  # fmt: skip


def tool_of(verb: str) -> Tool:
    """Give the tool behind a verb."""
    name = _ALIASES.get(verb)
    return _BY_VERB[verb] if name is None else TOOLS[name]


def _row(verb: str) -> Verb:
    tool = tool_of(verb)
    plain = [field for field in tool.fields if field.is_plain]
    others = [field.name for field in tool.fields if not field.is_plain]
    about = f"--args also takes {', '.join(others)}." if others else ""
    if verb in _ALIASES:
        about = f"The same as `amux {tool.verb}`. {about}".rstrip()
    return Verb(
        verb,
        "journal:call",
        tool.about.rstrip(".")[0].lower() + tool.about.rstrip(".")[1:],
        *map(_option, plain),
        _ARGS,
        _WORKSPACE,
        _SESSION,
        JSON,
        about=about,
        examples=_EXAMPLES[tool.name],
        refusals=_refusals(tool),
    )


def _refusals(tool: Tool) -> tuple[Code, ...]:
    if tool.is_read:
        return _QUERIES
    return _TASKS if tool.is_task else _WRITES


def _option(field: Field) -> Option:
    meaning = _MEANINGS[field.name]
    if field.choices:
        meaning = f"{meaning}: {', '.join(map(str, field.choices))}"
    if field.kind == "boolean":
        if field.default is True:
            return Option(field.flag, "true|false", f"{meaning}; true if not given")
        return Option(field.flag, "", meaning, kind="flag")
    if field.kind == "integer":
        meaning += "" if field.choices else f", {field.least} to {field.most}"
        return Option(field.flag, "N", meaning, kind="integer")
    return Option(field.flag, _METAVARS.get(field.name, "TEXT"), meaning)


_BY_VERB = {tool.verb: tool for tool in TOOLS.values()}
ROWS = tuple(map(_row, _ORDER))
