"""What is written into a day: a new section, a block at a section's end, and the repeats of both.

Rule 1: pure: old bytes in, new bytes out, or the reason why not. The lock is the caller's.
Rule 2: nobody computes an id but `open_section`.
Rule 3: a repeat is known by its content (J65): the call that lost its answer is sent again.
Rule 4: what was made is parsed again and compared before it counts (J63 step 3).
"""

import hmac
from collections.abc import Mapping

from amux.core.value import Value
from amux.journal.refusals import next_call, refuse
from amux.journal.text import day as days
from amux.journal.text.card import STATE, Handoff
from amux.journal.text.day import Day, Section
from amux.journal.text.insertion import Insertion, close, ends_blank, insert
from amux.journal.text.newtext import require_plain
from amux.journal.text.status import RESERVED, State, spell

NO_TITLE = "未命名任务"
NO_MESSAGE = "—"
NO_INTENT = "unspecified"
LINKS_HEADING = "### 📄 关联报告"

TOOL = "memory_session_write"
_NOT_FOUND = "MEMORY_SESSION_NOT_FOUND", "this day has no section of this id"
_AMBIGUOUS = "MEMORY_SESSION_AMBIGUOUS", "more than one section of this day has this id"
_LAYOUT_INVALID = (
    "MEMORY_SESSION_LAYOUT_INVALID",
    "the section holds two markers, or another section's",
)
_UNAVAILABLE = (
    "MEMORY_SESSION_BINDING_UNAVAILABLE",
    "the section was written by hand and has no marker",
)
_MISMATCH = "MEMORY_SESSION_BINDING_MISMATCH", "the token is not that of this section"
_STATE_LINE = f"- **{STATE}**：".encode()


class Opening(Value):
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
        host = ""
        if self.unknown_agent is not None:
            # What a client calls itself may be part of the reason, so anything may.
            reason = " ".join(self.unknown_agent.split())
            host = f"- **宿主**：unknown-agent（{reason}）\n"
        return (
            f"## 会话 {section} — {self.title}\n\n"
            f"- **时间**：{self.stamp}\n- **意图**：{self.intent}\n- **状态**：{RESERVED}\n"
            f"- **sourceMessage**：{self.source_message}\n{host}"
            f"<!-- devcodex:memory-session-binding v1 session={section} token={self.token} -->\n"
            f"<!-- amux:session {self.owner} -->\n"
        )


class Block(Value):
    """What one write adds to a section, part by part in this order; absent parts are empty."""

    content: str = ""
    links: tuple[str, ...] = ()  # rendered, one line each
    card: Handoff | None = None
    status: State | None = None

    def render(self) -> str:
        """Write the block; its parts are one blank line apart."""
        return "".join(self.parts())

    def parts(self) -> tuple[str, str, str]:
        """Write the block in three: before, at and after the line that repeats leave out."""
        links = "".join(f"- {link}\n" for link in self.links)
        before = _apart(self.content, f"{LINKS_HEADING}\n\n{links}" if links else "")
        status = f"- **状态**：{spell(self.status)}\n" if self.status else ""
        if self.card is None:
            return _apart(before, status), "", ""
        opening, state, rest = self.card.render()
        return _apart(before, opening), state, _apart(rest, status)


def _apart(*parts: str) -> str:
    """Join parts, one blank line between two."""
    joined = ""
    for part in filter(None, parts):
        if joined and not ends_blank(joined.encode()):
            joined += "\n"
        joined += part if part.endswith("\n") else part + "\n"
    return joined


class Opened(Value):
    """A day with a new section, which is its last."""

    insertion: Insertion
    section: Section


class Extended(Value):
    """A day with a longer section."""

    insertion: Insertion
    before: Section
    section: Section


def open_section(old: bytes, opening: Opening, block: Block | None = None) -> Opened:
    """Add a section at the end of a day, its first block included.

    The result was parsed again: the other sections are as before, the new one holds the block.
    """
    closed = close(old)
    day = days.parse(closed)
    name = days.next_id(day)
    text = _apart(opening.render(name), _checked(block) if block else "")
    added = insert(closed, len(closed), text)
    after = days.parse(added.data)
    _require_others(day, after, len(closed), added, (name, added.start))
    section = after.sections[-1]
    _require(section.token == opening.token and section.end >= added.end)
    return Opened(insertion=added, section=section)


def extend(old: bytes, section: Section, block: Block) -> Extended:
    """Add a block at the end of a section that was found in `old`, after closing its last line.

    The result was parsed again: the other sections are as before, this one holds the block.
    """
    closed = close(old)
    day = days.parse(closed)
    text = _checked(block)
    before = next(each for each in day.sections if each.start == section.start)
    added = insert(closed, before.end, text)
    after = days.parse(added.data)
    _require_others(day, after, before.end, added)
    found = after.sections[before.ordinal - 1]
    kept = (found.bindings, found.owners) == (before.bindings, before.owners)
    _require(kept and found.end >= added.end)
    return Extended(insertion=added, before=before, section=found)


def _checked(block: Block) -> str:
    text = block.render()
    require_plain(text, "content")
    return text


def _require_others(
    before: Day, after: Day, at: int, added: Insertion, *opened: tuple[str, int]
) -> None:
    """Require that each section is where it was, moved by what came in `at`, and no other came."""
    moved = [
        (each.id, each.start if each.start < at else each.start + added.grown)
        for each in before.sections
    ]
    _require([(each.id, each.start) for each in after.sections] == [*moved, *opened])


def _require(is_as_meant: bool) -> None:
    if not is_as_meant:
        raise refuse(
            "MEMORY_SESSION_WRITE_VERIFICATION_FAILED",
            "the day would not be read as it was meant",
            hint="write plain text, without headings or markers of a session",
        )


def find_bound(
    day: Day, name: str, token: str, *, where: Mapping[str, object] | None = None
) -> Section:
    """Give the section that an id and its token, or the token's start, open (J74).

    `where` names the memory in the call that a refusal proposes: to open another section.
    """
    found = day.with_id(name)
    section = found[0] if found else None
    is_ours = section is not None and section.is_managed
    held = section.bindings[0].token[: len(token)] if section and section.bindings else ""
    reason, message = "", ""
    if section is None:
        reason, message = _NOT_FOUND
    elif len(found) > 1:
        reason, message = _AMBIGUOUS
    elif section.bindings and not is_ours:
        reason, message = _LAYOUT_INVALID
    elif not is_ours:
        reason, message = _UNAVAILABLE
    elif not hmac.compare_digest(held.encode(), token.lower().encode()):
        reason, message = _MISMATCH
    if section is None or reason:
        raise refuse(
            reason,
            message,
            hint="repeat the section of your own receipt with its date, or write without section",
            next_call=None if where is None else next_call(TOOL, where, fill=["content"]),
            sessionId=name,
            lines=[each.line for each in found],
        )
    return section


def is_repeat(old: bytes, section: Section, block: Block) -> bool:
    """Tell whether the block already ends its section."""
    rest = _before_block(old[section.after_header : section.end], block)
    return rest is not None and ends_blank(rest)


def opened_before(old: bytes, day: Day, opening: Opening, block: Block | None) -> Section | None:
    """Give the section that the same call opened before, if its answer was lost."""
    own = [section for section in day.sections if opening.owner in section.owners]
    if not own or not own[-1].is_managed:
        return None
    section = own[-1]
    meant = days.parse(opening.render("01").encode()).sections[0]
    if (section.title, section.intent, section.source_message) != (
        meant.title,
        meant.intent,
        meant.source_message,
    ):
        return None
    rest = _before_block(old[section.after_header : section.end], block or Block())
    return section if rest is not None and not rest.strip() else None


def _before_block(text: bytes, block: Block) -> bytes | None:
    """Take a block from the end of a section's text, whatever its state line says."""
    left = text.replace(b"\r\n", b"\n").rstrip() + b"\n"
    before, state, after = (part.encode() for part in block.parts())
    if not state:
        return _without(left, (before + after).rstrip() + b"\n")
    rest = _without(left, after.rstrip() + b"\n")
    if rest is None:
        return None
    line = rest.rfind(b"\n", 0, max(len(rest) - 1, 0)) + 1
    return _without(rest[:line], before) if rest.startswith(_STATE_LINE, line) else None


def _without(text: bytes, end: bytes) -> bytes | None:
    return text[: len(text) - len(end)] if text.endswith(end) else None
