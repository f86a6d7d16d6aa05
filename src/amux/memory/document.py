"""A document, a slice of it, and what an entry file may be.

Rule 1: a document is Present or Missing; missing is an answer, not an error (M32).
Rule 2: content is bytes that decode as UTF-8 without NUL, kept byte for byte (M14).
Rule 3: slices of one revision, joined, are the stored bytes (M31).
Rule 4: an answer owns its plain form, because its budget counts exactly those bytes (M17).
"""

from dataclasses import dataclass
from typing import TypeAlias

from amux.core import revision
from amux.core.path import DocPath
from amux.core.text import fit, is_boundary, line_count, to_json
from amux.errors import InvalidArgument, LimitExceeded
from amux.memory import limits


@dataclass(frozen=True, slots=True)
class Present:
    """A document that is there: its bytes as they are on disk."""

    data: bytes

    @property
    def revision(self) -> str:
        """Name the content."""
        return revision.of(self.data)


@dataclass(frozen=True, slots=True)
class Missing:
    """A path at which no document is."""

    @property
    def revision(self) -> str:
        """Say `absent`."""
        return revision.ABSENT


Document: TypeAlias = Present | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Which part of a document is asked for: lines (1-based, inclusive) or a byte offset."""

    start_line: int = 0
    end_line: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        for name in ("start_line", "end_line", "offset"):
            if getattr(self, name) < 0:
                raise InvalidArgument(f"{name} is negative", argument=name)
        if self.start_line and self.offset:
            raise InvalidArgument(
                "start_line and offset exclude each other",
                hint="continue with next_offset alone, keeping path and end_line",
                argument="offset",
            )
        if self.end_line and self.start_line > self.end_line:
            raise InvalidArgument("end_line lies before start_line", argument="end_line")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Part of a document, with the place where the rest begins."""

    path: str
    exists: bool
    revision: str
    content: str
    start_line: int
    end_line: int
    total_lines: int
    total_bytes: int
    truncated: bool
    next_offset: int | None

    def plain(self) -> dict[str, object]:
        """Give the fields as they stand on the wire."""
        return {name: getattr(self, name) for name in self.__slots__}


def cut(path: DocPath, document: Document, part: Range) -> Slice:
    """Take the part that was asked for, as much of it as one answer may hold.

    The JSON of the result is at most `limits.ANSWER_MAX_BYTES`. Refuses an offset inside a
    character or beyond the end as `invalid_argument`.
    """
    if isinstance(document, Missing):
        return _slice(path, document, b"", 0, 0, None)
    data = document.data
    begin, end = _bounds(data, part)
    empty = _slice(path, document, data, begin, begin, len(data))
    room = limits.ANSWER_MAX_BYTES - len(to_json(empty.plain())) - len(str(limits.SCOPE_MAX_BYTES))
    window = data[begin : min(end, begin + room + 4)].decode("utf-8", errors="ignore")
    stop = begin + len(fit(window, room).encode("utf-8"))
    return _slice(path, document, data, begin, stop, stop if stop < end else None)


def require_content(data: bytes) -> None:
    """Refuse bytes that are no document's content: not UTF-8, or with a NUL (M14)."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            "the content is not UTF-8", hint="save it as UTF-8", argument="content", at=error.start
        ) from error
    if b"\0" in data:
        at = data.index(b"\0")
        raise InvalidArgument(
            "the content holds a NUL",
            argument="content",
            reason="invisible_text",
            character="U+0000",
            line=data.count(b"\n", 0, at) + 1,
            at=at,
        )


def is_content(data: bytes) -> bool:
    """Tell whether bytes are some document's content."""
    try:
        require_content(data)
    except InvalidArgument:
        return False
    return True


def require_size(path: DocPath, data: bytes) -> None:
    """Refuse a document, or an entry, that is larger than it may be (M16)."""
    if path.is_entry:
        lines = line_count(data)
        if len(data) > limits.ENTRY_MAX_BYTES or lines > limits.ENTRY_MAX_LINES:
            raise LimitExceeded(
                f"{limits.ENTRY_NAME} may hold {limits.ENTRY_MAX_BYTES} bytes "
                f"and {limits.ENTRY_MAX_LINES} lines",
                hint="move detail into topic documents and keep pointers to them in the entry",
                bytes=len(data),
                lines=lines,
                max_bytes=limits.ENTRY_MAX_BYTES,
                max_lines=limits.ENTRY_MAX_LINES,
            )
    elif len(data) > limits.DOCUMENT_MAX_BYTES:
        raise LimitExceeded(
            f"a document may hold {limits.DOCUMENT_MAX_BYTES} bytes",
            hint="split it by topic",
            bytes=len(data),
            max_bytes=limits.DOCUMENT_MAX_BYTES,
        )


def _bounds(data: bytes, part: Range) -> tuple[int, int]:
    """Turn a range into byte offsets."""
    end = _line_start(data, part.end_line) if part.end_line else len(data)
    if part.offset:
        if not is_boundary(data, part.offset):
            raise InvalidArgument(
                "offset lies inside a character or beyond the end",
                hint="use the next_offset of the answer before, at the same revision",
                argument="offset",
                total_bytes=len(data),
            )
        return part.offset, max(part.offset, end)
    begin = _line_start(data, part.start_line - 1) if part.start_line else 0
    return begin, max(begin, end)


def _line_start(data: bytes, lines: int) -> int:
    """Find the byte after the first `lines` lines."""
    at = 0
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if at == 0:
            return len(data)
    return at


def _slice(
    path: DocPath, document: Document, data: bytes, begin: int, stop: int, rest: int | None
) -> Slice:
    first = data.count(b"\n", 0, begin) + 1
    last = data.count(b"\n", 0, max(begin, stop - 1)) + 1
    shown = stop > begin
    return Slice(
        path=path.text,
        exists=isinstance(document, Present),
        revision=document.revision,
        content=data[begin:stop].decode("utf-8"),
        start_line=first if shown else 0,
        end_line=last if shown else 0,
        total_lines=line_count(data),
        total_bytes=len(data),
        truncated=rest is not None,
        next_offset=rest,
    )
