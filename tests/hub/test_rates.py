"""How much one credential may ask: so many calls at once, so many writes a second."""

from contextlib import ExitStack

import pytest

from amux.errors import RateLimited
from amux.hub import rates
from amux.hub.rates import Rates, failure_delay
from tests.support.rooms import BOB, Rooms


@pytest.mark.requirement("M76")
def test_a_credential_has_eight_calls_and_two_searches_at_once() -> None:
    counted = Rates()
    with ExitStack() as calls:
        for is_search in (True, True, *[False] * 6):
            calls.enter_context(counted.call("a", is_search=is_search))
        for is_search in (True, False):
            with pytest.raises(RateLimited) as refused, counted.call("a", is_search=is_search):
                raise AssertionError
            assert refused.value.details["retry_after"] > 0
        with counted.call("b", is_search=True):  # others do not wait for it
            pass
    with ExitStack() as calls:
        calls.enter_context(counted.call("a", is_search=True))
        calls.enter_context(counted.call("a", is_search=True))
        with pytest.raises(RateLimited), counted.call("a", is_search=True):
            raise AssertionError
        calls.enter_context(counted.call("a", is_search=False))


@pytest.mark.requirement("M76")
def test_a_call_that_fails_is_not_counted_any_more() -> None:
    counted = Rates()
    for _ in range(20):
        with pytest.raises(ZeroDivisionError), counted.call("a", is_search=True):
            raise ZeroDivisionError


@pytest.mark.requirement("M76")
def test_a_delegated_credential_writes_60_at_once_and_20_a_second() -> None:
    counted = Rates()
    for _ in range(60):
        counted.write("a", 100.0)
    with pytest.raises(RateLimited) as refused:
        counted.write("a", 100.0)
    assert refused.value.details["retry_after"] == pytest.approx(0.05)
    counted.write("b", 100.0)
    written = 0
    for tick in range(1000):  # ten seconds in steps of 10 ms
        try:
            counted.write("a", 100.0 + tick / 100)
            written += 1
        except RateLimited:
            pass
    assert 195 <= written <= 201
    for _ in range(60):
        counted.write("a", 1000.0)


@pytest.mark.requirement("M76")
def test_many_credentials_do_not_fill_the_memory_of_the_hub() -> None:
    counted = Rates()
    with counted.call("held", is_search=False):
        for number in range(rates.CREDENTIALS_KEPT * 2):
            counted.write(f"t{number}", 1.0)
        assert len(counted._accounts) <= rates.CREDENTIALS_KEPT + 1
        with ExitStack() as calls:
            for _ in range(7):
                calls.enter_context(counted.call("held", is_search=False))
            with pytest.raises(RateLimited), counted.call("held", is_search=False):
                raise AssertionError


@pytest.mark.requirement("M76")
def test_only_who_fails_waits_and_never_long() -> None:
    delays = [failure_delay(number) for number in (1, 2, 10, 100, 10_000)]
    assert delays == sorted(delays)
    assert delays[0] < 0.05
    assert delays[-1] == 1.0


@pytest.mark.requirement("M76")
def test_the_owners_processes_are_not_one_credential(hub: Rooms) -> None:
    gate = hub.gate(hub.audit())
    with ExitStack() as calls:
        for _ in range(40):
            calls.enter_context(gate.counted(hub.actor(), is_search=True))
    for actor in (hub.actor(BOB), hub.actor(None, hub.token())):
        with ExitStack() as calls:
            calls.enter_context(gate.counted(actor, is_search=True))
            calls.enter_context(gate.counted(actor, is_search=True))
            with pytest.raises(RateLimited):
                calls.enter_context(gate.counted(actor, is_search=True))


@pytest.mark.requirement("M76")
def test_only_delegated_credentials_have_a_limit_of_writes(hub: Rooms) -> None:
    gate = hub.gate(hub.audit())
    given = hub.bind(hub.actor(BOB))
    agent = hub.actor(BOB, str(given["credential"]), binding=str(given["binding"]))

    def write(actor: object) -> None:
        with gate.writing(actor, "upsert", "a.md", "absent", "f" * 64):
            pass

    for actor in (hub.actor(), hub.actor(BOB)):
        for _ in range(70):
            write(actor)
    for _ in range(60):
        write(agent)
    with pytest.raises(RateLimited):
        write(agent)
