"""The rows of the verbs on memory, the Hub and amux itself."""

from amux.errors import Code
from amux.surface.cli.verb import HUB, JSON, Option, Positional, Verb

_DATA = (Code.MEMORY_DISABLED, *HUB)
_WRITES = (Code.REVISION_CONFLICT, Code.NOT_SAVED, Code.OUTCOME_UNKNOWN, Code.CORRUPT, *_DATA)

_PATH = Positional("path", "PATH", "logical path of a document, such as notes/git.md")
_PREFIX = Option("path-prefix", "P", "only paths that begin so; notes/ is the folder")
_EXPECTED = Option(
    "expected-revision",
    "R",
    "the revision that you have read, or absent to create",
    required=True,
)
_ALLOW = Option(
    "allow-secret-like",
    "",
    "save what only looks like an assigned secret; a known format is refused all the same",
    kind="flag",
)

ROWS = (
    Verb(
        "memory search",
        "memory:search",
        "find documents that hold any of the words",
        Positional("query", "QUERY", "1 to 16 literal words", many=True),
        _PREFIX,
        Option("limit", "N", "hits to show, 1 to 20; 5 if not given", kind="integer"),
        JSON,
        about="Words are literal: no wildcard, quote or operator means anything. The documents "
        "with most of the words come first. An incomplete answer proves nothing.",
        examples=(
            ("amux memory search release checklist", "documents with either word"),
            ("amux memory search --path-prefix projects/ 用户偏好", "in one folder"),
            ("amux memory search -- -v", "a word that starts with -"),
        ),
        refusals=(Code.LIMIT_EXCEEDED, *_DATA),
    ),
    Verb(
        "memory show",
        "memory:show",
        "read a document and its revision",
        _PATH,
        Option("start-line", "N", "first line to show", kind="integer"),
        Option("end-line", "N", "last line to show", kind="integer"),
        Option("offset", "N", "next_offset of an answer that was cut", kind="integer"),
        JSON,
        about="An answer has at most 8 KiB; a longer document says where to go on. "
        "A missing document is no error: its revision is absent.",
        examples=(
            ("amux memory show MEMORY.md", "the entry"),
            ("amux memory show notes/git.md --start-line 10 --end-line 20", "some lines"),
        ),
        refusals=(Code.CORRUPT, *_DATA),
    ),
    Verb(
        "memory upsert",
        "write:upsert",
        "replace a whole document, or create it",
        _PATH,
        _EXPECTED,
        Option("file", "F", "read the new content from this file; - is standard input"),
        _ALLOW,
        JSON,
        about="The content is read as raw bytes from the file or standard input, and stored "
        "byte for byte. Nothing is written unless the document still has the expected revision.",
        examples=(
            ("echo '# Git' | amux memory upsert notes/git.md --expected-revision absent", "create"),
            ("amux memory upsert MEMORY.md --expected-revision R --file entry.md", "replace"),
        ),
        refusals=(Code.SECRET_DETECTED, Code.LIMIT_EXCEEDED, Code.QUOTA_EXCEEDED, *_WRITES),
    ),
    Verb(
        "memory forget",
        "write:forget",
        "remove a document",
        _PATH,
        _EXPECTED,
        JSON,
        about="What is already gone is no error. What sessions have read stays in them.",
        examples=(("amux memory forget notes/git.md --expected-revision R", "remove at R"),),
        refusals=_WRITES,
    ),
    Verb(
        "memory export",
        "export:export",
        "write a document's stored bytes to standard output",
        _PATH,
        about="All bytes are of one revision. If the document keeps changing, nothing is written. "
        "A terminal gets control characters escaped; a file or pipe gets the exact bytes.",
        examples=(("amux memory export notes/git.md > git.md", "a copy, byte for byte"),),
        refusals=(Code.NOT_FOUND, Code.REVISION_CONFLICT, Code.CORRUPT, *_DATA),
    ),
    Verb(
        "memory list",
        "memory:list_documents",
        "list documents",
        _PREFIX,
        Option("cursor", "C", "next_cursor of the answer before"),
        JSON,
        examples=(
            ("amux memory list", "all, page by page"),
            ("amux memory list --path-prefix projects/", "one folder"),
        ),
        refusals=(Code.CURSOR_STALE, *_DATA),
    ),
    Verb(
        "memory check",
        "memory:check",
        "list files under memory/ that are no documents",
        Option("remove", "PATH", "remove this one; it must be one that check lists"),
        JSON,
        about="Files that are too large, not UTF-8, links or oddly named are never served. "
        "This lists each with its reason.",
        examples=(
            ("amux memory check", "what is broken, and why"),
            ("amux memory check --remove notes/link.md", "remove a broken one"),
        ),
        refusals=(Code.NOT_FOUND, Code.NOT_SAVED, Code.OUTCOME_UNKNOWN, *_DATA),
    ),
    Verb(
        "memory edit",
        "edit:edit",
        "edit a document in your editor",
        _PATH,
        _ALLOW,
        JSON,
        about="Opens the document, or an empty one, in $VISUAL, $EDITOR or vi, and saves it if "
        "nobody changed it meanwhile. Whatever is refused, your text stays in a private file "
        "that the refusal names.",
        examples=(("amux memory edit MEMORY.md", "edit the entry"),),
        refusals=(Code.SECRET_DETECTED, Code.LIMIT_EXCEEDED, Code.QUOTA_EXCEEDED, *_WRITES),
    ),
    Verb(
        "memory move",
        "move:move",
        "give a document another path",
        Positional("old", "OLD", "where it is"),
        Positional("new", "NEW", "where it goes; nothing may be there"),
        _EXPECTED,
        _ALLOW,
        JSON,
        about="Creates NEW with the bytes of OLD, then forgets OLD. If OLD changed in between, "
        "NEW is removed again. Whatever else interrupts it leaves both, never none.",
        examples=(("amux memory move git.md notes/git.md --expected-revision R", "move at R"),),
        refusals=(Code.SECRET_DETECTED, Code.QUOTA_EXCEEDED, *_WRITES),
    ),
    Verb(
        "hub start",
        "hub:start",
        "start the Hub in the background, if none runs",
        JSON,
        examples=(("amux hub start", "logs go to run/hub.log"),),
        refusals=HUB,
    ),
    Verb(
        "hub stop",
        "hub:stop",
        "stop the Hub and wait until it is gone",
        JSON,
        examples=(("amux hub stop", "memory files may then be edited with any tool"),),
        refusals=HUB,
    ),
    Verb(
        "hub restart",
        "hub:restart",
        "stop the Hub and start it again",
        JSON,
        examples=(("amux hub restart", "puts changed settings in force"),),
        refusals=HUB,
    ),
    Verb(
        "hub status",
        "hub:status",
        "tell whether a Hub runs, and what it is",
        JSON,
        about="Never starts a Hub. Without one the answer is running: false.",
        examples=(("amux hub status", "pid, root, socket, settings, what the platform lacks"),),
        refusals=HUB,
    ),
    Verb(
        "hub serve",
        "hub:serve",
        "run the Hub in the foreground, logging to standard error",
        Option(
            "allow-network-fs",
            "",
            "serve a root on a network file system all the same",
            kind="flag",
        ),
        Option("background", "", "log to run/hub.log, as a Hub that amux started", kind="flag"),
        examples=(("amux hub serve", "for a supervisor; ends on SIGTERM or SIGINT"),),
        refusals=(Code.CORRUPT, *HUB),
    ),
    Verb(
        "system config get",
        "system:get",
        "show a setting: saved and in force",
        Positional(
            "name",
            "NAME",
            "the setting",
            choices=("memory.enabled", "isolation.policy"),
        ),
        JSON,
        examples=(("amux system config get memory.enabled", "is memory on"),),
        refusals=HUB,
    ),
    Verb(
        "system config set",
        "system:set_value",
        "save a setting; it takes effect when the Hub next starts",
        Positional(
            "name",
            "NAME",
            "the setting",
            choices=("memory.enabled", "isolation.policy"),
        ),
        Positional(
            "value",
            "VALUE",
            "true or false; shared or per_principal",
            choices=("true", "false", "shared", "per_principal"),
        ),
        JSON,
        examples=(
            ("amux system config set memory.enabled true", "switch memory on"),
            ("amux system config set isolation.policy per_principal", "a memory for each"),
        ),
        refusals=(Code.NOT_SAVED, Code.CORRUPT, Code.OUTCOME_UNKNOWN, *HUB),
    ),
    Verb(
        "system status",
        "system:status",
        "show all settings, and whether a restart is due",
        JSON,
        examples=(("amux system status", "works without a running Hub too"),),
        refusals=(Code.CORRUPT, *HUB),
    ),
)

LAST_ROWS = (
    Verb(
        "mcp",
        "mcp:serve",
        "serve the tools of memory and journal over MCP on standard input and output",
        Option(
            "tools",
            "SET",
            "fix the tools that are offered; else the Hub is asked once, and the journal's are "
            "there if the workspace has one",
            choices=("memory", "journal", "both", "all", "none"),
        ),
        examples=(("amux mcp", "started by an agent, not by hand"),),
    ),
    Verb(
        "mcp entry",
        "mcp:entry",
        "print the entry that makes an agent start `amux mcp`",
        Option("client", "C", "for this client only", choices=("claude", "codex")),
        JSON,
        about="The entry names this executable absolutely and carries AMUX_HOME.",
        examples=(
            ("amux mcp entry --client codex >> ~/.codex/config.toml", "for Codex"),
            ("amux mcp entry --client claude > .mcp.json", "for Claude Code"),
        ),
    ),
    Verb(
        "protocol",
        "protocol:protocol",
        "print what an agent with memory is told, for one that amux does not start",
        Option(
            "form",
            "F",
            "how the agent reaches memory: its MCP tools, or this command line",
            required=True,
            choices=("mcp", "cli"),
        ),
        JSON,
        about="The text is the same for every session of a release. "
        "The agent's own memory stays on: switch it off in its settings.",
        examples=(
            ("amux protocol --form mcp >> CLAUDE.md", "for an agent that has `amux mcp`"),
            ("amux protocol --form cli >> AGENTS.md", "for one that runs commands"),
        ),
    ),
    Verb(
        "completion",
        "texts:completion",
        "print a completion script",
        Positional("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
        examples=(
            ("source <(amux completion bash)", "in ~/.bashrc"),
            ("amux completion fish > ~/.config/fish/completions/amux.fish", "for fish"),
        ),
    ),
    Verb(
        "man",
        "texts:man",
        "print the man page",
        examples=(("amux man > ~/.local/share/man/man1/amux.1", "then: man amux"),),
    ),
    Verb(
        "help",
        "texts:help_on",
        "show help on amux or on a verb",
        Positional("verb", "VERB", "the verb, or the beginning of one", required=False, many=True),
        examples=(("amux help memory search", "the same as amux memory search --help"),),
    ),
    Verb(
        "uninstall",
        "uninstall:uninstall",
        "remove what amux made on this machine, but your memory",
        Option("dry-run", "", "only list what would be removed", kind="flag"),
        Option("with-memory", "", "remove memory/ too", kind="flag"),
        Option("yes", "", "do not ask", kind="flag"),
        JSON,
        about="Stops the Hub, then removes its settings, sockets, logs and left-over edits. "
        "memory/ stays unless --with-memory; config.toml and agents.toml are yours and stay.",
        examples=(
            ("amux uninstall --dry-run", "list everything, remove nothing"),
            ("amux uninstall --yes", "without a question"),
        ),
        refusals=(Code.NOT_SAVED, *HUB),
    ),
)
