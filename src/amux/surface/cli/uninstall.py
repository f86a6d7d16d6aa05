"""The verb `uninstall`: what amux made on this machine, listed and removed (M52).

Rule 1: what is removed is what is listed, and nothing that amux did not make: in AMUX_HOME the
        names of core/home.py, elsewhere what bears our prefix and belongs to this user.
Rule 2: a folder without our `layout` is no root of ours, whatever AMUX_HOME says: a mistyped
        AMUX_HOME=/ must not cost anybody his /run.
Rule 3: `memory/` is the person's and stays, unless it is asked for; so do `config.toml`,
        `agents.toml`, and whatever else a person put there.
Rule 4: the Hub is stopped first, and `layout` goes last: what was interrupted is simply done again.
"""

from amux.core import home
from amux.disk import named
from amux.errors import InvalidArgument, NotSaved, UpgradeRequired
from amux.runtime.context import Context
from amux.runtime.sessions import Sessions
from amux.surface.cli import hub, output, render
from amux.surface.cli.edit import PREFIX
from amux.surface.cli.parse import Given

LAYOUT_MAX_BYTES = 64  # a number and a line end
YES = {b"yes", b"y"}


def uninstall(ctx: Context, given: Given) -> int:
    """List what amux made, and unless it is a dry run remove it after a yes."""
    with_memory = given.has("with_memory")
    remove, keep = survey(ctx, with_memory=with_memory)
    if not given.has("dry_run"):
        if not given.has("yes"):
            _require_yes(ctx, remove, keep)
        hub.end_hub(ctx)
        _sweep_runs(ctx)
        # A Hub that ends removes its socket and may have written its log anew.
        after, keep = survey(ctx, with_memory=with_memory)
        for path in after:
            _remove(path)
        remove += [path for path in after if path not in remove]
    answer: dict[str, object] = {"dry_run": given.has("dry_run"), "remove": remove, "keep": keep}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.removal)


def survey(ctx: Context, *, with_memory: bool) -> tuple[list[str], list[str]]:
    """List what is to be removed, in the order of removing, and what amux leaves."""
    goes = [
        path for folder in named.names(ctx.config.temp_dir, PREFIX) for path in named.walk(folder)
    ]
    root = ctx.config.home
    if not _is_ours(root):
        return goes, []
    goes += _socket_elsewhere(ctx)
    goes += _shared_socket(ctx)
    goes += _runs(ctx)
    owned = [name for name in home.OWNED if name not in {home.LAYOUT_FILE, home.MEMORY_DIR}]
    if with_memory:
        owned.insert(0, home.MEMORY_DIR)
    for name in (*owned, home.LAYOUT_FILE):
        goes += named.walk(named.join(root, name))
    keep = set(named.walk(root)) - set(goes) - {root}
    if not keep:
        goes.append(root)
    memory = named.join(root, home.MEMORY_DIR)
    top = {path for path in keep if path.rpartition("/")[0] == root}
    return goes, sorted(top | {path for path in keep if path.startswith(memory + "/")})


def _is_ours(root: str) -> bool:
    """Tell whether a folder is a root of amux; refuses one of a newer amux."""
    try:
        text = named.read(named.join(root, home.LAYOUT_FILE), max_bytes=LAYOUT_MAX_BYTES).strip()
    except OSError:
        return False
    if text.isdigit() and int(text) > home.LAYOUT:
        raise UpgradeRequired(
            f"AMUX_HOME has layout {int(text)}, this amux knows {home.LAYOUT}",
            hint="uninstall with the amux that made it",
            layout=int(text),
            known=home.LAYOUT,
        )
    return text.isdigit()


def _socket_elsewhere(ctx: Context) -> list[str]:
    """List a short socket (M45), and the folder that was made for it if nothing else is there."""
    path = ctx.config.socket_path
    if path.startswith(ctx.config.home + "/"):
        return []
    goes = list(named.walk(path))
    folder = path.rpartition("/")[0]
    ours = named.join(ctx.config.temp_dir, "amux-")
    if folder.startswith(ours) and set(named.walk(folder)) <= {folder, *goes}:
        goes += named.walk(folder) if not goes else [folder]
    return goes


def _shared_socket(ctx: Context) -> list[str]:
    """List the socket for other users (M46), and the folder that was made for it, if empty then."""
    record = named.join(ctx.config.home, home.RUN_DIR, home.SHARED_RECORD)
    try:
        path = named.shown(named.read(record, max_bytes=home.SOCKET_MAX_BYTES))
    except OSError:
        return []
    goes = [path] if named.is_socket(path) else []
    folder = home.SHARED_DIR
    if path.startswith(folder + "/") and set(named.walk(folder)) == {folder, *goes}:
        goes.append(folder)
    return goes


def _runs(ctx: Context) -> list[str]:
    """List what runs of other users left, and the folders that were made for them, if empty then.

    What is in one of these may be another user's, and is removed as a launch removes it.
    """
    sessions = Sessions.open(ctx.config.home)
    goes = sessions.made_elsewhere() if sessions else []
    for folder in (home.RUNS_DIR, home.RUNS_DIR.rpartition("/")[0]):
        if named.is_directory(folder) and set(named.names_in(folder)) <= set(goes):
            goes.append(folder)
    return goes


def _sweep_runs(ctx: Context) -> None:
    if _is_ours(ctx.config.home) and (sessions := Sessions.open(ctx.config.home)):
        sessions.sweep_dead()


def _require_yes(ctx: Context, remove: list[str], keep: list[str]) -> None:
    if not ctx.stdin.isatty():
        raise InvalidArgument(
            "uninstall asks for a yes, and standard input is no terminal",
            hint="give --yes, or look first with --dry-run",
            argument="yes",
        )
    plan: dict[str, object] = {"dry_run": True, "remove": remove, "keep": keep}
    for line in render.removal(plan).splitlines():
        output.notice(ctx, line)
    output.question(ctx, "Remove all this? Type yes: ")
    if ctx.stdin.readline(LAYOUT_MAX_BYTES).strip().lower() not in YES:
        raise InvalidArgument("nothing was removed", hint="type yes to remove", argument="yes")


def _remove(path: str) -> None:
    try:
        named.remove(path)
    except OSError as error:
        raise NotSaved(
            "not everything could be removed",
            hint="see who owns it, and uninstall again",
            path=path,
            cause=type(error).__name__,
        ) from error
