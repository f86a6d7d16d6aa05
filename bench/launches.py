"""What `amux run` adds to an agent's own start: real agents, a scripted model, a Hub with memory.

Rule 1: a start ends when the model is asked for the first time; all starts are of the same agent,
        in the same home, with the same prompt, in turn.
Rule 2: the budget is over the bare agent. Part of that is the agent's own: it starts an MCP server
        and waits for it. So each agent is also started with that server entered by hand.
Rule 3: Codex is asked first what it would do (R14); the answer is kept for its version and
        configuration, and the figure with the budget of 350 ms is without that answer.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from amux.core import home
from bench.measure import Figure
from tests.support import agents
from tests.support.agents import Place
from tests.support.hub import RunningHub, running_hub
from tests.support.model_server import ModelServer

ROUNDS = 11
ADDED_MS = 150.0
PROBED_MS = 350.0
PROMPT = "Say hi."
PI = ("--provider", "fake", "--model", "fake-model")


def figures() -> Iterator[Figure]:
    """Measure each agent; where `make agents` has not run, say so and measure none."""
    if not agents.NODE.exists():
        print("launches: no agents here; `make agents` installs them", file=sys.stderr)
        return
    with ModelServer({}) as model:
        place = Place(model.url)
        try:
            with running_hub(place.root / "root") as hub:
                yield from Launches(place, hub, model).figures()
        finally:
            place.remove()


class Launches:
    """Starts of the three agents in one place."""

    def __init__(self, place: Place, hub: RunningHub, model: ModelServer) -> None:
        self._place = place
        self._hub = hub
        self._model = model
        self._amux = str(place.bin / "amux")
        self._known = Path(hub.home) / home.RUN_DIR / home.PROGRAMS_FILE

    def figures(self) -> Iterator[Figure]:
        """Give what is added to each agent's start."""
        claude = str(self._place.program("claude", agents.claude()))
        codex = str(self._place.program("codex", agents.codex()))
        pi = str(self._place.program("pi", agents.pi()))
        self._place.configure_codex()
        self._place.trust_claude()
        entry = {
            "command": self._amux,
            "args": ["mcp", "--tools", "memory"],
            "env": {"AMUX_HOME": str(self._hub.home)},
        }
        yield from self._added(
            "claude",
            bare=[claude, "-p", PROMPT],
            by_hand=["--mcp-config", json.dumps({"mcpServers": {"amux": entry}})],
        )
        yield from self._added(
            "codex",
            bare=[codex, "exec", "--skip-git-repo-check", PROMPT],
            by_hand=[
                word
                for key, value in entry.items()
                for word in ("-c", f"mcp_servers.amux.{key}={_toml(value)}")
            ],
        )
        extension = self._place.root / "server.cjs"
        direct = json.dumps(entry | {"exposure": "direct"})
        extension.write_text(f'module.exports = (pi) => pi.registerMcpServer("amux", {direct});\n')
        yield from self._added(
            "pi", bare=[pi, *PI, "-p", PROMPT], by_hand=["-e", str(extension)], native=PI
        )
        yield self._unknown([codex, "exec", "--skip-git-repo-check", PROMPT])

    def _added(
        self, agent: str, *, bare: list[str], by_hand: list[str], native: Sequence[str] = ()
    ) -> Iterator[Figure]:
        ours = [self._amux, "run", agent, "--prompt", PROMPT, *(["--", *native] if native else [])]
        launched, alone, entered = self._medians([ours, bare, [*bare, *by_hand]])
        yield _figure(f"amux run {agent}, added", launched - alone, ADDED_MS, alone, "bare")
        yield _figure(
            f"amux run {agent}, added", launched - entered, ADDED_MS, entered, "with amux mcp"
        )

    def _unknown(self, bare: list[str]) -> Figure:
        """Measure Codex where nothing is known of it."""
        ours = [self._amux, "run", "codex", "--prompt", PROMPT]
        launched, alone = self._medians(
            [ours, bare], before=lambda: self._known.unlink(missing_ok=True)
        )
        return _figure("amux run codex, asked first", launched - alone, PROBED_MS, alone, "bare")

    def _medians(
        self, starts: Sequence[list[str]], *, before: Callable[[], object] = lambda: None
    ) -> list[float]:
        times: list[list[float]] = [[] for _ in starts]
        for _ in range(ROUNDS + 1):  # the first warms up
            for argv, taken in zip(starts, times, strict=True):
                before()
                taken.append(self._until_asked(argv))
        return [statistics.median(taken[1:]) for taken in times]

    def _until_asked(self, argv: Sequence[str]) -> float:
        """Start an agent; give the seconds until the model was asked."""
        known = len(self._model.asked)
        begun = time.perf_counter()
        process = subprocess.Popen(
            argv,
            env=self._place.environment(AMUX_HOME=str(self._hub.home)),
            cwd=self._place.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._model.wait(lambda server: len(server.asked) > known)
        taken = time.perf_counter() - begun
        process.wait(agents.RUN_SECONDS)
        return taken


def _figure(name: str, seconds: float, bound: float, alone: float, how: str) -> Figure:
    return Figure(
        name=name,
        ours=seconds * 1000,
        peer=None,
        unit="ms",
        bound=bound,
        of=f"to {alone * 1000:.0f} ms of the agent, {how}",
    )


def _toml(value: object) -> str:
    """Spell text, lists and tables of text inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
