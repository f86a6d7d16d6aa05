"""Cards: headed lists of `- **key**：value` in a section or report; data that grants nothing (J68).

Rule 1: the last card of a name in a section counts; it ends at the next heading that is as high.
Rule 2: a `state` line is the server's and never the caller's (J69).
"""

import re
from collections.abc import Mapping

from amux.core.value import Value

HANDOFF = "ContextHandoffCard"
HANDOFF_HEADING = f"### 🤝 {HANDOFF}"
HANDOFF_KEYS = (
    "task",
    "state",
    "source-of-truth",
    "confirmed-decisions",
    "open-risks",
    "next-action",
    "blocked-reason",
    "must-not-overwrite",
    "validation-state",
    "artifact-links",
)
STATE = "state"
ABSENT = "—"

_HEADING = re.compile(rb"^(#{1,6})[ \t]+([^\n]*)\n", re.MULTILINE)
_LINE = re.compile(r"^- \*\*([^*\n]+)\*\*[：:]([^\n]*)\n", re.MULTILINE)


class Card(Value):
    """A card found in bytes: its range in them, heading included, and its lines."""

    start: int
    end: int
    values: Mapping[str, str]  # the first line of a key counts


class Handoff(Value):
    """A ContextHandoffCard to be written: the caller's lines, and the server's `state`."""

    values: Mapping[str, str]
    state: str = ""  # canonical JSON; empty without a task

    def render(self) -> tuple[str, str, str]:
        """Write the card: what stands before its state line, that line, what stands after."""
        lines = {
            key: f"- **{key}**：{self.values.get(key, ABSENT)}\n"
            for key in HANDOFF_KEYS
            if key != STATE
        }
        state = f"- **{STATE}**：{self.state}\n" if self.state else ""
        before = f"{HANDOFF_HEADING}\n\n{lines.pop('task')}"
        return before, state, "".join(lines.values())


def find(data: bytes, name: str = HANDOFF) -> Card | None:
    """Find the last card of this name in a section's body."""
    if name.encode() not in data:  # most sections have none, and days are long
        return None
    wanted = name.encode()
    start, level, end = -1, 0, len(data)
    for heading in _HEADING.finditer(data):
        depth = len(heading[1])
        if depth > 1 and wanted in heading[2]:
            start, level, end = heading.start(), depth, len(data)
        elif start >= 0 and depth <= level and end == len(data):
            end = heading.start()
    if start < 0:
        return None
    values: dict[str, str] = {}
    for line in _LINE.finditer(data[start:end].decode("utf-8", "replace")):
        values.setdefault(line[1], line[2].strip())
    return Card(start=start, end=end, values=values)
