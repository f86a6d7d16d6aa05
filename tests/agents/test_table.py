"""What docs/agents.md says amux adds is what it adds, in each agent."""

import pytest

from scripts import agents_table
from tests.support import measured
from tests.support.people import Agent

pytestmark = [pytest.mark.slow, pytest.mark.agents]

OWN_MAX_BYTES = 6 * 1024  # of amux's own in the first request of a bound session


@pytest.mark.requirement("R5", "R14", "R16", "R18", "R22", "run-3", "run-4")
@pytest.mark.parametrize("agent", measured.AGENTS, ids=lambda agent: f"{agent.id}")
def test_the_table_of_the_page_is_what_is_measured(agent: Agent) -> None:
    row = measured.measure(agent)
    assert 0 < row.own < OWN_MAX_BYTES
    assert row.unbound == 0
    assert row.turns
    assert row.resume
    assert row.compaction
    line = measured.table([row]).splitlines()[-1]
    page = agents_table.PAGE.read_text(encoding="utf-8")
    assert line in agents_table.written(page).splitlines(), "run `python -m scripts.agents_table`"
