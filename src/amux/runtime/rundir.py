"""The directory of one run of another user, made by root: the target-uid materialiser (R27, R28).

    <run_dir>/<session>/                     root's; others may only pass
      agent-config/memory/amux               the command line in one file, 0555
      agent-config/memory/connection.json    Hub, binding, credential; 0400, the user's
      files/                                 what the plan needs, 0400, the user's
      tmp/                                   the user's own, 0700: his TMPDIR

Rule 1: the user can write in `tmp` alone, which is made last and never entered by root before it
        is removed: no name that root uses is his to swap.
Rule 2: everything is removed when the run ends, and after a crash by whoever starts next.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from amux.core.text import to_json
from amux.disk import as_user, handed
from amux.disk.tree import Folder
from amux.runtime import user as users
from amux.runtime.user import User

CONFIG, MEMORY, FILES, TEMP = "agent-config", "memory", "files", "tmp"
COMMAND, CONNECTION, CA_FILE = "amux", "connection.json", "ca.pem"
NEEDS_BYTES = 8 * 1024 * 1024  # the command line has a twelfth of it


class RunDirectory:
    """One run's directory, whether it is there or not."""

    __slots__ = ("_base", "_session", "_user", "files", "memory", "path", "temp")

    def __init__(self, base: str, session: str, user: User) -> None:
        self._base = base
        self._session = session
        self._user = user
        self.path = f"{base}/{session}"
        self.files = f"{self.path}/{FILES}"
        self.memory = f"{self.path}/{CONFIG}/{MEMORY}"
        self.temp = f"{self.path}/{TEMP}"

    @property
    def command(self) -> str:
        """Name the copied command line."""
        return f"{self.memory}/{COMMAND}"

    @property
    def connection_file(self) -> str:
        """Name the file by which the run reaches its Hub."""
        return f"{self.memory}/{CONNECTION}"

    @property
    def ca_file(self) -> str:
        """Name the copied authority of a Hub that is reached by TLS."""
        return f"{self.memory}/{CA_FILE}"

    def make(self, files: Mapping[str, str], memory: Mapping[str, tuple[bytes, int]]) -> None:
        """Make all of it: the plan's files by path, and of `memory` each name, bytes and mode.

        Raises `OSError` or `NotTrustedError`; what was made then is the sweep's.
        """
        mine = {"uid": self._user.uid, "gid": self._user.gid}
        with (
            handed.trusted(self._base, makes=True) as base,
            handed.make_folder(base, self._session, mode=handed.PASSABLE) as run,
            handed.make_folder(run, FILES, mode=handed.PASSABLE) as folder,
        ):
            for path, text in files.items():
                data = text.encode("utf-8", "surrogateescape")
                name = path.removeprefix(f"{self.files}/")
                handed.make_file(folder, name, data, mode=0o400, **mine)
            if memory:
                self._make_memory(run, memory)
            handed.make_folder(run, TEMP, mode=0o700, **mine).close()

    def put_connection(self, data: bytes) -> None:
        """Put another connection file in the place of the first: a credential that came late."""
        with handed.trusted(self.memory, makes=False) as folder:
            handed.replace_file(
                folder, CONNECTION, data, mode=0o400, uid=self._user.uid, gid=self._user.gid
            )

    def _make_memory(self, run: Folder, memory: Mapping[str, tuple[bytes, int]]) -> None:
        with (
            handed.make_folder(run, CONFIG, mode=handed.PASSABLE) as config,
            handed.make_folder(config, MEMORY, mode=0o755) as folder,
        ):
            for name, (data, mode) in memory.items():
                uid, gid = (self._user.uid, self._user.gid) if mode == 0o400 else (-1, -1)
                handed.make_file(folder, name, data, mode=mode, uid=uid, gid=gid)


def connection(hub: str, binding: str, credential: str, ca_file: str) -> bytes:
    """Spell a connection file."""
    found = {"hub": hub, "binding": binding, "credential": credential}
    return to_json(found | ({"ca_file": ca_file} if ca_file else {})) + b"\n"


# --- what a run made elsewhere than in AMUX_HOME -------------------------------------------------


def elsewhere(uid: int, base: str, user: User | None, copies: Sequence[str]) -> dict[str, object]:
    """Spell what a sweep must know, before any of it is made."""
    rights = [user.uid, user.gid, list(user.groups)] if user else None
    return {"uid": uid, "base": base, "rights": rights, "copies": list(copies)}


def copies_of(found: Mapping[str, object]) -> list[str]:
    """Name the copied files of such a note."""
    listed = found.get("copies")
    return [str(one) for one in listed] if isinstance(listed, list) else []


def tidy(session: str, found: Mapping[str, object], used: frozenset[str]) -> bool:
    """End what is left of a run and remove what it made; tell whether nothing is left.

    `used` are copies of others that live.
    """
    uid, base, rights = found.get("uid"), found.get("base"), found.get("rights")
    if isinstance(uid, int):
        users.kill_left(uid, f"AMUX_SESSION={session}".encode("ascii"))
    for path in copies_of(found):
        if path not in used:
            with suppress(OSError):
                _unlink(path, rights)
    if not isinstance(base, str) or not base:
        return True
    try:
        with handed.trusted(base, makes=False) as folder:
            return handed.remove(folder, session)
    except FileNotFoundError:
        return True
    except (OSError, handed.NotTrustedError):
        return False  # somebody mounted something, or the way there is not root's any more


def _unlink(path: str, rights: object) -> None:
    match rights:
        case [int(uid), int(gid), list(groups)]:
            as_user.call(uid, gid, groups, lambda: as_user.unlink(path))
        case _:
            as_user.unlink(path)


def parse(data: bytes) -> dict[str, object]:
    """Read such a note; nothing where it cannot be read."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
