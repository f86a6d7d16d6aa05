import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amux.errors import AmuxError
from amux.journal.ledger import ledger as ledgers
from amux.journal.ledger import record
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.state import RuntimeState
from amux.journal.moment import Moment
from amux.journal.store.root import Place, hold
from amux.journal.tasks import retention, route
from amux.journal.tasks.route import Hint

NOW = Moment(datetime(2026, 3, 14, 1, 20, tzinfo=UTC))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(base=str(tmp_path), steps=(".devcodex",), uid=os.geteuid())


def writing(place: Place, act: Callable[[Ledger], None]) -> None:
    hold(place, wait_ms=1000, act=lambda held: act(Ledger(RuntimeState.of(held))))


def put(ledger: Ledger, kind: str, key: str, body: dict[str, object]) -> None:
    ledger.change(None, record.first(kind, key, body))


def age(place: Place, name: str, days: float) -> None:
    path = Path(place.base) / ".devcodex/.runtime-state/ledger" / name
    at = (NOW.local - timedelta(days=days)).timestamp()
    os.utime(path, (at, at))


def expiring(days_ago: float) -> dict[str, object]:
    return {"expiresAt": NOW.later(timedelta(days=-days_ago)).iso}


@pytest.mark.requirement("T9")
def test_a_request_is_dropped_a_week_after_it_expired_with_its_use(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        for key, days in (("old", 7.01), ("young", 6.99)):
            put(ledger, "ingress", key, expiring(days))
            put(ledger, "use", key, {"taskId": "none", "ingressRef": key})
            age(place, f"ingress/{key}.json", days + 1)
        put(ledger, "ingress", "touched", expiring(30))
        retention.drop_requests(ledger, NOW)
        assert ledger.keys("ingress") == ["touched", "young"]
        assert ledger.keys("use") == ["young"]

    writing(place, act)


@pytest.mark.requirement("T9")
@pytest.mark.parametrize(("rests_on", "is_kept"), [("old", True), ("other", False)])
def test_a_request_on_which_an_admission_rests_is_kept(
    place: Place, rests_on: str, is_kept: bool
) -> None:
    def act(ledger: Ledger) -> None:
        put(ledger, "ingress", "old", expiring(30))
        put(ledger, "use", "old", {"taskId": "t", "ingressRef": "old"})
        put(ledger, "task", "t", {"admission": {"ingressRef": rests_on}})
        age(place, "ingress/old.json", 31)
        retention.drop_requests(ledger, NOW)
        assert (ledger.keys("ingress") == ["old"]) is is_kept
        assert (ledger.keys("use") == ["old"]) is is_kept

    writing(place, act)


@pytest.mark.requirement("T9")
def test_a_request_whose_task_is_damaged_is_kept(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        put(ledger, "ingress", "old", expiring(30))
        put(ledger, "use", "old", {"taskId": "t", "ingressRef": "old"})
        put(ledger, "task", "t", {})
        task = Path(place.base) / ".devcodex/.runtime-state/ledger/task/t.json"
        task.write_bytes(b"{")
        age(place, "ingress/old.json", 31)
        retention.drop_requests(ledger, NOW)
        assert ledger.keys("ingress") == ["old"]

    writing(place, act)


@pytest.mark.requirement("T9")
def test_a_session_that_owns_nothing_is_dropped_after_a_month(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        for key, days in (("idle", 31), ("owner", 31), ("young", 29)):
            put(ledger, "session", key, {})
            age(place, f"session/{key}.json", days)
        put(ledger, "task", "t", {"owner": {"status": "active", "sessionDigest": "owner"}})
        retention.drop_sessions(ledger, NOW)
        assert ledger.keys("session") == ["owner", "young"]

    writing(place, act)


@pytest.mark.requirement("T9", "T13")
def test_only_hints_that_ended_make_room(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        for key, state, hours in (
            ("live", "live", 1),
            ("ended", "live", -1),
            ("off", "unbound", 1),
        ):
            hint = Hint(
                session_digest=key, project="p", project_root_identity_digest="r", task_id="t",
                route_revision=1, state=state, trigger=route.TASK,
                expires_at=NOW.later(timedelta(hours=hours)).iso,
            )  # fmt: skip
            entry = route.entry(hint)
            assert entry is not None
            put(ledger, "route", key, entry)
        retention.drop_routes(ledger, NOW)
        assert ledger.keys("route") == ["live"]

    writing(place, act)


@pytest.mark.requirement("T9", "T13")
def test_a_new_hint_lets_those_go_that_were_written_a_day_ago(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        for key, hours in (("old", -1), ("long", 1)):
            hint = Hint(
                session_digest=key, project="p", project_root_identity_digest="r", task_id="t",
                route_revision=1, state=route.LIVE, trigger=route.TASK,
                expires_at=NOW.later(timedelta(hours=hours)).iso,
            )  # fmt: skip
            entry = route.entry(hint)
            assert entry is not None
            put(ledger, "route", key, entry)
            age(place, f"route/{key}.json", 2)
        put(ledger, "route", "damaged", {})
        retention.drop_old_routes(ledger, NOW)
        assert ledger.keys("route") == ["damaged", "long"]

    writing(place, act)


@pytest.mark.requirement("T9")
def test_the_oldest_closed_plans_of_a_task_are_dropped(place: Place) -> None:
    def act(ledger: Ledger) -> None:
        for number in range(6):
            closed = {"taskId": "t", "closedAt": f"2026-03-1{number}"}
            put(ledger, "child", f"c{number}", closed)
        put(ledger, "child", "open", {"taskId": "t", "closedAt": None})
        put(ledger, "child", "other", {"taskId": "u", "closedAt": "2020"})
        retention.drop_plans(ledger, "t")
        assert ledger.keys("child") == ["c2", "c3", "c4", "c5", "open", "other"]

    writing(place, act)


@pytest.mark.requirement("T9")
def test_a_full_ledger_refuses_new_requests_after_it_made_room(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ledgers.MAX_RECORDS == 20_000
    monkeypatch.setattr(retention, "MAX_RECORDS", 3)

    def act(ledger: Ledger) -> None:
        for key in ("a", "b"):
            put(ledger, "ingress", key, expiring(0))
        retention.require_room(ledger, NOW, adding=1)
        with pytest.raises(AmuxError) as refused:
            retention.require_room(ledger, NOW, adding=2)
        assert refused.value.code == "quota_exceeded"
        assert refused.value.details["reason"] == "MEMORY_LEDGER_FULL"
        put(ledger, "session", "idle", {})
        age(place, "session/idle.json", 31)
        retention.require_room(ledger, NOW, adding=1)
        assert ledger.keys("session") == []
        monkeypatch.setattr(retention, "FEW_TASKS", -1)
        put(ledger, "session", "idle", {})
        age(place, "session/idle.json", 31)
        retention.require_room(ledger, NOW, adding=1)
        assert ledger.keys("session") == []

    writing(place, act)
