"""What the journal's reads answer (J54 to J57, J71): values from files, no byte changed.

Rule 1: a missing, legacy or half-broken source gives a bounded answer with warnings, no refusal.
Rule 2: no read writes, waits or takes the lock (J3).
Rule 3: an answer is a function of the bytes, the question and the date; the index speeds it up.
"""

from amux.disk.ground import Ground
from amux.journal.call import cursor
from amux.journal.call.cursor import Question
from amux.journal.call.errand import Errand
from amux.journal.call.readplan import ReadPlan
from amux.journal.remark import Remark
from amux.journal.sessions import statusview
from amux.journal.sessions.answer import Json, put_together
from amux.journal.sessions.scribe import day_path, summary_path
from amux.journal.sessions.summaryview import SummaryView, shown
from amux.journal.sessions.writing import PROJECT_SUMMARY
from amux.journal.store import dayranges, index, window
from amux.journal.store.dayranges import Part, Parts
from amux.journal.store.root import Place, opened
from amux.journal.store.summaryranges import ShapeError
from amux.journal.store.window import Window
from amux.journal.text.day import canonical_id
from amux.journal.text.day import shown as shown_text
from amux.journal.text.insertion import decode, is_closed
from amux.journal.text.status import FILTERS


def memory_status(errand: Errand) -> Json:
    """Tell what is going on: latest rows, open sessions, cards, and what other agents left."""
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        return statusview.status(ground, errand)


def summary_query(errand: Errand) -> Json:
    """Give rows of the SUMMARY, newest first, a page at a time."""
    question = Question(errand.tool, _plan(errand), errand.query)
    wanted, limit = str(errand.arguments["status"]), errand.number("limit")
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        view = SummaryView(ground, errand)
        offset = _offset(errand, question, view.window)
        total, rows = view.select(wanted, since=errand.text("since"), most=offset + limit)
        remarks = view.remarks
    page = [shown(view.data, row) for row in rows[offset:]]
    content: Json = {
        "rows": page,
        "totalMatched": total,
        "truncated": any(row["truncated"] for row in page),
    }
    found = put_together(
        "MemorySummaryQueryV1", errand, view.window, content, remarks, index_receipt=view.receipt
    )
    return found | _pagination(errand, question, view.window, offset, len(page), total)


def session_query(errand: Errand) -> Json:
    """Give sections of one day, or their cards, last in the file first, a page at a time."""
    question = Question(errand.tool, _plan(errand), errand.query)
    date = str(errand.arguments["date"])
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        found, consulted, parts = _day(ground, errand, date)
    offset = _offset(errand, question, found)
    matching = [part for part in reversed(parts.sections) if _matches(errand, part)]
    page: list[Json] = []
    budget = errand.number("maxChars")
    for part in matching[offset : offset + errand.number("limit")]:
        match = _match(errand, date, found.data, part, budget)
        if match is None:
            break
        page.append(match)
        budget -= len(str(match["content"]))
        if match["truncated"]:
            break
    content: Json = {
        "matches": page,
        "totalMatched": len(matching),
        "truncated": any(match["truncated"] for match in page),
    }
    answer = put_together(
        "MemorySessionQueryV1", errand, found, content, parts.remarks,
        index_receipt=consulted.receipt(),
    )  # fmt: skip
    return answer | _pagination(errand, question, found, offset, len(page), len(matching))


def session_read(errand: Errand) -> Json:
    """Give the text of a day, tokens hidden."""
    return _text(errand, day_path(errand.agent, str(errand.arguments["date"])))


def summary_read(errand: Errand) -> Json:
    """Give the text of the agent's SUMMARY, or of the project's."""
    is_project = errand.arguments["layer"] == "project"
    return _text(errand, PROJECT_SUMMARY if is_project else summary_path(errand.agent))


def _day(ground: Ground | None, errand: Errand, date: str) -> tuple[Window, index.Consulted, Parts]:
    """Read a day: from its index where that holds, else from its text."""
    found = window.read(ground, day_path(errand.agent, date))
    target = errand.target
    scope = index.Scope(agent=errand.agent, project=target.project, scope=target.scope, date=date)
    consulted = index.consult(ground, scope, found)
    kept = consulted.partition(dayranges.key(date))
    if kept is not None:
        try:
            return found, consulted, dayranges.read(kept)
        except ShapeError:
            consulted.invalid()
    return found, consulted, dayranges.parts(found.data, is_cut=found.is_cut)


def _matches(errand: Errand, part: Part) -> bool:
    named = errand.text("sessionId")
    return (
        part.state in FILTERS[str(errand.arguments["status"])]
        and (named is None or part.id == canonical_id(named))
        and (part.card is not None or errand.arguments["handoffOnly"] is not True)
    )


def _match(errand: Errand, date: str, data: bytes, part: Part, budget: int) -> Json | None:
    """Spell a section, its text cut to the budget; None where that has no room for any of it."""
    is_card = errand.arguments["handoffOnly"] is True and part.card is not None
    start, end = part.card if is_card and part.card else (part.body, part.end)
    text = shown_text(data[start:end])
    begin = errand.number("contentOffset")
    content = text[begin : begin + budget]
    left = max(0, len(text) - begin - len(content))
    if left and not budget:
        return None
    return {
        "date": date,
        "sessionId": part.id,
        "ordinal": part.ordinal,
        "title": part.title,
        "status": part.status,
        "state": part.state,
        "managed": part.is_managed,
        "hasCard": part.card is not None,
        "content": content,
        "chars": len(text),
        "truncated": left > 0,
        "nextContentOffset": begin + len(content) if left else None,
    }


def _text(errand: Errand, path: str) -> Json:
    """Answer with a part of a file's text (J72)."""
    with opened(Place.of(errand.target, errand.around.uid)) as ground:
        found = window.read(ground, path)
    # A window that lacks the start may begin inside a character, and does inside a line.
    data = found.data[found.data.find(b"\n") + 1 :] if found.is_cut else found.data
    text = shown_text(data)
    start = errand.number("startChar")
    part = text[start : start + errand.number("maxChars")]
    left = max(0, len(text) - start - len(part))
    remarks = []
    if not is_closed(found.data):
        remarks.append(Remark("unterminated-tail"))
    if decode(data)[1]:
        remarks.append(Remark("invalid-utf8"))
    content: Json = {
        "text": part,
        "chars": len(text),
        "truncated": left > 0,
        "nextStartChar": start + len(part) if left else None,
    }
    return put_together(
        "MemoryTextReadV1", errand, found, content, remarks,
        is_document=found.exists and start == 0 and not left,
    ) | {"exists": found.exists}  # fmt: skip


def _plan(errand: Errand) -> ReadPlan:
    if errand.plan is None:
        raise ValueError("a query without its read plan")
    return errand.plan


def _offset(errand: Errand, question: Question, found: Window) -> int:
    text = errand.text("cursor")
    return 0 if text is None else cursor.accept(text, question, source=found.cursor_source)


def _pagination(
    errand: Errand, question: Question, found: Window, offset: int, returned: int, total: int
) -> Json:
    return {
        "pagination": cursor.page(
            question,
            source=found.cursor_source,
            offset=offset,
            returned=returned,
            has_more=offset + returned < total,
            is_partial=found.is_cut,
            is_accepted=errand.text("cursor") is not None,
        )
    }
