"""What an index keeps gives the answers that a parse gives, also carried over a row (J58, J61)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amux.core import canonical
from amux.journal.store import dayranges, summaryranges
from amux.journal.store.summaryranges import CURRENT, STATUS, Newest, Overview, ShapeError
from amux.journal.text import event, summary
from amux.journal.text.status import FILTERS

from .test_day import BYTES as DAYS
from .test_summary import ATOMS, BYTES, HEAD

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["2026-03-14", "2026-03-15", "2026-04-01"]),
        st.sampled_from(["01", "02", "x"]),
        st.sampled_from("🔄✅⛔"),
    ),
    max_size=8,
)


def stored(data: bytes) -> dict[str, Any]:
    """Give all partitions as an index has them: through canonical JSON."""
    found = {key: canonical.encode(data) for key, data in summaryranges.partitions(data).items()}
    return {key: json.loads(each) for key, each in found.items()}


def require_equal_answers(data: bytes, kept: dict[str, Any], *, fewest: int) -> None:
    found = summary.parse(data)
    assert Overview.read(kept[STATUS]) == Overview.of(found, data)
    newest = Newest.read(kept[CURRENT])
    for wanted in FILTERS:
        for since in (None, "2026-03-15"):
            expected = summaryranges.select(found, wanted, since=since, most=fewest)
            assert newest.select(data, wanted, since=since, most=fewest) in (expected, None)
    for month in {row.date[:7] for row in found.rows if row.is_canonical}:
        events = summaryranges.read_month(kept[summaryranges.month_key(month)])
        assert events == summaryranges.month(found, month)


@pytest.mark.requirement("J58", "J61", "JP9")
@given(BYTES, st.integers(1, 60))
def test_kept_places_answer_as_a_parse_does(data: bytes, most: int) -> None:
    kept = stored(data)
    require_equal_answers(data, kept, fewest=most)
    newest = Newest.read(kept[CURRENT])
    assert newest.select(data, "all", since=None, most=most) is not None


@pytest.mark.requirement("J58", "J61")
@given(st.lists(st.sampled_from(ATOMS[1:9]), max_size=8).map("".join), ROWS)
def test_partitions_carried_over_rows_answer_as_new_ones_do(
    text: str, rows: list[tuple[str, str, str]]
) -> None:
    data = (HEAD + text).encode()
    kept = stored(data)
    for day, name, state in rows:
        cells = [day, name, "fix", "z", "—", "—", state]
        made = event.append(data, cells, agent="a", project="p")
        carried = summaryranges.after_row(made.data, len(data), kept.get)
        kept = (
            stored(made.data)
            if carried is None
            else kept | {key: json.loads(canonical.encode(each)) for key, each in carried.items()}
        )
        assert carried is not None or not made.data[len(data) :].startswith(b"| 2026")
        data = made.data
        require_equal_answers(data, kept, fewest=20)


@pytest.mark.slow
@pytest.mark.requirement("J58", "J61")
@settings(max_examples=8, deadline=None)
@given(st.randoms(use_true_random=False))
def test_more_rows_than_are_kept_are_carried_or_told_to_be_too_many(chance: Any) -> None:
    data, kept = HEAD.encode(), stored(HEAD.encode())
    for _ in range(200):
        cells = [
            "2026-03-14",
            f"{chance.randint(1, 90):02d}",
            "fix",
            "z",
            "—",
            "—",
            chance.choice("🔄🔄✅⛔"),
        ]
        made = event.append(data, cells, agent="a", project="p").data
        carried = summaryranges.after_row(made, len(data), kept.get)
        kept = stored(made) if carried is None else kept | carried
        data = made
    kept = json.loads(canonical.encode(kept))
    require_equal_answers(data, kept, fewest=5)
    require_equal_answers(data, kept, fewest=50)


@pytest.mark.requirement("J58")
def test_what_cannot_be_carried_is_made_anew() -> None:
    row = "| 2026-03-14 | 01 | fix | a | — | — | 🔄 |\n"
    cases = {
        HEAD + "x": row,  # closing the last line changed it
        HEAD + "# h\n": HEAD + row,
        HEAD: row + row,
        HEAD + row: "| 2026-02-30 | 01 | fix | a | — | — | 🔄 |\n",
        HEAD + row + row: "| 2026-03-14 | 01 | fix | a | b | — | — | 🔄 |\n",
    }
    for old, added in cases.items():
        data = (old + added).encode()
        assert summaryranges.after_row(data, len(old.encode()), stored(old.encode()).get) is None


@pytest.mark.requirement("J58", "J61")
def test_of_two_states_no_older_row_is_taken_for_the_next() -> None:
    rows = [
        f"| 2026-03-14 | {n} | fix | a | — | — | {'⛔' if n == 1 else '🔄'} |\n"
        for n in range(1, 62)
    ]
    data = (HEAD + "".join(rows)).encode()
    newest = Newest.read(stored(data)[CURRENT])
    assert newest.select(data, "unresolved", since=None, most=51) is None
    expected = summaryranges.select(summary.parse(data), "unresolved", since=None, most=50)
    assert newest.select(data, "unresolved", since=None, most=50) == expected


@pytest.mark.requirement("J58", "J59")
def test_what_is_carried_from_a_broken_index_is_made_anew() -> None:
    row = "| 2026-03-14 | 01 | fix | a | — | — | 🔄 |\n"
    old, data = (HEAD + row).encode(), (HEAD + row + row).encode()
    kept = stored(old)
    for key in kept:
        for broken in (None, {}, {"rows": "?"}):
            spoilt = kept | {key: broken}
            carried = summaryranges.after_row(data, len(old), spoilt.get)
            assert carried is None or (key, broken) == ("summary:2026-03", None)


@pytest.mark.requirement("J58")
def test_too_few_known_open_rows_are_told() -> None:
    rows = "".join(f"| 2026-03-14 | {n} | fix | a | — | — | 🔄 |\n" for n in range(1, 80))
    data = (HEAD + rows).encode()
    kept = stored(data)
    newest = Newest.read(kept[CURRENT])
    assert newest.select(data, "active", since="2026-01-01", most=5) is None
    assert newest.select(data, "active", since=None, most=51) is None
    assert newest.select(data, "completed", since="2026-01-01", most=5) == (0, [])
    for n in range(79, 49, -1):  # finish what is known, one by one
        cells = ["2026-03-14", str(n), "fix", "a", "—", "—", "✅"]
        made = event.append(data, cells, agent="a", project="p").data
        carried = summaryranges.after_row(made, len(data), kept.get)
        assert carried is not None
        kept, data = kept | json.loads(canonical.encode(carried)), made
    cells = ["2026-03-14", "49", "fix", "a", "—", "—", "✅"]
    made = event.append(data, cells, agent="a", project="p").data
    assert summaryranges.after_row(made, len(data), kept.get) is None


@pytest.mark.requirement("J58", "J61")
@given(DAYS)
def test_kept_sections_answer_as_a_parse_does(data: bytes) -> None:
    kept = json.loads(canonical.encode(dayranges.partition(data)))
    assert dayranges.read(kept) == dayranges.parts(data)
    assert dayranges.key("20260314") == "daily:20260314"


WRONG = [None, [], {}, {"lines": 1}, "x"]
PLACES = [[1, 2], ["a", 1, 2], None]


@pytest.mark.requirement("J60")
@pytest.mark.parametrize(
    "data", [*WRONG, {"rows": "1 2 3 someday k"}, {"rows": "1"}, {"rows": "x 2 3 active k"}]
)
def test_a_month_of_another_shape_is_none_of_ours(data: object) -> None:
    with pytest.raises(ShapeError):
        summaryranges.read_month(data)


@pytest.mark.requirement("J60")
def test_data_of_another_shape_is_none_of_ours() -> None:
    good = stored((HEAD + "x\n" + "| 2026-03-14 | 1 | fix | a | — | — | ✅ |\n").encode())
    bad: list[Any] = [*WRONG]
    bad += [good[STATUS] | {key: [value]} for key in ("latest", "open") for value in PLACES]
    bad += [good[STATUS] | {"conflicts": [each]} for each in ([], ["k", "someday"], 1)]
    bad += [good[STATUS] | {"remarks": [1]}, good[STATUS] | {"counts": {}}]
    for data in bad:
        with pytest.raises(ShapeError):
            Overview.read(data)
    for data in [*WRONG, good[CURRENT] | {"all": {"count": "1", "places": []}}]:
        with pytest.raises(ShapeError):
            Newest.read(data)
    section = [1, "01", "t", None, "active", True, 1, 2, 3, None]
    days: list[Any] = [*WRONG, {"sections": [1], "remarks": []}, {"sections": [], "remarks": [1]}]
    days += [{"sections": [[*section[:4], "x", *section[5:]]], "remarks": []}]
    days += [{"sections": [[*section[:9], [1]]], "remarks": []}]
    for data in days:
        with pytest.raises(ShapeError):
            dayranges.read(data)
    assert dayranges.read({"sections": [section], "remarks": []}).sections[0].id == "01"
