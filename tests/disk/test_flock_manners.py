import pytest

from amux.disk import flock
from amux.disk.flock import Manners


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(flock.time, "sleep", found.append)
    return found


@pytest.mark.requirement("J25", "TP6")
def test_who_has_just_had_a_lock_that_others_want_lets_them_go_first(pauses: list[float]) -> None:
    manners = Manners()
    manners.waited()
    manners.released()
    manners.before_asking(2_000)
    (pause,) = pauses
    assert 0.005 <= pause <= 0.025


@pytest.mark.requirement("J25")
def test_who_is_alone_never_pauses(pauses: list[float]) -> None:
    manners = Manners()
    manners.before_asking(2_000)
    manners.released()
    manners.before_asking(2_000)
    assert pauses == []
    manners.waited()
    assert Manners().before_asking(2_000) is None
    assert pauses == []


@pytest.mark.requirement("J25")
def test_who_may_not_wait_does_not(pauses: list[float]) -> None:
    manners = Manners()
    manners.waited()
    manners.released()
    manners.before_asking(0)
    assert pauses == [0]
