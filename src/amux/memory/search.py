"""What is asked, what is answered, and in which order.

Rule 1: a term is text, never a pattern: no quoting, no operators (M35).
Rule 2: rank is (terms matched, terms matched in path or title, path): total, so that equal
        calls give equal bytes (M37).
Rule 3: only where nothing matched, questions written without blanks are cut into pairs of
        characters; the answer says so (M41).
Rule 4: an answer owns its plain form, because its budget counts exactly those bytes (M17).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from operator import contains

from amux.core.lazy import Lazy
from amux.core.text import to_json
from amux.errors import InvalidArgument, LimitExceeded
from amux.memory import limits
from amux.memory.fold import fold

_HAN_KANA_HANGUL = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe2\U00016fe3\U00020000-\U0003ffff"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
)
_CONTINUOUS = Lazy(f"[{_HAN_KANA_HANGUL}]{{2,}}")
_PIECE = Lazy(
    f"(?P<run>[{_HAN_KANA_HANGUL}]+)|(?:[a-z\xaa\xba\xdf-\xf6\xf8-\u024f\u1e00-\u1eff]|\\d)+"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query as it was first written, and the bytes that are looked for."""

    text: str
    needle: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """1 to 16 terms; any of them makes a document a candidate."""

    terms: tuple[Term, ...]
    relaxed: bool = False

    @classmethod
    def parse(cls, text: str) -> "Query":
        """Accept a query as a caller wrote it.

        Refuses more than 512 bytes or 16 terms as `limit_exceeded`, a query without a term as
        `invalid_argument`.
        """
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                "the query holds an unpaired surrogate", argument="query", at=error.start
            ) from error
        if size > limits.QUERY_MAX_BYTES:
            raise LimitExceeded(
                f"a query may have {limits.QUERY_MAX_BYTES} bytes",
                hint="search with a few characteristic words",
                argument="query",
                bytes=size,
                max_bytes=limits.QUERY_MAX_BYTES,
            )
        terms = _distinct(text.split())
        if not terms:
            raise InvalidArgument("the query holds no term", argument="query")
        if len(terms) > limits.QUERY_MAX_TERMS:
            raise LimitExceeded(
                f"a query may have {limits.QUERY_MAX_TERMS} terms",
                hint="search with a few characteristic words",
                argument="query",
                terms=len(terms),
                max_terms=limits.QUERY_MAX_TERMS,
            )
        return cls(terms)

    @property
    def needles(self) -> tuple[bytes, ...]:
        """Give what is looked for, term by term."""
        return tuple(term.needle for term in self.terms)

    def relax(self) -> "Query | None":
        """Cut terms of continuous script into pieces, or say that there is nothing to cut."""
        found: list[str] = []
        for term in self.terms:
            folded = fold(term.text.encode("utf-8")).decode("utf-8")
            if _CONTINUOUS.now.search(folded):
                found += _pieces(folded)
        terms = _distinct(found)[: limits.PIECES_MAX]
        return Query(terms, relaxed=True) if terms else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that matched, as it is on disk."""

    path: str
    revision: str
    line: int
    snippet_line: int
    snippet: str
    truncated: bool
    matched_terms: tuple[int, ...]

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return fields | {"matched_terms": list(self.matched_terms)}


@dataclass(frozen=True, slots=True)
class TermCount:
    """In how many of the scanned documents a term occurred."""

    term: str
    documents: int

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {"term": self.term, "documents": self.documents}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer to a search; its JSON is at most `limits.ANSWER_MAX_BYTES`."""

    hits: tuple[Hit, ...] = ()
    terms: tuple[TermCount, ...]
    scanned_files: int
    skipped_files: int
    incomplete: bool
    truncated: bool
    relaxed: bool

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {
            "hits": [hit.plain() for hit in self.hits],
            "terms": [term.plain() for term in self.terms],
            "scanned_files": self.scanned_files,
            "skipped_files": self.skipped_files,
            "incomplete": self.incomplete,
            "truncated": self.truncated,
            "relaxed": self.relaxed,
        }


def rank(
    rows: Sequence[bytes | bytearray], heads: Sequence[bytes], needles: Sequence[bytes], limit: int
) -> list[int]:
    """Order the first `limit` documents; `rows[t][d]` is 1 where term t is in document d.

    Documents are numbered in path order; `heads` are their folded paths and titles.
    """
    counts = matched(rows)
    best: list[int] = []
    for count in filter(counts.__contains__, range(len(rows), 0, -1)):
        tier = list(_all(counts, count))
        tops = [heads[index] for index in tier]
        in_head = matched([bytes(map(contains, tops, repeat(needle))) for needle in needles])
        for value in sorted(set(in_head), reverse=True):
            best += (tier[at] for at in islice(_all(in_head, value), limit - len(best)))
        if len(best) == limit:
            break
    return best


def _all(counts: bytes, value: int) -> Iterator[int]:
    """Find all places of a value, in order."""
    at = counts.find(value)
    while at >= 0:
        yield at
        at = counts.find(value, at + 1)


def matched(rows: Sequence[bytes | bytearray]) -> bytes:
    """Count for each document how many terms are in it."""
    # Rows are added as numbers: 16 terms cannot carry from one byte into the next.
    total = sum(int.from_bytes(row, "little") for row in rows)
    return total.to_bytes(len(rows[0]), "little")


def share(found: Found, shells: Sequence[Hit]) -> tuple[int, int]:
    """Tell how many of the hits fit into one answer, and the budget of each snippet (M38).

    `found` has no hits yet and the hits no snippets; whatever the snippets will be, if each
    stays within its budget as JSON, the whole stays within `limits.ANSWER_MAX_BYTES`.
    """
    room = limits.ANSWER_MAX_BYTES - len(to_json(found.plain()))
    shown = 0
    for shell in shells:
        size = len(to_json(shell.plain())) + 1  # the comma
        if room - size < (shown + 1) * limits.SNIPPET_MIN_BYTES:
            break
        room -= size
        shown += 1
    return shown, min(limits.SNIPPET_MAX_BYTES, room // max(1, shown))


def _distinct(words: Sequence[str]) -> tuple[Term, ...]:
    """Make terms of words, leaving out those that fold to an earlier one."""
    terms: dict[bytes, Term] = {}
    for word in words:
        folded = fold(word.encode("utf-8"))
        terms.setdefault(folded, Term(word, _needle(folded)))
    return tuple(terms.values())


def _needle(folded: bytes) -> bytes:
    """Leave out punctuation around a term where enough of it is left (M36).

    The bare form is part of the whole one, so it alone finds both.
    """
    text = folded.decode("utf-8")
    begin, end = 0, len(text)
    while begin < end and _is_punctuation(text[begin]):
        begin += 1
    while end > begin and _is_punctuation(text[end - 1]):
        end -= 1
    bare = text[begin:end]
    is_enough = sum(map(str.isalnum, bare)) >= 3 or _count_continuous(bare) >= 2
    return bare.encode("utf-8") if is_enough else folded


def _is_punctuation(character: str) -> bool:
    # The backtick is a quotation mark in Markdown; Unicode has it among the accents.
    return unicodedata.category(character)[0] == "P" or character == "`"


def _count_continuous(text: str) -> int:
    return len(re.findall(f"[{_HAN_KANA_HANGUL}]", text))


def _pieces(folded: str) -> list[str]:
    """Cut into overlapping pairs of Han, Kana or Hangul, and whole Latin words and numbers."""
    found: list[str] = []
    for piece in _PIECE.now.finditer(folded):
        run = piece["run"]
        if run:
            found += (run[at : at + 2] for at in range(len(run) - 1))
        else:
            found.append(piece[0])
    return found
