"""Active roots for tests of the journal: a place, a moment, a writer."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

from amux.journal.moment import Moment
from amux.journal.store.files import Edit, Edited, Writer, Written
from amux.journal.store.root import Held, Place, hold, prepare

T = TypeVar("T")

SECONDS = 1_773_451_200.25  # 2026-03-14 09:20 in Shanghai
NOW = Moment.at(SECONDS, ZoneInfo("Asia/Shanghai"))
DAY = ".memory/clients/codex/tasks/20260314.md"


def place_in(base: Path, *below: str, uid: int | None = None) -> Place:
    uid = os.geteuid() if uid is None else uid
    return Place(base=str(base.resolve()), steps=(".devcodex", *below), uid=uid)


def held(place: Place, act: Callable[[Held], T], *, wait_ms: int = 2000) -> T:
    def prepared(root: Held) -> T:
        prepare(root, now=NOW, random_bytes=os.urandom)
        return act(root)

    return hold(place, wait_ms=wait_ms, act=prepared)


def write(
    place: Place, path: str, edit: Edit[T], *, is_view: bool = False, now: Moment = NOW
) -> Written[T]:
    """Take one file through the write route."""
    return held(
        place,
        lambda root: Writer(root, now=now, random_bytes=os.urandom).write(
            path, edit, is_view=is_view
        ),
    )


def adding(text: bytes) -> Edit[None]:
    """Give an edit that adds text at the end."""
    return lambda old: Edited((old or b"") + text, None)


def tree(top: Path) -> dict[str, bytes | str]:
    """Give every name below a directory with its bytes; a link's target, a folder's mark."""
    found: dict[str, bytes | str] = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "/"
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "?"
    return found


def canonical_bytes(top: Path) -> dict[str, bytes | str]:
    """Give what a refusal may not change: all but the runtime state."""
    return {name: data for name, data in tree(top).items() if "/.runtime-state" not in f"/{name}"}
