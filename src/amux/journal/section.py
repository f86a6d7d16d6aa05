"""What is written into a day: a new section, a block at a section's end, and the repeats of both.

Rule 1: pure: old bytes in, new bytes out, or the reason why not. The lock is the caller's.
Rule 2: nobody computes an id but `open_section`.
Rule 3: a repeat is known by its content (J65): the call that lost its answer is sent again.
Rule 4: what was made is parsed again and compared before it counts (J63 step 3).
"""

import re
from dataclasses import dataclass

from amux.journal import day as days
from amux.journal.day import Day, Section
from amux.journal.insertion import Insertion, close, ends_blank, insert
from amux.journal.refusals import refuse
from amux.journal.status import RESERVED, State, spell

NO_TITLE = "未命名任务"
NO_MESSAGE = "—"
NO_INTENT = "unspecified"
LINKS_HEADING = "### 📄 关联报告"

_STATE_LINE = re.compile(r"- \*\*state\*\*：[^\n]*\n\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a new section says of itself, before it has an id."""

    stamp: str  # local, as Moment.stamp spells it
    token: str
    owner: str  # first 16 hex digits of the sessionDigest
    title: str = NO_TITLE
    intent: str = NO_INTENT
    source_message: str = NO_MESSAGE
    unknown_agent: str | None = None  # the reason of J32; None for an agent that is known

    def render(self, section: str) -> str:
        """Write the header of a section with this id (J40)."""
        host = (
            ""
            if self.unknown_agent is None
            else f"- **宿主**：unknown-agent（{self.unknown_agent}）\n"
        )
        return (
            f"## 会话 {section} — {self.title}\n\n"
            f"- **时间**：{self.stamp}\n- **意图**：{self.intent}\n- **状态**：{RESERVED}\n"
            f"- **sourceMessage**：{self.source_message}\n{host}"
            f"<!-- devcodex:memory-session-binding v1 session={section} token={self.token} -->\n"
            f"<!-- amux:session {self.owner} -->\n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one write adds to a section, part by part in this order; absent parts are empty."""

    content: str = ""
    links: tuple[str, ...] = ()  # rendered, one line each
    card: str = ""  # rendered, without its state line
    card_state: str = ""  # the card's `- **state**：…` line; it takes no part in repeats
    status: State | None = None

    def render(self) -> str:
        """Write the block; parts are one blank line apart."""
        before, state, after = self._parts()
        return before + state + after

    def _parts(self) -> tuple[str, str, str]:
        """Split at the state line, so that repeats may leave it out."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A day with a new section, which is its last."""

    insertion: Insertion
    section: Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """A day with a longer section."""

    insertion: Insertion
    before: Section
    section: Section


def open_section(old: bytes, opening: Opening, block: Block | None = None) -> Opened:
    """Add a section at the end of a day, its first block included."""
    raise NotImplementedError


def extend(old: bytes, ordinal: int, block: Block) -> Extended:
    """Add a block at the end of the section that has this ordinal in `old`, closed first."""
    raise NotImplementedError


def find_bound(day: Day, section: str, token: str) -> Section:
    """Give the section that an id and its token, or the token's start, open (J74)."""
    raise NotImplementedError


def is_repeat(old: bytes, section: Section, block: Block) -> bool:
    """Tell whether the block already ends its section."""
    raise NotImplementedError


def opened_before(old: bytes, day: Day, opening: Opening, block: Block | None) -> Section | None:
    """Give the section that the same call opened before, if its answer was lost."""
    raise NotImplementedError
