"""Whose memory a launch is for, and who may start whose (R29, R30)."""

import json
import socket

import pytest

from scripts import pyz
from tests.support.team import Team, team
from tests.support.users import PYTHON, Other

pytestmark = pytest.mark.slow

READ = "amux memory show MEMORY.md --json\n"
DAC = ("--isolation", "linux-dac")


def write(text: str) -> str:
    return (
        f'R=$(amux memory show MEMORY.md --json | sed \'s/.*"revision":"\\([^"]*\\)".*/\\1/\')\n'
        f"echo '{text}' | amux memory upsert MEMORY.md --expected-revision $R\n"
    )


@pytest.fixture(scope="module")
def company(company: Team) -> Team:
    company.shell()
    return company


def token(company: Team, other: Other, kind: str = "person") -> dict[str, str]:
    """Give the environment of somebody who works with a token for a principal."""
    asked: dict[str, object] = {"principal": other.name}
    if kind != "person":
        asked = {"acts_for": other.name, "principal": "service"}
        company.hub.ask("principal_add", principal="service")
    given = company.hub.ask("token_create", kind=kind, **asked)
    path = company.put(f"token-{other.name}-{kind}", f"{given['token']}\n")
    return {"AMUX_CREDENTIAL_FILE": str(path)}


def outcome(company: Team) -> dict[str, object]:
    """Give the session that was started last."""
    return company.sessions()[0]


@pytest.mark.requirement("R29", "run-10")
def test_each_remembers_and_finds_only_its_own(company: Team) -> None:
    for other in (company.alice, company.bob):
        said = company.does(write(f"of {other.name}") + READ, owner=other)
        assert f"of {other.name}" in said
        assert company.memory_of(other).strip() == f"of {other.name}"
    for other, stranger in ((company.alice, company.bob), (company.bob, company.alice)):
        said = company.does(READ + "amux memory search of --json\n", owner=other)
        assert f"of {other.name}" in said
        assert stranger.name not in said
    assert company.memory_of(None) == ""
    assert not (company.hub.home / "memory" / "global" / "MEMORY.md").exists()


@pytest.mark.requirement("R30", "run-24")
@pytest.mark.parametrize("kind", ["person", "runtime"])
@pytest.mark.parametrize("isolation", ["none", "private-home"])
def test_another_principals_agent_never_runs_as_the_owner_of_the_root(
    isolation: str, kind: str, company: Team
) -> None:
    before = company.sessions()
    words = ("run", "claude", "--isolation", isolation, "--prompt", "x")
    refusal = company.refused(*words, **token(company, company.alice, kind))
    assert refusal["code"] == "launch_refused"
    assert refusal["details"]["step"] == "isolation"
    assert company.sessions() == before
    assert company.left_over() == company.live_credentials() == []


@pytest.mark.requirement("R29", "R30", "run-24")
@pytest.mark.parametrize("kind", ["person", "runtime"])
def test_another_principals_agent_runs_as_that_principals_user(kind: str, company: Team) -> None:
    company.does("amux memory list --json\n", **token(company, company.alice, kind))
    session = outcome(company)
    assert session["memory"] == "bound"
    assert company.show(str(session["session"]))["principal"] == company.alice.name


@pytest.mark.requirement("R29")
def test_the_administrator_starts_for_the_principal_of_the_user_and_not_his_own(
    company: Team,
) -> None:
    company.does("true\n", owner=company.bob)
    assert company.show(str(outcome(company)["session"]))["principal"] == company.bob.name


@pytest.mark.requirement("R29")
def test_a_credential_for_one_never_starts_anothers_user_with_memory(company: Team) -> None:
    said = company.does("env\n" + READ, owner=company.bob, **token(company, company.alice))
    assert outcome(company)["memory"] == "failed"
    assert outcome(company)["cause"] == "permission_denied"
    assert "AMUX_MEMORY_BINDING" not in said
    assert "AMUX_CREDENTIAL_FILE" not in said


@pytest.mark.requirement("R29", "M65")
def test_a_user_whom_the_hub_does_not_know_has_no_memory_and_no_way_to_one(company: Team) -> None:
    said = company.does("env; command -v amux; ls agent-config\n", owner=company.eve)
    assert outcome(company)["cause"] == "permission_denied"
    assert "agent-config/memory" not in said
    required = company.refused(
        "run", "claude", *DAC, "--user", company.eve.name, "--memory", "required", "--prompt", "x"
    )
    assert required["details"]["step"] == "binding"
    assert company.left_over() == company.live_credentials() == []


@pytest.mark.requirement("M72", "run-24")
def test_a_session_of_one_is_not_gone_on_with_by_another(company: Team) -> None:
    company.does("true\n")
    session = str(outcome(company)["session"])
    refusal = company.refused("resume", session, "--prompt", "x", **token(company, company.bob))
    assert refusal["code"] == "permission_denied"
    assert company.left_over() == company.live_credentials() == []


@pytest.mark.requirement("R29", "R30")
def test_somebody_with_a_root_of_their_own_starts_their_own_agent_as_themselves(
    company: Team,
) -> None:
    program = company.folder / "amux.pyz"
    pyz.build(program)
    bob, shared = company.bob, company.hub.ask("status")["shared_socket"]
    bob.write(".do", "env\n")
    bob.write(".amux/agents.toml", f'[claude]\nexecutable = "{company.bin}/claude"\n')
    environment = {"AMUX_HUB": str(shared["path"]), "AMUX_NO_AUTOSTART": "1"}
    for isolation in ("none", "private-home"):
        words = ("run", "claude", "--isolation", isolation, "--prompt", "x", "--cwd", "/")
        home = bob.home if isolation == "none" else bob.home / ".amux/homes/claude"
        bob.write(f"{home.relative_to(bob.home)}/.do", "env\n")
        done = bob.run(PYTHON, "-I", str(program), *words, environment=environment)
        assert done.returncode == 0, done.stderr
        assert "AMUX_MEMORY_BINDING" in (home / "out").read_text()


@pytest.mark.requirement("R29")
def test_linux_dac_is_for_root_alone(company: Team) -> None:
    program = company.folder / "amux.pyz"
    pyz.build(program)
    bob = company.bob
    bob.write(".amux/agents.toml", f'[claude]\nexecutable = "{company.bin}/claude"\n')
    done = bob.run(
        PYTHON, "-I", str(program), "run", "claude", *DAC, "--user", company.alice.name,
        "--prompt", "x", "--cwd", "/", environment={"AMUX_NO_AUTOSTART": "1"},
    )  # fmt: skip
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["details"]["step"]) == ("launch_refused", "isolation")


# --- a helper that fails -------------------------------------------------------------------------


BROKEN = {
    "the credential is garbled": (
        'F=$AMUX_CREDENTIAL_FILE; T=$(sed s/amux_/amux-/ "$F"); chmod 600 "$F"; echo "$T" > "$F"\n',
        {"unauthenticated", "invalid_argument"},
    ),
    "the credential is emptied": (
        'chmod 600 "$AMUX_CREDENTIAL_FILE"; : > "$AMUX_CREDENTIAL_FILE"\n',
        {"invalid_argument"},
    ),
    "the credential's file is elsewhere": (
        "export AMUX_CREDENTIAL_FILE=/no/such/connection.json\n",
        {"unauthenticated"},
    ),
    "the credential's file is not named": ("unset AMUX_CREDENTIAL_FILE\n", {"unauthenticated"}),
    "the binding is global's": (
        'export AMUX_MEMORY_BINDING="${AMUX_MEMORY_BINDING%:*}:global"\n',
        {"binding_mismatch"},
    ),
    "the binding is another's": (
        "export AMUX_MEMORY_BINDING=amux1:0:1\n",
        {"binding_mismatch"},
    ),
    "the Hub is elsewhere": ("export AMUX_HUB=/no/such.sock\n", {"unavailable"}),
    "the Hub's address is nonsense": ("export AMUX_HUB=nonsense\n", {"invalid_argument"}),
}


@pytest.mark.requirement("R29", "M69")
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_on_the_way_is_a_refusal_and_never_another_memory(
    name: str, company: Team
) -> None:
    if not company.hub.ask("get", path="owners.md")["exists"]:
        company.hub.ask("upsert", path="owners.md", content="OWNERS", expected_revision="absent")
    script, codes = BROKEN[name]
    said = company.does(f"{script}amux memory show owners.md --json; {READ}{write('x')}")
    assert "OWNERS" not in said
    found = {
        json.loads(line)["error"]["code"]
        for line in said.splitlines()
        if line.startswith('{"error"')
    }
    assert found
    assert found <= codes | {"invalid_argument"}
    assert list((company.hub.home / "memory").glob("global/*.md")) == []


@pytest.mark.requirement("R28", "R29")
def test_whoever_lost_the_names_of_a_run_still_has_its_connection_file(company: Team) -> None:
    script = "unset AMUX_HUB AMUX_MEMORY_BINDING\n" + write("by the file") + READ
    assert "by the file" in company.does(script)
    assert company.memory_of(company.alice).strip() == "by the file"


@pytest.mark.requirement("R29", "R5")
@pytest.mark.parametrize("state", ["down", "hanging"])
def test_without_the_hub_a_start_has_no_memory_at_all(state: str, company: Team) -> None:
    other = company.folder / state
    other.mkdir(mode=0o700)
    (other / "run").mkdir(mode=0o700)
    (other / "agents.toml").write_bytes((company.hub.home / "agents.toml").read_bytes())
    (other / "config.toml").write_bytes((company.hub.home / "config.toml").read_bytes())
    (other / "config.toml").chmod(0o600)
    with socket.socket(socket.AF_UNIX) as deaf:
        if state == "hanging":
            deaf.bind(str(other / "run" / "hub.sock"))
            deaf.listen()
        said = company.does("env; command -v amux\n", AMUX_HOME=str(other))
    assert "AMUX_MEMORY_BINDING" not in said
    assert "agent-config" not in said
    assert list(company.runs.iterdir()) == []


@pytest.mark.requirement("R28", "R5")
def test_a_hub_without_a_shared_socket_gives_no_memory_to_other_users(
    others: list[Other],
) -> None:
    with team(others) as made:
        made.start("shared").shell()
        said = made.does("env\n")
        assert "AMUX_MEMORY_BINDING" not in said
        session = made.sessions()[0]
        assert (session["memory"], session["cause"]) == ("failed", "no_shared_socket")
        assert made.live_credentials() == made.left_over() == []


@pytest.mark.requirement("R28")
def test_a_hub_that_is_reached_by_tcp_is_reached_so_by_the_run(others: list[Other]) -> None:
    with team(others) as made:
        made.configure('[hub]\nlisten = "127.0.0.1:0"\n')
        made.start().shell()
        listen = made.hub.ask("status")["listen"]
        assert isinstance(listen, list)
        said = made.does(
            write("by tcp") + "echo $AMUX_HUB\n",
            AMUX_HUB=f"http://{listen[0]}",
            **token(made, made.alice),
        )
        assert f"http://{listen[0]}" in said
        assert made.memory_of(made.alice).strip() == "by tcp"
        assert made.live_credentials() == made.left_over() == []
