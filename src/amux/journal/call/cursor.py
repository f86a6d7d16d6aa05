"""A place in the answers to one question about one file (J62).

Rule 1: a cursor is bound to its tool, target, plan, context and query, and to the file's bytes;
        a refused one never becomes page one.
Rule 2: it proves by its own digest that it came whole; it is no secret and grants nothing.
Rule 3: the index plays no part in it.
"""

import re
from collections.abc import Mapping

from amux.core.canonical import digest
from amux.core.value import Value
from amux.journal.call.readplan import ReadPlan
from amux.journal.refusals import refuse

PREFIX = "mc1"
OFFSET_MAX = 1_000_000
_SHAPE = re.compile(r"mc1\.([1-9][0-9]{0,6})\.([0-9a-f]{16})\.([0-9a-f]{16})\.([0-9a-f]{16})")


class Question(Value, kw_only=False):
    """What a cursor is bound to: a tool, a plan, and the query with its limit."""

    tool: str
    plan: ReadPlan
    query: Mapping[str, object]

    def binding(self) -> str:
        """Name it by the first 16 digits of its digest."""
        asker = self.plan.asker
        target = {
            "activeRoot": asker.active_root,
            "agent": asker.agent,
            "project": asker.project,
            "scope": asker.scope,
        }
        return digest(
            {
                "contextEpoch": self.plan.epoch,
                "planContentId": self.plan.content_id,
                "query": digest(dict(self.query)),
                "target": digest(target),
                "tool": self.tool,
            }
        )[:16]


def issue(question: Question, *, source: str, offset: int) -> str:
    """Spell the cursor to the item at `offset`; `source` is the file's SHA-256, or `absent`."""
    text = f"{PREFIX}.{offset}.{question.binding()}.{_source(source)}"
    return f"{text}.{digest(text)[:16]}"


def accept(text: str, question: Question, *, source: str) -> int:
    """Give the offset of a cursor that belongs to this question and these bytes, or refuse it."""
    found = _SHAPE.fullmatch(text)
    body = text.rpartition(".")[0]
    if found is None or int(found[1]) > OFFSET_MAX or digest(body)[:16] != found[4]:
        raise refuse(
            "MEMORY_CURSOR_INVALID",
            "this is no cursor",
            hint="send nextCursor as it came, or leave cursor out to begin anew",
        )
    if found[2] != question.binding():
        raise refuse(
            "MEMORY_CURSOR_BINDING_MISMATCH",
            "the cursor belongs to another question, plan or context",
            hint="repeat the call without cursor",
        )
    if found[3] != _source(source):
        raise refuse(
            "MEMORY_CURSOR_SOURCE_CHANGED",
            "the file changed since the cursor was issued",
            hint="repeat the call without cursor",
        )
    return int(found[1])


def page(
    question: Question,
    *,
    source: str,
    offset: int,
    returned: int,
    has_more: bool,
    is_partial: bool,
    is_accepted: bool,
) -> dict[str, object]:
    """Describe one page, with the cursor to the next one where there may be one."""
    blocked = None
    if has_more and is_partial:
        blocked = "canonical-source-partial"
    elif has_more and not returned:
        blocked = "page-made-no-progress"
    return {
        "schemaVersion": "MemoryPaginationV1",
        "cursorAccepted": is_accepted,
        "returned": returned,
        "hasMore": has_more,
        "sourceComplete": not is_partial,
        "nextCursor": issue(question, source=source, offset=offset + returned)
        if has_more and blocked is None
        else None,
        "blockedReason": blocked,
    }


def _source(name: str) -> str:
    # `s` is the start of the digest of the hex text, so that `absent` needs no case of its own.
    return digest(name)[:16]
