"""What to start, as a value: argv, environment, files.

Rule 1: a plan is only a description; composing one starts nothing and writes nothing.
Rule 2: the environment is a map, so that no name stands twice (R25).
Rule 3: a secret is in a file of the run and never in argv; `shown` leaves out what files hold.
Rule 4: adapters are functions `plan -> plan`; they add, and refuse what they must not change.
"""

from collections.abc import Callable, Mapping

from amux.core.value import NOTHING, Value
from amux.journal.call.tools import DEFAULT as JOURNAL_TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from amux.runtime.user import User

    Form: TypeAlias = Literal["mcp", "cli"]

ARGUMENT_MAX_BYTES = 100 * 1024  # the kernel stops at 128 KiB an argument; over this, by file (R21)


class Bound(Value):
    """What a bound session is given: how to reach the Hub, and the text (R20)."""

    session: str
    agent_id: str
    """As the journal names it: `codex`, `claude-code`, `pi`."""
    binding: str
    hub: str
    """An address as AMUX_HUB takes it."""
    credential_file: str
    text: str
    """The protocol, in the form of this launch."""
    form: "Form"
    asks_writes: bool
    command: tuple[str, ...]
    """How `amux` is started, absolutely."""
    tools: tuple[str, ...]
    """The tools that this session was given, by name: the same at each resume."""
    ca_file: str = ""
    """What proves a Hub that is reached by TLS; empty for the machine's own authorities."""

    @property
    def server(self) -> tuple[str, ...]:
        """Give the command of the MCP server; nobody is asked again which tools there are."""
        has_journal = not set(JOURNAL_TOOLS).isdisjoint(self.tools)
        return (*self.command, "mcp", "--tools", "both" if has_journal else "memory")

    @property
    def environment(self) -> dict[str, str]:
        """Give the names that the agent, and each of its amux servers, is started with."""
        names = {
            "AMUX_MEMORY_BINDING": self.binding,
            "AMUX_HUB": self.hub,
            "AMUX_CREDENTIAL_FILE": self.credential_file,
            "AMUX_SESSION": self.session,
            "AMUX_AGENT": self.agent_id,
        }
        # A bound client reads no file of settings, which is where it stands otherwise.
        return names | ({"AMUX_CA_FILE": self.ca_file} if self.ca_file else {})


class Opening(Value):
    """How a headless turn begins in an agent that is spoken with, and not just started (R14)."""

    cwd: str
    developer_instructions: str
    tools: tuple[str, ...]
    """Of amux's server; all must be there before the turn."""
    resume: str | None
    approval_policy: str | None
    """None: what the person's configuration says."""
    prompt: str


class LaunchPlan(Value):
    """One process to start."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    files: Mapping[str, str] = NOTHING
    """Path in the run's own directory, absolute -> text; made 0600 before the start."""
    stdin: str | None = None
    """What is typed for it: a headless prompt is in nobody's list of processes. None: a terminal.
    """
    opening: Opening | None = None
    """What is said to it; None where it is not spoken with."""
    warnings: tuple[str, ...] = ()
    runs_as: "User | None" = None
    """Another user, whose process it is; None: the caller's own."""

    def with_argv(self, *words: str) -> "LaunchPlan":
        """Add words at the end of the command line, where later flags win."""
        return self.replace(argv=(*self.argv, *words))

    def with_environment(self, names: Mapping[str, str]) -> "LaunchPlan":
        """Set names; one that was there is replaced, never doubled."""
        return self.replace(environment={**self.environment, **names})

    def without_environment(self, *names: str) -> "LaunchPlan":
        """Take names away."""
        kept = {name: value for name, value in self.environment.items() if name not in names}
        return self.replace(environment=kept)

    def with_file(self, path: str, text: str) -> "LaunchPlan":
        """Add a file of the run."""
        return self.replace(files={**self.files, path: text})

    def with_stdin(self, text: str) -> "LaunchPlan":
        """Say what is written to its standard input, which then ends."""
        return self.replace(stdin=text)

    def with_opening(self, opening: Opening) -> "LaunchPlan":
        """Say how the conversation with it begins."""
        return self.replace(opening=opening)

    def with_warning(self, text: str) -> "LaunchPlan":
        """Add something that a person should know."""
        return self.replace(warnings=(*self.warnings, text))

    def shown(self) -> dict[str, object]:
        """Give what `--dry-run` prints: the names of the environment, and the names of files."""
        return {
            "argv": list(self.argv),
            "environment": sorted(self.environment),
            "cwd": self.cwd,
            "user": self.runs_as.name if self.runs_as else "",
            "files": sorted(self.files),
            "warnings": list(self.warnings),
        }


class Start(Value):
    """How one start of an agent is asked for; the same for a bound session and an unbound one."""

    native: tuple[str, ...]
    """What the caller passes on to the agent, as it was typed (R21)."""
    directory: str
    """The run's own directory, absolute: what files of the plan are made in."""
    version: str
    """What the agent said of itself; empty where it said nothing that can be read."""
    session_id: str | None = None
    """The native id that a new session is given, where the agent takes one."""
    resume: str | None = None
    """The native id of the session that is continued."""
    prompt: str | None = None
    """One headless turn; None: the agent's own terminal interface."""
    read: Callable[[str], str | None] = lambda _: None
    """Gives the text of a person's file, beneath the plan's cwd if relative; None: cannot be read.
    """

    @property
    def is_headless(self) -> bool:
        """Tell whether one turn runs and its answer is printed."""
        return self.prompt is not None

    def is_at_least(self, *numbers: int) -> bool:
        """Tell whether the agent's version is so new; one that cannot be read counts as new."""
        own = tuple(int(part) for part in self.version.split(".") if part.isdigit())
        return not own or own >= numbers
