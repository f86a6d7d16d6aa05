"""One run of a session: the agent's process from its start to its end, and what is noted of it.

Rule 1: a headless turn is heard line by line; in a terminal amux says nothing until it ends.
Rule 2: nothing is added between turns: what the agent was started with is all (R23).
Rule 3: whatever happens, the process is gone when this returns, what only it needed is removed,
        and how it ended is noted.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from typing import TypeAlias

from amux import __version__
from amux.core import timeline
from amux.core.timeline import Event
from amux.core.value import Value
from amux.errors import AmuxError, LaunchRefused, NotSaved
from amux.runtime import adapters, binding, conversation, probe, process, terminal
from amux.runtime.appserver import AppServer
from amux.runtime.binding import IsBound, Outcome
from amux.runtime.composing import Composed
from amux.runtime.context import Context
from amux.runtime.heard import Turn
from amux.runtime.natives import Watch
from amux.runtime.plan import LaunchPlan, Opening
from amux.runtime.process import Child
from amux.runtime.record import Record
from amux.runtime.sessions import Sessions

Says: TypeAlias = Callable[[Child, Turn], Iterator[Event]]

PLACEHOLDER = "none"  # stands for a credential that is still to come; no Hub knows it
FAILURE_MAX_CHARACTERS = 500  # of an agent's own words
_ASKED_FOR = ("asked",)  # who asked for no memory need not be told that there is none


class Done(Value):
    """How a run ended."""

    session: str = ""
    status: int
    answer: str | None = None
    """Of a headless turn; None in a terminal, and where the turn failed."""
    failure: str = ""
    """What went wrong in a headless turn, in the agent's words."""


class Run:
    """One run, while it goes on."""

    def __init__(
        self,
        *,
        ctx: Context,
        sessions: Sessions,
        record: Record,
        tell: Callable[[str], None],
        is_resumed: bool = False,
    ) -> None:
        self.ctx = ctx
        self.sessions = sessions
        self.record = record
        self.tell = tell
        self.is_resumed = is_resumed
        self._warnings: list[str] = []

    @property
    def session(self) -> str:
        """Name its session."""
        return self.record.start.session

    def begin(self) -> None:
        """Save the record; raises the refusal where it cannot be."""
        self.record = self.record.with_run()
        self.sessions.write(self.record)

    def note(self, event: Event) -> None:
        """Add to the timeline; a native session is added to the record too."""
        if event.kind == "native":
            changed = self.record.with_native(str(event.data.get("id")))
            if changed == self.record:
                return
            self.record = changed
            with suppress(NotSaved):  # it costs a native id, never the run
                self.sessions.write(changed)
        at = datetime.fromtimestamp(self.ctx.wall(), UTC)
        self.sessions.log(self.session, event, at=at, run=self.record.runs)

    def warn(self, text: str) -> None:
        """Tell a person something now, and once more when a terminal is given back."""
        self._warnings.append(text)
        self.tell(text)

    def through(self, made: Composed, outcome: Outcome, credential: str) -> Done:
        """Make the files, start the process, and stay until it ends."""
        plan, state = made.plan, made.state
        self.note(
            timeline.start(
                amux=__version__,
                agent=state.agent,
                version=state.agent_version,
                is_resumed=self.is_resumed,
                is_headless=made.prompt is not None,
            )
        )
        self.note(timeline.binding(outcome.outcome, outcome.reason))
        if not isinstance(outcome, IsBound) and outcome.cause not in _ASKED_FOR:
            self.warn(f"this session has no memory: {outcome.reason} ({outcome.cause})")
        for text in (*plan.warnings, *made.notes):
            self.warn(text)
        for text in self._warnings:
            self.note(timeline.warning(text))
        try:
            self._make_files(plan, credential)
            done = self._run(made, credential)
        except LaunchRefused as refusal:
            self.note(timeline.exit(None, str(refusal.details.get("step", ""))))
            raise
        except BaseException:
            self.note(timeline.exit(None, "broken off"))
            raise
        finally:
            with terminal.undisturbed():
                self.sessions.sweep(self.session)
        self.note(timeline.exit(done.status, done.failure))
        return done

    def _run(self, made: Composed, credential: str) -> Done:
        with self._kept_alive(credential) if credential else nullcontext():
            if made.prompt is not None:
                self.note(timeline.prompt(made.prompt))
                if made.plan.opening is not None:
                    turn, says = adapters.app_turn(), _conversed(made.plan.opening)
                else:
                    turn, says = adapters.turn(made.state.agent), _listened(made.plan.stdin or "")
                return _headless(made.plan, self.session, turn, says, self.note)
            done = self._in_terminal(made)
        for text in self._warnings:
            self.tell(text)
        return done

    def _in_terminal(self, made: Composed) -> Done:
        """Hand the terminal to the agent until it ends, and see which sessions it begins."""
        plan, began = made.plan, self.ctx.wall()
        watch = Watch(made.state.agent, plan, lambda name: self.note(timeline.native(name)))
        try:
            with watch.watching():
                status = terminal.run(plan.argv, plan.environment, plan.cwd, watch.started)
        except OSError as error:
            raise not_started(error) from error
        if made.state.agent == adapters.CODEX and not watch.has_seen:
            # It takes no id from outside; where the kernel shows no open files it is asked.
            for name in probe.codex_threads(plan, began):
                self.note(timeline.native(name))
        return Done(session=self.session, status=status)

    def _make_files(self, plan: LaunchPlan, credential: str) -> None:
        try:
            if credential:
                self.sessions.put_credential(self.session, credential)
            self.sessions.put_files(self.session, plan.files)
        except OSError as error:
            raise LaunchRefused(
                "the files of the run could not be made",
                hint="see that AMUX_HOME can be written",
                step="files",
                cause=type(error).__name__,
            ) from error

    def _kept_alive(self, credential: str) -> AbstractContextManager[None]:
        def renewed(text: str) -> None:
            self.sessions.put_credential(self.session, text)

        def warn(refusal: AmuxError) -> None:
            self.note(timeline.warning(f"the credential is not renewed ({refusal.code})"))

        return binding.kept_alive(
            self.ctx,
            self.session,
            renewed if credential == PLACEHOLDER else None,
            warn,
        )


def _headless(
    plan: LaunchPlan, session: str, turn: Turn, says: Says, note: Callable[[Event], None]
) -> Done:
    """Have the agent take one turn, and hear what it does."""
    answers: list[str] = []
    try:
        # A group of its own: whatever the agent started is ended with it.
        child = process.spawn(plan.argv, plan.environment, plan.cwd, has_pipes=True, own_group=True)
    except OSError as error:
        raise not_started(error) from error
    try:
        for event in says(child, turn):
            note(event)
            if event.kind == "answer":
                answers.append(str(event.data.get("text", "")))
    finally:
        status = child.end()
    if turn.refused_step:
        raise LaunchRefused(
            "the agent could not be started as a session needs it",
            hint=turn.failure[:FAILURE_MAX_CHARACTERS],
            step=turn.refused_step,
            cause="refused",
        )
    failure = turn.failure or ("" if answers else "it ended without an answer")
    if answers and not failure:
        status = 0  # of a process that was ended when it had answered
    return Done(
        session=session,
        status=status or (1 if failure else 0),
        answer=None if failure else answers[-1],
        failure=failure[:FAILURE_MAX_CHARACTERS],
    )


def _listened(prompt: str) -> Says:
    """Hear an agent that says lines of JSON and ends."""

    def says(child: Child, turn: Turn) -> Iterator[Event]:
        child.feed(prompt)
        for line in child.lines():
            yield from turn.events(line)
        # An agent that closed its output and lives on has nothing more to say.
        child.wait(process.GRACE_SECONDS)
        yield from turn.end()

    return says


def _conversed(opening: Opening) -> Says:
    """Hear an app-server, which goes on until it is ended."""

    def says(child: Child, turn: Turn) -> Iterator[Event]:
        yield from conversation.converse(AppServer(child.read, child.write), opening, turn)

    return says


def not_started(error: OSError) -> LaunchRefused:
    """Make the refusal of a process that could not begin."""
    return LaunchRefused(
        "the agent's process could not be started",
        hint="see that its program may be run, and that the directory exists",
        step="start",
        cause=type(error).__name__,
    )
