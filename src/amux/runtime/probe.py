"""Asking an agent what it would go by, before it is started; only Codex is asked (R14).

Rule 1: a scratch app-server with the final command line is asked, and is gone when it has told.
Rule 2: what it told is kept by what it came from: the program, the command line, and every file
        that Codex reads its configuration from, those that are missing too.
Rule 3: only what lets a session start is kept: a refusal is asked for again.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from amux.core.sha import sha256
from amux.disk import named
from amux.runtime import asking, conversation, effective, process
from amux.runtime.agents import codex
from amux.runtime.appserver import AppServer, Gone, Refused
from amux.runtime.effective import Effective, Entry
from amux.runtime.plan import Bound, LaunchPlan, Start
from amux.runtime.programs import Programs

DAEMON_SECONDS = 10.0
SAID_MAX_BYTES = 4 * 1024
SYSTEM_FILES = ("/etc/codex/config.toml", "/etc/codex/managed_config.toml",
                "/etc/codex/requirements.toml")  # fmt: skip
HOME_FILES = ("config.toml", "managed_config.toml", "requirements.toml", "auth.json")


def codex_effective(plan: LaunchPlan, bound: Bound, start: Start, programs: Programs) -> Effective:
    """Tell what a bound session of Codex would go by; refuses where it cannot have memory so.

    `plan` is the plan before the adapter added to it.
    """
    asked = codex.probe(plan, bound, start, Effective())
    # Which session it is makes no difference to what is in force.
    nameless = bound.replace(session="", binding="", hub="", credential_file="", ca_file="")
    key = _key(codex.probe(plan, nameless, start, Effective()))
    known = _from_plain(programs.look(key))
    if known is None:
        known = _asked(plan, bound, start, asked)
        programs.keep(key, known.plain())
    return known


def codex_threads(plan: LaunchPlan, since: float) -> list[str]:
    """Name the threads that a terminal began in a plan's directory since a time, oldest first.

    Best effort: what is not found can be named by a person. `plan` may be the terminal's own.
    """
    try:
        with _server(_bare(plan).with_argv("app-server", *codex.off())) as server:
            server.introduce()
            return conversation.threads(server, plan.cwd, since)
    except (Gone, Refused, OSError):
        return []


def _bare(plan: LaunchPlan) -> LaunchPlan:
    return plan.replace(argv=plan.argv[:1])


def _asked(plan: LaunchPlan, bound: Bound, start: Start, asked: LaunchPlan) -> Effective:
    known = _read(asked, plan)
    codex.require_own(known)
    if known.on and known.has_alias:
        # The older name of the setting is in use, and would win: it is switched off too.
        known = _read(codex.probe(plan, bound, start, known), plan)
    effective.require_off(known)
    return known


def _read(asked: LaunchPlan, plan: LaunchPlan) -> Effective:
    has_daemon = _has_daemon(plan)
    try:
        return _effective(asked, has_daemon)
    except Refused as error:
        # Merged with an entry of another transport, our own server is no valid configuration.
        # What stands there is told by one that is asked without it.
        with suppress(Gone, Refused, OSError):
            bare = _bare(plan).with_argv("app-server", *codex.off())
            codex.require_own(_effective(bare, has_daemon))
        raise effective.unreadable(error) from error
    except (Gone, OSError) as error:
        raise effective.unreadable(error) from error


def _effective(asked: LaunchPlan, has_daemon: bool) -> Effective:
    with _server(asked) as server:
        server.introduce()
        return effective.read(server, asked.cwd, has_daemon=has_daemon)


def _has_daemon(plan: LaunchPlan) -> bool:
    """Tell whether this Codex knows the flag that keeps a terminal in a process of its own."""
    status, _ = asking.capture(
        [plan.argv[0], codex.NO_DAEMON, "--version"],
        plan.environment,
        plan.cwd,
        seconds=DAEMON_SECONDS,
        max_bytes=SAID_MAX_BYTES,
        runs_as=plan.runs_as,
    )
    return status == 0


@contextmanager
def _server(plan: LaunchPlan) -> Iterator[AppServer]:
    """Start an app-server, and end it whatever happens."""
    child = process.spawn(
        plan.argv,
        plan.environment,
        plan.cwd,
        has_pipes=True,
        keeps_stderr=True,
        own_group=True,
        runs_as=plan.runs_as,
    )
    try:
        if child.stdin is None or child.stdout is None:
            raise Gone("it has no pipes")
        yield AppServer(child.stdout.read, child.stdin.write)
    finally:
        try:
            child.require_started()
        finally:
            child.end(0.0)


def _key(asked: LaunchPlan) -> str:
    """Name everything that an answer depends on."""
    environment = asked.environment
    own = environment.get("CODEX_HOME") or named.join(environment.get("HOME", "/"), ".codex")
    files = [*SYSTEM_FILES, *(named.join(own, name) for name in HOME_FILES)]
    files += [named.join(folder, ".codex", "config.toml") for folder in _upwards(asked.cwd)]
    seen = [[path, named.identity(path)] for path in (asked.argv[0], *files)]
    whole = json.dumps(["codex", asked.cwd, asked.argv, seen])
    return "codex " + sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()


def _upwards(path: str) -> Iterator[str]:
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _from_plain(kept: object) -> Effective | None:
    """Read what was kept; None for what another release kept."""
    if not isinstance(kept, Mapping):
        return None
    try:
        entries = tuple(
            Entry(**{**entry, **{k: tuple(entry[k]) for k in ("args", "env", "tools")}})
            for entry in kept["entries"]
        )
        return Effective(**{**kept, "entries": entries, "on": tuple(kept["on"])})
    except (KeyError, TypeError):
        return None
