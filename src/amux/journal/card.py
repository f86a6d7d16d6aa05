"""Cards: headed lists of `- **key**：value` in a section or report; data that grants nothing (J68).

Rule 1: the last card of a name in a section counts; it ends at the next heading that is as high.
Rule 2: a `state` line is the server's and never the caller's (J69).
"""

from collections.abc import Mapping
from dataclasses import dataclass

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
ABSENT = "—"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card found in bytes: its range in them, heading included, and its lines."""

    start: int
    end: int
    values: Mapping[str, str]  # the first line of a key counts


def find(data: bytes, name: str = HANDOFF) -> Card | None:
    """Find the last card of this name in a section's bytes."""
    raise NotImplementedError


def render_handoff(values: Mapping[str, str]) -> tuple[str, str, str]:
    """Write a ContextHandoffCard: before, the place of and after its `state` line (J69)."""
    raise NotImplementedError
