"""Every use case about documents: admit the caller, then hand over.

Rule 1: each method is two statements: who may, then what is done.
Rule 2: only a person at the owner's socket, or with a person's token, may say that what looks
        like a secret is none (M77).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from amux.core import revision
from amux.core.identity import Actor, Caller, Grant
from amux.core.path import DocPath, PathPrefix
from amux.hub.administration import Administration
from amux.hub.gate import Gate
from amux.memory.document import Range, Slice
from amux.memory.search import Found, Query
from amux.memory.service import Checked, Forgotten, Listing, Memory, Steps, Written


class Hub:
    """One memory root, as its callers may use it."""

    def __init__(self, *, gate: Gate, memory: Memory, administration: Administration) -> None:
        self.administration = administration
        self._gate = gate
        self._memory = memory

    def enter(self, caller: Caller) -> Actor:
        """Find out who calls."""
        return self._gate.enter(caller)

    @contextmanager
    def counted(self, actor: Actor, *, is_search: bool) -> Iterator[None]:
        """Count a call while it lasts."""
        with self._gate.counted(actor, is_search=is_search):
            yield

    def search(self, actor: Actor, query: Query, prefix: PathPrefix, limit: int) -> Steps[Found]:
        """Find documents."""
        grant = self._gate.reading(actor, "search", "")
        return self._memory.search(grant.scope, query, prefix, limit)

    def learn(self) -> Steps[None]:
        """Prepare for later searches, while nobody waits for it."""
        return self._memory.learn()

    def get(self, actor: Actor, path: DocPath, part: Range) -> Steps[Slice]:
        """Read a part of a document."""
        grant = self._gate.reading(actor, "get", path.text)
        return self._memory.get(grant.scope, path, part)

    def resume(self, actor: Actor) -> Grant:
        """Admit a look at the next page of an answer that was given before."""
        return self._gate.reading(actor, "resume", "")

    def upsert(
        self,
        actor: Actor,
        path: DocPath,
        data: bytes,
        expected: str,
        *,
        allow_secret_like: bool = False,
    ) -> Written:
        """Replace or create a document; only a person vouches for what is shaped like a secret."""
        wanted = revision.of(data)
        with self._gate.writing(actor, "upsert", path.text, expected, wanted) as write:
            return self._memory.upsert(
                write.grant.scope,
                path,
                data,
                expected,
                allow_secret_like=allow_secret_like and actor.may_vouch,
                announced=write.announced,
            )

    def forget(self, actor: Actor, path: DocPath, expected: str) -> Forgotten:
        """Remove a document."""
        wanted = revision.ABSENT
        with self._gate.writing(actor, "forget", path.text, expected, wanted) as write:
            done = self._memory.forget(write.grant.scope, path, expected, announced=write.announced)
            if done.already_absent:
                write.before = revision.ABSENT
            return done

    def list(self, actor: Actor, prefix: PathPrefix, after: str) -> Steps[Listing]:
        """List documents."""
        grant = self._gate.reading(actor, "list", prefix.text)
        return self._memory.list(grant.scope, grant.principal, prefix, after)

    def check(self, actor: Actor) -> Checked:
        """List the files that are no documents."""
        grant = self._gate.reading(actor, "check", "")
        return self._memory.check(grant.scope)

    def discard(self, actor: Actor, path: str) -> None:
        """Remove one file that is no document."""
        with self._gate.writing(actor, "discard", path, "", "") as write:
            write.announced()
            self._memory.discard(write.grant.scope, path)
