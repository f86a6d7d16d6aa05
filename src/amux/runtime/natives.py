"""Which native sessions an agent begins while it has the terminal: `/new`, `/clear` (R4, R8).

Rule 1: a native session counts where the agent's own process shows it: Codex holds its file open,
        Claude keeps one that names its process. What another agent does in the same directory
        is none of this session's.
Rule 2: Pi shows nothing while it runs: what began in its folder for this directory counts.
Rule 3: looking changes nothing, and what is not found costs an id, never the run.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from amux.disk import named, opened
from amux.runtime import adapters, heard
from amux.runtime.plan import LaunchPlan

LOOK_SECONDS = 1.0  # a look costs a millisecond; a native session lasts at least a typed line
HEAD_MAX_BYTES = 64 * 1024

_ROLLOUT = re.compile(r"/rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$")


class Watch:
    """The native sessions of one run in a terminal."""

    def __init__(self, agent: str, plan: LaunchPlan, note: Callable[[str], None]) -> None:
        self.agent = agent
        self.plan = plan
        self.note = note
        """Told of each once, as soon as it is seen: a launcher may be killed."""
        self._pids: list[int] = []
        self._found: list[str] = []
        self._before: frozenset[str] = frozenset()

    def started(self, pid: int) -> None:
        """Say which process it is."""
        self._pids.append(pid)

    @property
    def has_seen(self) -> bool:
        """Tell whether anything was seen at all."""
        return bool(self._found)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look now and then while the block runs."""
        ended = threading.Event()
        if self.agent == adapters.PI:
            self._before = frozenset(_pi_files(self.plan.environment, self.plan.cwd))

        def look() -> None:
            while not ended.wait(LOOK_SECONDS):
                self._look()

        thread = threading.Thread(target=look, name="natives", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LOOK_SECONDS)
            if self.agent == adapters.PI:
                self._add(_pi_ids(self.plan, self._before))

    def _look(self) -> None:
        for pid in [one for eldest in self._pids for one in opened.family(eldest)]:
            if self.agent == adapters.CODEX:
                matches = (_ROLLOUT.search(path) for path in sorted(opened.files(pid)))
                self._add(match[1] for match in matches if match)
            elif self.agent == adapters.CLAUDE:
                self._add(_claude_ids(self.plan.environment, pid))

    def _add(self, names: Iterator[str]) -> None:
        for name in names:
            if name not in self._found:
                self._found.append(name)
                self.note(name)


def _claude_ids(environment: Mapping[str, str], pid: int) -> Iterator[str]:
    folder = environment.get("CLAUDE_CONFIG_DIR") or f"{environment.get('HOME', '')}/.claude"
    about = heard.parsed(_head(f"{folder}/sessions/{pid}.json"))
    name = about.get("sessionId")
    if about.get("pid") == pid and isinstance(name, str):
        yield name


def _pi_files(environment: Mapping[str, str], cwd: str) -> list[str]:
    folder = environment.get("PI_CODING_AGENT_DIR") or f"{environment.get('HOME', '')}/.pi/agent"
    place = "-".join(part for part in cwd.split("/") if part)
    return named.names_in(f"{folder}/sessions/--{place}--")


def _pi_ids(plan: LaunchPlan, before: frozenset[str]) -> Iterator[str]:
    for path in _pi_files(plan.environment, plan.cwd):
        if path in before:
            continue
        about = heard.parsed(_head(path).partition("\n")[0])
        name = about.get("id")
        if about.get("cwd") == plan.cwd and isinstance(name, str):
            yield name


def _head(path: str) -> str:
    try:
        return named.read(path, max_bytes=HEAD_MAX_BYTES)[:HEAD_MAX_BYTES].decode(
            "utf-8", "replace"
        )
    except OSError:
        return ""
