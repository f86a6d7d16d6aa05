from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.journal.tasks import resolve
from amux.journal.tasks.resolve import Candidate, find
from amux.journal.text.namekey import name_key

UUIDS = [f"{n:08x}-0000-8000-8000-000000000000" for n in range(100)]


def candidate(
    name: str,
    *,
    number: int = 0,
    aliases: Sequence[str] = (),
    status: str = "active",
    project: str = "billing",
    kind: str = "bugs",
    has_id: bool = True,
    problem: str | None = None,
) -> Candidate:
    return Candidate(
        task_id=UUIDS[number] if has_id else None,
        display_name=name,
        aliases=tuple(aliases),
        project=project,
        kind=kind,
        segment=f"{name}-{number}",
        problem=problem,
        look_up=lambda: status,
    )


@pytest.mark.requirement("T40")
def test_the_first_tier_with_a_hit_decides() -> None:
    done = candidate("Totals", number=1, status="completed")
    called = candidate("Sums", number=2, aliases=["Totals"])
    named = candidate("totals", number=3)
    assert find("TOTALS", [done, called, named]).candidate is named
    assert find("TOTALS", [done, called]).candidate is called
    assert find("TOTALS", [done]).candidate is done
    by_id = find(UUIDS[1].upper(), [done, called, named])
    assert (by_id.candidate, by_id.matched_by) == (done, "taskId")
    assert find("totals", [called]).matched_by == "alias"
    assert find("totals", [named]).matched_by == "displayName"


@pytest.mark.requirement("T40")
def test_unknown_status_stands_in_the_last_tier() -> None:
    odd = candidate("Totals", number=1, status="unknown")
    called = candidate("Sums", number=2, aliases=["Totals"])
    assert find("totals", [odd, called]).candidate is called


@pytest.mark.requirement("T41")
@pytest.mark.parametrize(
    ("status", "outcome", "code"),
    [
        ("active", "resolved-active", None),
        ("completed", "completed", "TASK_COMPLETED"),
        ("rejected", "rejected", "TASK_REJECTED"),
        ("cancelled", "rejected", "TASK_REJECTED"),
        ("failed", "rejected", "TASK_REJECTED"),
        ("unknown", "unknown-status", "TASK_STATUS_UNKNOWN"),
    ],
)
def test_a_status_has_its_outcome(status: str, outcome: str, code: str | None) -> None:
    found = find("a", [candidate("A", status=status)])
    assert (found.outcome, found.code) == (outcome, code)
    assert found.candidate is not None


@pytest.mark.requirement("T41")
def test_a_damaged_identity_is_told_before_the_status() -> None:
    found = find("a", [candidate("A", status="completed", problem="identityDigest")])
    assert (found.outcome, found.code) == ("stale-confirmation", "TASK_IDENTITY_INVALID")


@pytest.mark.requirement("T41")
def test_several_are_ambiguous_in_order_and_without_paths() -> None:
    given = [
        candidate("Totals", number=4, project="web"),
        candidate("totals", number=3, kind="requirements"),
        candidate("TOTALS", number=2),
        candidate("Totals", number=1),
        *(candidate("Totals", number=n, project="zoo") for n in (7, 8, 9)),
    ]
    found = find("totals", given)
    assert (found.outcome, found.code, found.candidate) == ("ambiguous", "TASK_AMBIGUOUS", None)
    assert [one.task_id for one in found.several] == [UUIDS[n] for n in (1, 2, 3, 4, 7)]
    for one in found.several:
        assert set(one.listed()) == {"displayName", "project", "kind", "status", "taskId"}


@pytest.mark.requirement("T41")
def test_two_directories_of_one_id_are_ambiguous() -> None:
    copies = [candidate("A", number=1), candidate("A", number=1, kind="requirements")]
    assert find(UUIDS[1], copies).outcome == "ambiguous"


@pytest.mark.requirement("T42")
def test_suggestions_contain_the_name_first_and_then_come_near_it() -> None:
    near, nearer, far = "expert totols", "export totols", "something else"
    names = [near, nearer, far, "old export totals", "totals"]
    found = find("Export totals", [candidate(name, number=n) for n, name in enumerate(names)])
    assert [one.display_name for one in found.suggestions] == [
        "old export totals", "totals", nearer, near,
    ]  # fmt: skip
    assert (found.outcome, found.code) == ("not-found", "TASK_NOT_FOUND")


@pytest.mark.requirement("T42")
def test_a_suggestion_may_differ_by_thirty_five_in_a_hundred() -> None:
    seven, eight = "a" * 13 + "b" * 7, "a" * 12 + "b" * 8
    assert find("a" * 20, [candidate(seven)]).suggestions
    assert not find("a" * 20, [candidate(eight)]).suggestions
    long = "x" * 200
    assert find(long + "y" * 90, [candidate(long + "z" * 95)]).suggestions  # cut at 200


@pytest.mark.requirement("T42")
def test_at_most_five_are_suggested() -> None:
    many = [candidate(f"totals {n}", number=n) for n in range(9)]
    assert [one.task_id for one in find("totals", many).suggestions] == UUIDS[:5]


@pytest.mark.requirement("T39")
@pytest.mark.parametrize(
    ("folders", "size", "is_everywhere", "is_blocked"),
    [
        (2_000, 16 << 20, False, False), (2_001, 0, False, True), (1, (16 << 20) + 1, False, True),
        (8_000, 64 << 20, True, False), (8_001, 0, True, True), (1, (64 << 20) + 1, True, True),
    ],
)  # fmt: skip
def test_a_search_has_its_bounds(
    folders: int, size: int, is_everywhere: bool, is_blocked: bool
) -> None:
    assert resolve.blocked(folders, size, is_everywhere=is_everywhere) is is_blocked


@pytest.mark.requirement("T41")
def test_a_search_that_is_too_large_names_nobody() -> None:
    found = resolve.scale_blocked()
    assert (found.outcome, found.code) == ("scale-blocked", "TASK_INDEX_SCALE_BLOCKED")
    assert found.candidate is None
    assert not found.several
    assert not found.suggestions


names = st.sampled_from(
    ["Totals", "ＴＯＴＡＬＳ", "导出总额", "導出", "İş", "iş", "日本語 タスク", "total"]
)


@pytest.mark.requirement("T40", "T41")
@given(
    st.lists(
        st.tuples(names, st.lists(names, max_size=2), st.sampled_from(["active", "completed"])),
        max_size=8,
    ),
    names,
    st.randoms(use_true_random=False),
)
def test_order_of_directories_changes_no_answer(
    rows: list[tuple[str, list[str], str]], asked: str, chance: object
) -> None:
    made = [
        candidate(name, number=n, aliases=aliases, status=status)
        for n, (name, aliases, status) in enumerate(rows)
    ]
    shuffled = list(made)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = find(asked, made), find(asked, shuffled)
    assert one == other
    # By the book: whoever has the key, active ones first.
    having = [x for x in made if name_key(asked) in (x.key, *x.alias_keys)]
    assert (one.outcome == "not-found") is (not having)
    if one.candidate is not None and any(x.status == "active" for x in having):
        assert one.candidate.status == "active"


@pytest.mark.requirement("T42")
def test_a_name_without_letters_suggests_nobody() -> None:
    assert find("\u3000", [candidate("a")]).suggestions == ()
