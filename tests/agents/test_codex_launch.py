"""`amux run codex` from end to end: outcomes, refusals, resume, and what is left behind."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import agents, fake_codex
from tests.support.agents import CODEX_VERSIONS, Place, hashes
from tests.support.hub import RunningHub
from tests.support.model_server import REVISION, Asked, Found, ModelServer, Step, say, use
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.agents]

SAVE = [
    use("memory_get", path="MEMORY.md"),
    use("memory_upsert", path="MEMORY.md", content="# Notes\n", expected_revision=REVISION),
    say("saved"),
]
PROTOCOL = "# Memory (amux)"


class Cli:
    """The command line in a place, with a root of its own."""

    def __init__(self, place: Place, home: Path) -> None:
        self.place = place
        self.environment = {"AMUX_HOME": str(home), "AMUX_NO_AUTOSTART": "1"}
        self.home = home

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return self.place.run(
            str(self.place.bin / "amux"), *words, **self.environment, **environment
        )

    def answer(self, *words: str, **environment: str) -> str:
        done = self.run(*words, **environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def refusal(self, *words: str, **environment: str) -> dict[str, object]:
        done = self.run(*words, **environment)
        assert done.returncode != 0, done.stdout
        error: dict[str, object] = json.loads(done.stderr.decode().splitlines()[-1])["error"]
        return {"status": done.returncode, **error}

    def sessions(self) -> list[dict[str, object]]:
        return list(json.loads(self.answer("session", "list"))["sessions"])

    def show(self, session: object) -> dict[str, object]:
        return dict(json.loads(self.answer("session", "show", str(session))))

    def leftovers(self) -> list[str]:
        """Name the credentials and files of runs that are still there."""
        found = self.home.glob("sessions/*/*")
        return sorted(path.name for path in found if path.name in ("credential", "files"))


@pytest.fixture(params=CODEX_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cli(place: Place, hub: RunningHub, model: ModelServer) -> Cli:
    place.configure_codex()
    model.scripts |= {
        "hello": [say("hello")],
        "save": SAVE,
        "get": [use("memory_get", path="MEMORY.md"), say("read")],
    }
    return Cli(place, hub.home)


def revoked(hub: RunningHub) -> bool:
    """Tell whether no credential of a session works any more."""
    found = hub.ask("token_list")["tokens"]
    assert isinstance(found, list)
    return all(one["revoked"] for one in found if one["kind"] == "agent")


def running_agents(place: Place) -> list[str]:
    """Name what runs in the place, but for the Hub."""
    told = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in place.left_running()]
    return [words.replace(b"\0", b" ").decode() for words in told if b"\0hub\0" not in words]


@pytest.mark.requirement("R1", "R3", "R4", "R13", "R31", "run-1", "run-11", "run-28")
def test_a_session_is_bound_run_noted_and_gone_on_with(
    version: str, cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.program("codex", agents.codex(version))
    assert cli.answer("run", "codex", "--prompt", "please @play save") == "saved"
    assert (hub.memory_dir / "MEMORY.md").read_text() == "# Notes\n"
    (listed,) = cli.sessions()
    shown = cli.show(listed["session"])
    assert (shown["memory"], shown["agent_version"]) == ("bound", version)
    kinds = [one["kind"] for one in shown["timeline"]]  # type: ignore[attr-defined]
    assert kinds == [
        "start", "binding", "prompt", "native", "tool", "tool", "answer", "exit",
    ]  # fmt: skip
    assert "# Notes" not in json.dumps(shown)
    assert revoked(hub)
    assert cli.leftovers() == []
    again = cli.answer("resume", str(listed["session"]), "--prompt", "again @play get")
    assert again == "read"
    assert len({json.dumps(one.body["tools"]) for one in model.asked}) == 1
    assert model.asked[-1].items[: len(model.asked[0].items)] == model.asked[0].items
    assert [one.count(PROTOCOL) for one in model.asked] == [1] * 5
    assert len(cli.show(listed["session"])["natives"]) == 1  # type: ignore[arg-type]
    assert not running_agents(place)


def fake(place: Place) -> Path:
    """Put a Codex on the PATH that only plays one."""
    command = place.bin / "codex"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_codex.__file__}" "$@"\n')
    command.chmod(0o755)
    return place.root / "calls.jsonl"


def step_refused(cli: Cli, place: Place, hub: RunningHub, part: str, *words: str) -> object:
    """Launch a fake that must be refused, and see that nothing was done and nothing is left."""
    log = fake(place)
    refusal = cli.refusal("run", "codex", *words, FAKE_CODEX=part, FAKE_LOG=str(log))
    assert refusal["code"] == "launch_refused"
    assert "turn/start" not in (log.read_text() if log.exists() else "")
    assert revoked(hub)
    assert cli.leftovers() == []
    assert not running_agents(place)
    details = refusal["details"]
    assert isinstance(details, dict)
    return details["step"]


@pytest.mark.requirement("R14", "R19", "run-7", "run-27")
@pytest.mark.parametrize("part", ["on", "unset", "older", "late", "dies", "closes", "garbage"])
def test_a_codex_that_does_not_prove_its_memory_off_makes_no_turn(
    part: str, cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    assert step_refused(cli, place, hub, part, "--prompt", "hello") == "native_memory"
    assert not model.asked


@pytest.mark.requirement("R14", "run-7")
@pytest.mark.parametrize("part", ["on", "unset", "older", "silent"])
def test_nor_is_a_terminal_opened(part: str, cli: Cli, place: Place, hub: RunningHub) -> None:
    assert step_refused(cli, place, hub, part) == "native_memory"


@pytest.mark.requirement("R15", "R19", "run-27")
def test_a_codex_without_a_version_goes_on_until_its_tools_are_missing(
    cli: Cli, place: Place, hub: RunningHub
) -> None:
    assert step_refused(cli, place, hub, "nonsense-version", "--prompt", "hello") == "mcp"


@pytest.mark.requirement("R5", "R6", "R7", "run-5")
def test_without_memory_it_is_a_plain_start_and_stays_one(
    version: str, cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    command = place.program("codex", agents.codex(version))
    assert (
        place.run(str(command), "exec", "--skip-git-repo-check", "please @play hello").returncode
        == 0
    )
    (plain,) = model.asked
    home = hashes(place.codex_home / "config.toml")
    bound_before = len(hub.ask("session_list")["sessions"])  # type: ignore[arg-type]
    assert (
        cli.answer("run", "codex", "--memory", "off", "--prompt", "please @play hello") == "hello"
    )
    assert len(hub.ask("session_list")["sessions"]) == bound_before  # type: ignore[arg-type]
    hub.cli("system", "config", "set", "memory.enabled", "false")
    hub.stop()
    down = cli.run("run", "codex", "--prompt", "please @play hello")
    assert (down.returncode, down.stdout) == (0, b"hello\n")
    assert b"no memory" in down.stderr
    hub.start()
    assert cli.answer("run", "codex", "--prompt", "please @play hello") == "hello"
    assert {str(one["memory"]) for one in cli.sessions()} == {"off", "failed"}
    # Memory is on again: an unbound session does not adopt it.
    hub.cli("system", "config", "set", "memory.enabled", "true")
    hub.stop()
    hub.start()
    for one in cli.sessions():
        assert cli.answer("resume", str(one["session"]), "--prompt", "@play hello") == "hello"
    assert len(model.asked) == 7
    for asked in model.asked:
        assert b"amux" not in asked.raw
        assert asked.body["tools"] == plain.body["tools"]
    assert hashes(place.codex_home / "config.toml") == home


@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """Listen where a Hub would, and never answer."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield


@pytest.mark.requirement("R3", "R5", "run-5")
def test_a_hub_that_hangs_costs_three_seconds_and_no_memory(
    cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.program("codex", agents.codex())
    hub.stop()
    with hanging(Path(hub.config.socket_path)):
        began = time.monotonic()
        done = cli.run("run", "codex", "--prompt", "please @play hello")
        assert time.monotonic() - began < 9, "3 s for the binding, the rest for Codex"
    assert done.stdout == b"hello\n"
    assert b"no memory" in done.stderr
    assert b"amux" not in model.asked[0].raw


@pytest.mark.requirement("R6", "run-8")
def test_a_changed_policy_refuses_the_data_and_changes_nothing_else(
    cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.program("codex", agents.codex())
    assert cli.answer("run", "codex", "--prompt", "please @play get") == "read"
    session = str(cli.sessions()[0]["session"])
    record = cli.home / "sessions" / session / "session.json"
    before = json.loads(record.read_text())["start"]
    hub.cli("system", "config", "set", "isolation.policy", "per_principal")
    hub.stop()
    hub.start()
    assert cli.answer("resume", session, "--prompt", "again @play get") == "read"
    assert any("binding_mismatch" in text for text in model.asked[-1].results)
    assert json.loads(record.read_text())["start"] == before
    assert len({json.dumps(one.body["tools"]) for one in model.asked}) == 1


@pytest.mark.requirement("R3", "R6", "run-12")
def test_a_launcher_that_was_killed_leaves_a_session_that_goes_on(
    cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.program("codex", agents.codex())
    held = threading.Event()
    model.scripts["held"] = [Step(text="late", held=held)]
    words = [str(place.bin / "amux"), "run", "codex", "--prompt", "please @play held"]
    environment = place.environment(**cli.environment)
    with subprocess.Popen(
        words, env=environment, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as launcher:
        model.wait(lambda seen: bool(seen.of("held")))
        launcher.send_signal(signal.SIGKILL)
        launcher.communicate()
    held.set()
    session = str(cli.sessions()[0]["session"])
    assert cli.answer("resume", session, "--prompt", "again @play get") == "read"
    assert model.asked[-1].count(PROTOCOL) == 1
    assert cli.leftovers() == []
    assert revoked(hub)


@pytest.mark.requirement("R2", "run-2")
def test_what_one_agent_saved_another_reads_corrects_and_forgets(
    cli: Cli, place: Place, hub: RunningHub, model: ModelServer
) -> None:
    place.program("codex", agents.codex())
    place.program("claude", agents.claude())
    place.trust_claude()
    old, new = "Maria wants tabs", "Maria wants spaces"
    model.scripts |= {
        "save": [
            use("memory_upsert", path="people/maria.md", content=old, expected_revision="absent"),
            use("memory_upsert", path="MEMORY.md", content="see people/maria.md",
                expected_revision="absent"),
            say("saved"),
        ],
        "correct": [
            use("memory_get", path="MEMORY.md"),
            use("memory_get", path="people/maria.md"),
            use("memory_upsert", path="people/maria.md", content=new, expected_revision=REVISION),
            say("corrected"),
        ],
        "read": [use("memory_get", path="people/maria.md"), say("read")],
        "forget": [
            use("memory_get", path="people/maria.md"),
            use("memory_forget", path="people/maria.md", expected_revision=REVISION),
            use("memory_get", path="MEMORY.md"),
            use("memory_upsert", path="MEMORY.md", content="nothing here",
                expected_revision=Found(r'"revision": ?"([^"]+)"')),
            say("forgotten"),
        ],
        "search": [use("memory_search", query="Maria spaces tabs"), say("searched")],
    }  # fmt: skip
    assert cli.answer("run", "codex", "--prompt", "please @play save") == "saved"
    assert cli.answer("run", "claude", "--prompt", "please @play correct") == "corrected"
    assert any(old in text for text in model.of("correct")[-1].results)
    assert cli.answer("run", "codex", "--prompt", "please @play read") == "read"
    seen = "".join(model.of("read")[-1].results)
    assert new in seen
    assert old not in seen
    assert cli.answer("run", "codex", "--prompt", "please @play forget") == "forgotten"
    for agent in ("claude", "codex"):
        assert cli.answer("run", agent, "--prompt", "please @play search") == "searched"
        assert new not in "".join(model.of("search")[-1].results)
    assert [path.name for path in hub.memory_dir.rglob("*.md")] == ["MEMORY.md"]


# --- in a terminal -------------------------------------------------------------------------------


def turns(model: ModelServer, script: str = "") -> list[Asked]:
    """Give the requests of the agent's own loop; a title for the thread is made without tools."""
    return [one for one in model.asked if one.tool_names and script in ("", one.script)]


@contextmanager
def on_terminal(cli: Cli, *words: str) -> Iterator[Terminal]:
    argv = [str(cli.place.bin / "amux"), *words]
    with Terminal(argv, cli.place.environment(**cli.environment), cli.place.work) as terminal:
        yield terminal


@pytest.mark.requirement("R5", "R8", "R14", "run-18")
@pytest.mark.parametrize("memory", ["bound", "off"])
def test_a_terminal_and_its_new_thread_are_as_the_session_began(
    memory: str, version: str, cli: Cli, place: Place, model: ModelServer
) -> None:
    place.program("codex", agents.codex(version))
    model.scripts["one"] = model.scripts["two"] = model.scripts["three"] = [say("heard")]
    off = ("--memory", "off") if memory == "off" else ()
    with on_terminal(
        cli, "run", "codex", *off, "--", "--no-alt-screen", "please @play one"
    ) as shown:
        model.wait(lambda seen: bool(turns(seen, "one")))
        shown.say("/new")
        shown.wait(lambda: True)
        shown.say("now @play two")
        model.wait(lambda seen: bool(turns(seen, "two")))
        shown.say("/quit")
        assert shown.end() == 0
    (listed,) = cli.sessions()
    natives = cli.show(listed["session"])["natives"]
    assert isinstance(natives, list)
    assert len(natives) == 2
    words = ("resume", str(listed["session"]), "--native", str(natives[1]))
    with on_terminal(cli, *words) as shown:
        shown.wait_for("two")
        shown.say("and @play three")
        model.wait(lambda seen: bool(turns(seen, "three")))
        shown.say("/quit")
        assert shown.end() == 0
    assert [one.count(PROTOCOL) for one in turns(model)] == [int(memory == "bound")] * 3
    for one in turns(model):
        assert bool(one.where("mcp__amux", "tools")) is (memory == "bound")
    (two,), (three,) = turns(model, "two"), turns(model, "three")
    assert three.items[: len(two.items)] == two.items


@pytest.mark.requirement("R14", "R22")
def test_a_shared_process_that_runs_already_is_not_used_by_a_bound_terminal(
    cli: Cli, place: Place, model: ModelServer
) -> None:
    # 0.171.0 keeps one behind its terminals, which would know nothing of this launch's flags.
    command = place.program("codex", agents.codex())
    model.scripts["one"] = [say("heard")]
    words = [str(command), "--no-alt-screen", "please @play one"]
    with Terminal(words, place.environment(), place.work) as shown:
        model.wait(lambda seen: len(turns(seen)) == 1)
        shown.say("/quit")
        shown.end()
    assert any("daemon" in words for words in running_agents(place))
    with on_terminal(cli, "run", "codex", "--", "please @play one") as shown:
        model.wait(lambda seen: len(turns(seen)) == 2)
        shown.say("/quit")
        shown.end()
    assert [one.count(PROTOCOL) for one in turns(model)] == [0, 1]
