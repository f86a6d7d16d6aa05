"""Measure what amux adds to each real agent, and write the table of docs/agents.md.

`make agents` installs the agents; a run takes about half a minute.
"""

import sys
from pathlib import Path

from tests.support import measured

PAGE = Path(__file__).parents[1] / "docs" / "agents.md"
BEGIN = "<!-- measured: python -m scripts.agents_table -->\n"
END = "<!-- end of what was measured -->\n"


def written(page: str) -> str:
    """Give the table as a page holds it."""
    return page.partition(BEGIN)[2].partition(END)[0]


def main() -> int:
    """Measure each agent, and put the rows in the place of the old ones."""
    page = PAGE.read_text(encoding="utf-8")
    if BEGIN not in page or END not in page:
        print(f"{PAGE.name} has no place for the table", file=sys.stderr)
        return 1
    table = measured.table([measured.measure(agent) for agent in measured.AGENTS])
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
