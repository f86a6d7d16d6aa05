"""One scope's text in memory, read and searched in steps of at most 1 ms.

Rule 1: a search is a generator: between two steps other calls are served, on the same thread
        (M42). Several searches of a scope go on between each other's steps, and one may be
        closed at any of them; what it has read so far stays for the others.
Rule 2: a search sees every change made before it began: it waits for a walk of the scope that
        began after it did, and drives that walk itself (M9).
Rule 3: only folded text is kept, and within `_KEEP_MAX_BYTES`. Files stay the only copy: what
        a hit shows is read from the disk again, and scored again if it changed (M43).
Rule 4: it stops at its deadline, or at the limits of files and bytes, and says so (M39, M44).
Rule 5: of a large scope a sieve learns which texts cannot hold a term. It only spares comparisons:
        answers are the same without it, and with any part of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from amux.core import revision
from amux.core.path import PathPrefix
from amux.memory import limits
from amux.memory.fold import fold, pieces
from amux.memory.match import match
from amux.memory.pace import Pace, Steps
from amux.memory.search import Found, Hit, Query, TermCount, matched, rank, share
from amux.memory.shelf import Shelf, Text
from amux.memory.sieve import Sieve
from amux.memory.snippet import Place, first_line, lines, settle, snippet
from amux.memory.store import Stamp, View
from amux.memory.title import Title, title
from amux.memory.windows import cut

_BATCH_BYTES = 256 * 1024  # read before it is searched, when texts are missing
_MATCH_SECONDS = 0.030  # kept back from the deadline for searching what was just read
_KEEP_MAX_BYTES = 2 * limits.SCOPE_MAX_BYTES  # text made for it grows elevenfold when folded
_SIEVE_MIN_BYTES = 1024 * 1024  # what is less is compared sooner than a sieve is asked
_SIEVE_AGES = 2  # so many times what is kept may a sieve know
_ROUNDS = 4  # how often hits that change under the search are ranked anew


@dataclass(slots=True)
class _Sweep:
    """How far a query got: the texts that were searched, one row a term, one byte a text."""

    begin: int
    rows: list[bytearray]
    texts: list[Text] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    incomplete: bool = False

    @property
    def has_matches(self) -> bool:
        """Tell whether any term occurred anywhere."""
        return any(1 in row for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Winner:
    """A document of the answer as it is on disk now, and what of it is to be shown."""

    hit: Hit
    data: bytes
    place: Place
    needles: tuple[bytes, ...]


class Scan:
    """Searches one scope; not safe for two threads, safe for many searches on one."""

    def __init__(self, view: View, *, clock: Callable[[], float]) -> None:
        self._view = view
        self._clock = clock
        self._kept: dict[str, Text] = {}
        self._kept_bytes = 0
        self._shelf = Shelf({}, {}, skipped=0, is_complete=False)
        self._state: tuple[dict[str, Stamp], int, bool] = ({}, 0, False)
        self._walk: Iterator[None] | None = None
        self._walks_begun = 0
        self._walks_done = 0
        self._sieve = Sieve()

    @property
    def kept_bytes(self) -> int:
        """Count the bytes of text that are kept."""
        return self._kept_bytes

    def search(self, query: Query, prefix: PathPrefix, limit: int) -> Steps[Found]:
        """Find the best `limit` documents.

        Each step tells how many seconds to wait before the next one, 0.0 for none.
        """
        pace = Pace(self._clock)
        is_fresh = yield from self._refresh(pace)
        shelf = self._shelf
        sweep = yield from self._sweep(shelf, query, prefix, pace)
        if is_fresh and not sweep.incomplete and not sweep.has_matches:
            relaxed = query.relax()  # what is left of the time is all it gets
            if relaxed:
                query = relaxed
                sweep = yield from self._sweep(shelf, query, prefix, pace)
        sweep.incomplete = sweep.incomplete or not is_fresh
        return (yield from self._answer(query, shelf, sweep, limit, pace))

    def learn(self) -> Steps[None]:
        """Let the sieve note what it does not know, while nobody waits for it."""
        if self._kept_bytes < _SIEVE_MIN_BYTES:
            return
        if self._sieve.count > _SIEVE_AGES * len(self._kept):
            self._sieve = Sieve()  # most of the old one is about texts that are gone
        sieve = self._sieve
        for text in list(self._kept.values()):
            if text.sieve is sieve:
                continue
            for number in sieve.note(text.form):
                text.number = number
                yield 0.0
            text.sieve = sieve

    def _refresh(self, pace: Pace) -> Steps[bool]:
        """Wait for a walk that began after this call; say False where time ran out."""
        wanted = self._walks_begun + 1  # one that has begun may be past what has just changed
        while self._walks_done < wanted:
            if pace.is_late():
                return False
            self._step_walk()
            if pace.is_due():
                yield from pace.pause()
        return True

    def _step_walk(self) -> None:
        """Go one step on with the walk that all waiting searches share, or begin one."""
        walk, self._walk = self._walk, None  # one that fails is not gone on with
        if walk is None:
            self._walks_begun += 1
            walk = iter(self._view.refresh())
        for _ in walk:
            self._walk = walk
            return
        self._walks_done = self._walks_begun
        self._shelve()

    def _shelve(self) -> None:
        """Take what the walk found, at once: the next walk changes it in place."""
        documents = dict(self._view.documents)
        state = (documents, self._view.skipped, self._view.is_complete)
        if state == self._state:
            return
        self._state = state
        for path in [p for p, text in self._kept.items() if documents.get(p) != text.stamp]:
            self._kept_bytes -= self._kept.pop(path).size
        self._shelf = Shelf(documents, self._kept, skipped=state[1], is_complete=state[2])

    def _sweep(self, shelf: Shelf, query: Query, prefix: PathPrefix, pace: Pace) -> Steps[_Sweep]:
        """Search the documents under a prefix, in path order, reading those that are missing."""
        begin, end = shelf.covered(prefix)
        legal = shelf.legal(begin, end)
        sweep = _Sweep(begin, [bytearray() for _ in query.terms])
        at = begin
        while at < legal and not pace.is_late():
            ready = yield from self._read_some(shelf, at, legal, pace)
            if ready == at:
                break  # no time to read more
            deck = shelf.deck(at, ready)
            done = yield from match(deck, self._sieve, query.needles, sweep.rows, pace)
            sweep.texts += deck.texts[:done]
            sweep.heads += deck.heads[:done]
            at += done
        sweep.incomplete = at < end or not shelf.is_complete
        return sweep

    def _read_some(self, shelf: Shelf, begin: int, end: int, pace: Pace) -> Steps[int]:
        """Read missing texts; give the end of those from `begin` on that are all here."""
        at, size = begin, 0
        while (at := shelf.ready(at, end)) < end and size < _BATCH_BYTES:
            if pace.is_late(_MATCH_SECONDS):
                break
            path, stamp = shelf.paths[at], shelf.stamps[at]
            text = yield from _text(path, stamp, self._view.read(path), pace)
            size += text.size
            self._keep(shelf, at, text)
            if pace.is_due():
                yield from pace.pause()
        return shelf.ready(begin, at)

    def _keep(self, shelf: Shelf, at: int, text: Text) -> None:
        """Keep a text for this and later searches, and let the oldest go if there are too many."""
        path = shelf.paths[at]
        shelf.place(at, text)
        if shelf is not self._shelf:  # a later walk has ended while this was read
            index = self._shelf.index(path)
            if index is None or self._shelf.stamps[index] != text.stamp:
                return
            self._shelf.place(index, text)
        old = self._kept.pop(path, None)
        self._kept[path] = text
        self._kept_bytes += text.size - (old.size if old else 0)
        while self._kept_bytes > _KEEP_MAX_BYTES:
            oldest = next(iter(self._kept))
            self._kept_bytes -= self._kept.pop(oldest).size
            index = self._shelf.index(oldest)
            if index is not None:
                self._shelf.place(index, None)

    def _answer(
        self, query: Query, shelf: Shelf, sweep: _Sweep, limit: int, pace: Pace
    ) -> Steps[Found]:
        winners: list[_Winner] = []
        for index, data in (yield from self._reread(query, shelf, sweep, limit, pace)):
            terms = tuple(t for t, row in enumerate(sweep.rows) if row[index])
            needles = tuple(query.terms[t].needle for t in terms)
            path, text = shelf.paths[sweep.begin + index], sweep.texts[index]
            winners.append((yield from _winner(path, text, data, terms, needles, pace)))
        scanned = len(sweep.heads) - sweep.heads.count(b"")
        found = Found(
            terms=tuple(
                TermCount(term.text, row.count(1))
                for term, row in zip(query.terms, sweep.rows, strict=True)
            ),
            scanned_files=scanned,
            skipped_files=shelf.skipped + len(sweep.texts) - scanned,
            incomplete=sweep.incomplete,
            truncated=False,
            relaxed=query.relaxed,
        )
        shown, budget = share(found, [winner.hit for winner in winners])
        hits: list[Hit] = []
        for winner in winners[:shown]:
            hits.append(_show(winner, budget))
            if pace.is_due():
                yield from pace.pause()
        candidates = len(sweep.texts) - matched(sweep.rows).count(0)
        return replace(found, hits=tuple(hits), truncated=candidates > shown)

    def _reread(
        self, query: Query, shelf: Shelf, sweep: _Sweep, limit: int, pace: Pace
    ) -> Steps[list[tuple[int, bytes]]]:
        """Read the best documents as they are now; where one changed, score it and rank again."""
        read: dict[int, bytes] = {}
        for _ in range(_ROUNDS):
            best = rank(sweep.rows, sweep.heads, query.needles, limit)
            has_changed = False
            for index in best:
                if index in read:
                    continue
                path, text = shelf.paths[sweep.begin + index], sweep.texts[index]
                data = self._view.read(path)
                read[index] = data or b""
                if data is None or revision.of(data) != text.revision:
                    has_changed = True
                    text = yield from _text(path, text.stamp, data, pace)
                    sweep.texts[index] = text
                    sweep.heads[index] = text.head
                    for row, needle in zip(sweep.rows, query.needles, strict=True):
                        row[index] = any(needle in window for window in text.windows)
                if pace.is_due():
                    yield from pace.pause()
            if not has_changed:
                return [(index, read[index]) for index in best]
        sweep.incomplete = True  # it changes faster than it can be read
        best = rank(sweep.rows, sweep.heads, query.needles, limit)
        return [(index, read[index]) for index in best if index in read]


def _text(path: str, stamp: Stamp, data: bytes | None, pace: Pace) -> Steps[Text]:
    """Fold a document, or say that there is none."""
    if data is None:
        return Text(stamp=stamp, revision="", title=Title(), form=b"", head=b"", windows=cut(b""))
    name = fold(path.encode("utf-8")) + b"\n"
    parts = [name]
    for piece in pieces(data):
        parts.append(fold(piece))
        if pace.is_due():
            yield from pace.pause()
    form = b"".join(parts)
    heading = title(data)
    return Text(
        stamp=stamp,
        revision=revision.of(data),
        title=heading,
        form=form,
        head=name + fold(heading.words),
        windows=cut(form),
    )


def _winner(
    path: str,
    text: Text,
    data: bytes,
    terms: tuple[int, ...],
    needles: tuple[bytes, ...],
    pace: Pace,
) -> Steps[_Winner]:
    """Find the line that a hit names, and the one that its snippet begins from."""
    body = text.form[text.form.index(b"\n") + 1 :]
    line = 0
    for line in lines(body, needles):
        if pace.is_late(spare=0.0):
            line = line or first_line(body, needles)
            break
        if pace.is_due():
            yield from pace.pause()
    place = settle(text.title, body, line, needles)
    hit = Hit(
        path=path,
        revision=text.revision,
        line=place.line,
        snippet_line=place.line,  # at most
        snippet="",
        truncated=False,
        matched_terms=terms,
    )
    return _Winner(hit=hit, data=data, place=place, needles=needles)


def _show(winner: _Winner, budget: int) -> Hit:
    """Give a hit its snippet."""
    shown = snippet(winner.data, winner.place, winner.needles, budget)
    return replace(
        winner.hit, snippet_line=shown.line, snippet=shown.text, truncated=shown.truncated
    )
