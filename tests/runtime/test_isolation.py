"""Isolation that needs no root: `none`, a private home, and what a caller may ask for."""

import hashlib
import json
import os
import stat

import pytest

from amux.core.text import to_json
from amux.runtime import isolation
from tests.runtime.conftest import Person, refusal
from tests.support import fake_agent

pytestmark = pytest.mark.slow


@pytest.mark.requirement("R24")
def test_none_is_the_caller_with_the_callers_environment(person: Person) -> None:
    assert person.ask(MINE="kept").returncode == 0
    (seen,) = person.seen
    assert seen["cwd"] == str(person.work)
    assert person.show(person.sessions()[0]["session"])["isolation"] == "none"


@pytest.mark.requirement("R24")
@pytest.mark.parametrize("kind", ["none", "private-home"])
def test_an_agent_that_calls_amux_and_would_not_find_it_is_refused(
    kind: str, person: Person
) -> None:
    (person.bin / "old").mkdir()
    fake_agent.install(person.bin / "old", "pi")
    environment = {
        "PATH": f"{person.bin}/old:/usr/bin:/bin",
        "FAKE_VERSION": "0.73.1",  # a release that has no MCP
    }
    done = person.amux("run", "pi", "--prompt", "x", "--isolation", kind, **environment)
    assert (done.returncode, refusal(done)["details"]["step"]) == (7, "cli")
    assert person.seen == []
    assert not person.live_credentials()
    assert not person.left_over()
    # With it on the PATH the agent is started.
    command = person.bin / "old" / "amux"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    person.amux("run", "pi", "--prompt", "x", "--isolation", kind, **environment)
    assert len(person.seen) == 1


@pytest.mark.requirement("R25")
def test_a_private_home_is_made_for_its_owner_alone_and_stays(person: Person) -> None:
    before = os.umask(0)
    try:
        assert person.ask("--isolation", "private-home").returncode == 0
    finally:
        os.umask(before)
    home = person.hub.home / "homes" / "claude"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    session = person.show(person.sessions()[0]["session"])
    assert session["isolation_means"] == isolation.WORDS["private-home"]
    assert "weak" in session["isolation_means"]
    assert not person.left_over()
    (home / "mine").write_text("kept")
    resumed = person.amux("resume", session["session"], "--prompt", "x")
    assert resumed.returncode == 0, resumed.stderr
    assert (home / "mine").read_text() == "kept"


@pytest.mark.requirement("R25", "R31")
def test_a_dry_run_in_a_private_home_makes_nothing_and_shows_no_value(
    person: Person,
) -> None:
    settings = person.hub.home / "agents.toml"
    settings.write_text('[claude]\ncredentials = "api-key"\nvariable = "SOME_API_KEY"\n')
    settings.chmod(0o600)
    try:
        done = person.amux(
            "run", "claude", "--isolation", "private-home", "--dry-run", "--json",
            SOME_API_KEY="sk-SECRET", AMUX_HOME=str(person.hub.home),
        )  # fmt: skip
    finally:
        settings.unlink()
    plan = json.loads(done.stdout)
    assert plan["isolation"] == "private-home"
    assert "SOME_API_KEY" in plan["environment"]
    assert "sk-SECRET" not in done.stdout.decode()
    assert not person.seen


@pytest.mark.requirement("R27")
def test_whoever_is_not_root_starts_nobody_as_another(person: Person) -> None:
    if os.geteuid() == 0:
        done = person.ask("--isolation", "linux-dac", "--user", "root")
    else:
        done = person.ask("--isolation", "linux-dac", "--user", "daemon")
    assert refusal(done)["details"]["step"] == "isolation"
    assert not person.seen


@pytest.mark.requirement("R4", "R25")
def test_a_record_of_before_there_was_isolation_is_gone_on_with(person: Person) -> None:
    person.ask()
    session = person.sessions()[0]["session"]
    path = person.hub.home / "sessions" / session / "session.json"
    record = json.loads(path.read_text())
    del record["start"]["user"]
    record["format"] = 1
    record["digest"] = hashlib.sha256(to_json(dict(sorted(record["start"].items())))).hexdigest()
    path.write_text(json.dumps(record))
    done = person.amux("resume", session, "--prompt", "x")
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["format"] == 2


@pytest.mark.requirement("R26", "R32")
def test_doctor_tells_where_a_login_would_be_from_and_what_stands_in_its_way(
    person: Person,
) -> None:
    settings = person.hub.home / "agents.toml"
    (person.home / ".credentials.json").write_text('{"tokens": {"refresh_token": "SECRET"}}')
    (person.home / ".credentials.json").chmod(0o600)
    cases = {
        "": ("own", ""),
        'credentials = "api-key"\nvariable = "NO_SUCH_KEY"': ("NO_SUCH_KEY", "not set"),
        f'credentials = "copy"\nfiles = ["{person.home}/.credentials.json"]': (
            ".credentials.json",
            "",
        ),
        'credentials = "copy"\nfiles = ["/no/such/.credentials.json"]': (
            "/no/such",
            "cannot be read",
        ),
    }
    try:
        for text, (login, finding) in cases.items():
            settings.write_text(f"[claude]\n{text}\n")
            settings.chmod(0o600)
            done = person.amux("doctor", "claude", "--json")
            (found,) = json.loads(done.stdout)["agents"]
            assert login in found["login"]
            assert bool(finding) is bool(found["findings"])
            assert finding in json.dumps(found["findings"])
            assert "weak" in found["isolation"]["private-home"]
            assert b"SECRET" not in done.stdout
    finally:
        settings.unlink()
