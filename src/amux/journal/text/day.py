"""A day: the sections of one agent and one local date, as byte ranges of its file (J34-J39).

Rule 1: sections are found by line. A code fence hides no heading, so an unclosed fence cannot
        swallow the next session.
Rule 2: every byte belongs to one place: text before the first heading, a section, or what
        stands under a malformed heading. Nothing is repaired, nothing is lost.
Rule 3: an unterminated last line is text: somebody may still be writing it.
Rule 4: no token leaves here in returned text.
"""

import re
from functools import lru_cache

from amux.core.value import Value
from amux.journal.remark import Remark
from amux.journal.text.insertion import BOM, decode, is_closed
from amux.journal.text.status import State, state_of

MAX_COUNTED_ID = 999_999  # a larger number is somebody's name for a section, not a count
HANDLE_CHARS = 12  # of the token; enough against a mistake, short enough to repeat

_HEADING = re.compile(rb"##[ \t]+\xe4\xbc\x9a\xe8\xaf\x9d([^\n]*)\n")  # 会话
_ID = re.compile(r"[ \t]*#?([A-Za-z0-9._-]+)(?=$|[ \t—:：])")
_WHOLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_ID = 64
_KEPT_MAX_BYTES = 1024 * 1024  # of a day whose sections are kept for the next question
_FIELD = re.compile(
    rb"- \*\*(\xe6\x97\xb6\xe9\x97\xb4|\xe6\x84\x8f\xe5\x9b\xbe|\xe7\x8a\xb6\xe6\x80\x81"
    rb"|sourceMessage|\xe5\xae\xbf\xe4\xb8\xbb)\*\*(?::|\xef\xbc\x9a)([^\n]*)\n"
)  # 时间, 意图, 状态, 宿主
_STATUS, _INTENT = "状态".encode(), "意图".encode()
_BINDING = re.compile(
    rb"<!-- devcodex:memory-session-binding v1 session=([A-Za-z0-9._-]{1,64})"
    rb" token=([0-9a-fA-F]{64}) -->[ \t]*\r?\n"
)
_OWNER = re.compile(rb"<!-- amux:session ([0-9a-fA-F]{16}) -->[ \t]*\r?\n")
_TOKEN = re.compile(
    r"(devcodex:memory-session-binding v1 session=[A-Za-z0-9._-]{1,64} token=)[0-9a-fA-F]{64}"
)
_HIDDEN = r"\1[hidden]"


class Binding(Value, kw_only=False):
    """A marker line of the first kind: which section it claims, and the token."""

    section: str
    token: str


class Section(Value):
    """One session's part of a day; offsets count bytes of the file."""

    ordinal: int
    id: str
    title: str
    line: int | None
    start: int
    body: int  # where the line after the heading starts
    end: int
    after_header: int  # where the text after the allocated header starts, its markers included
    status: str | None
    state: State
    intent: str | None
    source_message: str | None
    bindings: tuple[Binding, ...]
    owners: tuple[str, ...]  # first 16 hex digits of sessionDigests

    @property
    def is_managed(self) -> bool:
        """Tell whether exactly one marker is there and carries this section's id."""
        return len(self.bindings) == 1 and self.bindings[0].section == self.id

    @property
    def token(self) -> str | None:
        """Give the section token of a managed section."""
        return self.bindings[0].token if self.is_managed else None

    @property
    def handle(self) -> str | None:
        """Give what callers repeat: the id and the start of the token."""
        return handle_of(self.id, self.bindings[0].token) if self.is_managed else None


class Day(Value):
    """What a day's file holds; `sections` in file order."""

    sections: tuple[Section, ...]
    remarks: tuple[Remark, ...]

    def with_id(self, wanted: str) -> tuple[Section, ...]:
        """Give all sections of this id: more than one is somebody's repair, not ours."""
        return tuple(section for section in self.sections if section.id == wanted)


def handle_of(section: str, token: str) -> str:
    """Spell a section handle."""
    return f"{section}-{token[:HANDLE_CHARS]}"


def canonical_id(text: str) -> str | None:
    """Spell an id as all compare it, or say that it is none."""
    if not _WHOLE_ID.fullmatch(text):
        return None
    return f"{int(text):02d}" if text.isdigit() else text.lower()


def shown(data: bytes) -> str:
    """Give the text of a part of a day as answers show it: tokens hidden."""
    return _TOKEN.sub(_HIDDEN, decode(data)[0])


def next_id(day: Day) -> str:
    """Give the id of the next section: one more than the largest that counts."""
    taken = {section.id for section in day.sections}
    counted = [int(each) for each in taken if each.isdigit() and int(each) <= MAX_COUNTED_ID]
    candidate = max(counted, default=0) + 1
    while f"{candidate:02d}" in taken:  # past the largest that counts
        candidate += 1
    return f"{candidate:02d}"


def parse(data: bytes, *, is_cut: bool = False) -> Day:
    """Find the sections of a day's bytes; of a window that lacks the start, the whole ones."""
    if is_cut or len(data) > _KEPT_MAX_BYTES:
        return _parsed(data, is_cut=is_cut)
    return _kept(data)


@lru_cache(maxsize=4)  # one write asks five times about two contents, while others wait for it
def _kept(data: bytes) -> Day:
    return _parsed(data, is_cut=False)


def _parsed(data: bytes, *, is_cut: bool) -> Day:
    remarks = []
    first = data.find(b"\n") + 1 if is_cut else len(BOM) * data.startswith(BOM)
    headings: list[tuple[int, int, int | None, str | None, str]] = []
    line, counted = 1, 0
    for found in _HEADING.finditer(data, first):
        start = found.start()
        if start != first and data[start - 1 : start] != b"\n":
            continue
        line += data.count(b"\n", counted, start)
        counted = start
        number = None if is_cut else line
        name, title = _heading(found[1])
        if name is None:
            remarks.append(Remark("malformed-session-heading", number))
        headings.append((start, found.end(), number, name, title))
    ends = [start for start, *_ in headings[1:]] + [len(data)]
    lines = _Lines(data, headings[0][0] if headings else len(data))
    sections: list[Section] = []
    for (start, body, number, name, title), end in zip(headings, ends, strict=False):
        if name is not None:
            ordinal = len(sections) + 1
            sections.append(lines.section(ordinal, name, title, number, start, body, end))
    if not is_closed(data):
        total = None if is_cut else line + data.count(b"\n", counted)
        remarks.append(Remark("unterminated-tail", total))
    if decode(data[first:])[1]:
        remarks.append(Remark("invalid-utf8"))
    return Day(sections=tuple(sections), remarks=tuple(remarks))


def _heading(rest: bytes) -> tuple[str | None, str]:
    text = rest.decode("utf-8", "replace").removesuffix("\r")
    found = _ID.match(text)
    if found is None or len(found[1]) > _MAX_ID:
        return None, ""
    title = text[found.end() :].lstrip(" \t")
    if title[:1] in ("—", "-", ":", "："):
        title = title[1:]
    return canonical_id(found[1]), title.strip(" \t")


class _Lines:
    """The lines of a day that mean something, found in one pass each: sections are many."""

    def __init__(self, data: bytes, first: int) -> None:
        self._data = data
        self._fields = _Taken(data, _FIELD, first)
        self._bindings = _Taken(data, _BINDING, first)
        self._owners = _Taken(data, _OWNER, first)

    def section(
        self,
        ordinal: int,
        name: str,
        title: str,
        line: int | None,
        start: int,
        body: int,
        end: int,
    ) -> Section:
        """Make the next section; what stands before it was another's, or nobody's."""
        status, state = None, State.UNKNOWN
        first: dict[bytes, str] = {}
        for found in self._fields.until(start, end):
            label = found[1]
            value = found[2].decode("utf-8", "replace").strip()
            first.setdefault(label, value)
            if label == _STATUS:
                named = state_of(value)
                if named is not State.UNKNOWN or state is State.UNKNOWN:
                    status, state = value, named
        bindings = self._bindings.until(start, end)
        owners = self._owners.until(start, end)
        after = bindings[0].end() if bindings else body
        if owners and owners[0].start() == after:
            after = owners[0].end()
        return Section(
            ordinal=ordinal,
            id=name,
            title=title,
            line=line,
            start=start,
            body=body,
            end=end,
            after_header=after,
            status=status,
            state=state,
            intent=first.get(_INTENT),
            source_message=first.get(b"sourceMessage"),
            bindings=tuple(
                Binding(canonical_id(found[1].decode()) or "", found[2].decode().lower())
                for found in bindings
            ),
            owners=tuple(found[1].decode().lower() for found in owners),
        )


class _Taken:
    """Lines of one kind, taken section by section."""

    def __init__(self, data: bytes, pattern: re.Pattern[bytes], first: int) -> None:
        self._found = [
            found
            for found in pattern.finditer(data, first)
            if data[found.start() - 1 : found.start()] == b"\n"
        ]
        self._next = 0

    def until(self, start: int, end: int) -> list[re.Match[bytes]]:
        """Give those that stand between, in order."""
        found, at = self._found, self._next
        while at < len(found) and found[at].start() < start:
            at += 1
        begin = at
        while at < len(found) and found[at].start() < end:
            at += 1
        self._next = at
        return found[begin:at]
