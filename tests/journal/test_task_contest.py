"""One task, many processes, stops, kills and clocks gone wrong: the fence holds (TA51)."""

import json
from pathlib import Path

import pytest

from tests.support import fencing
from tests.support.contest import Contest
from tests.support.fencing import Verdict

# What a process may be told while others fight: somebody has it, had it since, or nothing is open.
EXPECTED = {
    "lease_held/TASK_WRITE_OWNER_TAKEOVER_INVALID", "lease_lost/TASK_WRITE_OWNER_CAS_MISMATCH",
    "lease_lost/TASK_WRITE_CONTEXT_STALE", "lease_lost/TASK_LEDGER_REWOUND",
    "lease_lost/TASK_ADMISSION_PROJECT_LEASE_INVALID", "lease_lost/TASK_CP_NOT_OBSERVED",
    "lease_held/FINALIZED_TASK_RESUME_OWNER_BUSY", "busy/MEMORY_TRANSACTION_LOCKED",
    "lease_held/ARTIFACT_RECONCILIATION_OWNER_LIVE",
    "revision_conflict/ARTIFACT_RECONCILIATION_CAS_MISMATCH",
    "not_found/TASK_OPERATION_NOT_FOUND", "revision_conflict/TASK_OPERATION_PHASE_INVALID",
    "permission_denied/TASK_WRITE_OWNER_SESSION_MISMATCH",
}  # fmt: skip
SECONDS = 15.0  # `python -m tests.support.contest 60` is the whole of it


@pytest.mark.slow
@pytest.mark.requirement("T2", "T10", "T51", "T54", "TA51")
def test_of_sixteen_processes_one_has_the_task_and_no_zombie_writes(tmp_path: Path) -> None:
    verdict = Contest(tmp_path, seed=20260314).fight(SECONDS)
    assert verdict.violations == []
    assert set(verdict.refused) <= EXPECTED - {"lease_lost/TASK_LEDGER_REWOUND"}
    assert sum(verdict.taken.values()) >= 20
    assert verdict.refused["lease_held/TASK_WRITE_OWNER_TAKEOVER_INVALID"] > 0


class Story:
    """Logs of made-up processes, to judge the judge."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, list[dict[str, object]]] = {}
        self.transitions: list[dict[str, object]] = []
        self._number = 0

    def told(
        self, session: str, what: str, start: int, end: int, *, generation: int, sequence: int,
        quoted: str | None = None, owner: str | None = None, replayed: bool = False,
    ) -> "Story":  # fmt: skip
        self._number += 1
        call = start * 1000 + self._number
        lines = self._lines.setdefault(session, [])
        lines.append({"call": call, "what": what, "owner": quoted, "session": session})
        lines.append(
            {
                "call": call, "end": end * 1000, "code": "", "replayed": replayed,
                "transition": None, "owner": owner, "generation": generation,
                "sequence": sequence,
            }
        )  # fmt: skip
        return self

    def judge(self, *, sequence: int = 100, generation: int = 100) -> Verdict:
        logs = []
        for session, lines in self._lines.items():
            log = self._folder / session
            log.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"torn')
            logs.append(log)
        body = {
            "transitions": self.transitions, "stateSequence": sequence,
            "owner": {"writerGeneration": generation},
        }  # fmt: skip
        record = self._folder / "record"
        record.write_text(json.dumps({"body": body}))
        return fencing.check(logs, record)


def fair(folder: Path) -> Story:
    """Tell of two owners, one after the other."""
    return (
        Story(folder)
        .told("a", "bind", 1, 2, generation=1, sequence=5, owner="own-1")
        .told("a", "begin", 3, 4, generation=1, sequence=6, quoted="own-1")
        .told("a", "release", 5, 6, generation=2, sequence=7, quoted="own-1")
        .told("b", "bind", 7, 8, generation=3, sequence=8, owner="own-3")
        .told("b", "begin", 9, 10, generation=3, sequence=9, quoted="own-3")
    )


@pytest.mark.requirement("TA51")
def test_the_judge_finds_nothing_in_a_fair_fight(tmp_path: Path) -> None:
    assert fair(tmp_path).judge().violations == []


@pytest.mark.requirement("TA51")
def test_the_judge_finds_a_zombie_that_wrote(tmp_path: Path) -> None:
    story = fair(tmp_path).told("a", "begin", 11, 12, generation=1, sequence=10, quoted="own-1")
    found = story.judge().violations
    assert any("taken after it was superseded" in one for one in found)
    story = fair(tmp_path).told("a", "begin", 11, 12, generation=3, sequence=10, quoted="own-1")
    assert any("under a reference" in one for one in story.judge().violations)


@pytest.mark.requirement("TA51")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"what": "bind", "generation": 3, "sequence": 12, "owner": "own-x"}, "two owners"),
        ({"what": "renew", "generation": 3, "sequence": 9, "quoted": "own-3"}, "told twice"),
        ({"what": "bind", "generation": 5, "sequence": 4, "owner": "own-5"}, "into the past"),
        ({"what": "renew", "generation": 2, "sequence": 12, "quoted": "own-3"}, "superseded"),
    ],
)
def test_the_judge_finds_what_cannot_be(
    tmp_path: Path, more: dict[str, object], words: str
) -> None:
    story = fair(tmp_path)
    what = str(more.pop("what"))
    story.told("c", what, 20, 21, **more)  # type: ignore[arg-type]
    assert any(words in one for one in story.judge().violations)


@pytest.mark.requirement("TA51")
def test_the_judge_compares_with_the_ledger(tmp_path: Path) -> None:
    story = fair(tmp_path)
    story.transitions = [{"seq": 8, "writerGeneration": 3}, {"seq": 10, "writerGeneration": 3}]
    assert any("a gap" in one for one in story.judge().violations)
    story.transitions = [{"seq": 8, "writerGeneration": 3}, {"seq": 9, "writerGeneration": 4}]
    assert story.judge().violations
    assert any("lost" in one for one in fair(tmp_path).judge(sequence=8).violations)
