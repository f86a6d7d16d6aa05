"""A session's record, as a value and as it is saved.

Rule 1: the start state never changes (R4): its digest stands beside it, and a record that does
        not match is refused, never repaired.
Rule 2: native ids, notes and the number of runs are added beside it; the first id stays first.
Rule 3: a record says all that a resume needs: what is then in force changes nothing (R6).
"""

import re
import time
from collections.abc import Mapping
from types import NoneType

from amux.core import strict
from amux.core.sha import sha256
from amux.core.text import to_json
from amux.core.value import Value
from amux.errors import Corrupt, InvalidArgument, UpgradeRequired

FORMAT = 2  # grows with every change of what a record holds
NAME_MAX_CHARACTERS = 200

_ID = re.compile(r"s-[0-9a-f]{12}")
# Given to agents as an argument: never an option, never a path.
_NATIVE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Protocol(Value):
    """The text that a session was given."""

    version: int
    digest: str
    text: str


class StartState(Value):
    """What a session was started with; never changed."""

    session: str
    name: str
    agent: str
    agent_id: str
    agent_version: str
    """Empty where the agent did not tell."""
    amux: str
    outcome: str
    """`bound`, `off` or `failed`."""
    reason: str
    """Why: for people."""
    cause: str = ""
    """The code of a refusal, or `unsupported_agent`."""
    principal: str | None
    native: str | None
    """The native id, where it was chosen before the start; else the first that was found."""
    binding: str | None
    hub: str
    protocol: Protocol | None
    form: str | None
    tools: tuple[str, ...] | None
    table_version: int | None
    asks_writes: bool
    verbs: str
    isolation: str
    user: str = ""
    """As whom it runs, where that is not the caller."""
    via: str
    native_args: tuple[str, ...]
    """What the caller passes on to the agent, at each resume again: the prefix hangs on it (R22).
    """
    cwd: str
    created: str

    @property
    def is_bound(self) -> bool:
        """Tell whether it has memory, for good."""
        return self.binding is not None


class Record(Value):
    """A session as it is kept."""

    start: StartState
    natives: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: int = 0

    @property
    def first_native(self) -> str | None:
        """Name the native session that a resume continues."""
        return self.natives[0] if self.natives else None

    def with_native(self, name: str) -> "Record":
        """Note a native session; one that is known stays where it stands."""
        if name in self.natives or not _NATIVE.fullmatch(name):
            return self
        return self.replace(natives=(*self.natives, name))

    def with_note(self, text: str) -> "Record":
        """Note something that a person should know."""
        return self if text in self.notes else self.replace(notes=(*self.notes, text))

    def with_run(self) -> "Record":
        """Count one more run."""
        return self.replace(runs=self.runs + 1)


def is_id(text: str) -> bool:
    """Tell whether a text is shaped like the id of a session."""
    return _ID.fullmatch(text) is not None


def require_name(text: str) -> str:
    """Refuse a name that would disturb a list."""
    if len(text) > NAME_MAX_CHARACTERS or _CONTROL.search(text):
        raise InvalidArgument(
            f"a name has at most {NAME_MAX_CHARACTERS} characters and no line ends",
            argument="name",
        )
    return text


# --- as it is saved ---

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "session": str, "name": str, "agent": str, "agent_id": str, "agent_version": str,
    "amux": str, "outcome": str, "reason": str, "cause": str, "principal": (str, NoneType),
    "native": (str, NoneType), "binding": (str, NoneType), "hub": str,
    "protocol": (dict, NoneType), "form": (str, NoneType), "tools": (list, NoneType),
    "table_version": (int, NoneType), "asks_writes": bool, "verbs": str, "isolation": str,
    "user": str, "via": str, "native_args": list, "cwd": str, "created": str,
}  # fmt: skip


def spelled(record: Record) -> bytes:
    """Give the saved form of a record."""
    start = record.start.plain()
    found = {
        "format": FORMAT,
        "start": start,
        "digest": _digest(start),
        "natives": list(record.natives),
        "notes": list(record.notes),
        "runs": record.runs,
    }
    return to_json(found) + b"\n"


def parse(data: bytes) -> Record:
    """Read the saved form; refuses what was cut, edited, or written by a newer amux."""
    try:
        found = strict.decode(data)
    except InvalidArgument as error:
        raise corrupt("it is cut, or no JSON") from error
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise corrupt("it has no format")
    if found["format"] > FORMAT:
        raise UpgradeRequired(
            "a newer amux wrote this session's record",
            hint="use that release, or start a new session",
            format=found["format"],
            known=FORMAT,
        )
    start, natives, notes = (found.get(name) for name in ("start", "natives", "notes"))
    if not isinstance(start, dict) or not isinstance(natives, list) or not isinstance(notes, list):
        raise corrupt("a part of it is missing")
    if not _are_texts(natives) or not _are_texts(notes):
        raise corrupt("a part of it is no text")
    if found.get("digest") != _digest(start) or not isinstance(found.get("runs"), int):
        raise corrupt("its start state was edited")
    if found["format"] == 1:
        start = {**start, "user": ""}
    return Record(
        start=_start(start), natives=tuple(natives), notes=tuple(notes), runs=found["runs"]
    )


def _start(found: Mapping[str, object]) -> StartState:
    if set(found) != set(_KINDS) or any(
        not isinstance(found[name], kind) for name, kind in _KINDS.items()
    ):
        raise corrupt("its start state is not as this release writes it")
    lists = {name: _texts(found[name]) for name in ("tools", "native_args")}
    read = {**found, **lists, "protocol": _protocol(found["protocol"])}
    return StartState(**read)  # type: ignore[arg-type]


def _texts(found: object) -> tuple[str, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not _are_texts(found):
        raise corrupt("a list of texts holds something else")
    return tuple(found)


def _protocol(found: object) -> Protocol | None:
    if found is None:
        return None
    try:
        return Protocol(**found)  # type: ignore[arg-type]
    except TypeError as error:
        raise corrupt("its protocol is not as this release writes it") from error


def _are_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _digest(start: Mapping[str, object]) -> str:
    return sha256(to_json(dict(sorted(start.items())))).hexdigest()


def instant(seconds: float) -> str:
    """Spell a moment, given in seconds since 1970, as ISO 8601 in UTC with milliseconds.

    Without `datetime`, which takes a start two of them.
    """
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    spelled = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{spelled}.{milliseconds:03d}+00:00"


def corrupt(reason: str) -> Corrupt:
    """Make the refusal of a record that cannot be used."""
    return Corrupt(
        "this session's record cannot be used",
        hint="remove it with `amux session remove`, and start a new session",
        reason=reason,
    )
