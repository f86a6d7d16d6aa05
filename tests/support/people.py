"""Somebody who starts agents: `amux run`, `amux resume`, with the real programs on their PATH.

Rule 1: what is typed is what a person would type; nothing of amux is called in this process.
"""

import json
import subprocess
from typing import Any

from tests.support import agents
from tests.support.agents import Place
from tests.support.hub import RunningHub
from tests.support.launched import PI_NATIVE
from tests.support.model_server import REVISION, Step, use


class Agent:
    """One agent as a person has it: on the PATH, and configured to ask the scripted model."""

    def __init__(self, name: str, version: str = "") -> None:
        self.name = name
        self.version = version
        self.id = f"{name}-{version}" if version else name

    def install(self, place: Place) -> "Agent":
        binary = {
            "claude": agents.claude,
            "codex": lambda: agents.codex(self.version),
            "pi": lambda: agents.pi(self.version),
        }[self.name]()
        place.program(self.name, binary)
        if self.name == "codex":
            place.configure_codex()
        return self

    @property
    def native(self) -> tuple[str, ...]:
        return PI_NATIVE if self.name == "pi" else ()

    @property
    def has_tools(self) -> bool:
        return self.version != "0.73.1"

    def read(self, path: str = "MEMORY.md") -> Step:
        if self.has_tools:
            return use("memory_get", path=path)
        return use("bash", command=f"amux memory show {path} --json")

    def write(self, text: str, path: str = "MEMORY.md") -> Step:
        """Replace a document at the revision that was read last."""
        if self.has_tools:
            return use("memory_upsert", path=path, content=text, expected_revision=REVISION)
        revision = (
            f'$(amux memory show {path} --json | sed \'s/.*"revision":"\\([^"]*\\)".*/\\1/\')'
        )
        command = f"printf '%s' '{text}' | amux memory upsert {path} --expected-revision {revision}"
        return use("bash", command=command)


CLAUDE = Agent("claude", "2.1.332")
CODEX, OLD_CODEX = (Agent("codex", version) for version in agents.CODEX_VERSIONS)
PI, OLD_PI = Agent("pi", "1.6.0"), Agent("pi", "0.73.1")


class Person:
    """Somebody at a prompt in one place, with one Hub."""

    def __init__(self, place: Place, hub: RunningHub) -> None:
        self.place = place
        self.hub = hub

    def amux(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
        home = {"AMUX_HOME": str(self.hub.home), "AMUX_NO_AUTOSTART": "1"}
        return self.place.run("amux", *words, **(home | environment))

    def run(
        self,
        agent: Agent,
        prompt: str,
        *words: str,
        native: tuple[str, ...] = (),
        **environment: str,
    ) -> str:
        """Take a headless turn in a new session, and give the session's id."""
        before = {one["session"] for one in self.sessions()}
        asked = ("run", agent.name, "--prompt", prompt, *words)
        done = self.amux(*asked, "--", *agent.native, *native, **environment)
        assert done.returncode == 0, done.stderr
        (made,) = [one["session"] for one in self.sessions() if one["session"] not in before]
        return str(made)

    def resume(
        self, session: str, prompt: str, *words: str
    ) -> "subprocess.CompletedProcess[bytes]":
        done = self.amux("resume", session, "--prompt", prompt, *words)
        assert done.returncode == 0, done.stderr
        return done

    def sessions(self) -> list[dict[str, Any]]:
        done = self.amux("session", "list", "--json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["sessions"]
        return found
