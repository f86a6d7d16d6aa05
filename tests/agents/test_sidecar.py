"""`--via sdk`: the one-file script, in the interpreter that has the SDK."""

import subprocess
import sys
from pathlib import Path

import pytest

from amux.runtime.agents import claude
from amux.runtime.plan import LaunchPlan
from tests.support import agents
from tests.support.hub import RunningHub
from tests.support.launched import Launcher, Ran, Session, make, plain
from tests.support.model_server import REVISION, Asked, ModelServer, say, use

pytestmark = [pytest.mark.slow, pytest.mark.agents]

SCRIPT = Path(claude.__file__).parents[1] / "sidecar.py"


@pytest.fixture
def launcher(place: agents.Place, hub: RunningHub, model: ModelServer) -> Launcher:
    agents.claude()
    model.scripts |= {
        "hello": [say("hello")],
        "save": [
            use("memory_get", path="MEMORY.md"),
            use("memory_upsert", path="MEMORY.md", content="# N\n", expected_revision=REVISION),
            say("saved"),
        ],
    }
    return Launcher(place, hub)


def by_sdk(session: Session, prompt: str, *native: str, python: str = "", **more: str) -> Ran:
    """Run one turn by the script, as `amux run --via sdk` does."""
    plan = LaunchPlan(
        argv=(python or str(agents.SDK_PYTHON), str(session.command)),
        environment=session.place.environment(**more),
        cwd=str(session.place.work),
    )
    start = session.start(prompt, *native)
    plan = claude.compose_sdk(plan, session.bound, start, SCRIPT.read_text())
    make(plan)
    done = subprocess.run(
        plan.argv,
        env=dict(plan.environment),
        cwd=plan.cwd,
        input=plan.stdin,
        capture_output=True,
        text=True,
        timeout=agents.RUN_SECONDS,
        check=False,
    )
    session.runs += 1
    return session.heard(plan, done)


def loop(model: ModelServer) -> list[Asked]:
    return [one for one in model.asked if len(one.body.get("tools") or []) > 2]


@pytest.mark.requirement("R17", "run-26")
def test_a_bound_turn_by_the_sdk_has_one_merged_text_and_the_same_prefix_on_resume(
    launcher: Launcher, model: ModelServer, hub: RunningHub
) -> None:
    session = launcher.claude(agents.claude())
    own = ("--append-system-prompt", "OWN-APPEND-TEXT")
    ran = by_sdk(session, "please @play save", *own)
    assert ran.answer == "saved"
    assert [one["id"] for one in ran.of("native")] == [session.native_id]
    assert [one["outcome"] for one in ran.of("tool")] == ["ok", "ok"]
    assert (hub.memory_dir / "MEMORY.md").read_text() == "# N\n"
    assert by_sdk(session, "again @play hello", *own).answer == "hello"
    first = loop(model)[0]
    for one in loop(model):
        system = one.body["system"][-1]["text"]
        assert system.count("OWN-APPEND-TEXT") == system.count("# Memory (amux)") == 1
        assert system.index("OWN-APPEND-TEXT") < system.index("# Memory (amux)")
        assert one.count("# Memory (amux)") == 1
        assert not one.where("persistent file-based memory")
        assert plain(one.body["tools"]) == plain(first.body["tools"])
        assert plain(one.body["system"][1:]) == plain(first.body["system"][1:])


@pytest.mark.requirement("R17", "R5")
def test_an_unbound_turn_by_the_sdk_has_nothing_of_amux(
    launcher: Launcher, model: ModelServer
) -> None:
    session = launcher.claude(agents.claude(), is_bound=False)
    assert by_sdk(session, "please @play hello").answer == "hello"
    assert by_sdk(session, "again @play hello").answer == "hello"
    assert not [one for one in loop(model) if b"amux" in one.raw]
    assert len(loop(model)) == 2


@pytest.mark.requirement("R21", "run-22")
def test_a_long_text_goes_by_file_to_the_sdk_too(launcher: Launcher, model: ModelServer) -> None:
    own = "OWN-START " + "lorem " * 20_000
    (launcher.place.work / "own.md").write_text(own)
    session = launcher.claude(agents.claude())
    ran = by_sdk(session, "please @play hello", "--append-system-prompt-file", "own.md")
    assert ran.answer == "hello"
    assert loop(model)[0].where(own.rstrip())


@pytest.mark.requirement("R17", "run-26")
def test_without_the_package_the_script_says_that_it_cannot_start(
    launcher: Launcher, model: ModelServer
) -> None:
    session = launcher.claude(agents.claude())
    # The interpreter of these tests has no SDK.
    ran = by_sdk(session, "please @play hello", python=sys.executable)
    assert ran.status == 3
    assert ran.refused_step == "sidecar"
    assert "claude_agent_sdk" in ran.failure
    assert not model.asked
