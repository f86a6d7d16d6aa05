"""What is heard of a headless turn while it runs: a line of the agent's JSON becomes events.

Rule 1: a call is told when its outcome is known; one that never ends is told at the end.
Rule 2: a line that is not understood tells nothing; an agent may say more tomorrow.
Rule 3: the answer is told once, at the end: an agent may answer again when something that it left
        to run in the background is done.
"""

import json
from collections.abc import Callable

from amux.core import timeline
from amux.core.timeline import Event

UNKNOWN = "unknown"  # of a call: the agent ended before it


class Turn:
    """One headless turn of one agent; the adapter gives what reads a line of its output."""

    def __init__(self, read: Callable[["Turn", dict[str, object]], list[Event]]) -> None:
        self._read = read
        self._calls: dict[str, tuple[str, object]] = {}
        self._answer: str | None = None
        self.is_named = False
        """Whether the native session was told already."""
        self.failure = ""
        """What went wrong, in the agent's words; a turn with one has no answer."""
        self.refused_step = ""
        """The step of the launch that failed inside the agent's process; `failure` says why."""

    def events(self, line: str) -> list[Event]:
        """Give what one line of output tells."""
        return self.tell(parsed(line))

    def tell(self, said: dict[str, object]) -> list[Event]:
        """Give what one message tells that was read already."""
        return self._read(self, said) if said else []

    def end(self) -> list[Event]:
        """Give the calls whose outcome nobody told, and the answer."""
        calls, self._calls = self._calls, {}
        told = [timeline.tool(name, UNKNOWN, arguments) for name, arguments in calls.values()]
        return told if self._answer is None else [*told, timeline.answer(self._answer)]

    def answered(self, text: str) -> None:
        """Note an answer; a later one takes its place, and that of a failure."""
        self._answer, self.failure = text, ""

    def failed(self, text: str) -> None:
        """Note what went wrong, in the place of an answer."""
        self._answer, self.failure = None, text

    def began(self, id: str, name: str, arguments: object) -> None:  # noqa: A002 - its name
        """Note a call whose outcome will follow."""
        self._calls[id] = (name, arguments)

    def ended(self, id: str, text: str, *, is_error: bool) -> list[Event]:  # noqa: A002 - its name
        """Give the call whose outcome is known now; nothing for one that never began."""
        if id not in self._calls:
            return []
        name, arguments = self._calls.pop(id)
        return [timeline.tool(name, _code(text) if is_error else "ok", arguments)]


def parsed(line: str) -> dict[str, object]:
    """Read a line of JSON; empty where it is no object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _code(text: str) -> str:
    """Give the code of a refusal of amux, or that it was an error."""
    error = parsed(text).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else "error"
