"""The rows of the verbs that start agents: a part of the one table of verbs.

Rule 1: as in `verbs.py`, which holds the rest.
"""

from amux.errors import Code
from amux.surface.cli.verb import JSON, Option, Positional, Verb

_LAUNCHES = (
    Code.LAUNCH_REFUSED, Code.PERMISSION_DENIED, Code.BUSY, Code.NOT_SAVED,
)  # fmt: skip
_RECORDS = (Code.NOT_FOUND, Code.CORRUPT, Code.UPGRADE_REQUIRED)

_SESSION = Positional("session", "SESSION", "its id, the beginning of it, or its name")
_PROMPT = Option(
    "prompt", "TEXT", "take one turn without a terminal, and print the answer of the agent"
)

ROWS = (
    Verb(
        "run",
        "run:run",
        "start an agent with memory, its own memory off",
        Positional("agent", "AGENT", "codex, claude, pi, or one of agents.toml"),
        Option("name", "N", "what to call the session"),
        Option("cwd", "DIR", "where the agent works; here if not given"),
        Option(
            "isolation",
            "I",
            "how the run's files and environment are kept its own; none if not given",
            choices=("none", "private-home", "linux-dac"),
        ),
        Option("user", "U", "as which user it runs, with --isolation linux-dac"),
        Option(
            "memory",
            "M",
            "off: start without; required: start with memory or not at all",
            choices=("off", "required"),
        ),
        Option(
            "memory-verbs",
            "V",
            "read: the session can read memory and not write it",
            choices=("read",),
        ),
        Option(
            "ask-writes", "", "have the agent ask before it uses memory, as you set it", kind="flag"
        ),
        Option("via", "V", "sdk: run the turn by the agent's SDK", choices=("sdk",)),
        _PROMPT,
        Option("dry-run", "", "only show what would be started", kind="flag"),
        JSON,
        rest=Positional(
            "native", "NATIVE-ARGS", "what is passed on to the agent", required=False, many=True
        ),
        about="Without --prompt the agent's own interface takes the terminal. If memory is off, "
        "or the Hub cannot be reached within 3 seconds, the agent starts as it would without "
        "amux. The exit status is the agent's own, or that of a refusal.",
        examples=(
            ("amux run claude", "in this terminal"),
            ("amux run claude --prompt 'what do you know about me?'", "one turn"),
            ("amux run pi -- --model some-model", "with arguments of pi itself"),
            ("amux run claude --isolation private-home --dry-run", "a home of its own, only shown"),
        ),
        refusals=(Code.UNSUPPORTED_AGENT, *_LAUNCHES),
    ),
    Verb(
        "resume",
        "run:resume",
        "go on with a session, with the memory that it began with",
        _SESSION,
        Option("native", "ID", "which of the agent's own sessions; the first if not given"),
        _PROMPT,
        about="A session that began without memory goes on without it, whatever is set now.",
        examples=(
            ("amux resume s-3f9a2c1b04de", "in this terminal"),
            ("amux resume release --prompt 'go on'", "one more turn of the session `release`"),
        ),
        refusals=(*_RECORDS, *_LAUNCHES),
    ),
    Verb(
        "session list",
        "session:list_sessions",
        "list the sessions that amux started here",
        JSON,
        examples=(("amux session list", "the newest first"),),
    ),
    Verb(
        "session show",
        "session:show",
        "show what a session was started with, and what happened in it",
        _SESSION,
        JSON,
        about="The first line says whether it has memory: bound, off or failed, and why.",
        examples=(("amux session show s-3f9a2c1b04de", "with its timeline"),),
        refusals=_RECORDS,
    ),
    Verb(
        "session remove",
        "session:remove",
        "remove the record of a session that does not run",
        _SESSION,
        JSON,
        about="The agent's own files of the session stay.",
        examples=(("amux session remove s-3f9a2c1b04de", "record and timeline"),),
        refusals=(Code.NOT_FOUND, Code.BUSY),
    ),
    Verb(
        "doctor",
        "doctor:doctor",
        "tell what a start would do, and what amux cannot stop",
        Positional("agent", "AGENT", "only this one", required=False),
        JSON,
        about="Changes nothing. Of each agent: its version, whether memory would be bound, whether "
        "its own memory is really off, and each finding with what to do about it.",
        examples=(("amux doctor", "all agents"), ("amux doctor codex", "one of them")),
        refusals=(Code.NOT_FOUND,),
    ),
)
