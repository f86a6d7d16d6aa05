"""A team on one machine: root's Hub that keeps principals apart, two of its people, and a stranger.

Rule 1: what is typed is what an administrator would type; nothing of amux is called in this
        process.
Rule 2: everything is below /var/tmp, where others may pass: what keeps them out is amux.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import agents, fake_agent
from tests.support.agents import CODEX_CONFIG, CODEX_MODEL, KEY
from tests.support.hub import RunningHub
from tests.support.people import Agent
from tests.support.users import Other

RUN_SECONDS = 120.0


_SHELL = """#!/bin/sh
if [ "$1" = --version ]; then echo 2.1.332; exit; fi
sh "$HOME/.do" > "$HOME/out" 2>&1
echo '{"type":"result","result":"done"}'
"""
_STAY = 'while [ ! -e "$HOME/go" ]; do sleep 0.05; done\n'


class Living:
    """An agent of another user while it lives, as root sees it."""

    def __init__(self, process: "subprocess.Popen[bytes]", pid: int, owner: Other) -> None:
        self.launcher = process
        self.pid = pid
        self.owner = owner
        said = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        self.environment = dict(one.decode().partition("=")[::2] for one in said if one)
        self.connection_file = Path(self.environment["AMUX_CREDENTIAL_FILE"])
        self.memory = self.connection_file.parent
        self.run = self.memory.parents[1]
        self.session = self.environment["AMUX_SESSION"]
        self.connection: dict[str, str] = json.loads(self.connection_file.read_text())


class Team:
    """One Hub and those who use it."""

    def __init__(self, folder: Path, alice: Other, bob: Other, eve: Other) -> None:
        self.folder = folder
        self.alice, self.bob, self.eve = alice, bob, eve
        self.runs, self.work, self.bin = folder / "runs", folder / "work", folder / "bin"
        for one in (self.work, self.bin):
            one.mkdir(mode=0o755)
        self.hub = RunningHub(folder / "root")
        self.hub.home.mkdir(mode=0o700)
        self.configure()

    def configure(self, text: str = "", **runtime: str) -> None:
        """Write `config.toml`."""
        rows = {"run_dir": str(self.runs)} | runtime
        lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items() if value]
        self.put("config.toml", "\n".join([text, "[runtime]", *lines, ""]))

    def put(self, name: str, text: str) -> Path:
        path = self.hub.home / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def start(self, policy: str = "per_principal") -> "Team":
        assert self.hub.cli("system", "config", "set", "isolation.policy", policy).returncode == 0
        self.hub.enable().start()
        for other in (self.alice, self.bob):
            self.hub.ask("principal_add", principal=other.name)
            self.hub.ask("principal_alias", principal=other.name, alias=f"unix:{other.uid}")
        return self

    # --- agents ---

    def agents_toml(self, **tables: dict[str, object]) -> None:
        """Write `agents.toml`: each agent's program, and what else is said of it."""
        lines = []
        for name, table in tables.items():
            whole = {"executable": str(self.bin / name)} | table
            lines += [f"[{name}]", *(f"{key} = {json.dumps(one)}" for key, one in whole.items())]
        self.put("agents.toml", "\n".join([*lines, ""]))

    def fake(self, **table: object) -> None:
        """Have Claude Code be a program that tells how it was started."""
        fake_agent.install_for_others(self.bin)
        self.agents_toml(claude=table)

    def shell(self, **table: object) -> None:
        """Have Claude Code be a program that runs `~/.do` in a shell; what that says is `~/out`."""
        program = self.bin / "claude"
        program.unlink(missing_ok=True)
        program.write_text(_SHELL)
        program.chmod(0o755)
        self.agents_toml(claude=table)

    def does(self, script: str, *words: str, owner: Other | None = None, **more: Any) -> str:
        """Have an agent of Alice's, or of another's, run a script; gives what it said."""
        owner = owner or self.alice
        owner.write(".do", script)
        done = self.amux(
            "run", "claude", "--isolation", "linux-dac", "--user", owner.name, "--prompt", "x",
            *words, **more,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return (owner.home / "out").read_text(errors="replace")

    @contextlib.contextmanager
    def living(self, owner: Other | None = None, *words: str) -> Iterator["Living"]:
        """Have an agent of Alice's, or of another's, live while the block runs."""
        owner = owner or self.alice
        owner.write(".do", 'echo $$ > "$HOME/pid.new"; mv "$HOME/pid.new" "$HOME/pid"\n' + _STAY)
        (owner.home / "pid").unlink(missing_ok=True)
        process = subprocess.Popen(
            self.argv(
                "run", "claude", "--isolation", "linux-dac", "--user", owner.name,
                "--prompt", "x", *words,
            ),
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 30
            while not (owner.home / "pid").exists():
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield Living(process, int((owner.home / "pid").read_text()), owner)
        finally:
            owner.write("go", "")
            process.wait(30)
            if process.stderr:
                process.stderr.close()
            (owner.home / "go").unlink()

    def real(self, agent: Agent, model_url: str, home: Path, owner: Other | None) -> None:
        """Install an agent, and configure it in a home to ask the scripted model."""
        binary = {
            "claude": agents.claude,
            "codex": lambda: agents.codex(agent.version),
            "pi": lambda: agents.pi(agent.version),
        }[agent.name]()
        command = self.bin / agent.name
        if binary.suffix in (".js", ".mjs"):
            command.write_text(f'#!/bin/sh\nexec "{agents.NODE}" "{binary}" "$@"\n')
            command.chmod(0o755)
        else:
            command.symlink_to(binary)
        source = {
            "claude": {"credentials": "api-key", "variable": "ANTHROPIC_API_KEY"},
            "codex": {"credentials": "api-key", "variable": "FAKE_KEY"},
            "pi": {},
        }[agent.name]
        self.agents_toml(**{agent.name: source})
        for place, text in _files(agent.name, model_url, str(self.work)).items():
            path = home / place
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(text)
            path.chmod(0o600)
            if owner is not None:
                owner.give(path)

    # --- what root types ---

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return kept | {
            "PATH": f"{agents.NODE.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "root-home"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "AMUX_HOME": str(self.hub.home),
            "AMUX_NO_AUTOSTART": "1",
            "FAKE_KEY": "dummy",
            "ANTHROPIC_API_KEY": KEY,
        }

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "amux", *words]

    def amux(
        self, *words: str, cwd: Path | None = None, **environment: str
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            self.argv(*words),
            env=self.environment | environment,
            cwd=cwd or self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def run(
        self, name: str, prompt: str, *words: str, native: tuple[str, ...] = (), **environment: str
    ) -> str:
        """Take a headless turn in a new session, and give the session's id."""
        before = {one["session"] for one in self.sessions()}
        done = self.amux("run", name, "--prompt", prompt, *words, "--", *native, **environment)
        assert done.returncode == 0, done.stderr.decode()
        (found,) = [one["session"] for one in self.sessions() if one["session"] not in before]
        return str(found)

    def refused(self, *words: str, **more: Any) -> dict[str, Any]:
        """Give the refusal that a command ends with."""
        done = self.amux(*words, **more)
        assert done.returncode != 0, done.stdout
        assert done.stdout == b""
        found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])["error"]
        return found

    def sessions(self) -> list[dict[str, Any]]:
        return list(json.loads(self.amux("session", "list").stdout)["sessions"])

    def show(self, session: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.amux("session", "show", session).stdout)
        return found

    # --- what is left ---

    def live_credentials(self) -> list[str]:
        listed = self.hub.ask("token_list")["tokens"]
        assert isinstance(listed, list)
        return [one["session"] for one in listed if one["kind"] == "agent" and one["live"]]

    def left_over(self) -> list[str]:
        """Name what only a live run may have: beside its record, and where runs are made."""
        names = {"session.json", "timeline.jsonl"}
        found = [path for path in self.hub.home.glob("sessions/*/*") if path.name not in names]
        found += list(self.runs.iterdir()) if self.runs.is_dir() else []
        return [str(path) for path in found]

    def memory_of(self, other: Other | None) -> str:
        """Read the entry of somebody's memory, from the Hub's own files; empty if there is none."""
        name = other.name if other else "local"
        texts = [
            path.read_text()
            for path in self.hub.home.glob("memory/users/*/MEMORY.md")
            if path.parent.name == _digest(name)
        ]
        return "".join(texts)


@contextlib.contextmanager
def team(others: list[Other]) -> Iterator[Team]:
    """Give a team whose Hub does not run yet; nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="team-", dir="/var/tmp"))
    folder.chmod(0o755)
    found = Team(folder, *others)
    try:
        yield found
    finally:
        found.hub.kill()
        for other in others:
            other.clear()
        shutil.rmtree(folder, ignore_errors=True)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _files(agent: str, model_url: str, work: str) -> dict[str, str]:
    """Give what a person's own configuration holds, by its place below a home."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    if agent == "codex":
        return {
            ".codex/config.toml": CODEX_MODEL + CODEX_CONFIG.format(url=model_url, work=work),
        }
    if agent == "pi":
        provider = {
            "baseUrl": f"{model_url}/v1",
            "api": "openai-completions",
            "apiKey": "dummy",
            "models": [{"id": "fake-model"}],
        }
        return {".pi/agent/models.json": json.dumps({"providers": {"fake": provider}})}
    about = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "numStartups": 3,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {work: trusted | {"allowedTools": []}},
    }
    names = {
        "ANTHROPIC_BASE_URL": model_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }
    return {
        ".claude.json": json.dumps(about),
        ".claude/settings.json": json.dumps({"env": names}),
    }
