"""An older root becomes the present layout, step by step, under the Hub's lock.

Rule 1: a root whose layout is newer is refused before anything is read or written (M2).
Rule 2: each step can be done again, so an interrupted one is simply done again.
Rule 3: the number is written last: a root that says N is a root that has N.
Rule 4: a new root is the oldest layout of all, and grows up like any other.
"""

from collections.abc import Callable

from amux.core import home
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import Corrupt, UpgradeRequired

SECRET_BYTES = 32  # as long as the key of SHA-256 usefully is


def require_known(root: Root) -> int:
    """Read the layout's version; refuses one that a newer amux wrote."""
    data = root.read(home.LAYOUT_FILE, max_bytes=64)
    if data is None:
        return 0
    text = data.strip()
    if not text.isdigit():
        raise Corrupt(
            "the file `layout` of AMUX_HOME holds no number",
            hint="restore it from a backup; it names the version of the layout",
            reason="layout",
        )
    if int(text) > home.LAYOUT:
        raise UpgradeRequired(
            f"AMUX_HOME has layout {int(text)}, this amux knows {home.LAYOUT}",
            hint="update amux, or point AMUX_HOME elsewhere",
            layout=int(text),
            known=home.LAYOUT,
        )
    return int(text)


def bring_up(root: Root, random_bytes: Callable[[int], bytes]) -> None:
    """Do every step that this root still lacks."""
    for number in range(require_known(root), home.LAYOUT):
        STEPS[number](root, random_bytes)
        atomic.replace(root, home.LAYOUT_FILE, f"{number + 1}\n".encode("ascii"))


def sweep(root: Root) -> None:
    """Remove the temporaries that a crash left beside the Hub's own files (M23).

    Those among the documents are the store's to remove.
    """
    for name in ("", home.HUB_DIR, home.RUN_DIR):
        folder = root.folder(name)
        if folder is not None:
            with folder:
                atomic.sweep(folder)


def ensure_folder(root: Root, name: str) -> None:
    """Make a folder of the layout, durably, unless it is there."""
    try:
        atomic.make_folder(root, name)
    except FileExistsError:
        return
    atomic.fsync(root.fd)


def _first(root: Root, random_bytes: Callable[[int], bytes]) -> None:
    for name in (home.MEMORY_DIR, home.HUB_DIR, home.RUN_DIR):
        ensure_folder(root, name)
    secret = f"{home.HUB_DIR}/{home.SECRET_FILE}"
    if root.read(secret, max_bytes=SECRET_BYTES + 1) is None:
        atomic.replace(root, secret, random_bytes(SECRET_BYTES))


STEPS: tuple[Callable[[Root, Callable[[int], bytes]], None], ...] = (_first,)
