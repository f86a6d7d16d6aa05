"""The verb `uninstall`: what amux made on this machine, listed and removed (M52).

Rule 1: what is removed is what is listed, and nothing that amux did not make: in AMUX_HOME the
        names of core/home.py, elsewhere what bears our prefix and belongs to this user.
Rule 2: `memory/` is the person's and stays, unless it is asked for; so do `config.toml`,
        `agents.toml`, and whatever else a person put there.
Rule 3: the Hub is stopped first; its lock file goes last, so that none starts in between.
"""

from amux.core import home
from amux.disk import named
from amux.errors import InvalidArgument, NotSaved
from amux.runtime.context import Context
from amux.surface.cli import hub, output, render
from amux.surface.cli.edit import PREFIX
from amux.surface.cli.parse import Given


def uninstall(ctx: Context, given: Given) -> int:
    """List what amux made, and unless it is a dry run remove it after a yes."""
    with_memory = given.has("with_memory")
    if given.has("dry_run"):
        remove, keep = survey(ctx, with_memory=with_memory)
        return _say(ctx, given, remove, keep)
    remove, keep = survey(ctx, with_memory=with_memory)
    if not given.has("yes"):
        _require_yes(ctx, remove, keep)
    hub.end_hub(ctx)
    # Ending a Hub removes its socket, and its last lines may have rotated the log.
    remove, keep = survey(ctx, with_memory=with_memory)
    for path in remove:
        try:
            named.remove(path)
        except OSError as error:
            raise NotSaved(
                "not everything could be removed",
                hint="see who owns it, and uninstall again",
                path=path,
                cause=type(error).__name__,
            ) from error
    return _say(ctx, given, remove, keep)


def survey(ctx: Context, *, with_memory: bool) -> tuple[list[str], list[str]]:
    """List what is to be removed, in the order of removing, and what stays."""
    root = ctx.config.home
    lock = named.join(root, home.RUN_DIR, home.LOCK_FILE)
    goes: list[str] = []
    for name in home.OWNED:
        if name != home.MEMORY_DIR or with_memory:
            goes += named.walk(named.join(root, name))
    if not ctx.config.socket_path.startswith(root):
        goes += named.walk(ctx.config.socket_path)
    for folder in named.names(ctx.config.temp_dir, PREFIX):
        goes += named.walk(folder)
    goes = [path for path in goes if path != lock] + [path for path in goes if path == lock]
    run = named.join(root, home.RUN_DIR)
    goes = [path for path in goes if path != run] + [path for path in goes if path == run]
    left = set(named.walk(root)) - set(goes) - {root}
    if not left:
        goes += [path for path in named.walk(root) if path == root]
    return goes, sorted(path for path in left if path.rpartition("/")[0] == root)


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
    if ctx.stdin.readline(64).strip().lower() not in {b"yes", b"y"}:
        raise InvalidArgument("nothing was removed", hint="type yes to remove", argument="yes")


def _say(ctx: Context, given: Given, remove: list[str], keep: list[str]) -> int:
    answer: dict[str, object] = {"dry_run": given.has("dry_run"), "remove": remove, "keep": keep}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.removal)
