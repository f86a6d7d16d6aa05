"""Sessions of real agents, composed by their adapters and started here, without `amux run`.

Rule 1: what a launch does is done as it does it: bind, compose, make the files, start, listen.
Rule 2: a session keeps its Bound for all of its runs; a resume passes the same again.
"""

import json
import os
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from amux.core.timeline import Event
from amux.runtime import protocol
from amux.runtime.agents import claude, pi
from amux.runtime.plan import Bound, LaunchPlan, Start
from tests.support.agents import RUN_SECONDS, Place
from tests.support.hub import RunningHub

if TYPE_CHECKING:
    from amux.runtime.plan import Form

TOOLS = ("memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue")
_MARKS = ("cache_control", "output_config")
PI_NATIVE = ("--provider", "fake", "--model", "fake-model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one headless run left."""

    status: int
    out: str
    err: str
    plan: LaunchPlan
    events: tuple[Event, ...]
    failure: str
    refused_step: str

    def of(self, kind: str) -> list[dict[str, object]]:
        """Give the data of the events of one kind."""
        return [dict(event.data) for event in self.events if event.kind == kind]

    @property
    def answer(self) -> str:
        """Give the one answer of a run that succeeded."""
        assert self.status == 0, (self.failure, self.err, self.out)
        (found,) = self.of("answer")
        return str(found["text"])


@dataclass(slots=True, kw_only=True)
class Session:
    """A session of one agent: its native id, and its Bound if it has one."""

    place: Place
    adapter: ModuleType
    command: Path
    version: str
    bound: Bound | None
    directory: Path
    native_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    runs: int = 0

    def start(self, prompt: str | None, *native: str) -> Start:
        """Ask for the first run, or for the next one."""
        is_first = self.runs == 0
        return Start(
            native=native,
            directory=str(self.directory),
            version=self.version,
            session_id=self.native_id if is_first else None,
            resume=None if is_first else self.native_id,
            prompt=prompt,
            read=self._read,
        )

    def plan(self, start: Start, **environment: str) -> LaunchPlan:
        """Compose what is started."""
        plan = LaunchPlan(
            argv=(str(self.command),),
            environment=self.place.environment(**environment),
            cwd=str(self.place.work),
        )
        if self.bound is None:
            found: LaunchPlan = self.adapter.compose_unbound(plan, start)
        else:
            found = self.adapter.compose(plan, self.bound, start)
        return found

    def run(self, prompt: str, *native: str, **environment: str) -> Ran:
        """Run one headless turn; the first starts the session, each later one resumes it."""
        plan = self.plan(self.start(prompt, *native), **environment)
        make(plan)
        done = subprocess.run(
            plan.argv,
            env=dict(plan.environment),
            cwd=plan.cwd,
            input=plan.stdin or "",
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        ran = self.heard(plan, done)
        for found in ran.of("native"):
            self.native_id = str(found["id"])
        self.runs += 1
        return ran

    def heard(self, plan: LaunchPlan, done: subprocess.CompletedProcess[str]) -> Ran:
        """Listen to what a headless run printed."""
        turn = self.adapter.turn()
        events = [event for line in done.stdout.splitlines() for event in turn.events(line)]
        return Ran(
            status=done.returncode,
            out=done.stdout,
            err=done.stderr,
            plan=plan,
            events=(*events, *turn.end()),
            failure=turn.failure,
            refused_step=turn.refused_step,
        )

    def _read(self, path: str) -> str | None:
        try:
            return (self.place.work / path).read_text(encoding="utf-8")
        except OSError:
            return None


def make(plan: LaunchPlan) -> None:
    """Make the files of a plan, for their owner only."""
    for path, text in plan.files.items():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)


class Launcher:
    """Starts sessions in one place, against one Hub."""

    def __init__(self, place: Place, hub: RunningHub) -> None:
        self.place = place
        self.hub = hub

    def claude(self, binary: Path, *, is_bound: bool = True, asks_writes: bool = False) -> Session:
        """Begin a session of Claude Code."""
        return self._session(
            claude, "claude", binary, "2.1.332", "mcp" if is_bound else None, asks_writes
        )

    def pi(self, binary: Path, version: str, *, is_bound: bool = True) -> Session:
        """Begin a session of Pi, in the form that its release has."""
        session = self._session(pi, "pi", binary, version, None, False)
        if is_bound:
            form = pi.form(session.plan(session.start("x")), session.start("x"))
            session.bound = self._bind("pi", form, session.directory, asks_writes=False)
        return session

    def _session(
        self,
        adapter: ModuleType,
        name: str,
        binary: Path,
        version: str,
        form: "Form | None",
        asks_writes: bool,
    ) -> Session:
        command = self.place.bin / name
        directory = self.place.root / "runs" / uuid.uuid4().hex
        directory.mkdir(parents=True)
        agent_id = "claude-code" if name == "claude" else name
        return Session(
            place=self.place,
            adapter=adapter,
            command=command if command.exists() else self.place.program(name, binary),
            version=version,
            bound=self._bind(agent_id, form, directory, asks_writes) if form else None,
            directory=directory,
        )

    def _bind(self, agent_id: str, form: "Form", directory: Path, asks_writes: bool) -> Bound:
        session = uuid.uuid4().hex
        answer = self.hub.ask("bind", session=session, agent=agent_id, delegate=True)
        credential = directory / "credential"
        with open(os.open(credential, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(str(answer["credential"]))
        return Bound(
            session=session,
            agent_id=agent_id,
            binding=str(answer["binding"]),
            hub=self.hub.config.socket_path,
            credential_file=str(credential),
            text=protocol.text(form),
            form=form,
            asks_writes=asks_writes,
            command=(str(self.place.bin / "amux"),),
            tools=TOOLS,
        )


class _Process:
    """One process of an agent that takes lines of JSON and answers with lines of JSON."""

    def __init__(
        self, session: Session, words: Sequence[str], native: Sequence[str], **environment: str
    ) -> None:
        plan = session.plan(session.start(None, *native), **environment)
        make(plan)
        session.runs += 1
        self._process = subprocess.Popen(
            [*plan.argv, *words],
            env=dict(plan.environment),
            cwd=plan.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _ask(self, said: dict[str, Any], ends: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            told: dict[str, Any] = json.loads(line)
            if ends(told):
                return told
        raise AssertionError("the agent ended in the middle of a turn")


class Conversation(_Process):
    """Several turns of Claude Code in one process: what a terminal session is to the model."""

    WORDS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")

    def __init__(self, session: Session, *native: str, **environment: str) -> None:
        super().__init__(session, self.WORDS, native, **environment)

    def say(self, text: str) -> dict[str, Any]:
        """Type one turn, and give its result."""
        said = {"type": "user", "message": {"role": "user", "content": text}}
        return self._ask(said, lambda told: told["type"] == "result")


class PiConversation(_Process):
    """Several turns of Pi in one process."""

    def __init__(self, session: Session, *native: str, **environment: str) -> None:
        super().__init__(session, ("--mode", "rpc"), (*PI_NATIVE, *native), **environment)

    def say(self, text: str) -> None:
        """Type one turn, and wait for its end."""
        self._ask({"type": "prompt", "message": text}, lambda told: told["type"] == "agent_end")

    def command(self, name: str) -> dict[str, Any]:
        """Give a command: `compact`, `new_session`."""
        return self._ask(
            {"type": name},
            lambda told: told["type"] == "response" and told.get("command") == name,
        )


def plain(value: Any) -> Any:
    """Take Claude's marks of cache and effort out: they move from turn to turn by design.

    A text that bears no mark is spelled as a string, so that is one spelling here.
    """
    if isinstance(value, dict):
        kept = {name: plain(inner) for name, inner in value.items() if name not in _MARKS}
        if isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def extends(longer: Iterable[Any], shorter: Iterable[Any]) -> bool:
    """Tell whether one conversation begins with the whole other one."""
    return all(plain(a) == plain(b) for a, b in zip(longer, shorter, strict=False))


class Listener:
    """A socket where a Hub would be, that counts who comes and says nothing."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.count = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> "Listener":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        try:
            while True:
                taken, _ = self._socket.accept()
                self.count += 1
                taken.close()
        except OSError:
            return
