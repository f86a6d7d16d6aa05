"""Where an isolated home has its login from: a variable, a login of its own, or named files (R26).

Rule 1: what is not named is not passed on: no variable, no file, and never a whole folder.
Rule 2: a login of its own is the rule; the shared home is never fallen back to.
Rule 3: a value is read when a run begins, and is in no refusal, plan or record.
"""

import json
import re
from collections.abc import Mapping

from amux.core.late import Late
from amux.core.value import Value
from amux.errors import InvalidArgument, LaunchRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from amux.disk import handed

    Kind: TypeAlias = Literal["own-login", "api-key", "copy"]
else:
    handed = Late("amux.disk.handed")
KINDS = ("own-login", "api-key", "copy")
FILE_MAX_BYTES = 256 * 1024  # a login has 5,000
FILES_MAX = 4

# What may be copied for whom, and where in the home it lies. One by one: no folder.
PLACES: Mapping[str, Mapping[str, str]] = {
    "codex": {"auth.json": ".codex"},
    "claude": {".credentials.json": ".claude"},
    "pi": {"auth.json": ".pi/agent"},
}
# A name that holds a key and does nothing else; LD_PRELOAD, PATH and the like are none.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}_(?:KEY|TOKEN)")
_NEVER = re.compile(r"AMUX_.*")


class Source(Value):
    """The source of one agent's login in an isolated home."""

    kind: "Kind" = "own-login"
    variable: str = ""
    files: tuple[str, ...] = ()


class Copied(Value):
    """One file that is copied into an isolated home."""

    folder: str
    """Below the home."""
    name: str
    data: bytes


def parse(agent: str, table: Mapping[str, object]) -> Source:
    """Read the keys of one agent; `ValueError` has the key, and what to write instead."""
    kind = table.get("credentials", "own-login")
    if kind not in KINDS:
        raise ValueError("credentials", "use " + ", ".join(KINDS))
    variable, files = table.get("variable", ""), table.get("files", [])
    if (kind == "api-key") != bool(variable):
        raise ValueError("variable", 'it goes with credentials = "api-key", and with nothing else')
    if (kind == "copy") != bool(files):
        raise ValueError("files", 'they go with credentials = "copy", and with nothing else')
    return Source(
        kind="api-key" if kind == "api-key" else "copy" if kind == "copy" else "own-login",
        variable=_variable(variable),
        files=_files(agent, files),
    )


def passed(source: Source, environment: Mapping[str, str]) -> dict[str, str]:
    """Give the one variable that a run is given; refuses where the caller has none."""
    if source.kind != "api-key":
        return {}
    value = environment.get(source.variable, "")
    if not value:
        raise _refused(
            f"{source.variable} is to be passed on, and is not set",
            hint="set it, or choose another source in agents.toml",
            cause="not_set",
        )
    return {source.variable: value}


def copied(agent: str, source: Source) -> tuple[tuple[Copied, ...], tuple[str, ...]]:
    """Read the files that are copied, and what a person should know of them."""
    found, warnings = [], []
    for path in source.files:
        name = path.rpartition("/")[2]
        try:
            data = handed.own_file(path, max_bytes=FILE_MAX_BYTES)
        except handed.NotTrustedError as error:
            raise _refused(
                f"a login cannot be copied: {error}",
                hint="name the file itself, yours alone; see files in agents.toml",
                cause="not_trusted",
                file=path,
            ) from error
        except OSError as error:
            raise _refused(
                "a login cannot be copied: it cannot be read",
                hint="log in first, or choose another source in agents.toml",
                cause=type(error).__name__,
                file=path,
            ) from error
        found.append(Copied(folder=PLACES[agent][name], name=name, data=data))
        if agent == "codex" and _is_oauth(data):
            warnings.append(
                "the copied login of Codex is used by two: its refresh tokens work once, so a "
                "refresh in either copy logs the other out; better have an own login in that home"
            )
    return tuple(found), tuple(warnings)


def _variable(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError("variable", "write one name in quotes")
    if found and (not _VARIABLE.fullmatch(found) or _NEVER.fullmatch(found)):
        raise ValueError("variable", "name a variable that holds a key: SOME_API_KEY or SOME_TOKEN")
    return found


def _files(agent: str, found: object) -> tuple[str, ...]:
    known = PLACES.get(agent, {})
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("files", "write a list of paths")
    names = [one.rpartition("/")[2] for one in found]
    if len(found) > FILES_MAX or len(set(names)) != len(names) or not set(names) <= set(known):
        raise ValueError("files", f"known for {agent}: {', '.join(known) or 'none'}, each once")
    if not all(one.startswith("/") and "\0" not in one for one in found):
        raise ValueError("files", "write each as a path from /")
    return tuple(found)


def _is_oauth(data: bytes) -> bool:
    """Tell whether a login of Codex has refresh tokens; one that cannot be read may."""
    try:
        found = json.loads(data)
    except ValueError:
        return True
    tokens = found.get("tokens") if isinstance(found, dict) else None
    return bool(tokens)


def _refused(message: str, *, hint: str, **details: object) -> LaunchRefused:
    return LaunchRefused(message, hint=hint, step="isolation", **details)


def misspelt(file: str, agent: str, error: ValueError) -> InvalidArgument:
    """Make the refusal of a key that is not as it should be."""
    key, hint = error.args
    return InvalidArgument(
        f"{file} is not as it should be", hint=hint, file=file, argument=f"{agent}.{key}"
    )
