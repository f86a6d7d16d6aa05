"""The arguments that a caller passes on to an agent, read as the agent would read them (R21).

Rule 1: nothing is lost: the words of all readings, joined, are the words that were given.
Rule 2: which flags take values is the agent's business: its adapter has the table. A flag that is
        not in it belongs to another release: the word after it counts as its value.
Rule 3: reading refuses nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from amux.core.value import Value


class Takes(Enum):
    """How many words a flag takes."""

    NOTHING = "nothing"
    ONE = "one"
    """The next word, whatever it looks like."""
    MAYBE = "maybe"
    """The next word, unless it looks like a flag."""
    MANY = "many"
    """At least one, and all up to the next flag."""


class Given(Value):
    """One flag with its values, or one word that belongs to none (then `flag` is empty)."""

    flag: str
    values: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def value(self) -> str:
        """Give its value; empty where it has none."""
        return self.values[0] if self.values else ""


def read(words: Sequence[str], table: Mapping[str, Takes], *, short: bool) -> tuple[Given, ...]:
    """Read words by a table of flags.

    `short` says that the agent reads `--flag=value`, and `-ab` as `-a -b`.
    """
    return tuple(_each(tuple(words), table, short))


def _each(words: tuple[str, ...], table: Mapping[str, Takes], short: bool) -> Iterator[Given]:
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            for index in range(at, len(words)):
                yield Given(
                    flag="", values=words[index : index + 1], words=words[index : index + 1]
                )
            return
        if len(word) < 2 or not word.startswith("-"):
            yield Given(flag="", values=(word,), words=(word,))
            at += 1
            continue
        flags, own = _flags(word, table, short)
        for flag in flags[:-1]:
            yield Given(flag=flag, values=(), words=())
        taken = 0 if own is not None else _count(words[at + 1 :], table.get(flags[-1]))
        values = (own,) if own is not None else words[at + 1 : at + 1 + taken]
        yield Given(flag=flags[-1], values=values, words=words[at : at + 1 + taken])
        at += 1 + taken


def _flags(
    word: str, table: Mapping[str, Takes], short: bool
) -> tuple[tuple[str, ...], str | None]:
    """Give the flags that one word holds, and the value that stands in it."""
    if not short or word in table:
        return (word,), None
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return (name,), value if equals else None
    found: list[str] = []
    for index in range(1, len(word)):
        flag = "-" + word[index]
        found.append(flag)
        if table.get(flag) is not Takes.NOTHING and index + 1 < len(word):
            return tuple(found), word[index + 1 :]
    return tuple(found), None


def _count(rest: Sequence[str], takes: Takes | None) -> int:
    if not rest or takes is Takes.NOTHING:
        return 0
    if takes is Takes.ONE:
        return 1
    if takes is Takes.MANY:
        flag = next((i for i, word in enumerate(rest[1:]) if word.startswith("-")), len(rest) - 1)
        return 1 + flag
    return 0 if rest[0].startswith("-") else 1
