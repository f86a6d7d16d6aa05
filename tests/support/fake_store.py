"""A DocumentStore in memory; it passes the suite of the protocol, so it may be used anywhere."""

from collections.abc import Callable, Iterator, Mapping

from amux.core import revision
from amux.core.identity import Scope
from amux.core.path import DocPath, fold
from amux.errors import InvalidArgument, NotFound, QuotaExceeded
from amux.memory import limits
from amux.memory.document import Document, Missing, Present, require_content, require_size
from amux.memory.store import Broken, Put, Stamp, Ticket, Usage, nothing


class FakeView:
    def __init__(self, documents: dict[str, bytes], times: dict[str, int]) -> None:
        self._documents = documents
        self._times = times
        self.documents: Mapping[str, Stamp] = {}
        self.skipped = 0
        self.is_complete = False

    def refresh(self) -> Iterator[None]:
        self.documents = {
            path: Stamp(len(data), self._times[path], self._times[path], self._times[path])
            for path, data in self._documents.items()
        }
        self.is_complete = True
        yield

    def read(self, path: str) -> bytes | None:
        return self._documents.get(path)


class FakeStore:
    def __init__(self) -> None:
        self._scopes: dict[Scope, dict[str, bytes]] = {}
        self._times: dict[Scope, dict[str, int]] = {}
        self._ticks = 0

    def close(self) -> None:
        """Do nothing; a fake holds nothing open."""

    def read(self, scope: Scope, path: DocPath) -> Document:
        data = self._of(scope).get(path.text)
        return Missing() if data is None else Present(data)

    def pending(self, scope: Scope, path: DocPath | None = None) -> Ticket | None:
        del scope, path
        return None

    def view(self, scope: Scope, *, is_watching: bool = True) -> FakeView:
        del is_watching
        return FakeView(self._of(scope), self._times.setdefault(scope, {}))

    def usage(self, scope: Scope) -> Usage:
        documents = self._of(scope)
        return Usage(len(documents), sum(map(len, documents.values())))

    def put(
        self,
        scope: Scope,
        path: DocPath,
        data: bytes,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> Put:
        announced()
        require_content(data)
        before = self.read(scope, path)
        revision.require(before.revision, expected)
        if isinstance(before, Missing):
            path.require_creatable()
            self._require_free(scope, path)
        require_size(path, data)
        self._require_room(scope, before, data)
        if before.revision == revision.of(data):
            return Put(before.revision, changed=False)
        self._of(scope)[path.text] = data
        self._ticks += 1
        self._times.setdefault(scope, {})[path.text] = self._ticks
        return Put(revision.of(data), changed=True)

    def remove(
        self,
        scope: Scope,
        path: DocPath,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> str:
        announced()
        before = self.read(scope, path)
        if isinstance(before, Missing):
            return revision.ABSENT
        revision.require(before.revision, expected)
        del self._of(scope)[path.text]
        return before.revision

    def broken(self, scope: Scope) -> list[Broken]:
        del scope
        return []

    def discard(self, scope: Scope, path: str) -> None:
        raise NotFound("nothing in memory is broken", scope=scope.name, path=path)

    def _of(self, scope: Scope) -> dict[str, bytes]:
        return self._scopes.setdefault(scope, {})

    def _require_free(self, scope: Scope, path: DocPath) -> None:
        for other in self._of(scope):
            theirs = other.split("/")
            for depth, (mine, its) in enumerate(zip(path.segments, theirs, strict=False), 1):
                if mine != its:
                    if fold(mine) == fold(its):
                        raise InvalidArgument("a twin", reason="case_collision")
                    break
                if depth == len(path.segments):
                    raise InvalidArgument("a folder", reason="is_folder")
                if depth == len(theirs):
                    raise InvalidArgument("a document", reason="not_a_folder")

    def _require_room(self, scope: Scope, before: Document, data: bytes) -> None:
        used = self.usage(scope)
        is_new = isinstance(before, Missing)
        growth = len(data) - (len(before.data) if isinstance(before, Present) else 0)
        if (is_new and used.documents >= limits.SCOPE_MAX_DOCUMENTS) or (
            growth > 0 and used.bytes + growth > limits.SCOPE_MAX_BYTES
        ):
            raise QuotaExceeded("full", documents=used.documents, bytes=used.bytes)
