"""Where a run happens and as whom: its homes, its environment, its directory (R24-R31).

Rule 1: what cannot be is refused, with its step, before anything is asked or made.
Rule 2: another user's environment is built from nothing: what is not named here is not passed.
Rule 3: a private home keeps what an agent reads and writes by itself apart, not what it may read:
        it is the same user. That is said wherever it is shown.
Rule 4: the run of another user reaches the Hub by what the launcher copied for it, or not at all.
"""

import re
from collections.abc import Callable, Mapping

from amux.core import home
from amux.core.late import Late
from amux.core.value import NOTHING, Value
from amux.disk import named
from amux.errors import InvalidArgument, LaunchRefused, NotSaved
from amux.runtime import asking, scripts
from amux.runtime.context import Context
from amux.runtime.known import Agent
from amux.runtime.programs import Programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.disk import as_user, handed
    from amux.runtime import rundir, sources
    from amux.runtime import user as users
    from amux.runtime.rundir import RunDirectory
    from amux.runtime.user import User
else:
    as_user = Late("amux.disk.as_user")
    handed = Late("amux.disk.handed")
    rundir = Late("amux.runtime.rundir")
    sources = Late("amux.runtime.sources")
    users = Late("amux.runtime.user")

NONE, PRIVATE_HOME, LINUX_DAC = "none", "private-home", "linux-dac"
WORDS: Mapping[str, str] = {
    NONE: "none: the agent is the caller, with all that the caller has",
    PRIVATE_HOME: "weak: a home of its own, the same user: it can read what the caller can",
    LINUX_DAC: "another user of this machine: file permissions keep it from everybody else's",
}
READ_MAX_BYTES = 4 * 1024 * 1024  # of a person's file that an adapter merges
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHONS = tuple(f"/usr/bin/python3{minor}" for minor in ("", ".14", ".13", ".12", ".11"))
PYTHON_SECONDS = 5.0

# How a terminal and a language are called; a value that could be anything else is not passed.
_HARMLESS = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "COLORTERM", "TZ")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+/-]{0,63}")
# What leads an agent out of the home that it is given, or is a key that nobody named.
_REDIRECTS = (
    "CLAUDE_CONFIG_DIR", "CODEX_SQLITE_HOME", "PI_CODING_AGENT_SESSION_DIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
)  # fmt: skip
_KEY = re.compile(r"[A-Z0-9_]*(?:API_KEY|AUTH_TOKEN|OAUTH_TOKEN|ACCESS_TOKEN|SECRET_ACCESS_KEY)")
_PI_HOME = ".pi/agent"


class Place(Value):
    """Where one run happens, and as whom."""

    isolation: str
    environment: Mapping[str, str]
    """Of the agent, before its adapter and the session add to it."""
    search_path: str
    """Where programs are looked for."""
    files: str
    """The directory of the plan's files."""
    credential_file: str
    read: Callable[[str], str | None]
    """Reads a file of whoever the agent runs as."""
    home: str = ""
    """Of an isolated run."""
    directory: "RunDirectory | None" = None
    base: str = ""
    """What the directories of runs lie in."""
    python: str = ""
    """What the copied command line runs on; empty where none is copied."""
    user: "User | None" = None
    copies: Mapping[str, bytes] = NOTHING
    """Path in the home -> what is copied there while the run lives."""
    warnings: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """Name the copied command line; empty where the installed one is used."""
        return (self.directory.command,) if self.directory else ()

    def with_program(self, program: str) -> "Place":
        """Have what lies beside an agent's program be found too, after all else."""
        if self.user is None:
            return self
        folder = program.rpartition("/")[0]
        return self.replace(environment={**self.environment, "PATH": f"{SYSTEM_PATH}:{folder}"})

    def make_home(self, agent: str) -> None:
        """See that the home of an isolated run is there; whose it is makes it."""
        if not self.home:
            return
        folders = {"codex": ".codex", "pi": _PI_HOME}.get(agent, "")
        path = f"{self.home}/{folders}".rstrip("/")
        try:
            self.do(lambda: as_user.make_folder(path))
        except OSError as error:
            raise NotSaved(
                "the home of the run could not be made",
                hint="see who may write there",
                cause=type(error).__name__,
            ) from error

    def copy(self, path: str) -> None:
        """Copy a login into the home, where nothing stands in its place."""
        self.do(lambda: as_user.make(path, self.copies[path]))

    def do(self, function: Callable[[], object]) -> object:
        """Do something to files with the rights of whoever the agent runs as."""
        return self.user.does(function) if self.user else function()

    def copy_paths(self) -> tuple[str, ...]:
        """Name what is copied, but for what stands in the home already: that is kept."""
        return tuple(path for path in self.copies if not self.has(path))

    def has(self, path: str) -> bool:
        """Tell whether something stands in the home, whatever it is."""
        return bool(self.do(lambda: as_user.is_there(path)))


def place(ctx: Context, agent: Agent, isolation: str, name: str, session: str, cwd: str) -> Place:
    """Say where a run is to happen; refuses what cannot be, and makes nothing."""
    if name and isolation != LINUX_DAC:
        raise InvalidArgument("--user goes with --isolation linux-dac", argument="user")
    directory = named.join(ctx.config.home, home.SESSIONS_DIR, session)
    here = Place(
        isolation=isolation,
        environment=_inherited(ctx),
        search_path=ctx.config.search_path,
        files=named.join(directory, home.FILES_DIR),
        credential_file=named.join(directory, home.CREDENTIAL_FILE),
        read=lambda path: _read(cwd, path),
    )
    match isolation:
        case "private-home":
            return _with_logins(ctx, agent, _private(ctx, agent, here))
        case "linux-dac":
            return _with_logins(ctx, agent, _of_user(ctx, here, name, session, cwd))
        case _:
            return here


def with_python(ctx: Context, here: Place, programs: Programs) -> Place:
    """Find what the copied command line would run on; refuses where there is nothing (R28)."""
    if here.user is None:
        return here
    own = ctx.config.runtime.python
    for path in (own,) if own else PYTHONS:
        if _runs(path, here.user, programs):
            return here.replace(python=path)
    raise LaunchRefused(
        f"{here.user.name} can execute no Python of 3.11 or newer",
        hint="install python3, or name one in config.toml: [runtime] python",
        step="cli",
        cause="no_python",
    )


def address(ctx: Context, here: Place) -> str:
    """Name the Hub as the run reaches it; empty where it has no way there."""
    told = ctx.config.connection.address
    if here.user is None or told.socket_path != ctx.config.local.address.socket_path:
        return told.text
    try:
        record = named.join(ctx.config.home, home.RUN_DIR, home.SHARED_RECORD)
        found = named.shown(named.read(record, max_bytes=home.SOCKET_MAX_BYTES))
    except OSError:
        return ""
    return found if named.is_socket(found) else ""


# --- a private home ------------------------------------------------------------------------------


def _private(ctx: Context, agent: Agent, here: Place) -> Place:
    own = named.join(ctx.config.home, home.HOMES_DIR, agent.name)
    kept = {
        name: value
        for name, value in here.environment.items()
        if name not in _REDIRECTS and not _KEY.fullmatch(name)
    }
    return here.replace(home=own, environment=kept | _homes(own))


def _homes(own: str) -> dict[str, str]:
    return {"HOME": own, "CODEX_HOME": f"{own}/.codex", "PI_CODING_AGENT_DIR": f"{own}/{_PI_HOME}"}


# --- another user --------------------------------------------------------------------------------


def _of_user(ctx: Context, here: Place, name: str, session: str, cwd: str) -> Place:
    user = _user(name)
    if not user.does(lambda: as_user.can_enter(cwd)):
        raise InvalidArgument(
            f"{user.name} cannot enter this directory",
            hint="give --cwd DIR, one that he can enter",
            argument="cwd",
        )
    base = ctx.config.runtime.run_dir or home.RUNS_DIR
    try:
        handed.require_usable(base, needs_bytes=rundir.NEEDS_BYTES)
    except handed.NotTrustedError as error:
        raise _refused(
            f"no run can be made in {base}: {error}",
            hint="name another directory in config.toml: [runtime] run_dir",
            cause="run_dir",
        ) from error
    except OSError as error:
        raise _refused(
            f"no run can be made in {base}",
            hint="name another directory in config.toml: [runtime] run_dir",
            cause=type(error).__name__,
        ) from error
    directory = rundir.RunDirectory(base, session, user)
    return here.replace(
        environment=_from_nothing(ctx.config.environment, user, directory),
        search_path=SYSTEM_PATH,
        files=directory.files,
        credential_file=directory.connection_file,
        read=lambda path: _read_as(user, cwd, path),
        home=user.home,
        directory=directory,
        base=base,
        user=user,
    )


def _user(name: str) -> "User":
    if not name:
        raise InvalidArgument("linux-dac needs a user", hint="give --user U", argument="user")
    if users.own_uid() != 0:
        raise _refused("only root can start an agent as another user", hint="use sudo", cause="uid")
    script = scripts.text("drop.py")
    user = users.User.find(name, script)
    if user is None:
        raise _refused("there is no such user", hint="see --user", cause="no_user")
    if user.uid == 0:
        raise _refused("uid 0 is nobody to hand a run to", hint="name another user", cause="root")
    try:
        has_home = user.home.startswith("/") and user.does(
            lambda: as_user.is_home(user.home, user.uid)
        )
    except PermissionError as error:
        raise _refused(
            "the rights of another user cannot be taken on here",
            hint="linux-dac needs Linux, and a root that may become anybody",
            cause="rights",
        ) from error
    if not has_home:
        raise _refused(
            f"{user.name} has no home of his own",
            hint="make it, owned by that user, with nobody else to write in it",
            cause="no_home",
        )
    return user


def _from_nothing(
    environment: Mapping[str, str], user: "User", directory: "RunDirectory"
) -> dict[str, str]:
    """Build an environment; of the caller's only how a terminal and a language are called."""
    kept = {name: environment[name] for name in _HARMLESS if name in environment}
    return {
        **{name: value for name, value in kept.items() if _PLAIN.fullmatch(value)},
        **_homes(user.home),
        "USER": user.name,
        "LOGNAME": user.name,
        "SHELL": "/bin/sh",
        "PATH": SYSTEM_PATH,
        "TMPDIR": directory.temp,
    }


def _runs(path: str, user: "User", programs: Programs) -> bool:
    """Tell whether a user can run an interpreter, and it is new enough; asked once a file."""
    key = f"python {user.uid} {path} {named.identity(path)}"
    if programs.look(key) is True:
        return True
    try:
        status, said = asking.capture(
            [path, "-IS", "-c", "import sys; print(sys.version_info >= (3, 11))"],
            {},
            "/",
            seconds=PYTHON_SECONDS,
            max_bytes=64,
            runs_as=user,
        )
    except OSError:
        return False
    is_good = status == 0 and said.strip() == b"True"
    if is_good:
        programs.keep(key, True)
    return is_good


# --- logins --------------------------------------------------------------------------------------


def _with_logins(ctx: Context, agent: Agent, here: Place) -> Place:
    passed = sources.passed(agent.source, ctx.config.environment)
    copies, warnings = sources.copied(agent.name, agent.source)
    return here.replace(
        environment={**here.environment, **passed},
        copies={f"{here.home}/{one.folder}/{one.name}": one.data for one in copies},
        warnings=warnings,
    )


# --- reading -------------------------------------------------------------------------------------


def _inherited(ctx: Context) -> dict[str, str]:
    """Give the caller's environment, but for what a session was given by who started it."""
    taken = OF_A_SESSION if "AMUX_MEMORY_BINDING" in ctx.config.environment else ()
    return {name: value for name, value in ctx.config.environment.items() if name not in taken}


OF_A_SESSION = ("AMUX_MEMORY_BINDING", "AMUX_HUB", "AMUX_CREDENTIAL_FILE", "AMUX_CA_FILE")


def _read(cwd: str, path: str) -> str | None:
    """Read a person's file for an adapter; None where it cannot be read."""
    try:
        data = named.read(named.join(cwd, path), max_bytes=READ_MAX_BYTES)
        return data.decode("utf-8") if len(data) <= READ_MAX_BYTES else None
    except (OSError, ValueError):
        return None


def _read_as(user: "User", cwd: str, path: str) -> str | None:
    """Read the same with the rights of the user: what he may not read is not merged for him."""
    where = named.join(cwd, path)
    try:
        data = user.does(lambda: as_user.read(where, max_bytes=READ_MAX_BYTES))
        return data.decode("utf-8") if len(data) <= READ_MAX_BYTES else None
    except (OSError, ValueError):
        return None


def _refused(message: str, *, hint: str, cause: str) -> LaunchRefused:
    return LaunchRefused(message, hint=hint, step="isolation", cause=cause)
