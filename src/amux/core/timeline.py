"""One event of a launched session, as a value and as a line of its timeline.

Rule 1: a timeline is execution history: shown to people, never given to a model (R13).
Rule 2: of a memory tool's arguments stands what names a place, never what was written or is a
        secret (R13, R31); of any other tool its name and outcome.
Rule 3: a line is one JSON object with `at`, `run` and `kind` first; a reader passes over lines
        and kinds that it does not know.
"""

from collections.abc import Mapping

from amux.core import strict
from amux.core.text import fit, to_json
from amux.core.value import Value
from amux.errors import InvalidArgument

TEXT_MAX_BYTES = 64 * 1024  # of a prompt or an answer: a page of history, not an archive
LINE_MAX_BYTES = 512 * 1024  # the longest that we write has a fifth of this

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Kind: TypeAlias = Literal[
        "start", "binding", "warning", "prompt", "native", "tool", "answer", "exit"
    ]
KINDS: "tuple[Kind, ...]" = (
    "start", "binding", "warning", "prompt", "native", "tool", "answer", "exit",
)  # fmt: skip

# Of the arguments of memory tools; the others are content, or are not ours to keep.
_ARGUMENTS = (
    "path", "path_prefix", "expected_revision", "query", "limit", "offset", "start_line",
    "end_line",
)  # fmt: skip
_ARGUMENT_MAX_BYTES = 512


class Event(Value):
    """Something that happened in a run."""

    kind: "Kind"
    data: Mapping[str, object]


class Logged(Value):
    """An event as a timeline holds it."""

    at: str
    run: int
    """Which process of the session it happened in: 1 for the first."""
    event: Event


def start(*, amux: str, agent: str, version: str, is_resumed: bool, is_headless: bool) -> Event:
    """Note that a run begins."""
    return Event(
        kind="start",
        data={
            "amux": amux,
            "agent": agent,
            "version": version,
            "resumed": is_resumed,
            "headless": is_headless,
        },
    )


def binding(outcome: str, reason: str) -> Event:
    """Note the outcome of binding, and why."""
    return Event(kind="binding", data={"outcome": outcome, "reason": reason})


def warning(text: str) -> Event:
    """Note what a person was warned of."""
    return Event(kind="warning", data={"text": fit(text, TEXT_MAX_BYTES)})


def prompt(text: str) -> Event:
    """Note what a headless turn was asked."""
    return Event(kind="prompt", data=_cut(text))


def native(name: str) -> Event:
    """Note a native session of the agent."""
    return Event(kind="native", data={"id": name})


def tool(name: str, outcome: str, arguments: object = None) -> Event:
    """Note a tool call: of a memory tool with its arguments but for content."""
    data: dict[str, object] = {"name": name, "outcome": outcome}
    if "memory_" in name and isinstance(arguments, dict):
        data["arguments"] = {
            key: fit(value, _ARGUMENT_MAX_BYTES) if isinstance(value, str) else value
            for key, value in arguments.items()
            if key in _ARGUMENTS and isinstance(value, str | int)
        }
    return Event(kind="tool", data=data)


def answer(text: str) -> Event:
    """Note what a headless turn was answered."""
    return Event(kind="answer", data=_cut(text))


def exit(status: int | None, reason: str = "") -> Event:  # noqa: A001 - the kind's name
    """Note how a run ended; no status where its process never began."""
    return Event(kind="exit", data={"status": status, "reason": reason})


def line(event: Event, *, at: str, run: int) -> bytes:
    """Spell an event as a line of a timeline, its LF included; `at` is ISO 8601."""
    spelled = {"at": at, "run": run, "kind": event.kind}
    return to_json({**spelled, **event.data}) + b"\n"


def parse(text: bytes) -> Logged | None:
    """Read a line; None where it is none that this release knows."""
    try:
        found = strict.decode(text)
    except InvalidArgument:
        return None
    if not isinstance(found, dict):
        return None
    at, run, kind = (found.pop(name, None) for name in ("at", "run", "kind"))
    if not isinstance(at, str) or not isinstance(run, int) or kind not in KINDS:
        return None
    return Logged(at=at, run=run, event=Event(kind=kind, data=found))


def _cut(text: str) -> dict[str, object]:
    # A prompt may hold what is no Unicode; it is history, so it is shown and not refused.
    sound = text.encode("utf-8", "backslashreplace").decode("utf-8")
    kept = fit(sound, TEXT_MAX_BYTES)
    return {"text": kept} if kept == sound else {"text": kept, "truncated": True}
