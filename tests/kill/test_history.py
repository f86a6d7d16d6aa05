"""The judge of histories is right itself: against brute force, and on broken registers."""

import itertools
import random
from collections.abc import Sequence

import pytest

from tests.support.history import ABSENT, NEVER, Event, first_impossible


def brute_force(events: Sequence[Event]) -> bool:
    """Try every order of every subset that holds all ended calls."""
    ended = [number for number, event in enumerate(events) if event.ended < NEVER]
    lost = [number for number, event in enumerate(events) if event.ended == NEVER]
    for count in range(len(lost) + 1):
        for taken in itertools.combinations(lost, count):
            for order in itertools.permutations([*ended, *taken]):
                if not in_time(events, order):
                    continue
                states = {ABSENT}
                for number in order:
                    states = {new for old in states for new in events[number].next_states(old)}
                if states:
                    return True
    return False


def in_time(events: Sequence[Event], order: Sequence[int]) -> bool:
    return not any(
        events[later].ended < events[sooner].begun
        for at, sooner in enumerate(order)
        for later in order[at + 1 :]
    )


def any_event(chance: random.Random) -> Event:
    begun = chance.random() * 10
    kind = chance.choice(["read", "put", "remove"])
    expected, new = chance.choice([ABSENT, "a", "b"]), ABSENT
    answers = {"read": ["saw"], "put": ["done", "conflict"]}.get(
        kind, ["done", "conflict", "already_absent"]
    )
    if kind == "put":
        new = chance.choice("ab")
    is_lost = chance.random() < 0.2
    return Event(
        kind=kind,
        begun=begun,
        ended=NEVER if is_lost and chance.random() < 0.5 else begun + chance.random() * 6,
        expected=expected,
        new=new,
        answer=None if is_lost else chance.choice(answers),
        observed=chance.choice([ABSENT, "a", "b"]),
    )


def simulated(seed: int, *, fault: str = "", calls: int = 150, callers: int = 5) -> list[Event]:
    """Simulate a register with concurrent callers; `fault` breaks it now and then."""
    chance = random.Random(seed)
    free_at = [chance.random() for _ in range(callers)]
    planned = []
    for number in range(calls):
        who = min(range(callers), key=free_at.__getitem__)
        begun = free_at[who]
        ended = begun + chance.expovariate(1)
        planned.append((begun + (ended - begun) * chance.random(), begun, ended, who, number))
        free_at[who] = ended + 0.01
    state, before = ABSENT, ABSENT
    known = [ABSENT] * callers
    events = []
    for _, begun, ended, who, number in sorted(planned):
        is_faulty = chance.random() < 0.1
        is_lost = chance.random() < 0.02
        kind = chance.choice(["read", "read", "put", "put", "remove"])
        expected, new = known[who], f"r{number}" if kind == "put" else ABSENT
        observed = state
        if kind == "read":
            answer = "saw"
            observed = before if is_faulty and fault == "stale read" else state
        elif kind == "remove" and state == ABSENT:
            answer = "already_absent"
        elif state == expected or (is_faulty and fault == "lost update"):
            answer = "done"
            if not (is_faulty and fault == "lost write"):
                before, state = state, new
            observed = new
        else:
            answer = "conflict"
        known[who] = observed if answer != "already_absent" else ABSENT
        events.append(
            Event(
                kind=kind,
                begun=begun,
                ended=NEVER if is_lost else ended,
                expected=expected,
                new=new,
                answer=None if is_lost else answer,
                observed=observed,
            )
        )
    return events


def test_the_judge_agrees_with_brute_force_on_small_histories() -> None:
    chance = random.Random(1)
    verdicts = []
    for _ in range(600):
        events = [any_event(chance) for _ in range(chance.randrange(1, 6))]
        is_right = first_impossible(events) is None
        assert is_right == brute_force(events), events
        verdicts.append(is_right)
    assert 100 < sum(verdicts) < 500


def test_a_register_that_works_is_found_right() -> None:
    for seed in range(5):
        assert first_impossible(simulated(seed)) is None


@pytest.mark.parametrize("fault", ["stale read", "lost update", "lost write"])
def test_a_register_that_fails_now_and_then_is_found_out(fault: str) -> None:
    found = [first_impossible(simulated(seed, fault=fault)) for seed in range(10)]
    assert sum(event is not None for event in found) >= 8
