"""The rows of the verbs that set a workspace up: a part of the one table of verbs (J20–J22).

Rule 1: as in `verbs.py`, which holds the rest.
"""

from amux.errors import Code
from amux.surface.cli.verb import JSON, Option, Positional, Verb

_REFUSALS = (
    Code.NOT_FOUND, Code.REVISION_CONFLICT, Code.PERMISSION_DENIED, Code.CORRUPT, Code.BUSY,
    Code.NOT_SAVED, Code.UNAVAILABLE, Code.OUTCOME_UNKNOWN,
)  # fmt: skip
_AGENTS = (
    Option("claude", "", "what Claude Code needs: .claude/skills, .mcp.json", kind="flag"),
    Option("codex", "", "what Codex needs: .agents/skills, .codex/config.toml", kind="flag"),
    Option("cursor", "", "what Cursor needs: .agents/skills, .cursor/mcp.json", kind="flag"),
    Option("pi", "", "what Pi needs: .agents/skills", kind="flag"),
)
_DRY_RUN = Option("dry-run", "", "only tell what would be written or removed", kind="flag")
_WORKSPACE = Option(
    "workspace", "DIR", "where to start looking; else AMUX_WORKSPACE, or here if not given"
)

ROWS = (
    Verb(
        "workspace init",
        "workspace:init",
        "make a project's journal, and hand agents what they need to use it",
        Positional("directory", "DIR", "the project; here if not given", required=False),
        *_AGENTS,
        Option(
            "mode",
            "M",
            "project, if not given: one memory; workspace: one for each project below",
            choices=("project", "workspace"),
        ),
        Option("project", "NAME", "what the project is called; its directory's name if not given"),
        _DRY_RUN,
        JSON,
        about="Makes what is missing and touches nothing else; a second time it changes nothing. "
        "A file that a person changed is left, and what could not be put in is shown to paste.",
        examples=(
            ("amux workspace init --claude --codex", "in the project's directory"),
            ("amux workspace init --mode workspace ~/work", "for the projects below ~/work"),
            ("amux workspace init --claude --dry-run", "what it would write"),
        ),
        refusals=_REFUSALS,
    ),
    Verb(
        "workspace remove-rules",
        "workspace:remove_rules",
        "take out what init handed to agents, unless a person changed it",
        *_AGENTS,
        _WORKSPACE,
        _DRY_RUN,
        JSON,
        about="Without a flag, for all agents. The journal itself stays.",
        examples=(
            ("amux workspace remove-rules", "all of it"),
            ("amux workspace remove-rules --codex", "what only Codex uses"),
        ),
        refusals=_REFUSALS,
    ),
    Verb(
        "workspace profile init",
        "workspace:profile_init",
        "note the agent at work here, for calls that do not tell who makes them",
        _WORKSPACE,
        JSON,
        about="A profile that is there stays. It is a hint only: what an agent tells goes first.",
        examples=(("amux workspace profile init", "run by the agent itself"),),
        refusals=_REFUSALS,
    ),
    Verb(
        "workspace doctor",
        "workspace:doctor",
        "tell how the journal stands here, and what to do about it",
        _WORKSPACE,
        JSON,
        about="Changes nothing: layout, agent, session, locks, what was handed out, and findings.",
        examples=(("amux workspace doctor", "a part of amux doctor"),),
    ),
)
