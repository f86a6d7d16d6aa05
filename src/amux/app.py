"""The program: it owns the clock, the standard streams and the way to a Hub in process.

Rule 1: the start of the command line imports nothing that its verb does not need.
Rule 2: one blanket `except` a process: here, for everything that runs from the command line.
"""

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

# What only some verbs need. The first three are the Hub's side, which a zipapp lacks.
LATE = {
    "serve": "amux.serve",
    "compose": "amux.compose",
    "mcp_http": "amux.surface.mcp_http",
    "process": "amux.runtime.process",
    "mcp": "amux.surface.mcp.server",
    "bundle": "amux.bundle",
    "settings_file": "amux.settings_file",
    "tls": "amux.tls",
}


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


def main() -> int:
    """Run the command line; the console script and `python -m amux` end here."""
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


def _tables_of(text: str) -> Tables:
    tables: Tables = import_module(LATE["settings_file"]).parse(text)
    return tables
