"""Whether what callers saw of one document could have happened one call after the other.

The document is a register of revisions. A history is right when an order of its calls exists in
which each takes effect at one moment between its begin and its end, and every answer is true
there. Calls whose answer was lost may have taken effect or not.

The check goes through begins and ends in the order of time and keeps every situation that is still
possible: the revision, and which of the open calls have already taken effect. It is exact; the
work grows with the calls open at once, not with the length of the history.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ABSENT = "absent"
NEVER = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call on one document and what was answered."""

    kind: str
    """`read`, `put` or `remove`."""
    begun: float
    ended: float
    """`NEVER` where the call may still take effect at any time."""
    expected: str = ""
    new: str = ABSENT
    answer: str | None = None
    """`saw`, `done`, `conflict` or `already_absent`; None where the answer was lost."""
    observed: str = ""
    """The revision in the answer, of `saw` and `conflict`."""
    who: str = ""

    def next_states(self, state: str) -> list[str]:
        """Give the revisions that may stand after this call, if its answer is true at `state`."""
        if self.kind == "read":
            return [state] if self.answer is None or self.observed == state else []
        is_gone = self.kind == "remove" and state == ABSENT
        if self.answer is None:
            return [state] if is_gone or state != self.expected else [state, self.new]
        if self.answer == "already_absent":
            return [state] if is_gone else []
        if self.answer == "conflict":
            is_true = self.observed == state != self.expected and not is_gone
            return [state] if is_true else []
        return [self.new] if state == self.expected and not is_gone else []


def first_impossible(events: Sequence[Event], initial: str = ABSENT) -> Event | None:
    """Find the first call whose answer no order explains; None where the history is right."""
    moments = sorted(
        [(event.begun, 0, number) for number, event in enumerate(events)]
        + [(event.ended, 1, number) for number, event in enumerate(events) if event.ended < NEVER]
    )
    open_calls: set[int] = set()
    possible: set[tuple[str, frozenset[int]]] = {(initial, frozenset())}
    for _, is_end, number in moments:
        if not is_end:
            open_calls.add(number)
            continue
        possible = {
            (state, done - {number})
            for state, done in _reachable(possible, events, open_calls, number)
            if number in done
        }
        open_calls.remove(number)
        if not possible:
            return events[number]
    return None


def _reachable(
    possible: Iterable[tuple[str, frozenset[int]]],
    events: Sequence[Event],
    open_calls: set[int],
    ending: int,
) -> set[tuple[str, frozenset[int]]]:
    """Let open calls take effect in every order, until the ending one has."""
    seen = set(possible)
    waiting = [one for one in seen if ending not in one[1]]
    while waiting:
        state, done = waiting.pop()
        for number in open_calls - done:
            for after in events[number].next_states(state):
                reached = (after, done | {number})
                if reached not in seen:
                    seen.add(reached)
                    if number != ending:
                        waiting.append(reached)
    return seen
