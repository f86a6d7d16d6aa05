"""The program: it owns the clock, the standard streams and the way to a Hub in process.

Rule 1: the start of the command line imports nothing that its verb does not need.
Rule 2: one blanket `except` a process: here, for everything that runs from the command line.
"""

import gc
import os
import sys
import time
from importlib import import_module
from types import ModuleType

from amux import config as configuration
from amux.config import Config, Tables
from amux.errors import AmuxError, Internal, Unavailable
from amux.surface.cli import main as cli
from amux.surface.cli import output

TYPE_CHECKING = False  # importing `typing` for the real one would cost each start 4 ms
if TYPE_CHECKING:
    from amux.compose import Offline
    from amux.journal.desk import Desk
    from amux.runtime import context as shapes

# What only some verbs need. The first three are the Hub's side, which a zipapp lacks.
LATE = {
    "serve": "amux.serve",
    "compose": "amux.compose",
    "mcp_http": "amux.surface.mcp_http",
    "process": "amux.runtime.process",
    "mcp": "amux.surface.mcp.server",
    "bundle": "amux.bundle",
    "layout": "amux.journal.ground.layout",
    "journal": "amux.journal.desk",
    "journal_tasks": "amux.journal.taskroster",
    "agents_file": "amux.runtime.agents_file",
    "settings_file": "amux.settings_file",
    "tls": "amux.tls",
}


# New objects before garbage is looked for: loading modules makes none, and looking in between, by
# Python's own number, takes a tenth of each start.
GARBAGE_MIN = 50_000


class Place:
    """Where this process works, for the journal (J12): a start directory, home, and a uid."""

    __slots__ = ("home", "is_named", "start", "uid")

    def __init__(self, start: str, *, is_named: bool) -> None:
        self.start = start
        self.is_named = is_named
        """Whether a flag or AMUX_WORKSPACE names it."""
        self.home = os.path.realpath(os.path.expanduser("~"))
        self.uid = os.geteuid()


class Context:
    """What a verb may use: settings, streams, the clock, chance, and modules loaded late."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.stdin = sys.stdin.buffer
        self.stdout = sys.stdout.buffer
        self.stderr = sys.stderr.buffer
        self.clock = time.monotonic
        self.wall = time.time
        self.random_bytes = os.urandom

    def late(self, name: str) -> ModuleType:
        """Load a module of the table; `unavailable` where this build lacks the Hub's side."""
        try:
            return import_module(LATE[name])
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("amux"):
                raise
            raise Unavailable(
                "this amux holds the agent's side only",
                hint="install the amux package on this machine to run a Hub",
            ) from error

    def offline(self) -> "Offline":
        """Give the administrator's calls with no Hub running (M47)."""
        asks: Offline = self.late("compose").Offline(self.config, clock=self.clock, wall=self.wall)
        return asks

    def place(self, workspace: str = "") -> Place:
        """Find the start directory; `workspace` is what a person named on the command line."""
        named = workspace or self.config.workspace
        try:
            here = os.getcwd()
        except OSError:  # it was removed; one that is named in full may be there all the same
            if not named.startswith("/"):
                return Place("", is_named=bool(named))
            here = "/"
        find = self.late("layout").start_directory
        start, is_named = find(workspace, self.config.workspace, here)
        return Place(start, is_named=is_named)

    def desk(
        self, place: "shapes.Place", *, client: str | None = None, session: str = ""
    ) -> "Desk":
        """Open the journal; `client` is the MCP client's own name, None for the command line."""
        desk: Desk = self.late("journal").Desk.of(
            place,
            environment=self.config.environment,
            client=client,
            session=session,
            host=os.uname().nodename,
            posix_session=os.getsid(0),
            clock=self.wall,
            random_bytes=self.random_bytes,
            late=self.late,
        )
        return desk


def main() -> int:
    """Run the command line; the console script and `python -m amux` end here."""
    gc.set_threshold(GARBAGE_MIN)
    # Settings that cannot be read are refused like anything else, so the streams come first.
    context = Context(configuration.Config.nowhere())
    try:
        if sys.platform == "win32":
            raise Unavailable("amux does not run on Windows", hint="run it inside WSL")
        context.config = configuration.load(parse=_tables_of)
        return cli.run(sys.argv[1:], context)
    except AmuxError as refusal:
        return output.refuse(context, refusal)
    except Exception:
        incident = f"{os.getpid():x}-{time.time_ns():x}"
        sys.excepthook(*sys.exc_info())  # `traceback` would cost each start 15 ms
        return output.refuse(
            context,
            Internal(
                "amux made a mistake", hint="report it with the lines above", incident=incident
            ),
        )


def devcodex() -> int:
    """Run `devcodex`: the names that seed 2 gave to setting a workspace up (J22)."""
    words = sys.argv[1:] or ["--help"]
    lead = next((word for word in words if not word.startswith("-")), "")
    place = [] if lead == "doctor" or "--version" in words else ["workspace"]
    # What is started from here is `amux`, which stands beside this script.
    amux = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "amux")
    sys.argv = [amux, *place, *words]
    return main()


def _tables_of(text: str) -> Tables:
    tables: Tables = import_module(LATE["settings_file"]).parse(text)
    return tables
