"""Whether a fence held, by what processes were answered and by the ledger; no code of ours.

Rule 1: a call that was answered happened between its start and its end, by one clock for all.
Rule 2: of one commit there is one story: sequence, generation, owner and session agree wherever
        two tell of it.
Rule 3: once an answer told of a generation, no call that starts later is taken for an older one.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True)
class Told:
    """One call that was answered with a receipt."""

    start: int
    end: int
    what: str
    session: str
    quoted: str | None
    owner: str | None
    transition: str | None
    generation: int
    sequence: int
    is_replayed: bool


@dataclass
class Verdict:
    """What a check found."""

    violations: list[str] = field(default_factory=list)
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: int = 0

    def require(self, is_so: bool, words: str) -> None:
        if not is_so:
            self.violations.append(words)


def read(logs: list[Path], verdict: Verdict) -> list[Told]:
    """Read what every process told, and count what was refused or never answered."""
    found = []
    for log in logs:
        asked: dict[int, dict[str, object]] = {}
        for line in log.read_bytes().split(b"\n"):
            try:
                told = json.loads(line)
            except ValueError:  # its process was killed while it wrote
                continue
            if "end" not in told:
                asked[told["call"]] = told
                continue
            before = asked.pop(told["call"])
            if told["code"]:
                verdict.refused[f"{told['code']}/{told['reason']}"] += 1
                continue
            verdict.taken[str(told["transition"] or before["what"])] += 1
            found.append(
                Told(
                    start=told["call"],
                    end=told["end"],
                    what=str(before["what"]),
                    session=str(before["session"]),
                    quoted=_text(before["owner"]),
                    owner=_text(told["owner"]),
                    transition=_text(told["transition"]),
                    generation=told["generation"],
                    sequence=told["sequence"],
                    is_replayed=told["replayed"],
                )
            )
        verdict.unknown += len(asked)
    return found


def check(logs: list[Path], record: Path) -> Verdict:
    """Judge a fight by its logs and by the record that it left."""
    verdict = Verdict()
    told = read(logs, verdict)
    _one_owner_a_generation(told, verdict)
    _one_story_a_commit(told, verdict)
    _in_the_order_of_time(told, verdict)
    _as_the_ledger_has_it(told, record, verdict)
    return verdict


def _one_owner_a_generation(told: list[Told], verdict: Verdict) -> None:
    owners: dict[int, tuple[str, str]] = {}
    generations: dict[str, int] = {}
    for one in told:
        if one.what == "bind" and one.owner is not None:
            known = owners.setdefault(one.generation, (one.owner, one.session))
            verdict.require(known == (one.owner, one.session), f"two owners: {known}, {one}")
            same = generations.setdefault(one.owner, one.generation)
            verdict.require(same == one.generation, f"a nonce of two generations: {one}")
    for one in told:
        if one.quoted is None or one.quoted not in generations or one.is_replayed:
            continue
        wanted = generations[one.quoted] + (one.what == "release")
        verdict.require(
            one.generation == wanted, f"taken under a reference that was superseded: {one}"
        )
        verdict.require(
            owners[generations[one.quoted]][1] == one.session, f"another session's: {one}"
        )


def _one_story_a_commit(told: list[Told], verdict: Verdict) -> None:
    by_sequence: dict[int, Told] = {}
    for one in told:
        if one.is_replayed:
            continue
        other = by_sequence.setdefault(one.sequence, one)
        verdict.require(other is one, f"one commit was told twice: {other}, {one}")
    ordered = sorted(by_sequence.values(), key=lambda one: one.sequence)
    for before, after in pairwise(ordered):
        verdict.require(
            before.generation <= after.generation, f"a generation fell: {before}, {after}"
        )
        if after.what == "bind":
            verdict.require(
                before.generation < after.generation, f"a bind without a number: {after}"
            )


def _in_the_order_of_time(told: list[Told], verdict: Verdict) -> None:
    """Look at ends and starts in one row: what ended before must not be undone later."""
    moments = [(one.end, 1, one) for one in told if not one.is_replayed]
    moments += [(one.start, 0, one) for one in told]
    generation, sequence = 0, 0
    floor: dict[int, tuple[int, int]] = {}
    for _, is_end, one in sorted(moments, key=lambda row: (row[0], row[1])):
        if is_end:
            generation = max(generation, one.generation)
            sequence = max(sequence, one.sequence)
        else:
            floor[id(one)] = (generation, sequence)
    for one in told:
        least, before = floor[id(one)]
        verdict.require(one.generation >= least, f"taken after it was superseded: {one}, {least}")
        if not one.is_replayed:
            verdict.require(one.sequence > before, f"committed into the past: {one}, {before}")


def _as_the_ledger_has_it(told: list[Told], record: Path, verdict: Verdict) -> None:
    state = json.loads(record.read_bytes())["body"]
    transitions = {one["seq"]: one for one in state["transitions"]}
    ordered = [transitions[seq] for seq in sorted(transitions)]
    for before, after in pairwise(ordered):
        verdict.require(after["seq"] == before["seq"] + 1, f"a gap: {before}, {after}")
        verdict.require(
            before["writerGeneration"] <= after["writerGeneration"], f"fell: {before}, {after}"
        )
    for one in told:
        noted = transitions.get(one.sequence)
        if noted is not None and not one.is_replayed:
            verdict.require(noted["writerGeneration"] == one.generation, f"{noted}, {one}")
        verdict.require(one.sequence <= state["stateSequence"], f"lost: {one}")
        verdict.require(one.generation <= state["owner"]["writerGeneration"], f"lost: {one}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
