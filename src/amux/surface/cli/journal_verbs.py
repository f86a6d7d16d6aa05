"""The rows of the verbs on a workspace's sessions and tasks: made from the table of tools.

Rule 1: a verb is a tool, and a flag is an argument in kebab-case (J72); nothing of the table is
        said again here. What a command line adds is examples, --args, --workspace and --session.
Rule 2: values are not checked here: the journal does, so that both faces refuse alike (J1).
"""

from amux.errors import Code
from amux.journal.tool import Field, Tool
from amux.journal.tools import TOOLS
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
    "agent": "whose memory, where nothing else tells: claude-code, codex, pi, …",
    "project": "which project of the workspace",
    "scope": "workspace: the memory of the workspace itself",
    "contextBinding": "the planId of the status before",
    "cursor": "nextCursor of the answer before",
    "limit": "how many at most",
    "task": "its taskId, name or alias",
    "owner": "the owner reference of the last receipt",
    "contextDigest": "of the write context of the last receipt",
    "date": "which day; today if not given",
    "section": "the handle of a receipt; else a section is opened",
    "sourceMessage": "what the person said",
    "content": "the text, in Markdown",
    "row": "a row of the SUMMARY",
    "name": "name, alias or taskId",
    "instruction": "the person's sentence that asked for it",
    "artifactSha256": "digest of the artifact that the person has seen",
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
            "take a task over",
        ),
    ),
    "memory_task_write_owner": (
        ("amux task own --operation release --task T --owner own-1f…", "hand it on"),
    ),
    "memory_cp_confirm": (
        ("amux task confirm --task T --phase CP1 --args confirmed.json", "a person's yes"),
    ),
    "memory_task_operation": (
        ("amux task operation --args change.json", "announce which files change"),
    ),
    "memory_artifact_mutation_reconcile_v1": (
        ("amux task reconcile --task T --expected-closeout-digest 0f…", "after a crash"),
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
    meaning = _MEANINGS.get(field.name) or field.about or field.name
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
JOURNAL_ROWS = tuple(map(_row, _ORDER))
