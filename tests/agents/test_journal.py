"""Two real agents in one workspace: what the first leaves, the second finds through MCP."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support import agents
from tests.support.agents import Place
from tests.support.model_server import Found, ModelServer, Step, say, use

pytestmark = [pytest.mark.slow, pytest.mark.agents]

SECTION = Found(r'"section": ?"([^"]+)"')
# Claude Code shows tools of a server once they were asked for by name.
STATUS, WRITE = "mcp__amux__memory_status", "mcp__amux__memory_session_write"
SKILL = "The session memory of this workspace"
NEXT = "run the export tests again with the zone set"


@pytest.fixture
def workspace(place: Place) -> Path:
    """Set a repository up as a person does, for both agents, who trust it."""
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    place.program("claude", agents.claude())
    place.program("codex", agents.codex())
    place.configure_codex()
    trusted = json.loads(place.trust_claude().read_text())
    trusted["projects"][str(place.work)]["enabledMcpjsonServers"] = ["amux"]
    (place.home / ".claude.json").write_text(json.dumps(trusted))
    done = place.run("amux", "workspace", "init", "--claude", "--codex")
    assert done.returncode == 0, done.stderr
    return place.work


def claude(place: Place, prompt: str) -> "subprocess.Popen[bytes]":
    words = ["claude", "-p", prompt, "--allowedTools", "mcp__amux"]
    return subprocess.Popen(
        [str(place.bin / words[0]), *words[1:]],
        env=place.environment(AMUX_NO_AUTOSTART="1"),
        cwd=place.work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def codex(place: Place, prompt: str) -> str:
    done = place.run("codex", "exec", "--json", prompt, AMUX_NO_AUTOSTART="1")
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.decode()


def loop(model: ModelServer, script: str) -> list[str]:
    """Give what tools said in the last request of a script."""
    asked = [one for one in model.of(script) if one.body.get("tools")]
    return asked[-1].results


@pytest.mark.requirement("J1", "JA41", "J42", "J53", "J69")
def test_codex_resumes_from_the_card_of_a_claude_that_was_killed(
    place: Place, model: ModelServer, workspace: Path
) -> None:
    stuck = threading.Event()
    model.scripts |= {
        "work": [
            use("ToolSearch", query=f"select:{STATUS},{WRITE}"),
            use(STATUS, limit=5),
            use(
                WRITE, title="Export is stale", intent="fix",
                content="### 🎯 任务摘要\n\nThe CSV export lags one day.",
                row="The CSV export lags one day", status="active",
            ),
            use(
                WRITE, section=SECTION,
                content="Found it: the cutoff uses UTC.",
                handoff={"next-action": NEXT, "must-not-overwrite": "the cutoff in export.py"},
            ),
            Step(text="never read", held=stuck),
        ],
        "resume": [
            use("memory_status", limit=5),
            use("memory_session_query", agent="claude-code", limit=1, handoffOnly=True),
            use(
                "memory_session_write", title="Export is stale, part two", intent="resume",
                content=f"Took over: {NEXT}.", row="Took the export over", status="active",
            ),
            say("resumed"),
        ],
    }  # fmt: skip
    first = claude(place, "please @play work")
    try:
        model.wait(lambda asked: any(one.step == 4 for one in asked.of("work")), 60)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(30)
    finally:
        stuck.set()
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    memory = workspace / ".devcodex/.memory/clients"
    (day,) = (memory / "claude-code/tasks").iterdir()
    left = {path: path.read_bytes() for path in memory.rglob("*.md")}
    assert f"- **next-action**：{NEXT}" in day.read_text(encoding="utf-8")

    # Both are told of the skill, each by its own means.
    assert model.of("work")[0].where(SKILL)
    answered = codex(place, "please @play resume")
    assert model.of("resume")[0].where(SKILL)
    assert "resumed" in answered
    status, card, _ = [json.loads(text[text.index("{") :]) for text in loop(model, "resume")[:3]]
    (other,) = status["otherAgents"]
    assert other["id"] == "claude-code"
    assert [one["hasCard"] for one in other["unresolved"]] == [True]
    (match,) = card["matches"]
    assert NEXT in match["content"]
    assert "the cutoff in export.py" in match["content"]
    # The second works in its own memory: of the first's, no byte has changed.
    assert {path: path.read_bytes() for path in left} == left
    (own,) = (memory / "codex/tasks").iterdir()
    assert f"Took over: {NEXT}." in own.read_text(encoding="utf-8")
    shown = json.loads(place.run("amux", "journal", "status", "--agent", "codex").stdout)
    assert shown["latestRows"][0]["summary"] == "Took the export over"
    assert shown["otherAgents"][0]["id"] == "claude-code"
