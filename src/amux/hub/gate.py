"""The way into every call: who it is, how much they may ask, and a line about it.

Rule 1: whoever is refused here learns nothing but the refusal, and leaves a line.
Rule 2: a write is announced before it is made and closed after, whatever happens between (M73).
Rule 3: a credential has so many calls at once, and a delegated one so many writes a second (M76).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from amux.core.identity import Actor, Caller, Grant
from amux.errors import AmuxError
from amux.hub.access import Access
from amux.hub.audit import Audit, Intent
from amux.hub.rates import Rates

OK = "ok"


class Write:
    """An admitted write: its grant, and the announcement to wait for before the rename."""

    __slots__ = ("_intent", "after", "grant")

    def __init__(self, grant: Grant, intent: Intent) -> None:
        self.grant = grant
        self.after = ""
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
            self._audit.decision(None, "authenticate", "", refusal.code)
            raise

    @contextmanager
    def counted(self, actor: Actor, *, is_search: bool) -> Iterator[None]:
        """Count a call while it lasts."""
        with self._rates.call(actor.alias, is_search=is_search):
            yield

    def reading(self, actor: Actor, verb: str, path: str) -> Grant:
        """Admit a read."""
        with self._noted(actor, verb, path):
            return self._access.data(actor, "read")

    @contextmanager
    def writing(
        self, actor: Actor, verb: str, path: str, before: str, *, must_announce: bool
    ) -> Iterator[Write]:
        """Admit and announce a write, and say how it ended."""
        with self._noted(actor, verb, path, only_refusals=True):
            grant = self._access.data(actor, "write")
            if actor.is_delegated:
                self._rates.write(actor.alias, self._clock())
        intent = self._audit.intent(grant, verb, path, before, must=must_announce)
        write = Write(grant, intent)
        outcome = "abandoned"
        try:
            yield write
            outcome = OK
        except AmuxError as refusal:
            outcome = str(refusal.code)
            raise
        finally:
            intent.close(outcome, after=write.after)

    @contextmanager
    def administering(self, actor: Actor, verb: str, subject: str) -> Iterator[None]:
        """Note an administrator's call and how it ended."""
        with self._noted(actor, verb, subject):
            yield

    @contextmanager
    def _noted(
        self, actor: Actor, verb: str, path: str, *, only_refusals: bool = False
    ) -> Iterator[None]:
        try:
            yield
        except AmuxError as refusal:
            self._audit.decision(actor, verb, path, refusal.code)
            raise
        if not only_refusals:
            self._audit.decision(actor, verb, path, OK)
