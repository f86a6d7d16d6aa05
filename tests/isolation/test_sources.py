"""Where an isolated home has its login from: each source, with each real agent (R26, R31)."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux.runtime import sources
from amux.runtime.sources import Source
from tests.support.agents import KEY
from tests.support.model_server import ModelServer, say
from tests.support.people import CLAUDE, CODEX, PI, Agent
from tests.support.team import Team, team
from tests.support.users import Other

ISOLATIONS = pytest.mark.parametrize("isolation", ["linux-dac", "private-home"])
AGENTS = pytest.mark.parametrize("agent", [CODEX, CLAUDE, PI], ids=lambda agent: agent.id)

# What a login of each is, as the agent keeps it: the file below a home, and what stands in it.
LOGINS: dict[str, tuple[str, Callable[[str], dict[str, object]]]] = {
    "codex": (".codex/auth.json", lambda key: {"auth_mode": "apikey", "OPENAI_API_KEY": key}),
    "claude": (
        ".claude/.credentials.json",
        lambda key: {
            "claudeAiOauth": {
                "accessToken": key,
                "refreshToken": "sk-ant-ort01-x",
                "expiresAt": 9_999_999_999_999,
                "scopes": ["user:inference", "user:profile"],
                "subscriptionType": "max",
            }
        },
    ),
    "pi": (".pi/agent/auth.json", lambda key: {"fake": {"type": "api_key", "key": key}}),
}
VARIABLES = {"codex": "FAKE_KEY", "claude": "ANTHROPIC_API_KEY", "pi": "FAKE_KEY"}


@pytest.fixture(scope="module")
def firm(others: list[Other]) -> Iterator[Team]:
    """Give a team for the tests of this module; its homes are emptied before each."""
    with team(others) as made:
        yield made.start()


class Case:
    """One agent in one isolation, with a login from one source."""

    def __init__(self, firm: Team, agent: Agent, isolation: str, model: ModelServer) -> None:
        firm.alice.clear()
        (firm.bin / agent.name).unlink(missing_ok=True)
        self.firm, self.agent, self.model = firm, agent, model
        self.owner = firm.alice if isolation == "linux-dac" else None
        self.home = self.owner.home if self.owner else firm.hub.home / "homes" / agent.name
        firm.real(agent, model.url, self.home, self.owner)
        self.words = ("--isolation", isolation) + (
            ("--user", firm.alice.name) if self.owner else ()
        )
        self.place, self.spelled = LOGINS[agent.name]
        self.login = self.home / self.place
        self.login.unlink(missing_ok=True)
        model.scripts["hello"] = [say("hello")]

    def source(self, **table: object) -> None:
        """Choose a source; the agent's configuration asks for what it gives."""
        self.firm.agents_toml(**{self.agent.name: table})
        is_key = table.get("credentials") == "api-key"
        if self.agent.name == "codex" and not is_key:
            self._edit(".codex/config.toml", 'env_key = "FAKE_KEY"', "requires_openai_auth = true")
        if self.agent.name == "pi":
            self._edit(".pi/agent/models.json", '"apiKey": "dummy", ',
                       '"apiKey": "$FAKE_KEY", ' if is_key else "")  # fmt: skip

    def _edit(self, place: str, old: str, new: str) -> None:
        path = self.home / place
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def put_login(self, key: str, folder: Path | None = None) -> Path:
        """Log in: in the home, or as the caller has it somewhere else."""
        path = folder / self.place.rpartition("/")[2] if folder else self.login
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.spelled(key)))
        path.chmod(0o600)
        if folder is None and self.owner:
            self.owner.give(path)
        return path

    def run(self, **environment: str) -> "subprocess.CompletedProcess[bytes]":
        done = self.firm.amux(
            "run", self.agent.name, "--prompt", "please @play hello", *self.words,
            "--", *self.agent.native, **environment,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, b"hello\n"), done.stderr
        return done

    def keys(self) -> set[str]:
        """Give the keys that the model was asked with."""
        names = ("authorization", "x-api-key")
        return {
            value.removeprefix("Bearer ")
            for one in self.model.of("hello")
            for name, value in one.headers.items()
            if name.lower() in names
        }


@pytest.mark.slow
@pytest.mark.agents
@pytest.mark.requirement("R26", "R31")
@ISOLATIONS
@AGENTS
def test_a_login_of_the_homes_own_is_used_kept_and_the_rule(
    agent: Agent, isolation: str, firm: Team, model: ModelServer
) -> None:
    case = Case(firm, agent, isolation, model)
    case.source()
    case.put_login("sk-ant-oat01-own-login")
    before = case.login.read_bytes()
    case.run()
    assert case.keys() == {"sk-ant-oat01-own-login"}
    assert case.login.read_bytes() == before


@pytest.mark.slow
@pytest.mark.agents
@pytest.mark.requirement("R26", "R31")
@ISOLATIONS
@AGENTS
def test_the_variable_that_is_named_is_passed_on_and_shown_nowhere(
    agent: Agent, isolation: str, firm: Team, model: ModelServer
) -> None:
    case = Case(firm, agent, isolation, model)
    variable = VARIABLES[agent.name]
    case.source(credentials="api-key", variable=variable)
    # Claude has been told before that this key may be used; its end is what it knows it by.
    secret = KEY if agent.name == "claude" else "sk-SECRET-OF-A-VARIABLE"
    done = case.run(**{variable: secret})
    assert case.keys() == {secret}
    dry = firm.amux("run", agent.name, *case.words, "--dry-run", **{variable: secret})
    assert variable in dry.stdout.decode()
    shown = json.dumps(firm.show(str(firm.sessions()[0]["session"])))
    for said in (done.stderr.decode(), dry.stdout.decode(), shown):
        assert secret not in said
    assert not case.login.exists() or secret not in case.login.read_text()


@pytest.mark.slow
@pytest.mark.agents
@pytest.mark.requirement("R26", "R27", "R31")
@ISOLATIONS
@AGENTS
def test_a_login_that_is_copied_is_there_while_the_run_lives_and_no_longer(
    agent: Agent, isolation: str, firm: Team, model: ModelServer
) -> None:
    case = Case(firm, agent, isolation, model)
    folder = firm.folder / f"callers-{agent.name}-{isolation}"
    source = case.put_login("sk-ant-oat01-copied", folder)
    (folder / "history.jsonl").write_text("of the caller")
    case.source(credentials="copy", files=[str(source)])
    before = source.read_bytes()
    done = case.run()
    assert case.keys() == {"sk-ant-oat01-copied"}
    assert not case.login.exists()
    assert source.read_bytes() == before
    assert b"of the caller" not in b"".join(
        path.read_bytes() for path in case.home.rglob("*") if path.is_file()
    )
    assert b"refresh" not in done.stderr
    dry = firm.amux("run", agent.name, *case.words, "--dry-run").stdout.decode()
    assert str(case.login) in dry
    assert "sk-ant-oat01-copied" not in dry
    assert firm.left_over() == firm.live_credentials() == []


# --- with a program that tells how it was started ------------------------------------------------


@pytest.fixture
def shell(firm: Team) -> Team:
    firm.alice.clear()
    firm.shell()
    return firm


def copying(shell: Team, name: str = "callers") -> Path:
    """Have the caller's login be copied."""
    path = shell.folder / name / ".credentials.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"of": "the caller"}')
    path.chmod(0o600)
    shell.shell(credentials="copy", files=[str(path)])
    return path


@pytest.mark.slow
@pytest.mark.requirement("R26", "R27")
def test_a_copy_is_the_users_alone(shell: Team) -> None:
    copying(shell)
    said = shell.does('cd "$HOME/.claude"; stat -c "%a %U" .credentials.json; ls -A; cat .cred*\n')
    assert said.splitlines()[0] == f"600 {shell.alice.name}"
    assert '{"of": "the caller"}' in said
    assert said.splitlines()[1] == ".credentials.json"
    assert not (shell.alice.home / ".claude" / ".credentials.json").exists()


@pytest.mark.slow
@pytest.mark.requirement("R26", "R3")
def test_of_two_runs_that_share_a_copy_the_last_removes_it(shell: Team) -> None:
    copying(shell)
    login = shell.alice.home / ".claude" / ".credentials.json"
    words = ("run", "claude", "--isolation", "linux-dac", "--user", shell.alice.name)
    with shell.living():
        stays = 'touch "$HOME/second"; while [ ! -e "$HOME/go2" ]; do sleep 0.05; done'
        shell.alice.write(".do", stays)
        second = subprocess.Popen(
            shell.argv(*words, "--prompt", "x"),
            env=shell.environment, cwd=shell.work, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while not (shell.alice.home / "second").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    try:
        assert login.read_text() == '{"of": "the caller"}'
    finally:
        shell.alice.write("go2", "")
        second.wait(30)
    assert not login.exists()


TRAPS = {
    "a login": lambda path, _: path.write_text("own"),
    "a link to root's": lambda path, victim: path.symlink_to(victim),
    "a link to nothing": lambda path, victim: path.symlink_to(f"{victim}-new"),
    "a hard link to root's": lambda path, victim: os.link(victim, path),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a directory": lambda path, _: path.mkdir(),
}


@pytest.mark.slow
@pytest.mark.requirement("R26", "R27")
@pytest.mark.parametrize("name", TRAPS)
def test_what_stands_in_the_place_of_a_copy_is_kept_and_root_follows_nothing(
    name: str, shell: Team
) -> None:
    copying(shell)
    victim = shell.folder / "victims" / "file"
    victim.parent.mkdir(exist_ok=True)
    victim.write_text("of root")
    folder = shell.alice.home / ".claude"
    folder.mkdir(mode=0o700)
    os.chown(folder, shell.alice.uid, shell.alice.gid)
    place = folder / ".credentials.json"
    TRAPS[name](place, victim)
    if name in ("a login", "a pipe", "a directory"):
        os.chown(place, shell.alice.uid, -1)
    kind = place.lstat()
    shell.does("true\n")
    assert (place.lstat().st_ino, place.lstat().st_mode) == (kind.st_ino, kind.st_mode)
    assert (victim.read_text(), victim.stat().st_uid) == ("of root", 0)
    assert [path.name for path in victim.parent.iterdir()] == ["file"]
    session = str(shell.sessions()[0]["session"])
    warnings = [one for one in shell.show(session)["timeline"] if one["kind"] == "warning"]
    assert "kept" in json.dumps(warnings)


@pytest.mark.slow
@pytest.mark.requirement("R26", "R27")
def test_a_folder_that_leads_to_roots_own_takes_no_copy(shell: Team) -> None:
    copying(shell)
    victim = shell.folder / "folder-of-root"
    victim.mkdir(mode=0o755)
    (shell.alice.home / ".claude").symlink_to(victim)
    words = ("run", "claude", "--isolation", "linux-dac", "--user", shell.alice.name)
    refusal = shell.refused(*words, "--prompt", "x")
    assert (refusal["code"], refusal["details"]["step"]) == ("launch_refused", "isolation")
    assert list(victim.iterdir()) == []
    assert shell.left_over() == shell.live_credentials() == []


@pytest.mark.slow
@pytest.mark.requirement("R26", "R27", "run-12")
def test_a_copy_that_a_killed_launcher_left_is_removed_by_the_next_launch(shell: Team) -> None:
    copying(shell)
    login = shell.alice.home / ".claude" / ".credentials.json"
    with shell.living() as living:
        living.launcher.kill()
        living.launcher.wait()
    assert login.exists()
    shell.shell()
    shell.does("true\n")
    assert not login.exists()
    assert shell.left_over() == shell.live_credentials() == []


@pytest.mark.slow
@pytest.mark.requirement("R25", "R31")
def test_a_private_home_has_no_key_that_nobody_named_and_no_way_out(shell: Team) -> None:
    shell.shell(credentials="api-key", variable="FAKE_KEY")
    home = shell.hub.home / "homes" / "claude"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / ".do").write_text("env\n")
    others = {
        "OPENAI_API_KEY": "sk-other", "ANTHROPIC_AUTH_TOKEN": "sk-other", "GEMINI_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "k",
        "CLAUDE_CONFIG_DIR": "/elsewhere", "XDG_CONFIG_HOME": "/elsewhere",
        "CODEX_HOME": "/elsewhere", "PI_CODING_AGENT_DIR": "/elsewhere", "MINE": "kept",
    }  # fmt: skip
    done = shell.amux("run", "claude", "--isolation", "private-home", "--prompt", "x", **others)
    assert done.returncode == 0, done.stderr
    lines = (home / "out").read_text().splitlines()
    seen = dict(line.partition("=")[::2] for line in lines)
    assert len(seen) == len(lines)  # no name stands twice
    assert (seen["HOME"], seen["CODEX_HOME"]) == (str(home), f"{home}/.codex")
    assert seen["PI_CODING_AGENT_DIR"] == f"{home}/.pi/agent"
    assert (seen["FAKE_KEY"], seen["MINE"]) == ("dummy", "kept")
    gone = set(others) - {"MINE", "CODEX_HOME", "PI_CODING_AGENT_DIR"}
    assert not gone & set(seen)
    assert "ANTHROPIC_API_KEY" not in seen
    session = shell.show(str(shell.sessions()[0]["session"]))
    assert "weak" in str(session["isolation_means"])
    assert os.stat(home).st_mode & 0o077 == 0


# --- the warning of Codex ------------------------------------------------------------------------


OAUTH = {"tokens": {"access_token": "a", "refresh_token": "SECRET-REFRESH"}, "last_refresh": "x"}


@pytest.mark.requirement("R26")
@pytest.mark.parametrize(
    ("agent", "text", "warns"),
    [
        ("codex", json.dumps(OAUTH), True),
        ("codex", "not JSON", True),
        ("codex", json.dumps({"OPENAI_API_KEY": "sk-x"}), False),
        ("codex", json.dumps({"OPENAI_API_KEY": "sk-x", "tokens": None}), False),
        ("pi", json.dumps(OAUTH), False),
    ],
)
def test_the_copy_of_a_codex_login_by_oauth_warns(
    agent: str, text: str, warns: bool, tmp_path: Path
) -> None:
    path = tmp_path / "auth.json"
    path.write_text(text)
    path.chmod(0o600)
    for folder in (tmp_path, tmp_path.parent):
        folder.chmod(0o700)
    found, warnings = sources.copied(agent, Source(kind="copy", files=(str(path),)))
    assert [one.data.decode() for one in found] == [text]
    assert bool(warnings) is warns
    assert "SECRET" not in "".join(warnings)


@pytest.mark.slow
@pytest.mark.agents
@pytest.mark.requirement("R26", "R31")
@ISOLATIONS
def test_the_warning_is_said_and_kept_and_shows_no_token(
    isolation: str, firm: Team, model: ModelServer
) -> None:
    case = Case(firm, CODEX, isolation, model)
    folder = firm.folder / f"oauth-{isolation}"
    folder.mkdir()
    path = folder / "auth.json"
    path.write_text(json.dumps(OAUTH | {"OPENAI_API_KEY": "sk-x", "auth_mode": "apikey"}))
    path.chmod(0o600)
    case.source(credentials="copy", files=[str(path)])
    done = case.run()
    assert b"refresh tokens work once" in done.stderr
    shown = json.dumps(firm.show(str(firm.sessions()[0]["session"])))
    dry = firm.amux("run", "codex", *case.words, "--dry-run").stdout.decode()
    for said in (shown, dry):
        assert "refresh tokens work once" in said
    for said in (shown, dry, done.stderr.decode()):
        assert "SECRET-REFRESH" not in said
