"""The rows of the tools on tasks: a part of the one table of tools (T72).

Rule 1: as in `tools.py`, which holds the rest.
"""

from amux.journal.call.tool import FILTERS, PROJECT, SCOPE, Field, Tool

KINDS = ("requirements", "bugs", "optimizations", "scenario-tests")  # T19
SLOTS = ("CP1", "CP2", "CP3")

_TASK = Field("task", "line", 1, 300, required=True, about="taskId or exact name")
_OWNER = Field("owner", "word", 1, 64, required=True)
_CONTEXT_DIGEST = Field("contextDigest", "hex")
_LOCALE = Field("locale", "word")
_EVENT = Field("sourceEventId", "word", 1, 128)
_VARIANT = Field("entryVariant", "word", 1, 40)
_KIND = Field("taskKind", "word", choices=KINDS)
_ROUTE = Field("routeKey", "line", 1, 160)

_ITEM = (
    Field("workItemId", "line", 1, 80, required=True),
    Field("displayName", "line", 1, 160, required=True),
    Field(
        "mode",
        "word",
        required=True,
        choices=("read-only", "isolated-validation", "isolated-worktree-patch"),
    ),
    Field("allowedPaths", "array", 0, 64, required=True, item=Field("", "path")),
    Field("expectedWrites", "array", 0, 64, item=Field("", "path")),
    Field("sharedSurfaces", "array", 0, 16, item=Field("", "line", 1, 80)),
    Field("isolationRoot", "path"),
    Field("sessionPrompt", "text", 0, 16384),
    Field("validationRoute", "line", 0, 2000),
    Field("stopCondition", "line", 0, 2000),
)

TASK_TOOLS = (
    Tool(
        "memory_task_resolve",
        "task resolve",
        "Find a task by name and what is left to do; grants nothing.",
        PROJECT,
        SCOPE,
        Field("name", "line", 0, 300),
        _LOCALE,
        Field("diff", "boolean", default=True),
        read=True,
    ),
    Tool(
        "memory_task_admit_v2",
        "task admit",
        "Admit a new task once, adopt a legacy one, or bind (hand-off, takeover, reopen).",
        PROJECT,
        Field("operation", "word", default="admit", choices=("admit", "adopt", "bind")),
        Field("instruction", "line", 1, 2000, about="the person's sentence that asked"),
        Field("ingressRef", "word", 1, 80),
        _KIND,
        _VARIANT,
        Field("displayName", "line", 0, 160),
        Field("aliases", "array", 0, 32, item=Field("", "line", 1, 300)),
        Field("task", "line", 1, 300),
        Field("overview", "text", 1, 262_144),
        Field("productSource", "text", 1, 262_144),
        _EVENT,
        _ROUTE,
        _LOCALE,
        Field("acquireOwner", "boolean", default=True),
    ),
    Tool(
        "memory_cp_confirm",
        "task confirm",
        "Record a person's yes to one checkpoint artifact, by digest.",
        PROJECT,
        _TASK,
        Field("phase", "word", required=True, choices=SLOTS),
        Field("sourceMessage", "line", 1, 300, required=True, about="the person's answer"),
        Field("artifactPath", "path"),
        Field("artifactSha256", "hex"),
        Field("artifactVersion", "line", 1, 80),
        Field("exempt", "boolean", default=False),
    ),
    Tool(
        "memory_task_operation",
        "task operation",
        "Announce a change of named files before it, settle it after.",
        PROJECT,
        Field("op", "word", required=True, choices=("begin", "settle")),
        _TASK,
        _OWNER,
        Field("targets", "array", 1, 64, item=Field("", "path")),
        Field("kind", "word", default="edit", choices=("edit", "create", "delete", "command")),
        _CONTEXT_DIGEST,
    ),
    Tool(
        "memory_task_write_owner",
        "task own",
        "Acquire, renew or release the right to write a task.",
        PROJECT,
        Field("operation", "word", required=True, choices=("acquire", "renew", "release")),
        _TASK,
        Field("owner", "word", 1, 64),
        Field("continuationLease", "word", 1, 64),
        Field("freshContext", "boolean", default=False),
    ),
    Tool(
        "memory_task_terminal_v1",
        "task finish",
        "End a task on four files of evidence.",
        PROJECT,
        _TASK,
        _OWNER,
        Field(
            "terminalStatus",
            "word",
            default="completed",
            choices=("completed", "rejected", "cancelled", "failed"),
        ),
        Field(
            "evidence",
            "object",
            required=True,
            fields=tuple(
                Field(role, "evidence") for role in ("ecr", "report", "memory", "completion")
            ),
        ),
        _CONTEXT_DIGEST,
    ),
    Tool(
        "memory_artifact_mutation_reconcile_v1",
        "task reconcile",
        "Close an operation that its session left open, by what its files are.",
        PROJECT,
        _TASK,
        Field("expectedCloseoutDigest", "hex", required=True),
    ),
    Tool(
        "memory_ingress_register",
        "task ingress",
        "Register the request that asks for a task, before it is admitted.",
        PROJECT,
        Field("instruction", "text", 1, 262_144, required=True),
        Field("taskKind", "word", required=True, choices=KINDS),
        _VARIANT,
        Field("routeKey", "line", 1, 160, required=True),
        _EVENT,
        Field("routeRevision", "integer", 1, 1_000_000),
        Field("origin", "word", default="agent", choices=("host-hook", "agent")),
        _LOCALE,
    ),
    Tool(
        "memory_child_plan",
        "task children",
        "Plan, cancel or integrate the work of child agents.",
        PROJECT,
        Field("op", "word", required=True, choices=("plan", "cancel", "integrate")),
        _TASK,
        _OWNER,
        Field("items", "array", 1, 8, item=Field("", "object", fields=_ITEM)),
        Field(
            "source",
            "object",
            fields=(
                Field("sourceHead", "line", 0, 200),
                Field("dirtyDigest", "line", 0, 200),
            ),
        ),
        Field("budget", "budget"),
        Field("ttlSeconds", "integer", 30, 1800, default=300),
        Field("planDigest", "hex"),
        Field("workItemIds", "array", 1, 8, item=Field("", "line", 1, 80)),
        _CONTEXT_DIGEST,
    ),
    Tool(
        "memory_child_submit",
        "task submit",
        "Hand in the evidence of a child's work; it writes no memory.",
        PROJECT,
        Field("evidence", "record", required=True),
        Field("lease", "word", 1, 64),
        Field("records", "array", 0, 4, item=Field("", "record")),
    ),
    Tool(
        "memory_task_list",
        "task list",
        "List tasks of the workspace.",
        PROJECT,
        SCOPE,
        Field("status", "word", default="active", choices=(*FILTERS, "rejected", "unknown")),
        Field("limit", "integer", 1, 200, default=50),
        read=True,
    ),
    Tool(
        "memory_task_show",
        "task show",
        "Show one task: state, owner, checkpoints, operation.",
        PROJECT,
        SCOPE,
        _TASK,
        read=True,
    ),
    Tool(
        "memory_task_revoke",
        "task revoke",
        "Make every present authority of this root void; text stays.",
        PROJECT,
    ),
)
