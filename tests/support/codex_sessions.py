"""Sessions of the real Codex, probed, composed and spoken with as a launch does it."""

import os
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

from amux.core.timeline import Event
from amux.runtime import conversation, probe, process, protocol
from amux.runtime.agents import codex
from amux.runtime.appserver import AppServer
from amux.runtime.plan import Bound, LaunchPlan, Start
from amux.runtime.programs import Programs
from tests.support.agents import Place
from tests.support.hub import RunningHub

TOOLS = ("memory_search", "memory_get", "memory_upsert", "memory_forget", "result_continue")


@dataclass(slots=True, kw_only=True)
class Ran:
    """What one headless turn left."""

    plan: LaunchPlan
    events: list[Event]
    failure: str

    def of(self, kind: str) -> list[dict[str, object]]:
        """Give the data of the events of one kind."""
        return [dict(event.data) for event in self.events if event.kind == kind]

    @property
    def answer(self) -> str:
        """Give the one answer of a turn that went well."""
        assert not self.failure, self.failure
        (found,) = self.of("answer")
        return str(found["text"])


@dataclass(slots=True, kw_only=True)
class Session:
    """A bound session: the same Bound for all of its runs."""

    place: Place
    command: Path
    bound: Bound
    programs: Programs
    thread: str | None = None
    runs: list[Ran] = field(default_factory=list)

    def start(self, prompt: str | None, *native: str) -> Start:
        """Ask for the first run, or for the next one."""
        return Start(
            native=native,
            directory=str(self.place.root),
            version="",
            resume=self.thread,
            prompt=prompt,
        )

    def plan(self, prompt: str | None, *native: str, **environment: str) -> LaunchPlan:
        """Probe and compose what is started."""
        plan = LaunchPlan(
            argv=(str(self.command),),
            environment=self.place.environment(**environment),
            cwd=str(self.place.work),
        )
        start = self.start(prompt, *native)
        known = probe.codex_effective(plan, self.bound, start, self.programs)
        return codex.compose(plan, self.bound, start, known)

    def run(self, prompt: str, *native: str, **environment: str) -> Ran:
        """Run one headless turn in a process of its own; the first begins the thread."""
        plan = self.plan(prompt, *native, **environment)
        assert plan.opening is not None
        with served(plan) as server:
            turn = codex.app_turn()
            events = list(conversation.converse(server, plan.opening, turn))
        ran = Ran(plan=plan, events=events, failure=turn.failure)
        self.thread = str(ran.of("native")[0]["id"])
        self.runs.append(ran)
        return ran


class served:  # noqa: N801 - used as a function is
    """`with served(plan) as server`: an app-server that is gone afterwards."""

    def __init__(self, plan: LaunchPlan) -> None:
        self._plan = plan

    def __enter__(self) -> AppServer:
        plan = self._plan
        self.child = process.spawn(
            plan.argv, plan.environment, plan.cwd, has_pipes=True, keeps_stderr=True, own_group=True
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        return AppServer(self.child.stdout.read, self.child.stdin.write)

    def __exit__(self, *_: object) -> None:
        self.child.end(2.0)


def begin(
    place: Place, hub: RunningHub, binary: Path, *, asks_writes: bool = False, verbs: str = ""
) -> Session:
    """Bind a new session of Codex."""
    command = place.bin / "codex"
    if not command.exists():
        place.program("codex", binary)
    session = uuid.uuid4().hex
    more = {"verbs": verbs} if verbs else {}
    answer = hub.ask("bind", session=session, agent="codex", delegate=True, **more)
    credential = place.root / f"credential-{session}"
    with open(os.open(credential, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(str(answer["credential"]))
    bound = Bound(
        session=session,
        agent_id="codex",
        binding=str(answer["binding"]),
        hub=hub.config.socket_path,
        credential_file=str(credential),
        text=protocol.text("mcp"),
        form="mcp",
        asks_writes=asks_writes,
        command=(str(place.bin / "amux"),),
        tools=TOOLS,
    )
    programs = Programs(str(place.root / "programs"))
    return Session(place=place, command=command, bound=bound, programs=programs)


def with_text(session: Session, text: str) -> Session:
    """Give a session another protocol text, as an older release might have."""
    return replace(session, bound=session.bound.replace(text=text))
