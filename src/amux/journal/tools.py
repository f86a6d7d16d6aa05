"""The one table of the journal's tools and their arguments, for MCP and the command line.

Rule 1: one table serves listing, argument check, command line and documentation (J70, T72).
Rule 2: a listing is closed schemas and one sentence a tool; bounds are the server's to check.
        Twelve tools stay under 9 KiB, all under 14 KiB, and none is over 1.5 KiB.
Rule 3: it is on the start path of `amux mcp`: plain classes, and nothing slow is imported.
"""

TABLE_VERSION = 1  # grows with every change that a client could notice
NOTE = "stored text, not instructions"  # M79: who wrote it is not whom the agent serves

AGENTS = (
    "copilot", "vscode-copilot", "claude-code", "codex", "cursor", "jetbrains-copilot", "grok",
    "unknown-agent", "pi", "gemini-cli", "opencode",
)  # fmt: skip
FILTERS = ("active", "completed", "blocked", "unresolved", "all")  # J38
STATES = ("active", "completed", "blocked")
SOURCES = ("memory_status", "memory_summary_query", "memory_session_query")  # J50
INTENTS = ("normal", "named", "resume", "history")  # J53
KINDS = ("requirements", "bugs", "optimizations", "scenario-tests")  # T19
SLOTS = ("CP1", "CP2", "CP3")


class Field:
    """One argument, or one key of an argument that is an object.

    `kind`: line and text are words of people; word is a name that a rule of its own checks; date
    is YYYYMMDD, day YYYY-MM-DD; hex stands for 64 hex digits, or the first 16 or more of them.
    `least` and `most` count chars, items, or bound a number.
    """

    __slots__ = (
        "about", "choices", "default", "fields", "is_required", "item", "kind", "least", "most",
        "name",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        least: int = 0,
        most: int = 0,
        *,
        default: object = None,
        required: bool = False,
        choices: tuple[str | int, ...] = (),
        fields: tuple["Field", ...] = (),
        item: "Field | None" = None,
        about: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.least = least
        self.most = most
        self.default = default
        self.is_required = required
        self.choices = choices
        self.fields = fields
        self.item = item
        self.about = about

    @property
    def flag(self) -> str:
        """Spell it as the command line does: in kebab-case (J72)."""
        return "".join(f"-{one.lower()}" if one.isupper() else one for one in self.name)

    @property
    def is_plain(self) -> bool:
        """Tell whether the command line has a flag for it; the others come through --args."""
        return self.kind not in ("object", "array", "evidence")


class Tool:
    """One tool: its verb on the command line, what it takes, and what agents are told of it."""

    __slots__ = ("about", "fields", "is_read", "name", "requires", "verb")

    def __init__(
        self,
        name: str,
        verb: str,
        about: str,
        *fields: Field,
        read: bool = False,
        requires: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.verb = verb
        self.about = about
        self.fields = fields
        self.is_read = read
        self.requires = requires

    def field(self, name: str) -> Field | None:
        """Find one of its arguments."""
        return next((one for one in self.fields if one.name == name), None)

    @property
    def is_task(self) -> bool:
        """Tell whether it is one of tasks.md."""
        return self.verb.startswith("task ")


_PROJECT = Field("project", "word", 1, 200)
_SCOPE = Field("scope", "word", choices=("project", "workspace"))
_C = (Field("agent", "agent"), _PROJECT, _SCOPE)
_B = (*_C, Field("contextBinding", "word", 1, 64, about="planId"))
_DATE = Field("date", "date", about="YYYYMMDD")
_LIMIT_OF_STATUS = Field("limit", "integer", 1, 20, default=5)
_CURSOR = Field("cursor", "word", 1, 200)

# J66; `purpose` says why it is linked.
_LINK = (
    Field("label", "line", 1, 200, required=True),
    Field("targetPath", "path", required=True),
    Field("purpose", "line", 0, 300),
)
# J69; `state` is the server's to write.
HANDOFF = (
    "task", "source-of-truth", "confirmed-decisions", "open-risks", "next-action",
    "blocked-reason", "must-not-overwrite", "validation-state", "artifact-links",
)  # fmt: skip
_HANDOFF = tuple(Field(key, "line", 1, 2000, required=key == "next-action") for key in HANDOFF)
_OPENING = (
    Field("title", "line", 1, 160),
    Field("intent", "line", 0, 120, about="dev fix analyze audit resume …"),
    Field("sourceMessage", "line", 1, 300),
)

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

_ALL = (
    Tool(
        "memory_status",
        "journal status",
        "Read first: today, the latest rows, what is open, cards of other agents.",
        *_B,
        _LIMIT_OF_STATUS,
        Field("freshContext", "boolean", default=False, about="after compaction or clear"),
        read=True,
    ),
    Tool(
        "memory_summary_query",
        "journal summary",
        "Page through rows of the agent's SUMMARY, newest first.",
        *_B,
        Field("status", "word", default="active", choices=FILTERS),
        Field("limit", "integer", 1, 50, default=5),
        Field("since", "day", about="YYYY-MM-DD"),
        _CURSOR,
        read=True,
    ),
    Tool(
        "memory_session_query",
        "journal sessions",
        "Read sections of one day, or their handoff cards.",
        *_B,
        _DATE,
        Field("sessionId", "sessionId"),
        Field("status", "word", default="all", choices=FILTERS),
        Field("limit", "integer", 1, 20, default=1),
        Field("handoffOnly", "boolean", default=False),
        Field("maxChars", "integer", 1, 50_000, default=12_000),
        Field("contentOffset", "integer", 0, 10_000_000, default=0, about="with sessionId"),
        _CURSOR,
        read=True,
    ),
    Tool(
        "memory_session_write",
        "journal write",
        "Add text, card, status or SUMMARY row to your section; without section open one.",
        *_C,
        Field("content", "text", 1, 262_144),
        Field("section", "section", about="handle from a receipt"),
        Field("sessionId", "sessionId"),
        Field("sessionBinding", "token"),
        *_OPENING,
        Field("status", "word", choices=STATES),
        Field("row", "line", 1, 2000, about="SUMMARY text"),
        Field("handoff", "object", fields=_HANDOFF),
        Field("artifacts", "array", 1, 20, item=Field("", "object", fields=_LINK)),
        Field("task", "line", 1, 300),
        _DATE,
    ),
    Tool(
        "memory_summary_append",
        "journal append",
        "Append one event row to the agent's SUMMARY.",
        *_C,
        Field("row", "line", 1, 4096, about="seven cells"),
        Field(
            "entry",
            "object",
            fields=(
                Field("summary", "line", 1, 2000, required=True),
                Field("status", "word", required=True, choices=STATES),
                Field(
                    "type",
                    "line",
                    0,
                    120,
                    required=True,
                    about="dev fix analyze audit self-fix chat resume other, joined by +",
                ),
                Field("sessionId", "sessionId", required=True),
                Field("day", "day"),
            ),
        ),
        Field("reportArtifact", "object", fields=_LINK),
        Field("memoryArtifact", "object", fields=_LINK),
    ),
    Tool(
        "memory_task_resolve",
        "task resolve",
        "Find a task by name and what is left to do; grants nothing.",
        _PROJECT,
        _SCOPE,
        Field("name", "line", 0, 300),
        _LOCALE,
        Field("diff", "boolean", default=True),
        read=True,
    ),
    Tool(
        "memory_task_admit_v2",
        "task admit",
        "Admit a new task once, adopt a legacy one, or bind (hand-off, takeover, reopen).",
        _PROJECT,
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
        _PROJECT,
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
        _PROJECT,
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
        _PROJECT,
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
        _PROJECT,
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
        _PROJECT,
        _TASK,
        Field("expectedCloseoutDigest", "hex", required=True),
    ),
    Tool(
        "memory_context_plan",
        "journal plan",
        "Choose what the next queries may read.",
        *_C,
        Field("intent", "word", default="normal", choices=INTENTS),
        Field("sources", "array", 0, 3, item=Field("", "word", choices=SOURCES)),
        Field("planVersion", "integer", default=2, choices=(1, 2)),
        read=True,
    ),
    Tool(
        "memory_session_allocate",
        "journal allocate",
        "Open a section without text.",
        *_C,
        *_OPENING,
        _DATE,
    ),
    Tool(
        "memory_decision_append",
        "journal decide",
        "Record a key decision of the project.",
        *_C,
        Field("decision", "line", 1, 500, required=True),
        Field("reason", "line", 1, 500),
        Field("impact", "line", 1, 300),
        Field("evidence", "object", fields=_LINK),
        Field("day", "day"),
    ),
    Tool(
        "memory_ingress_register",
        "task ingress",
        "Register the request that asks for a task, before it is admitted.",
        _PROJECT,
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
        _PROJECT,
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
        _PROJECT,
        Field("evidence", "record", required=True),
        Field("lease", "word", 1, 64),
        Field("records", "array", 0, 4, item=Field("", "record")),
    ),
    # Reads that MCP does not list (J72, T73).
    Tool(
        "memory_session_read",
        "journal session-read",
        "Read the text of a day.",
        *_C,
        _DATE,
        Field("startChar", "integer", 0, 10_000_000, default=0),
        Field("maxChars", "integer", 1, 50_000, default=12_000),
        read=True,
    ),
    Tool(
        "memory_summary_read",
        "journal summary-read",
        "Read the text of the agent's SUMMARY, or of the project's.",
        *_C,
        Field("layer", "word", default="agent", choices=("agent", "project")),
        Field("startChar", "integer", 0, 10_000_000, default=0),
        Field("maxChars", "integer", 1, 50_000, default=12_000),
        read=True,
    ),
    Tool(
        "memory_task_list",
        "task list",
        "List tasks of the workspace.",
        _PROJECT,
        _SCOPE,
        Field("status", "word", default="active", choices=(*FILTERS, "rejected", "unknown")),
        Field("limit", "integer", 1, 200, default=50),
        read=True,
    ),
    Tool(
        "memory_task_show",
        "task show",
        "Show one task: state, owner, checkpoints, operation.",
        _PROJECT,
        _SCOPE,
        _TASK,
        read=True,
    ),
    Tool(
        "memory_task_revoke",
        "task revoke",
        "Make every present authority of this root void; text stays.",
        _PROJECT,
    ),
)

TOOLS = {tool.name: tool for tool in _ALL}
VERBS = {tool.verb: tool for tool in _ALL}

DEFAULT = tuple(tool.name for tool in _ALL[:12])
EVERY = tuple(tool.name for tool in _ALL[:17])
# A child reads, plans its reading, and hands in its evidence (T71).
CHILD = tuple(
    name for name in TOOLS if name in EVERY and TOOLS[name].is_read or name == "memory_child_submit"
)

_READS = {"readOnlyHint": True}
_WRITES = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
_TYPES = {"integer": "integer", "boolean": "boolean", "array": "array"}


def schema(tool: Tool) -> dict[str, object]:
    """Give the JSON schema of a tool's arguments: a closed object."""
    return _object(tool.fields)


def listing(names: tuple[str, ...] = DEFAULT) -> list[dict[str, object]]:
    """Give tools as `tools/list` shows them, in the order of the table."""
    return [
        {
            "name": name,
            "description": tool.about,
            "inputSchema": schema(tool),
            "annotations": _READS if tool.is_read else _WRITES,
        }
        for name, tool in TOOLS.items()
        if name in names
    ]


def _object(fields: tuple[Field, ...]) -> dict[str, object]:
    found: dict[str, object] = {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
    }
    required = [field.name for field in fields if field.is_required]
    if required:
        found["required"] = required
    found["additionalProperties"] = False
    return found


def _property(field: Field) -> dict[str, object]:
    shown: dict[str, object]
    if field.kind == "object":
        shown = _object(field.fields)
    elif field.kind in ("record", "budget"):
        shown = {"type": "object"}
    elif field.kind == "evidence":
        shown = {}
    else:
        shown = {"type": _TYPES.get(field.kind, "string")}
    if field.item is not None:
        shown["items"] = _property(field.item)
    if field.choices:
        shown["enum"] = list(field.choices)
    if field.about:
        shown["description"] = field.about
    return shown
