"""The text of a session as an edit of its day: found or opened, then verified (J39, J40, J74).

Rule 1: a section is named by its id and the start of its token, or it is opened; nobody else's
        section is ever extended.
Rule 2: without a date, a named section is looked for today and yesterday, so that a session which
        goes on after midnight stays whole.
"""

from collections.abc import Sequence

from amux.core import canonical
from amux.core.value import Value
from amux.errors import AmuxError
from amux.journal.call.errand import Errand
from amux.journal.refusals import refuse
from amux.journal.sessions import artifact
from amux.journal.sessions.scribe import Receipt, Scribe, day_path
from amux.journal.sessions.taskpart import TaskPart
from amux.journal.store.files import Edited, Written
from amux.journal.text import day as days
from amux.journal.text import event
from amux.journal.text import section as sections
from amux.journal.text.card import Handoff
from amux.journal.text.day import Section
from amux.journal.text.link import Link
from amux.journal.text.section import NO_INTENT, NO_MESSAGE, NO_TITLE, Block, Opening

TOKEN_BYTES = 32
OWNER_DIGITS = 16  # of the sessionDigest (J39)
UNKNOWN_AGENT = "unknown-agent"


class Named(Value):
    """A section that the caller names."""

    section: str
    token: str
    """All of it, or its start."""
    date: str | None = None
    """YYYYMMDD; None until it was looked for."""


class Text(Value):
    """What became of the text, and the section as it is now."""

    date: str
    section: Section
    before: str
    after: str
    is_opened: bool
    is_repeat: bool
    transaction: Receipt
    index: Receipt


class _Found(Value, kw_only=False):
    """A section in the bytes of its day."""

    section: Section
    before: str
    is_repeat: bool


def named(errand: Errand) -> Named | None:
    """Give the section that a call names, by handle or in the long form; None opens one."""
    date = errand.text("date")
    handle, section = errand.text("section"), errand.text("sessionId")
    if handle is not None:
        section, _, token = handle.rpartition("-")
        return Named(section=days.canonical_id(section) or section, token=token, date=date)
    token_given = errand.text("sessionBinding")
    if section is None or token_given is None:
        return None
    return Named(section=days.canonical_id(section) or section, token=token_given, date=date)


def opening(errand: Errand) -> Opening:
    """Give what a new section says of itself."""
    intent = errand.text("intent")
    if intent is not None:
        event.check_type(intent, may_be_unspecified=True)
    reason = errand.agent_shown.get("reason")
    return Opening(
        stamp=errand.now.stamp,
        token=errand.around.random_bytes(TOKEN_BYTES).hex(),
        owner=errand.session_digest[:OWNER_DIGITS],
        title=errand.text("title") or NO_TITLE,
        intent=intent or NO_INTENT,
        source_message=errand.text("sourceMessage") or NO_MESSAGE,
        unknown_agent=str(reason) if errand.agent == UNKNOWN_AGENT else None,
    )


def date_of(errand: Errand) -> str:
    """Give the day that a call means where nothing has to be looked for: today by default."""
    return errand.text("date") or f"{errand.now.today:%Y%m%d}"


def located(errand: Errand, scribe: Scribe, wanted: Named) -> Named:
    """Find the day of a named section; the first day's refusal is the answer where none has it."""
    if wanted.date is not None:
        return wanted
    first: AmuxError | None = None
    for date in (errand.now.today, errand.now.yesterday):
        at = wanted.replace(date=f"{date:%Y%m%d}")
        data = scribe.look(day_path(errand.agent, at.date or ""))
        if data is None and first is not None:
            continue
        try:
            sections.find_bound(
                days.parse(data or b""), wanted.section, wanted.token, where=errand.where
            )
        except AmuxError as refusal:
            if first is None or first.details["reason"] == "MEMORY_SESSION_NOT_FOUND":
                first = refusal
        else:
            return at
    assert first is not None  # two days were looked at
    raise first


def open_one(errand: Errand, scribe: Scribe, new: Opening, block: Block | None) -> Text:
    """Open a section with its first block, or find the one that the same call opened."""

    def edit(old: bytes | None) -> Edited[_Found]:
        data = old or b""
        known = sections.opened_before(data, days.parse(data), new, block)
        if known is not None:
            return Edited(data, _Found(known, _digest(data, known), is_repeat=True))
        made = sections.open_section(data, new, block)
        return Edited(made.insertion.data, _Found(made.section, canonical.ABSENT, is_repeat=False))

    date = date_of(errand)
    return _text(date, *scribe.write_day(date, edit), is_opened=True)


def extend_one(errand: Errand, scribe: Scribe, wanted: Named, block: Block | None) -> Text:
    """Add a block to a named section; None adds nothing, and finds it all the same."""

    def edit(old: bytes | None) -> Edited[_Found]:
        data = old or b""
        found = sections.find_bound(
            days.parse(data), wanted.section, wanted.token, where=errand.where
        )
        before = _digest(data, found)
        if block is None or sections.is_repeat(data, found, block):
            return Edited(data, _Found(found, before, is_repeat=True))
        made = sections.extend(data, found, block)
        return Edited(made.insertion.data, _Found(made.section, before, is_repeat=False))

    date = wanted.date or date_of(errand)
    return _text(date, *scribe.write_day(date, edit), is_opened=False)


def card(
    errand: Errand,
    scribe: Scribe,
    links: Sequence[Link],
    rendered: Sequence[str],
    tasks: TaskPart | None,
) -> Handoff | None:
    """Give the handoff card of a call: the caller's lines, links with digests, the task's state."""
    given = errand.arguments.get("handoff")
    if not isinstance(given, dict):
        return None
    values = {str(key): str(value) for key, value in given.items()}
    hashed = [(link.target, artifact.digest(scribe.held.ground, link.target)) for link in links]
    if hashed:
        values["artifact-links"] = "; ".join(
            f"{text} sha256:{digest}" for text, (_, digest) in zip(rendered, hashed, strict=True)
        )
    task = values.get("task")
    if task is None:
        return Handoff(values=values)
    if tasks is None:
        raise refuse(
            "TASK_NOT_FOUND",
            "no task of this name is known here",
            hint="resolve the name with memory_task_resolve, or hand off without task",
            task=task,
        )
    standing = tasks.standing(errand, scribe.held, task, artifacts=hashed)
    return Handoff(values={**values, "task": standing.task_id}, state=standing.state)


def _text(date: str, done: Written[_Found], index: Receipt, *, is_opened: bool) -> Text:
    found = done.value
    return Text(
        date=date,
        section=found.section,
        before=found.before,
        after=_digest(done.data, found.section),
        is_opened=is_opened,
        is_repeat=found.is_repeat,
        transaction=done.receipt,
        index=index,
    )


def _digest(data: bytes, section: Section) -> str:
    return canonical.digest(data[section.start : section.end])
