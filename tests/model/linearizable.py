"""Is a history of one document explained by some order of its operations?

The search of Wing and Gong with Lowe's memory of visited states: an operation may be put next if
it began before every other one that is still to be put has ended.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

ABSENT = "absent"
NEVER = float("inf")


class Result(NamedTuple):
    """What an operation answered: `value` and `conflict` carry a revision."""

    kind: str
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One operation: when it began and ended, and what it said; no result if nobody knows."""

    began: float
    ended: float
    verb: str
    expected: str = ""
    new: str = ABSENT
    result: Result | None = None


def next_states(state: str, call: Call) -> list[str]:
    """Give the states in which a document may be after a call in this one, given its result."""
    told = call.result
    if call.verb == "get":
        return [state] if told in {None, Result("value", state)} else []
    found = []
    is_gone = call.verb == "forget" and state == ABSENT
    if is_gone and told in {None, Result("gone")}:
        found.append(state)
    if state == call.expected and not is_gone and told in {None, Result("done")}:
        found.append(call.new)
    if state != call.expected and not is_gone and told in {None, Result("conflict", state)}:
        found.append(state)
    if told is None:  # it may never have happened
        found.append(state)
    return list(dict.fromkeys(found))


def is_linearizable(history: list[Call], *, max_nodes: int = 2_000_000) -> bool | None:
    """Decide; None where the search was given up, which a test must count as a failure."""
    calls = sorted(history, key=lambda call: call.began)
    must = sum(1 << index for index, call in enumerate(calls) if call.ended != NEVER)
    stack = [(0, ABSENT)]
    visited = {(0, ABSENT)}
    while stack:
        if len(visited) > max_nodes:
            return None
        done, state = stack.pop()
        if done & must == must:
            return True
        for index in reversed(_possible(calls, done)):
            for after in next_states(state, calls[index]):
                node = (done | 1 << index, after)
                if node not in visited:
                    visited.add(node)
                    stack.append(node)
    return False


def by_brute_force(history: list[Call]) -> bool:
    """Decide by trying every order; for tiny histories."""
    known = [call for call in history if call.ended != NEVER]
    unknown = [call for call in history if call.ended == NEVER]
    for count in range(len(unknown) + 1):
        for happened in itertools.combinations(unknown, count):
            for order in itertools.permutations([*known, *happened]):
                if _keeps_time(order) and _explains(order):
                    return True
    return False


def _possible(calls: list[Call], done: int) -> list[int]:
    """Find the calls that may come next: begun before the first of the rest has ended."""
    found: list[int] = []
    first_end = NEVER
    index = (~done & (done + 1)).bit_length() - 1  # the first that is not done
    while index < len(calls) and calls[index].began <= first_end:
        if not done >> index & 1:
            found.append(index)
            first_end = min(first_end, calls[index].ended)
        index += 1
    return [at for at in found if calls[at].began <= first_end]


def _keeps_time(order: tuple[Call, ...]) -> bool:
    return all(later.ended >= earlier.began for earlier, later in itertools.combinations(order, 2))


def _explains(order: tuple[Call, ...]) -> bool:
    states = {ABSENT}
    for call in order:
        states = {after for state in states for after in next_states(state, call)}
    return bool(states)
