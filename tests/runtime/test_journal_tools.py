"""Which tools a launched session is given, where it begins in a workspace; and keeps (J70, M56)."""

import json

import pytest

from amux.journal.call.tools import DEFAULT
from amux.wire.tools import TOOLS
from tests.runtime.conftest import Person

pytestmark = pytest.mark.slow


def served(argv: list[str]) -> str:
    """Find the set of tools that an agent's server is told to serve."""
    text = json.dumps(argv).replace("\\", "")
    return "both" if '"both"' in text else "memory" if '"memory"' in text else ""


@pytest.mark.requirement("J70", "M56")
def test_a_session_that_begins_in_a_workspace_has_both_sets_and_keeps_them(person: Person) -> None:
    (person.work / ".devcodex").mkdir()
    assert person.ask("--name", "in").returncode == 0
    (person.work / ".devcodex").rmdir()
    assert person.amux("resume", "in", "--prompt", "go on").returncode == 0
    assert [served(seen["argv"]) for seen in person.seen] == ["both", "both"]
    (row,) = person.sessions()
    kept = json.loads((person.hub.home / "sessions" / row["session"] / "session.json").read_text())
    assert set(DEFAULT) < set(json.dumps(kept).split('"'))


@pytest.mark.requirement("J70", "M56")
def test_a_session_that_begins_elsewhere_has_memorys_and_keeps_them(person: Person) -> None:
    assert person.ask("--name", "out").returncode == 0
    (person.work / ".devcodex").mkdir()
    assert person.amux("resume", "out", "--prompt", "go on").returncode == 0
    assert [served(seen["argv"]) for seen in person.seen] == ["memory", "memory"]
    assert set(TOOLS).isdisjoint(DEFAULT)
