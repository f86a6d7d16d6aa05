"""What the doctor finds, and that it changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Person
from tests.support.agents import hashes

pytestmark = pytest.mark.slow


def examined(person: Person, agent: str, **environment: str) -> dict[str, Any]:
    before = kept(person)
    done = person.amux("doctor", agent, **environment)
    assert done.returncode == 0, done.stderr
    assert kept(person) == before
    assert not person.seen  # asked for its version, and never started
    (found,) = json.loads(done.stdout)["agents"]
    return dict(found)


def kept(person: Person) -> dict[str, str]:
    """Name all that the doctor must not change; the Hub notes that it was asked for its status."""
    found = hashes(person.home, person.hub.home, person.work)
    return {path: digest for path, digest in found.items() if not path.endswith("audit.jsonl")}


def whats(found: dict[str, Any]) -> list[str]:
    assert all(one["do"] for one in found["findings"])
    return [one["what"] for one in found["findings"]]


def plant(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.requirement("R32", "run-28")
def test_a_sound_agent_has_no_findings_and_its_plan_is_shown(person: Person) -> None:
    found = examined(person, "claude")
    assert not found["findings"]
    assert found["version"] == "2.1.332"
    assert found["memory"] == "would be bound"
    assert found["native_memory"].startswith("off")
    assert "AMUX_MEMORY_BINDING" in found["passes"]["environment"]
    assert "--settings" in found["passes"]["argv"]


@pytest.mark.requirement("R32", "R33", "run-28")
def test_each_thing_that_works_against_memory_is_found_in_claude(person: Person) -> None:
    user, project = person.home / ".claude" / "settings.json", person.work / ".claude"
    plant(user, {"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}, "disableAllHooks": True})
    plant(project / "settings.json", {"env": {"AMUX_HUB": "/x"}, "hooks": {"Stop": []}})
    plant(project / "settings.local.json", {"permissions": {"deny": ["mcp__amux"]}})
    plant(person.home / ".claude" / "CLAUDE.md", "be kind")
    folder = str(person.work).replace("/", "-").replace("_", "-")
    plant(person.home / ".claude" / "projects" / folder / "memory" / "MEMORY.md", "x")
    found = examined(person, "claude")
    told = "\n".join(whats(found))
    for words in (
        f"{user} sets CLAUDE_CODE_DISABLE_AUTO_MEMORY",
        f"{user} switches hooks off",
        f"{project / 'settings.json'} sets AMUX_HUB",
        f"{project / 'settings.local.json'} denies tools of amux",
        "what Claude remembered by itself",
    ):
        assert words in told
    assert str(person.home / ".claude" / "CLAUDE.md") in found["seen"]
    plant(project / "settings.json", {"hooks": {"Stop": [{"hooks": []}]}})
    plant(user, "{ no json")
    told = "\n".join(whats(examined(person, "claude")))
    assert f"{project / 'settings.json'} has hooks" in told
    assert f"{user} is no JSON" in told


@pytest.mark.requirement("R33", "run-28")
def test_extensions_that_could_keep_a_memory_are_found_in_pi(person: Person) -> None:
    for name in ("pi", "amux"):
        (person.bin / name).symlink_to(person.bin / "fake-agent")
    own = person.home / ".pi" / "agent"
    plant(own / "extensions" / "my-memory.js", "")
    plant(person.work / ".pi" / "extensions" / "tidy.js", "")
    plant(own / "settings.json", {"packages": ["npm:pi-memory"]})
    plant(own / "APPEND_SYSTEM.md", "mine")
    found = examined(person, "pi")
    told = whats(found)
    assert len(told) == 3
    assert sum("remembers things by itself" in one for one in told) == 2
    assert str(own / "APPEND_SYSTEM.md") in found["seen"]


@pytest.mark.requirement("R32", "run-28")
def test_a_codex_that_does_not_answer_is_not_said_to_be_off(person: Person) -> None:
    (person.bin / "codex").symlink_to(person.bin / "fake-agent")
    plant(person.home / ".codex" / "config.toml", 'model = "x"\n')
    (person.home / ".codex" / "memories").mkdir()
    before = hashes(person.home)
    done = person.amux("doctor", "codex", FAKE_RUN="die")
    assert done.returncode == 0, done.stderr
    assert hashes(person.home) == before
    (found,) = json.loads(done.stdout)["agents"]
    assert found["native_memory"].startswith("not known to be off")
    assert "what Codex remembered by itself" in "\n".join(whats(found))
    # It was asked in a folder of its own, with the words of the person's configuration.
    assert str(person.home / ".codex" / "config.toml") in found["seen"]
    assert not list(Path(person.environment().get("TMPDIR", "/tmp")).glob("amux-doctor-*"))


@pytest.mark.requirement("R32", "run-28")
def test_all_agents_are_examined_and_those_that_are_missing_are_said_to_be(
    person: Person,
) -> None:
    done = person.amux("doctor")
    found = {one["agent"]: one for one in json.loads(done.stdout)["agents"]}
    assert list(found) == ["codex", "claude", "pi", "gemini", "opencode"]
    assert found["codex"]["program"] == ""
    assert "npm install" in found["codex"]["findings"][0]["do"]
    assert found["gemini"]["memory"].startswith("no")


@pytest.mark.requirement("R32")
def test_no_hub_is_started_to_be_asked(person: Person, tmp_path: Path) -> None:
    home = tmp_path / "other"
    done = person.amux("doctor", "claude", AMUX_HOME=str(home), AMUX_NO_AUTOSTART="0")
    assert json.loads(done.stdout)["memory"].startswith("not known")
    assert not home.exists()
