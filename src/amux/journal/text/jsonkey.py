"""One key in a person's JSON file: put in, brought up to date, taken out; all else stays (J21).

Rule 1: a file is changed only if a style is known in which its value has exactly its bytes; so
        what is written again is what stood there, but for the one key.
Rule 2: a value is compared by its digest; its place among the other keys is a person's.
"""

import json
from collections.abc import Iterator

from amux.core import canonical, strict
from amux.core.value import Value
from amux.errors import AmuxError

MAX_BYTES = 1024 * 1024  # a file of settings has a thousandth of this
_INDENTS = (2, 4, "\t", None, 1, 3, 8)
_NEW = b"{}\n"


class _Style(Value):
    indent: int | str | None
    is_ascii: bool
    separators: tuple[str, str]
    newline: str
    end: str

    def spell(self, value: object) -> bytes:
        text = json.dumps(
            value, ensure_ascii=self.is_ascii, indent=self.indent, separators=self.separators
        )
        return (text.replace("\n", self.newline) + self.end).encode("utf-8")


class Document(Value, kw_only=False):
    """A JSON file whose bytes are understood to the last one."""

    value: dict[str, object]
    _style: _Style

    @classmethod
    def parse(cls, data: bytes) -> "Document | None":
        """Read a file; None for one that could not be written again as it is."""
        try:
            value = strict.decode(data) if len(data) <= MAX_BYTES else None
        except (AmuxError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        for style in _styles(data):
            if style.spell(value) == data:
                return cls(value, style)
        return None

    @classmethod
    def new(cls) -> "Document":
        """Give an empty one, as a file that is not there yet begins."""
        found = cls.parse(_NEW)
        if found is None:
            raise AssertionError(_NEW)
        return found

    def get(self, *keys: str) -> object:
        """Give the value beneath these keys; None where none is."""
        at: object = self.value
        for key in keys:
            if not isinstance(at, dict) or key not in at:
                return None
            at = at[key]
        return at

    def has(self, *keys: str) -> bool:
        """Tell whether anything, null included, stands beneath these keys."""
        *way, last = keys
        inner = self.get(*way)
        return isinstance(inner, dict) and last in inner

    def with_value(self, value: object, *keys: str) -> bytes | None:
        """Spell the file with a value beneath these keys; None where one of them is no object."""
        changed = _put(self.value, keys, value)
        return None if changed is None else self._style.spell(changed)

    def without(self, *keys: str) -> bytes:
        """Spell the file without the key at the end of these."""
        return self._style.spell(_drop(self.value, keys))


def digest(value: object) -> str:
    """Name a value that stands beneath a key."""
    try:
        return canonical.digest(canonical.encode(value))
    except ValueError:  # a fraction, say: nothing that we wrote
        return ""


def _styles(data: bytes) -> Iterator[_Style]:
    """Give the styles that a file may be written in, the usual ones first."""
    text = data.decode("utf-8", "replace")
    body = text.rstrip("\r\n")
    end = text[len(body) :]
    newline = "\r\n" if "\r\n" in body else "\n"
    for indent in _INDENTS:
        for is_ascii in (False, True):
            spaced = (",", ": ") if indent is not None else (", ", ": ")
            for separators in (spaced, (",", ":")):
                yield _Style(
                    indent=indent,
                    is_ascii=is_ascii,
                    separators=separators,
                    newline=newline,
                    end=end,
                )


def _put(value: dict[str, object], keys: tuple[str, ...], new: object) -> dict[str, object] | None:
    first, *rest = keys
    if not rest:
        return {**value, first: new}
    inner = value.get(first, {})
    if not isinstance(inner, dict):
        return None
    below = _put(inner, tuple(rest), new)
    return None if below is None else {**value, first: below}


def _drop(value: dict[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    first, *rest = keys
    if not rest:
        return {key: one for key, one in value.items() if key != first}
    inner = value.get(first)
    if not isinstance(inner, dict):
        return value
    return {**value, first: _drop(inner, tuple(rest))}
