"""One run of a session: the agent's process from its start to its end, and what is noted of it.

Rule 1: a headless turn is heard line by line; in a terminal amux says nothing until it ends.
Rule 2: nothing is added between turns: what the agent was started with is all (R23).
Rule 3: whatever happens, the process is gone when this returns, what only it needed is removed,
        and how it ended is noted.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress

from amux import __version__
from amux.core import timeline
from amux.core.late import Late
from amux.core.timeline import Event
from amux.core.value import Value
from amux.disk import named
from amux.errors import AmuxError, LaunchRefused, NotSaved
from amux.runtime import adapters, binding, process, terminal
from amux.runtime import record as records
from amux.runtime.binding import IsBound, Outcome
from amux.runtime.composing import Composed
from amux.runtime.context import Context
from amux.runtime.heard import Turn
from amux.runtime.isolation import Place
from amux.runtime.plan import LaunchPlan, Opening
from amux.runtime.process import Child
from amux.runtime.record import Record
from amux.runtime.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.disk import handed
    from amux.runtime import appserver, conversation, natives, probe, proxy, rundir
    from amux.runtime import user as users
else:
    handed = Late("amux.disk.handed")
    appserver = Late("amux.runtime.appserver")
    conversation = Late("amux.runtime.conversation")
    natives = Late("amux.runtime.natives")
    probe = Late("amux.runtime.probe")
    proxy = Late("amux.runtime.proxy")
    rundir = Late("amux.runtime.rundir")
    users = Late("amux.runtime.user")

Says = Callable[[Child, Turn], Iterator[Event]]

PLACEHOLDER = "none"  # stands for a credential that is still to come; no Hub knows it
CA_MAX_BYTES = 1024 * 1024
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
        place: Place,
        is_resumed: bool = False,
    ) -> None:
        self.ctx = ctx
        self.sessions = sessions
        self.record = record
        self.tell = tell
        self.place = place
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
        self.sessions.log(
            self.session, event, at=records.instant(self.ctx.wall()), run=self.record.runs
        )

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
            self._make_files(made, credential)
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
        with self._kept_alive(made.plan, credential) if credential else nullcontext():
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
        watch = natives.Watch(made.state.agent, plan, lambda name: self.note(timeline.native(name)))
        try:
            with watch.watching():
                if plan.runs_as is not None:
                    status = proxy.run(plan, plan.runs_as, watch.started)
                else:
                    status = terminal.run(plan.argv, plan.environment, plan.cwd, watch.started)
        except OSError as error:
            raise not_started(error) from error
        if made.state.agent == adapters.CODEX and not watch.has_seen:
            # It takes no id from outside; where the kernel shows no open files it is asked.
            for name in probe.codex_threads(plan, began):
                self.note(timeline.native(name))
        return Done(session=self.session, status=status)

    def _make_files(self, made: Composed, credential: str) -> None:
        place, step = self.place, "files"
        try:
            if place.home:
                step = "isolation"
                self._make_elsewhere(made, credential)
            if place.directory is None:
                if credential:
                    self.sessions.put_credential(self.session, credential)
                self.sessions.put_files(self.session, made.plan.files)
        except (OSError, handed.NotTrustedError) as error:
            raise LaunchRefused(
                "the files of the run could not be made",
                hint="see that AMUX_HOME, and where runs are made, can be written and have room",
                step=step,
                cause=type(error).__name__,
            ) from error

    def _make_elsewhere(self, made: Composed, credential: str) -> None:
        """Make what an isolated run has outside of its session's directory; noted before."""
        place, uid = self.place, self.place.user.uid if self.place.user else users.own_uid()
        new, shared = place.copy_paths(), self.sessions.copies_in_use(self.session)
        noted = [path for path in place.copies if path in new or path in shared]
        self.sessions.note_elsewhere(
            self.session, rundir.elsewhere(uid, place.base, place.user, noted)
        )
        for path in place.copies:
            if path in new:
                place.copy(path)
            elif path not in shared:
                text = f"{path} stands in that home already, and is kept: nothing is copied"
                self.warn(text)
                self.note(timeline.warning(text))
        if place.directory is not None:
            memory = self._memory(made, credential) if credential else {}
            place.directory.make(made.plan.files, memory)

    def _memory(self, made: Composed, credential: str) -> dict[str, tuple[bytes, int]]:
        """Give what the run of another user reaches its Hub by: the command line, and how."""
        program = self.ctx.late("bundle").program(self.place.python, self.ctx.config.home)
        found = {
            rundir.COMMAND: (program, 0o555),
            rundir.CONNECTION: (self._connection(made.plan, credential), 0o400),
        }
        ca_file = self.ctx.config.connection.ca_file
        if ca_file:
            found[rundir.CA_FILE] = (named.read(ca_file, max_bytes=CA_MAX_BYTES), 0o444)
        return found

    def _connection(self, plan: LaunchPlan, credential: str) -> bytes:
        names = plan.environment
        return rundir.connection(
            names["AMUX_HUB"],
            names["AMUX_MEMORY_BINDING"],
            credential,
            names.get("AMUX_CA_FILE", ""),
        )

    def _kept_alive(self, plan: LaunchPlan, credential: str) -> AbstractContextManager[None]:
        def renewed(text: str) -> None:
            if self.place.directory is None:
                self.sessions.put_credential(self.session, text)
            else:
                self.place.directory.put_connection(self._connection(plan, text))

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
        child = process.spawn(
            plan.argv,
            plan.environment,
            plan.cwd,
            has_pipes=True,
            own_group=True,
            runs_as=plan.runs_as,
        )
    except OSError as error:
        raise not_started(error) from error
    if plan.runs_as is not None:
        child.relay_complaints()
    try:
        for event in says(child, turn):
            note(event)
            if event.kind == "answer":
                answers.append(str(event.data.get("text", "")))
    finally:
        # First of all: an agent that never began is not told for one that says too little.
        try:
            child.require_started()
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
        yield from conversation.converse(
            appserver.AppServer(child.read, child.write), opening, turn
        )

    return says


def not_started(error: OSError) -> LaunchRefused:
    """Make the refusal of a process that could not begin."""
    return LaunchRefused(
        "the agent's process could not be started",
        hint="see that its program may be run, and that the directory exists",
        step="start",
        cause=type(error).__name__,
    )
