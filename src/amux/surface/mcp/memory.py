"""The memory tools: what is offered to the agent, and what a call answers.

Rule 1: unless its set of tools is fixed, the Hub is asked once what it may offer, beside the
        conversation; one is started if none runs. The first listing waits for the answer at most
        500 ms, and decides for the life of this process (M56).
Rule 2: only a definite "memory is off" leaves the tools out. A tool that is not listed can
        still be called: the Hub decides on each call, so that a process outlives both answers.
Rule 3: an answer is the Hub's JSON as it came, but for the note that it is stored text (M79), in
        pages where it is over 6 KiB (M57).
"""

import threading

from amux import __version__
from amux.client import Answer
from amux.errors import AmuxError, MemoryDisabled, PermissionDenied, Unavailable
from amux.memory.limits import CLIENT_WAIT_SECONDS, ENTRY_NAME
from amux.runtime import reach
from amux.runtime.context import Context
from amux.surface.mcp.paging import Paging
from amux.wire import strict
from amux.wire.tools import TOOLS, listing, noted

LIST_WAIT_SECONDS = 0.5  # Codex waits about 1 s for a server, start included (M56)
NO_LISTENER = ("FileNotFoundError", "ConnectionRefusedError")  # what `client` says of a dead Hub


class MemoryTools:
    """The memory tools of one process."""

    def __init__(
        self, context: Context, *, is_offered: bool, is_fixed: bool, paging: Paging
    ) -> None:
        self._context = context
        self._is_offered = is_offered
        self._is_fixed = is_fixed
        self._paging = paging
        self._asking = threading.Lock()
        self._is_asked = False
        self._answered = threading.Event()
        self._is_off = False
        self._deciding = threading.Lock()
        self._listed: list[dict[str, object]] | None = None
        self._starting = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Tell whether this process was told to offer no memory tools at all."""
        return not self._is_offered

    def knows(self, name: str) -> bool:
        """Tell whether a tool may be called here."""
        return name in TOOLS and not self.is_empty

    def ask_once(self) -> None:
        """Begin to ask the Hub what it may offer; nothing where that is fixed, or asked already."""
        with self._asking:
            is_first, self._is_asked = not self._is_asked, True
        if is_first and self._is_offered and not self._is_fixed:
            threading.Thread(target=self._learn, daemon=True).start()

    def listed(self) -> list[dict[str, object]]:
        """Give the tools as `tools/list` shows them: always the same ones."""
        with self._deciding:
            if self._listed is None:
                self._listed = self._decide()
            return self._listed

    def call(self, name: str, given: object) -> str:
        """Call a tool and give its answer; raises the refusal."""
        call = TOOLS[name]
        answer = self._ask(call.name, dict(strict.arguments(call, given)))
        return self._paging.open(noted(answer.text))

    def notice(self, text: str) -> None:
        """Tell a person something, on standard error."""
        try:
            self._context.stderr.write(f"amux: {text}\n".encode(errors="backslashreplace"))
            self._context.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody listens there, and the protocol goes on

    def _decide(self) -> list[dict[str, object]]:
        if self.is_empty:
            return []
        if not self._is_fixed:
            self.ask_once()
            self._answered.wait(LIST_WAIT_SECONDS)
            # A bound session keeps its tools: memory may be switched on again (M7).
            if self._is_off and not self._context.config.binding:
                self.notice(
                    "memory is off, so its tools are left out;"
                    " `amux system config set memory.enabled true` switches it on"
                )
                return []
        return listing()

    def _learn(self) -> None:
        try:
            answer = self._first_answer()
            self._is_off = _says_off(answer.value())
            if answer.hub_version and answer.hub_version != __version__:
                self.notice(
                    f"the Hub is amux {answer.hub_version} and this is {__version__};"
                    " `amux hub restart` is due"
                )
        except MemoryDisabled:
            self._is_off = True
        except (AmuxError, ValueError):
            self.notice("the Hub said nothing of its tools; they refuse until it answers")
        finally:
            self._answered.set()

    def _first_answer(self) -> Answer:
        """Ask how memory stands; who may not know hears it from a read."""
        try:
            return self._ask("status", {})
        except PermissionDenied:
            return self._ask("get", {"path": ENTRY_NAME})

    def _ask(self, name: str, arguments: dict[str, object]) -> Answer:
        """Call the Hub; where none listens, start one and call that."""
        config = self._context.config
        try:
            return reach.client(self._context).ask(name, arguments)
        except Unavailable as refusal:
            is_dead = refusal.details.get("cause") in NO_LISTENER
            if not is_dead or config.no_autostart:
                raise
            # Nothing was sent, so asking the Hub that is started now repeats nothing. Only one
            # thread starts it; the others wait as long as a start may take.
            if not self._starting.acquire(timeout=CLIENT_WAIT_SECONDS):
                raise
        try:
            hub = self._context.late("process").ensure_hub(config, self.notice)
        finally:
            self._starting.release()
        answer: Answer = hub.ask(name, arguments)
        return answer


def _says_off(status: dict[str, object]) -> bool:
    """Tell whether a status says outright that memory is not in force."""
    settings = status.get("settings")
    switch = settings.get("memory.enabled") if isinstance(settings, dict) else None
    return isinstance(switch, dict) and switch.get("effective") is False
