"""What programs said of themselves, kept by what their files are.

Rule 1: derived: deleting the file costs a question, and changes no answer.
Rule 2: another file, or a change of it, is another program (R19).
Rule 3: a program that says nonsense, nothing, or does not end, has no version: that is told, and
        is no reason not to start it.
"""

import json
import re
from collections.abc import Mapping

from amux.core import home, strict
from amux.core.text import to_json
from amux.disk import atomic, named
from amux.disk.tree import Root
from amux.errors import AmuxError
from amux.runtime import asking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime.user import User

KEPT = 256  # a person has a dozen agents; each of their releases is a file of its own
FILE_MAX_BYTES = 256 * 1024
VERSION_SECONDS = 5.0  # a runtime that is started cold takes one
SAID_MAX_BYTES = 4 * 1024
_VERSION = re.compile(rb"(?<![0-9.])([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})")


class Programs:
    """What is known of the programs of this machine, in one AMUX_HOME."""

    def __init__(self, path: str, *, keeps: bool = True) -> None:
        self._path = path
        self._keeps = keeps
        self._known: dict[str, object] | None = None

    def look(self, key: str) -> object | None:
        """Give what was kept under a key; None where nothing was."""
        return self._all().get(key)

    def keep(self, key: str, value: object) -> None:
        """Keep something under a key; where that fails it is asked again next time."""
        known = {name: kept for name, kept in self._all().items() if name != key}
        for name in list(known)[: max(0, len(known) - KEPT + 1)]:
            del known[name]
        self._known = {**known, key: value}
        if not self._keeps:
            return
        try:
            root = Root.create(named.join(self._path, home.RUN_DIR))
            try:
                atomic.replace(root, home.PROGRAMS_FILE, to_json(self._known))
            finally:
                root.close()
        except OSError:
            return

    def known_version(self, program: str) -> str | None:
        """Give a version without asking; None where it is not known."""
        found = self.look(_version_key(program))
        return found if isinstance(found, str) else None

    def version(
        self,
        program: str,
        environment: Mapping[str, str],
        cwd: str,
        runs_as: "User | None" = None,
    ) -> str:
        """Ask a program for its version, once a file; empty where it does not tell."""
        found = self.known_version(program)
        if found is not None:
            return found
        try:
            status, said = asking.capture(
                [program, "--version"],
                environment,
                cwd,
                seconds=VERSION_SECONDS,
                max_bytes=SAID_MAX_BYTES,
                runs_as=runs_as,
            )
        except OSError:
            return ""  # starting it will say so again
        match = _VERSION.search(said) if status == 0 else None
        version = match[1].decode("ascii") if match else ""
        if version:
            self.keep(_version_key(program), version)
        return version

    def _all(self) -> dict[str, object]:
        if self._known is None:
            path = named.join(self._path, home.RUN_DIR, home.PROGRAMS_FILE)
            try:
                found = strict.decode(named.read(path, max_bytes=FILE_MAX_BYTES))
            except (OSError, AmuxError):
                found = {}
            self._known = dict(found) if isinstance(found, dict) else {}
        return self._known


def _version_key(program: str) -> str:
    return json.dumps(["version", program, named.identity(program)])
