"""The environment and the socket's record, read once and handed on as plain values.

Rule 1: nobody else reads the environment.
Rule 2: reading settings builds nothing and writes nothing.
"""

import os
from collections.abc import Mapping

from amux.core import home
from amux.errors import InvalidArgument


class Config:
    """What a person set for this process."""

    __slots__ = ("editor", "home", "no_autostart", "runtime_dir", "search_path", "temp_dir")

    def __init__(
        self,
        *,
        home: str,
        no_autostart: bool,
        editor: str,
        temp_dir: str,
        runtime_dir: str,
        search_path: str,
    ) -> None:
        self.home = home
        self.no_autostart = no_autostart
        self.editor = editor
        self.temp_dir = temp_dir
        self.runtime_dir = runtime_dir
        self.search_path = search_path

    @classmethod
    def nowhere(cls) -> "Config":
        """Give settings that point at nothing, for a refusal before any could be read."""
        return cls(
            home=os.devnull, no_autostart=True, editor="", temp_dir="", runtime_dir="",
            search_path="",
        )  # fmt: skip

    @property
    def socket_path(self) -> str:
        """Find the Hub's socket: at its usual place, or where the Hub recorded it (M45)."""
        usual = os.path.join(self.home, home.RUN_DIR, home.SOCKET_FILE)
        if len(os.fsencode(usual)) <= home.SOCKET_MAX_BYTES:
            return usual
        try:
            with open(os.path.join(self.home, home.RUN_DIR, home.SOCKET_RECORD), "rb") as record:
                return os.fsdecode(record.read(home.SOCKET_MAX_BYTES))
        except OSError:
            return usual  # no Hub has run here yet; connecting says so


def load(environ: Mapping[str, str] = os.environ) -> Config:
    """Read the environment; refuses an AMUX_HOME that is no usable path."""
    root = environ.get("AMUX_HOME") or os.path.join(os.path.expanduser("~"), ".amux")
    if "\0" in root or "\n" in root:
        raise InvalidArgument("AMUX_HOME holds a control character", argument="AMUX_HOME")
    return Config(
        home=os.path.abspath(os.path.expanduser(root)),
        no_autostart=environ.get("AMUX_NO_AUTOSTART") == "1",
        editor=environ.get("VISUAL") or environ.get("EDITOR") or "vi",
        temp_dir=environ.get("TMPDIR") or "/tmp",  # a folder of ours is made in it
        runtime_dir=environ.get("XDG_RUNTIME_DIR") or "",
        search_path=environ.get("PATH") or os.defpath,
    )
