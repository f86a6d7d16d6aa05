"""Read plans and cursors: the vectors, the checks in their order, and what each is bound to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.canonical import digest
from amux.errors import AmuxError
from amux.journal.call import cursor, readplan
from amux.journal.call.cursor import Question
from amux.journal.call.readplan import Asker, ReadPlan
from amux.journal.call.tools import INTENTS, TOOLS
from amux.journal.moment import Moment

ASKER = Asker(active_root="/w/.devcodex/billing", project="billing", scope="project", agent="codex")
SESSION = digest("amux-session:sess-1")
SUMMARY = "memory_summary_query"


def plan(**more: object) -> ReadPlan:
    given = {
        "nonce": b"\x01" * 16,
        "epoch": readplan.first_epoch(SESSION),
        "session_digest": SESSION,
        "now": Moment.at(0.0),
    } | more
    return readplan.new(ASKER, **given)  # type: ignore[arg-type]


def question(**more: object) -> Question:
    given = {
        "tool": SUMMARY,
        "plan": plan(),
        "query": {"limit": 5, "status": "completed"},
    } | more
    return Question(**given)  # type: ignore[arg-type]


@pytest.mark.requirement("J75", "J50", "J51", "J62")
def test_the_vectors_are_reproduced() -> None:
    assert SESSION == "93211895d97cd08bcb3108635e96ecd29f691f8662f82ce6e869c9ac99c055c6"
    assert readplan.first_epoch(SESSION) == "ctx-37e698519fb13dfc"
    assert plan().content_id == ("d82c3d1032016dc3c32c2da5245b76d05f00e857fbb56f9bb216a22caefa0f78")
    text = cursor.issue(question(), source="1" * 64, offset=5)
    assert text == "mc1.5.49710a90d9713dfd.3138bb9bc78df27c.e7e3ff1984b8a0ff"
    assert len(text) == 56


@pytest.mark.requirement("J50")
def test_a_plan_says_what_it_covers_and_the_first_version_says_less() -> None:
    shown = plan(intent="resume", sources=(SUMMARY,)).shown()
    assert shown["schemaVersion"] == "ContextReadPlanV2"
    assert str(shown["planId"]).startswith("plan-")
    assert len(str(shown["planId"])) == 5 + 32
    assert shown["sources"] == ["memory_status", SUMMARY]  # the status is always among them
    first = plan(version=1).shown()
    assert first["schemaVersion"] == "ContextReadPlanV1"
    assert "planContentId" not in first
    assert plan().content_id == plan(nonce=b"\x02" * 16).content_id
    assert plan(intent="resume").content_id != plan().content_id


@pytest.mark.requirement("J53")
@pytest.mark.parametrize("intent", INTENTS)
def test_the_order_of_queries_is_spelled_in_calls_that_can_be_sent(intent: str) -> None:
    rows = readplan.required_queries(intent)
    first = "memory_task_resolve" if intent == "named" else "memory_status"
    assert rows[0]["tool"] == first
    for row in rows:
        tool = TOOLS[str(row["tool"])]
        arguments = row["arguments"]
        assert isinstance(arguments, dict)
        fill = row.get("fill", [])
        assert isinstance(fill, list)
        assert all(tool.field(name) for name in (*arguments, *fill))


@pytest.mark.requirement("J53")
def test_history_is_read_as_resuming_is() -> None:
    assert readplan.required_queries("history") == readplan.required_queries("resume")
    normal = readplan.required_queries("normal")
    assert normal[0]["arguments"] == {"limit": 5}
    assert "only if" in str(normal[1]["when"])


def refused(found: ReadPlan | None, tool: str = SUMMARY, binding: object = None) -> AmuxError:
    with pytest.raises(AmuxError) as caught:
        readplan.require(found, tool, binding, {"project": "billing"})
    return caught.value


@pytest.mark.requirement("J52", "J8")
def test_a_query_needs_a_plan_that_a_status_has_opened() -> None:
    for found in (None, plan()):
        refusal = refused(found)
        assert refusal.details["reason"] == "CONTEXT_BINDING_REQUIRED"
        assert refusal.details["nextCall"] == {
            "tool": "memory_status",
            "arguments": {"project": "billing"},
            "fill": [],
        }
    opened = plan().opened()
    assert readplan.require(opened, SUMMARY, None, {}) is opened
    assert readplan.require(opened, SUMMARY, opened.plan_id, {}) is opened


@pytest.mark.requirement("J52")
def test_another_plan_or_source_is_a_mismatch() -> None:
    opened = plan(sources=("memory_session_query",)).opened()
    assert refused(opened, binding="plan-0").details["reason"] == "CONTEXT_BINDING_MISMATCH"
    found = refused(opened)
    assert found.details["reason"] == "CONTEXT_BINDING_MISMATCH"
    assert found.details["sources"] == ["memory_status", "memory_session_query"]


@pytest.mark.requirement("J62")
@pytest.mark.parametrize(
    "other",
    [
        {"tool": "memory_session_query"},
        {"query": {"limit": 6, "status": "completed"}},
        {"query": {"limit": 5, "status": "completed", "since": "2026-01-01"}},
        {"plan": plan(intent="resume")},
        {"plan": plan(epoch="ctx-0000000000000000")},
        {"plan": plan().replace(asker=ASKER.replace(project="web"))},
        {"plan": plan().replace(asker=ASKER.replace(agent="pi"))},
    ],
)
def test_a_cursor_is_refused_by_every_other_question(other: dict[str, object]) -> None:
    text = cursor.issue(question(), source="1" * 64, offset=5)
    with pytest.raises(AmuxError) as caught:
        cursor.accept(text, question(**other), source="1" * 64)
    assert caught.value.details["reason"] == "MEMORY_CURSOR_BINDING_MISMATCH"


@pytest.mark.requirement("J62")
def test_a_cursor_is_bound_to_the_bytes_and_not_to_the_plans_name() -> None:
    text = cursor.issue(question(), source="1" * 64, offset=5)
    assert cursor.accept(text, question(plan=plan(nonce=b"\x03" * 16)), source="1" * 64) == 5
    for source in ("2" * 64, "absent"):
        with pytest.raises(AmuxError) as caught:
            cursor.accept(text, question(), source=source)
        assert caught.value.details["reason"] == "MEMORY_CURSOR_SOURCE_CHANGED"


@pytest.mark.requirement("J62")
@given(st.integers(1, 1_000_000), st.integers(0, 60), st.characters(codec="ascii"))
def test_a_cursor_with_one_character_changed_is_no_cursor(
    offset: int, place: int, other: str
) -> None:
    text = cursor.issue(question(), source="absent", offset=offset)
    assert cursor.accept(text, question(), source="absent") == offset
    place %= len(text)
    broken = text[:place] + other + text[place + 1 :]
    if broken == text:
        return
    with pytest.raises(AmuxError) as caught:
        cursor.accept(broken, question(), source="absent")
    assert caught.value.details["reason"] == "MEMORY_CURSOR_INVALID"


@pytest.mark.requirement("J62")
@pytest.mark.parametrize(
    ("returned", "has_more", "is_partial", "blocked"),
    [
        (5, True, False, None),
        (5, False, False, None),
        (5, True, True, "canonical-source-partial"),
        (0, True, False, "page-made-no-progress"),
    ],
)
def test_a_page_has_a_cursor_only_where_one_leads_on(
    returned: int, has_more: bool, is_partial: bool, blocked: str | None
) -> None:
    found = cursor.page(
        question(),
        source="1" * 64,
        offset=10,
        returned=returned,
        has_more=has_more,
        is_partial=is_partial,
        is_accepted=True,
    )
    assert found["blockedReason"] == blocked
    assert (found["nextCursor"] is not None) == (has_more and blocked is None)
    if found["nextCursor"]:
        assert cursor.accept(str(found["nextCursor"]), question(), source="1" * 64) == 15
