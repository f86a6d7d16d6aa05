"""Workspaces of the journal in a test's folder: directories, surroundings, and trees compared."""

import os
import random
from pathlib import Path

from amux.journal.call import surroundings
from amux.journal.call.surroundings import Surroundings

AT = 1_773_480_000.0  # 2026-03-14 09:20 UTC
STRANGER = 4_242
EVERYBODY_IS_OURS = 0  # uid 0 accepts any owner


class Start:
    """A start directory, as `app` gives it."""

    def __init__(self, start: Path, *, is_named: bool, home: Path, uid: int) -> None:
        self.start = os.path.realpath(start)
        self.is_named = is_named
        self.home = os.path.realpath(home)
        self.uid = uid


def around(
    start: Path,
    *,
    is_named: bool = False,
    home: Path = Path("/nobody"),
    uid: int | None = None,
    client: str | None = None,
    session: str = "",
    seed: int = 1,
    at: float = AT,
    **environment: str,
) -> Surroundings:
    """Put a process's surroundings together; its zone is UTC unless the environment says."""
    return surroundings.gather(
        Start(start, is_named=is_named, home=home, uid=os.geteuid() if uid is None else uid),
        environment={"AMUX_TZ": "UTC"} | environment,
        client=client,
        session=session,
        host="machine",
        posix_session=7,
        clock=lambda: at,
        random_bytes=random.Random(seed).randbytes,
    )


def tree(base: Path) -> dict[str, bytes | str]:
    """Give every file's bytes, link's target and directory below a base."""
    found: dict[str, bytes | str] = {}
    for path in sorted(base.rglob("*")):
        name = path.relative_to(base).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "/" if path.is_dir() else path.read_bytes()
    return found


def project(base: Path, *names: str, marker: str = ".git") -> None:
    """Make projects below a base, each with a marker."""
    for name in names:
        place = base / name
        place.mkdir(parents=True, exist_ok=True)
        if marker == ".git":
            (place / marker).mkdir()
        else:
            (place / marker).write_text("")


def layout(base: Path, text: str | bytes = '{"mode":"project-root"}') -> Path:
    """Write a `layout.json`."""
    folder = base / ".devcodex"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "layout.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


NAMESPACE = '{"mode":"workspace-namespace","schemaVersion":"AmuxWorkspaceLayoutV1"}'
