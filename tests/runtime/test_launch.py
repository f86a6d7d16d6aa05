"""Launches of a fake agent: the order of steps, and a failure at each of them."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from amux.runtime import protocol
from tests.runtime.conftest import Person, refusal
from tests.support.fake_agent import is_alive
from tests.support.hub import RunningHub

pytestmark = pytest.mark.slow

AWKWARD = [
    "-p is the first word",
    "@file.md",
    'it\'s "quoted" $(id) `id`',
    "two\nlines\n",
    "后来呢？ é",
    "--help",
]
BOUND_NAMES = {
    "AMUX_AGENT", "AMUX_CREDENTIAL_FILE", "AMUX_HUB", "AMUX_MEMORY_BINDING", "AMUX_SESSION",
}  # fmt: skip


def wait_for(what: str, seconds: float, happened: Any) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


# --- what a bound session is ---------------------------------------------------------------------


@pytest.mark.requirement("R1", "R4", "R10", "R13", "R20", "M67")
def test_a_bound_turn_has_its_names_a_live_credential_and_a_record(person: Person) -> None:
    done = person.ask("--name", "it's", "--memory-verbs", "read")
    assert (done.returncode, done.stdout) == (0, b"the answer\n")
    (seen,) = person.seen
    assert set(seen["amux"]) == BOUND_NAMES | {"AMUX_HOME", "AMUX_NO_AUTOSTART"}
    assert seen["own_memory_off"] == "1"
    assert seen["mode"] == 0o600
    assert seen["stdin"] == "hello"
    (row,) = person.sessions()
    assert (row["name"], row["memory"], row["runs"]) == ("it's", "bound", 1)
    shown = person.show(row["session"])
    assert shown["binding"] == seen["amux"]["AMUX_MEMORY_BINDING"]
    assert shown["protocol"] == {"version": protocol.VERSION, "digest": protocol.digest("mcp")}
    assert (shown["principal"], shown["verbs"]) == ("local", "read")
    (kept,) = [
        one
        for one in person.hub.ask("session_list")["sessions"]
        if one["session"] == row["session"]
    ]  # type: ignore[union-attr]
    assert kept["verbs"] == ["read"]
    assert kept["ended"]
    # The run is over: its credential is revoked, and nothing of it is left here.
    assert not person.live_credentials()
    assert not person.left_over()
    assert not list(person.work.iterdir())


@pytest.mark.requirement("R13", "R31", "run-11")
def test_neither_argv_nor_record_nor_timeline_holds_the_credential_or_what_was_written(
    person: Person,
) -> None:
    person.ask()
    (seen,) = person.seen
    assert seen["credential"].startswith("amux_")
    assert seen["credential"] not in json.dumps(seen["argv"])
    session = person.sessions()[0]["session"]
    for path in (person.hub.home / "sessions" / session).iterdir():
        text = path.read_text()
        assert seen["credential"] not in text
        assert "WRITTEN" not in text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    events = {one["kind"]: one for one in person.show(session)["timeline"]}
    assert events["tool"]["arguments"] == {"path": "a.md", "expected_revision": "absent"}
    assert events["prompt"]["text"] == "hello"
    assert events["answer"]["text"] == "the answer\n"
    assert events["exit"]["status"] == 0


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("prompt", AWKWARD, ids=range(len(AWKWARD)))
def test_any_prompt_and_name_arrive_as_they_were_given(prompt: str, person: Person) -> None:
    name = " ".join(prompt.split())
    done = person.amux("run", "claude", f"--prompt={prompt}", f"--name={name}")
    assert done.returncode == 0, done.stderr
    assert person.seen[0]["stdin"] == prompt
    assert person.sessions()[0]["name"] == name
    resumed = person.amux("resume", "--prompt=and?", "--", name)
    assert resumed.returncode == 0, resumed.stderr
    assert "--resume" in person.seen[1]["argv"]


@pytest.mark.requirement("R1", "R31")
def test_a_dry_run_shows_the_plan_and_does_nothing(person: Person) -> None:
    hub = person.hub.ask("session_list")["sessions"]
    files = sorted(person.hub.home.rglob("*"))
    done = person.amux("run", "claude", "--prompt", "hello", "--dry-run", FAKE_VERSION="die")
    plan = json.loads(done.stdout)
    assert plan["argv"][0] == str(person.bin / "claude")
    assert set(plan["environment"]) >= BOUND_NAMES
    assert plan["files"]
    assert "FAKE_SEEN" in plan["environment"]
    assert str(person.seen_file) not in done.stdout.decode()
    assert not person.seen
    assert person.hub.ask("session_list")["sessions"] == hub
    assert sorted(person.hub.home.rglob("*")) == files


# --- without memory ------------------------------------------------------------------------------


@pytest.mark.requirement("R5", "R20", "run-5")
def test_memory_off_asks_nobody_and_passes_nothing(person: Person, tmp_path: Path) -> None:
    with Silent(tmp_path / "hub.sock") as hub:
        done = person.ask("--memory", "off", AMUX_HUB=hub.path)
        assert hub.count == 0
    assert done.returncode == 0
    assert b"memory" not in done.stderr
    (seen,) = person.seen
    assert seen["own_memory_off"] is None
    assert {name for name in seen["amux"] if name in BOUND_NAMES} == {
        "AMUX_AGENT", "AMUX_HUB", "AMUX_SESSION",
    }  # fmt: skip
    assert seen["amux"]["AMUX_HUB"] == hub.path  # the person's own stays
    words = [word for word in seen["argv"] if not word.startswith("-")]
    assert "amux" not in " ".join(words)
    assert person.sessions()[0]["memory"] == "off"


@pytest.mark.requirement("R3", "R5", "run-5", "run-27")
def test_a_hub_that_never_answers_costs_three_seconds_and_the_memory(
    person: Person, tmp_path: Path
) -> None:
    with Silent(tmp_path / "hub.sock") as hub:
        began = time.monotonic()
        with started(person, "run", "claude", "--prompt", "x", AMUX_HUB=hub.path) as child:
            wait_for("a start", 6, lambda: person.seen)
            assert time.monotonic() - began < 3 + 1.5  # the start of Python on a busy machine
            _, err = child.communicate(timeout=20)
    assert b"no memory" in err
    assert person.seen[0]["own_memory_off"] is None
    assert person.sessions()[0]["cause"] == "outcome_unknown"


@pytest.mark.requirement("R5", "run-5", "run-28")
def test_a_hub_that_is_down_costs_the_memory_and_says_so(person: Person, tmp_path: Path) -> None:
    done = person.ask(AMUX_HOME=str(tmp_path / "other"))
    assert done.returncode == 0
    assert b"unavailable" in done.stderr
    shown = person.amux("session", "list", AMUX_HOME=str(tmp_path / "other"))
    (row,) = json.loads(shown.stdout)["sessions"]
    assert (row["memory"], row["cause"]) == ("failed", "unavailable")


@pytest.mark.requirement("R5")
def test_a_session_that_an_agent_starts_is_not_given_the_agents_own_memory(person: Person) -> None:
    person.ask(FAKE_RUN="")
    names = {k: v for k, v in person.seen[0]["amux"].items() if k in BOUND_NAMES}
    credential = person.work.parent / "credential"
    credential.write_text(person.seen[0]["credential"])
    credential.chmod(0o600)
    done = person.ask(**(names | {"AMUX_CREDENTIAL_FILE": str(credential)}))
    assert done.returncode == 0
    inner = person.seen[1]["amux"]
    assert "AMUX_MEMORY_BINDING" not in inner
    assert "AMUX_CREDENTIAL_FILE" not in inner
    assert inner["AMUX_SESSION"] != names["AMUX_SESSION"]


@pytest.mark.requirement("R9", "run-21")
def test_an_agent_without_an_adapter_starts_and_says_that_it_has_no_memory(
    person: Person,
) -> None:
    (person.bin / "gemini").symlink_to(person.bin / "fake-agent")
    done = person.amux("run", "gemini", "--", "-x", "two words")
    assert done.returncode == 0
    assert b"unsupported_agent" in done.stderr
    assert person.seen[0]["argv"] == ["-x", "two words"]
    assert person.seen[0]["amux"]["AMUX_AGENT"] == "gemini-cli"
    assert person.sessions()[0]["cause"] == "unsupported_agent"
    refused = person.amux("run", "gemini", "--memory", "required")
    assert (refused.returncode, refusal(refused)["code"]) == (7, "unsupported_agent")
    assert len(person.seen) == 1
    turn = person.amux("run", "gemini", "--prompt", "x")
    assert (turn.returncode, refusal(turn)["code"]) == (2, "invalid_argument")


@pytest.mark.requirement("R9")
def test_agents_toml_names_more_agents_and_where_ours_are(person: Person, tmp_path: Path) -> None:
    home = tmp_path / "other"
    home.mkdir()
    program = person.bin / "fake-agent"
    (home / "agents.toml").write_text(
        f'[mine]\nexecutable = "{program}"\n[pi]\nexecutable = "{program}"\n'
    )
    done = person.amux("run", "mine", AMUX_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert person.seen[0]["amux"]["AMUX_AGENT"] == "unknown-agent"
    assert person.amux("run", "pi", "--memory", "off", AMUX_HOME=str(home)).returncode == 0
    for text in ("[mine]\nexecute = 'x'", "x = 1", "[", "[A]\n", "[mine]\nexecutable = ''"):
        (home / "agents.toml").write_text(text)
        refused = person.amux("run", "mine", AMUX_HOME=str(home))
        assert refusal(refused)["code"] == "invalid_argument"


# --- a failure at each step ----------------------------------------------------------------------


def assert_nothing_is_left(person: Person) -> None:
    assert not person.live_credentials()
    assert not person.left_over()
    assert not [one for one in person.seen if is_alive(one["pid"])]


@pytest.mark.requirement("R3", "run-13", "run-27")
def test_an_agent_that_is_not_installed_is_refused_with_the_way_to_install_it(
    person: Person,
) -> None:
    (person.bin / "claude").unlink()
    done = person.ask()
    assert done.returncode == 7
    assert refusal(done)["details"]["step"] == "executable"
    assert "npm install" in refusal(done)["hint"]
    assert not person.sessions()


@pytest.mark.requirement("R9", "run-21", "run-27")
def test_required_memory_that_cannot_be_had_is_refused_with_the_cause(
    person: Person, tmp_path: Path
) -> None:
    for words, environment, cause in (
        (("--memory", "required"), {"AMUX_HOME": str(tmp_path / "other")}, "unavailable"),
        (("--memory", "required"), {"AMUX_HUB": str(tmp_path / "none.sock")}, "unavailable"),
    ):
        done = person.ask(*words, **environment)
        assert done.returncode == 7
        assert refusal(done)["code"] == "launch_refused"
        assert refusal(done)["details"] == {"step": "binding", "cause": cause}
    assert not person.seen


@pytest.mark.requirement("R9", "run-21")
def test_required_memory_that_is_switched_off_is_refused_with_the_cause(person: Person) -> None:
    hub = person.hub
    assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
    hub.stop()
    hub.start()
    try:
        done = person.ask("--memory", "required")
        off = person.ask()
    finally:
        hub.enable()
        hub.stop()
        hub.start()
    assert refusal(done)["details"] == {"step": "binding", "cause": "memory_disabled"}
    assert off.returncode == 0
    assert person.sessions()[0]["memory"] == "off"
    assert person.sessions()[0]["cause"] == "memory_disabled"


@pytest.mark.requirement("R19", "run-27")
@pytest.mark.parametrize("version", ["nonsense", "die", "flood", "hang"])
def test_an_agent_that_does_not_tell_its_version_is_started_and_that_is_noted(
    version: str, person: Person
) -> None:
    done = person.ask(FAKE_VERSION=version)
    assert (done.returncode, done.stdout) == (0, b"the answer\n")
    assert b"version" in done.stderr
    assert person.show(person.sessions()[0]["session"])["agent_version"] == ""


@pytest.mark.requirement("R19")
def test_a_version_is_asked_once_a_file(person: Person) -> None:
    assert person.ask(FAKE_VERSION="9.9.9").returncode == 0
    assert person.ask(FAKE_VERSION="1.1.1").returncode == 0
    versions = [person.show(one["session"])["agent_version"] for one in person.sessions()]
    assert versions == ["9.9.9", "9.9.9"]
    program = person.bin / "fake-agent"
    program.write_text(program.read_text() + "\n")
    assert person.ask(FAKE_VERSION="1.1.1").returncode == 0
    assert "1.1.1" in [person.show(one["session"])["agent_version"] for one in person.sessions()]


@pytest.mark.requirement("R21", "run-27")
def test_native_arguments_that_are_refused_leave_nothing(person: Person) -> None:
    done = person.ask("--", "--resume", "x")
    assert (done.returncode, refusal(done)["code"]) == (2, "invalid_argument")
    assert not person.sessions()
    assert_nothing_is_left(person)


@pytest.mark.requirement("R17", "run-26", "run-27")
def test_the_sdk_without_an_interpreter_is_refused(person: Person) -> None:
    done = person.ask("--via", "sdk")
    assert (done.returncode, refusal(done)["details"]["step"]) == (7, "sidecar")
    assert not person.sessions()
    assert_nothing_is_left(person)


@pytest.mark.requirement("R3", "run-27")
def test_a_record_that_cannot_be_saved_is_refused(person: Person) -> None:
    sessions = person.hub.home / "sessions"
    kept = sessions.with_name("kept")
    if sessions.exists():
        sessions.rename(kept)
    sessions.write_text("a file where the directory should be")
    try:
        done = person.ask()
    finally:
        sessions.unlink()
        if kept.exists():
            kept.rename(sessions)
    assert (done.returncode, refusal(done)["code"]) == (7, "launch_refused")
    assert refusal(done)["details"]["step"] == "record"
    assert_nothing_is_left(person)


@pytest.mark.requirement("R3", "run-27")
def test_a_program_that_cannot_be_run_is_refused_and_leaves_nothing(person: Person) -> None:
    (person.bin / "claude").unlink()
    (person.bin / "claude").write_text("#!/no/such/interpreter\n")
    (person.bin / "claude").chmod(0o755)
    done = person.ask()
    assert (done.returncode, refusal(done)["details"]["step"]) == (7, "start")
    assert not person.sessions()
    assert_nothing_is_left(person)


@pytest.mark.requirement("R3", "run-27")
@pytest.mark.parametrize(
    ("run", "status"), [("die", 9), ("die at once", 137), ("garbage", 1), ("fail", 1)]
)
def test_an_agent_that_fails_ends_the_run_with_its_status(
    run: str, status: int, person: Person
) -> None:
    done = person.ask(FAKE_RUN=run)
    assert (done.returncode, done.stdout) == (status, b"")
    assert b"the turn failed" in done.stderr
    (row,) = person.sessions()
    assert person.show(row["session"])["timeline"][-1]["status"] == status
    assert_nothing_is_left(person)


@pytest.mark.requirement("R3", "run-27")
@pytest.mark.parametrize("run", ["close", "stay"])
def test_an_agent_that_has_nothing_more_to_say_is_ended(run: str, person: Person) -> None:
    began = time.monotonic()
    done = person.ask(FAKE_RUN=run) if run == "close" else None
    if done is not None:
        assert done.returncode != 0
        assert time.monotonic() - began < 20
        assert_nothing_is_left(person)
        return
    # One that answered and lives on keeps its output open: only its end, or ours, ends the turn.
    with started(person, "run", "claude", "--prompt", "x", FAKE_RUN=run) as child:
        wait_for("a start", 20, lambda: person.seen)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=20)
        assert child.returncode == 130
    assert_nothing_is_left(person)


@pytest.mark.requirement("R3", "M67", "run-27")
def test_a_hub_that_dies_under_a_run_ends_nothing_and_is_told(
    person: Person, tmp_path: Path
) -> None:
    with running_elsewhere(tmp_path) as hub:
        person.hub = hub
        with started(person, "run", "claude", "--prompt", "x", FAKE_RUN="stay") as child:
            wait_for("a start", 20, lambda: person.seen)
            hub.kill()
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=30)
        assert b"not revoked" in err
        assert not is_alive(person.seen[0]["pid"])


@pytest.mark.requirement("R3", "R4", "run-12")
def test_after_a_kill_the_next_start_sweeps_and_the_session_goes_on(person: Person) -> None:
    with started(person, "run", "claude", "--prompt", "x", FAKE_RUN="stay") as child:
        wait_for("a start", 20, lambda: person.seen)
        child.kill()
        child.wait(timeout=20)
        os.kill(person.seen[0]["pid"], signal.SIGKILL)
    assert person.left_over()
    session = person.sessions()[0]["session"]
    assert person.live_credentials() == [session]
    person.ask("--memory", "off")
    assert not person.left_over()
    done = person.amux("resume", session, "--prompt", "go on")
    assert (done.returncode, done.stdout) == (0, b"the answer\n")
    assert person.seen[2]["amux"]["AMUX_SESSION"] == session
    assert person.seen[2]["credential"] != person.seen[0]["credential"]
    assert not person.live_credentials()


# --- going on ------------------------------------------------------------------------------------


@pytest.mark.requirement("R6", "R22", "run-8")
def test_a_resume_passes_what_the_session_began_with(person: Person) -> None:
    person.ask("--ask-writes", "--", "--model", "m", "--append-system-prompt", "MINE")
    session = person.sessions()[0]["session"]
    record = json.loads((person.hub.home / "sessions" / session / "session.json").read_text())
    done = person.amux("resume", session, "--prompt", "more")
    assert done.returncode == 0, done.stderr
    first, second = person.seen
    fixed = [word for word in first["argv"] if word != "--session-id"]
    again = [word for word in second["argv"] if word != "--resume"]
    assert fixed == again
    assert first["amux"] == second["amux"]
    assert first["credential"] != second["credential"]
    after = json.loads((person.hub.home / "sessions" / session / "session.json").read_text())
    assert (after["start"], after["digest"]) == (record["start"], record["digest"])
    assert after["runs"] == 2


@pytest.mark.requirement("R6", "R8")
def test_an_unbound_session_stays_unbound(person: Person) -> None:
    person.ask("--memory", "off")
    session = person.sessions()[0]["session"]
    done = person.amux("resume", session, "--prompt", "more")
    assert done.returncode == 0
    assert person.seen[1]["own_memory_off"] is None
    assert "AMUX_MEMORY_BINDING" not in person.seen[1]["amux"]
    assert not [word for word in person.seen[1]["argv"] if "amux" in word.lower()]


@pytest.mark.requirement("R7", "run-14")
def test_a_bound_session_is_resumed_while_the_hub_is_away_and_gets_its_memory_back(
    person: Person, tmp_path: Path
) -> None:
    with running_elsewhere(tmp_path) as hub:
        person.hub = hub
        person.ask()
        session = person.sessions()[0]["session"]
        hub.kill()
        with started(person, "resume", session, "--prompt", "x", FAKE_RUN="stay") as child:
            wait_for("a start", 20, lambda: len(person.seen) == 2)
            second = person.seen[1]
            assert second["own_memory_off"] == "1"
            assert second["amux"]["AMUX_MEMORY_BINDING"]
            credential = Path(second["amux"]["AMUX_CREDENTIAL_FILE"])
            assert credential.read_text().strip() == "none"
            hub.start()
            wait_for("a credential", 20, lambda: "amux_" in credential.read_text())
            names = {k: v for k, v in second["amux"].items() if k in BOUND_NAMES}
            found = person.amux("memory", "show", "MEMORY.md", **names)
            assert found.returncode == 0, found.stderr
            child.send_signal(signal.SIGTERM)
            _, err = child.communicate(timeout=20)
        assert b"memory is not reached yet" in err
        assert not person.live_credentials()


@pytest.mark.requirement("R4", "run-18")
def test_a_native_session_that_is_not_the_sessions_is_not_gone_on_with(person: Person) -> None:
    person.ask()
    session = person.sessions()[0]["session"]
    done = person.amux("resume", session, "--native", "somebody-elses", "--prompt", "x")
    assert (done.returncode, refusal(done)["code"]) == (3, "not_found")
    assert person.amux("resume", session, "--native", "native-1", "--prompt", "x").returncode == 0
    argv = person.seen[-1]["argv"]
    assert argv[argv.index("--resume") + 1] == "native-1"
    assert_nothing_is_left(person)


@pytest.mark.requirement("R4")
def test_a_record_that_was_edited_is_not_gone_on_with(person: Person) -> None:
    person.ask()
    session = person.sessions()[0]["session"]
    path = person.hub.home / "sessions" / session / "session.json"
    path.write_text(path.read_text().replace(str(person.work), "/"))
    done = person.amux("resume", session, "--prompt", "x")
    assert refusal(done)["code"] == "corrupt"
    assert len(person.seen) == 1
    assert person.sessions()[0]["refused"] == "corrupt"
    assert person.amux("session", "remove", session).returncode == 0
    assert not person.sessions()


@pytest.mark.requirement("R4")
def test_one_session_runs_once_at_a_time(person: Person) -> None:
    with started(person, "run", "claude", "--prompt", "x", FAKE_RUN="stay") as child:
        wait_for("a start", 20, lambda: person.seen)
        session = person.sessions()[0]["session"]
        for words in (("resume", session, "--prompt", "x"), ("session", "remove", session)):
            assert refusal(person.amux(*words))["code"] == "busy"
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=20)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "no-such-agent"),
        ("run", "claude", "--name", "a\nb"),
        ("run", "claude", "--cwd", "/no/such/directory"),
        ("run", "claude", "--prompt", "  "),
        ("run", "claude", "--memory", "on"),
        ("run", "claude", "--user", "nobody"),
        ("run", "pi", "--via", "sdk", "--prompt", "x"),
        ("run", "claude", "--via", "sdk"),
        ("run", "claude", "extra"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused_before_anything_happens(
    words: tuple[str, ...], person: Person
) -> None:
    done = person.amux(*words)
    assert (done.returncode, refusal(done)["code"]) == (2, "invalid_argument")
    assert not person.seen


# --- helpers -------------------------------------------------------------------------------------


class Silent:
    """A socket where a Hub would be, which takes connections and never answers."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "Silent":
        self._socket.bind(self.path)
        self._socket.listen()
        self._socket.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def count(self) -> int:
        """Count who has come since the last look."""
        found = 0
        while True:
            try:
                taken, _ = self._socket.accept()
            except BlockingIOError:
                return found
            taken.close()
            found += 1


class started:  # noqa: N801 - it is used as a function
    """Start `amux` and leave it running while the block runs."""

    def __init__(self, person: Person, *words: str, **environment: str) -> None:
        self._child = subprocess.Popen(
            person.argv(*words),
            env=person.environment(**environment),
            cwd=person.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> "subprocess.Popen[bytes]":
        return self._child

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdout, self._child.stderr):
            assert pipe is not None
            pipe.close()


class running_elsewhere:  # noqa: N801 - it is used as a function
    """A Hub of one test alone, which may be killed."""

    def __init__(self, folder: Path) -> None:
        self._hub = RunningHub(folder / "elsewhere")

    def __enter__(self) -> RunningHub:
        return self._hub.enable().start()

    def __exit__(self, *_: object) -> None:
        self._hub.kill()
