"""The way into every call: who it is, how much they may ask, and a line about it.

Rule 1: whoever is refused here learns nothing but the refusal, and leaves a line.
Rule 2: a write is announced before it is made and closed after, whatever happens between (M73).
Rule 3: a credential has so many calls at once, and a delegated one so many writes a second (M76).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from amux.core.identity import Actor, Caller, Grant
from amux.errors import AmuxError, Code
from amux.hub.access import Access
from amux.hub.audit import Audit, Intent
from amux.hub.rates import Rates

OK = "ok"


class Write:
    """An admitted write: its grant, and the announcement to wait for before the rename."""

    __slots__ = ("_intent", "before", "grant")

    def __init__(self, grant: Grant, intent: Intent, before: str) -> None:
        self.grant = grant
        self.before = before
        self._intent = intent

    def announced(self) -> None:
        """Return when the announcement is durable."""
        self._intent.wait()


class Gate:
    """Access, rates and audit of one Hub, as every call passes them; safe for threads."""

    def __init__(
        self, *, access: Access, rates: Rates, audit: Audit, clock: Callable[[], float]
    ) -> None:
        self._access = access
        self._rates = rates
        self._audit = audit
        self._clock = clock

    def enter(self, caller: Caller) -> Actor:
        """Find out who calls."""
        try:
            return self._access.authenticate(caller)
        except AmuxError as refusal:
            self._audit.stranger(caller, refusal.code)
            raise

    @contextmanager
    def counted(self, actor: Actor, *, is_search: bool) -> Iterator[None]:
        """Count a call while it lasts; all processes of the owner's uid are no one credential."""
        if actor.is_owner and not actor.has_token:
            yield
            return
        with ExitStack() as counting:
            with self._noted(actor, "search" if is_search else "call", {}, only_refusals=True):
                counting.enter_context(self._rates.call(actor.alias, is_search=is_search))
            yield

    def reading(self, actor: Actor, verb: str, path: str) -> Grant:
        """Admit a read."""
        with self._noted(actor, verb, {"path": path}):
            return self._access.data(actor, "read")

    @contextmanager
    def writing(
        self, actor: Actor, verb: str, path: str, before: str, wanted: str
    ) -> Iterator[Write]:
        """Admit and announce a write to `wanted`, and say how it ended.

        Only an upsert must be announced: what takes away is what makes room on a full disk.
        """
        with self._noted(actor, verb, {"path": path}, only_refusals=True):
            grant = self._access.data(actor, "write")
            if actor.is_delegated:
                self._rates.write(actor.alias, self._clock())
        must = verb == "upsert"
        intent = self._audit.intent(grant, verb, path=path, before=before, after=wanted, must=must)
        write = Write(grant, intent, before)
        outcome = str(Code.INTERNAL)
        try:
            yield write
            outcome = OK
        except AmuxError as refusal:
            outcome = str(refusal.code)
            raise
        finally:
            intent.close(outcome, before=write.before, after=wanted if outcome == OK else "")

    @contextmanager
    def administering(
        self, actor: Actor, verb: str, about: dict[str, str], *, only_refusals: bool
    ) -> Iterator[None]:
        """Note a call that is not about documents and how it ended; `about` may grow meanwhile."""
        with self._noted(actor, verb, about, only_refusals=only_refusals):
            yield

    @contextmanager
    def _noted(
        self, actor: Actor, verb: str, about: dict[str, str], *, only_refusals: bool = False
    ) -> Iterator[None]:
        outcome = str(Code.INTERNAL)
        try:
            yield
            outcome = OK
        except AmuxError as refusal:
            outcome = str(refusal.code)
            raise
        finally:
            if outcome != OK or not only_refusals:
                self._audit.decision(actor, verb, outcome, **about)
