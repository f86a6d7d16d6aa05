"""The story of two agents and one task, told through MCP, and what telling it costs (JA43)."""

import os
import re
import time
from pathlib import Path

from amux.core import canonical
from tests.support.journal_faces import CLAUDE, CODEX, Mcp
from tests.support.workspaces import project

HANDLE_MAX_CHARS = 24
NAME = "Export endpoint returns stale totals"
ASKED = "Please find out why the totals in the CSV export lag one day behind, and fix it."
FOUND = "The export reads the nightly view before it is refreshed, so it shows yesterday's totals."
HANDLE = re.compile(r"own-[0-9a-f]+|[0-9]+-[0-9a-f]{12,}|[0-9a-f]{16,}|ctx-.*|(adl|op|ingress)-.*")


class Cost:
    """What the whole story costs."""

    def __init__(self) -> None:
        self.calls = 0
        self.bytes = 0
        self.seconds = 0.0
        """Waited for answers."""
        self.cpu_seconds = 0.0
        """Worked by the servers, from their first call on, modules loaded late included."""


class Agent:
    """An agent that repeats what receipts gave it, and says the rest in its own words."""

    def __init__(self, mcp: Mcp, cost: Cost) -> None:
        self._mcp = mcp
        self._cost = cost
        self._heard = ""
        self.last: dict[str, object] = {}

    def say(self, tool: str, **words: object) -> dict[str, object]:
        """Call a tool with own words, and with handles that some receipt gave."""
        spelled = canonical.encode(words)
        for text in _texts(words):
            if HANDLE.fullmatch(text):
                assert len(text) <= HANDLE_MAX_CHARS, text
                assert text in self._heard, f"{text} was never given"
            elif " " in text and "/" not in text and text != NAME:
                assert 60 <= len(text) <= 120, (len(text), text)
        self._cost.calls += 1
        self._cost.bytes += len(spelled)
        start = time.perf_counter()
        self.last = self._mcp.call(tool, **words)
        self._cost.seconds += time.perf_counter() - start
        self._heard += canonical.encode(self.last).decode()
        return self.last

    def follow(self, tool: str, **words: object) -> dict[str, object]:
        """Make the call that the last receipt names; only what it asks to fill in is added."""
        following = self.last["nextCall"]
        assert isinstance(following, dict)
        assert following["tool"] == tool
        assert set(following["fill"]) <= set(words), following
        return self.say(tool, **following["arguments"], **words)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts(one)]
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else []


def _cpu_seconds(mcp: Mcp) -> float:
    """Ask the kernel how long a server has worked."""
    words = Path(f"/proc/{mcp.process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def tell(base: Path, home: Path) -> Cost:
    """Tell it in an empty folder."""
    project(base, ".")
    (base / "src").mkdir()
    (base / "src" / "export.py").write_text("REFRESH = False\n")
    cost = Cost()

    with Mcp(base, "--tools", "journal", home=home, client=CLAUDE) as mcp:
        begun = _cpu_seconds(mcp)
        a = Agent(mcp, cost)
        opened = a.say("memory_session_write", title=NAME, sourceMessage=ASKED, content=FOUND)
        section = str(opened["section"])
        admitted = a.say(
            "memory_task_admit_v2",
            instruction=ASKED,
            taskKind="bugs",
            displayName=NAME,
            overview=FOUND,
        )
        a.follow(
            "memory_cp_confirm",
            sourceMessage="Yes, that is the problem that I see; please go on, repair the export.",
        )
        a.follow("memory_task_operation", targets=["src/export.py"])
        (base / "src" / "export.py").write_text("REFRESH = True\n")
        owner = admitted["owner"]
        a.say(
            "memory_session_write",
            section=section,
            handoff={
                "task": NAME,
                "next-action": "Run the export against the copy of the data, then close the task.",
            },
        )
        a.say("memory_task_write_owner", operation="release", task=NAME, owner=owner)
        cost.cpu_seconds += _cpu_seconds(mcp) - begun

    with Mcp(base, "--tools", "journal", home=home, client=CODEX) as mcp:
        begun = _cpu_seconds(mcp)
        b = Agent(mcp, cost)
        found = b.say("memory_task_resolve", name=NAME)
        assert found["outcome"] == "resolved-active"
        assert "Run the export" in str(found["card"])
        assert found["continuation"]["overall"] == "continue"
        bound = b.follow(
            "memory_task_admit_v2",
            instruction="Please take over the task of the stale totals and end it today.",
        )
        b.say(
            "memory_session_write",
            title=NAME,
            content="Ran the export against the copy of the data: the totals are today's.",
        )
        second = str(b.last["section"])
        b.say(
            "memory_task_operation",
            op="begin",
            task=NAME,
            owner=bound["owner"],
            targets=["src/export.py"],
        )
        (base / "src" / "export.py").write_text("REFRESH = True  # before the view is read\n")
        active_root = base / ".devcodex"
        relative, reports = admitted["taskRootRelative"], bound["reportDirectory"]
        evidence = {
            "ecr": f"{relative}/review.md",
            "report": f"{reports}/01--run.md",
            "completion": f"{relative}/done.md",
        }
        for path in evidence.values():
            (active_root / path).parent.mkdir(parents=True, exist_ok=True)
            (active_root / path).write_text(f"evidence: {path}\n")
        ended = b.say(
            "memory_task_terminal_v1",
            task=NAME,
            owner=bound["owner"],
            evidence=evidence,
        )
        assert ended["receipt"]["terminalStatus"] == "completed"
        last = b.say(
            "memory_session_write",
            section=second,
            status="completed",
            row="The export refreshes the view first now, and its totals are today's.",
        )
        assert last["summaryEvent"]["currentState"] == "completed"
        cost.cpu_seconds += _cpu_seconds(mcp) - begun
    return cost
