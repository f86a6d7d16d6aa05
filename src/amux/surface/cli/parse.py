"""Reading a command line against the table of verbs, strictly.

Rule 1: `--name value` and `--name=value` are the same; `--` ends the options; they may stand
        anywhere. Nothing is abbreviated, guessed or ignored.
Rule 2: what is unknown, missing or doubled is `invalid_argument`, names it, and the hint names
        the nearest thing that exists.
Rule 3: an option is read as the verb before it means it, and its values are the verb's. One that
        stands before its verb is read as most mean it: `--cursor` is a flag of `workspace` only.
"""

import sys
from collections.abc import Iterable
from itertools import takewhile

from amux.core.late import Late
from amux.errors import InvalidArgument
from amux.surface.cli import rows
from amux.surface.cli.verb import Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.surface.cli import verbs
else:
    verbs = Late("amux.surface.cli.verbs")

_DIGITS = 18  # a larger number fits no file; the Hub knows the true limits
_FAR = 3  # more edits than this and a suggestion is a guess


class Given:
    """What was asked: a verb and its values; or a request for help or the release."""

    __slots__ = ("help_words", "rest", "values", "verb", "wants_version")

    def __init__(
        self,
        verb: Verb | None,
        values: dict[str, str | int | bool],
        *,
        help_words: tuple[str, ...] | None = None,
        wants_version: bool = False,
        rest: tuple[str, ...] = (),
    ) -> None:
        self.rest = rest
        self.verb = verb
        self.values = values
        self.help_words = help_words
        self.wants_version = wants_version

    def text(self, name: str) -> str:
        """Give a text value; empty where it was not given."""
        return str(self.values.get(name, ""))

    def has(self, name: str) -> bool:
        """Tell whether something was given."""
        return name in self.values

    def wire(self, *names: str) -> dict[str, object]:
        """Give the named values that were given, as arguments of a call."""
        return {name: self.values[name] for name in names if name in self.values}


def utf8(argv: Iterable[str]) -> list[str]:
    """Read arguments as UTF-8 whatever the locale says (row 12), or refuse the one that is not."""
    found = []
    for place, word in enumerate(argv, start=1):
        raw = word.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
        try:
            found.append(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidArgument(
                "an argument is not UTF-8",
                hint="amux reads and writes UTF-8 only",
                argument=f"#{place}",
            ) from error
    return found


def parse(argv: list[str]) -> Given:
    """Read a whole command line, or refuse it."""
    words, rest, options = _split(argv)
    if "version" in options:
        return Given(None, {}, wants_version=True)
    if "help" in options or not words:
        return Given(None, {}, help_words=lead_of(words))
    verb = find(words)
    own, passed_on = (rest, []) if verb.rest is None else ([], rest)
    values = _positionals(verb, words[len(verb.words) :] + own)
    known = {option.name: option for option in verb.options}
    for name, value in options.items():
        if name not in known:
            raise InvalidArgument(
                f"`amux {verb.name}` has no option --{name}",
                hint=_options_hint(verb),
                argument=f"--{name}",
            )
        values[known[name].key] = value
    for option in verb.options:
        if option.key in values:
            _require_choice(option, values[option.key])
        if option.is_required and option.key not in values:
            raise InvalidArgument(
                f"`amux {verb.name}` needs --{option.name}",
                hint=f"give --{option.name} {option.metavar}; see `amux {verb.name} --help`",
                argument=option.key,
            )
    return Given(verb, values, rest=tuple(passed_on))


def find(words: list[str]) -> Verb:
    """Find the verb that a command line begins with: the longest one that fits."""
    for length in (3, 2, 1):
        verb = rows.find(" ".join(words[:length])) if length <= len(words) else None
        if verb is not None:
            return verb
    raise _unknown_verb(words)


def lead_of(words: list[str]) -> tuple[str, ...]:
    """Keep the words that lead to verbs; refuses words that lead nowhere."""
    for length in range(min(len(words), 3), 0, -1):
        lead = " ".join(words[:length])
        if lead in verbs.VERBS or any(name.startswith(lead + " ") for name in verbs.VERBS):
            return tuple(words[:length])
    if words:
        raise _unknown_verb(words)
    return ()


def nearest(word: str, known: Iterable[str]) -> str:
    """Give the known word that is nearest to a mistyped one, or nothing."""
    ranked = sorted((_distance(word, other), other) for other in known)
    if ranked and ranked[0][0] <= min(_FAR, max(len(word) // 2, 1)):
        return ranked[0][1]
    return ""


def _split(argv: list[str]) -> tuple[list[str], list[str], dict[str, str | int | bool]]:
    """Part words before `--`, words after it, and options."""
    words: list[str] = []
    options: dict[str, str | int | bool] = {}
    own = _own_options(argv)
    place = 0
    while place < len(argv):
        word = argv[place]
        place += 1
        if word == "--":
            return words, argv[place:], options
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        option, value = _option(word, own)
        if option.name in options:
            raise InvalidArgument(f"--{option.name} stands twice", argument=option.key)
        if option.kind == "flag":
            options[option.name] = True
            continue
        if value is None:
            value = _following_value(option, argv[place : place + 1])
            place += 1
        options[option.name] = _value(option, value)
    return words, [], options


def _own_options(argv: list[str]) -> dict[str, Option]:
    """Give the options of the verb that a line begins with, if it begins with one."""
    words = list(takewhile(lambda word: not word.startswith("-"), argv[:3]))
    for length in range(len(words), 0, -1):
        verb = rows.find(" ".join(words[:length]))
        if verb is not None:
            return {option.name: option for option in verb.options}
    return {}


def _option(word: str, own: dict[str, Option]) -> tuple[Option, str | None]:
    """Read `--name` or `--name=value`."""
    name, equals, value = ("help" if word == "-h" else word[2:]).partition("=")
    is_long = word == "-h" or word.startswith("--")
    option = (own.get(name) or verbs.OPTIONS.get(name)) if is_long else None
    if option is None:
        raise _unknown_option(word, name)
    if equals and option.kind == "flag":
        raise InvalidArgument(f"--{name} takes no value", argument=option.key)
    return option, value if equals else None


def _following_value(option: Option, following: list[str]) -> str:
    if not following or (following[0].startswith("-") and following[0] != "-"):
        raise InvalidArgument(
            f"--{option.name} needs a value",
            hint=f"write --{option.name}={option.metavar} where the value starts with -",
            argument=option.key,
        )
    return following[0]


def _value(option: Option, text: str) -> str | int:
    if option.kind == "integer":
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise InvalidArgument(f"--{option.name} takes a whole number", argument=option.key)
        return int(text)
    return text


def _require_choice(option: Option, value: str | int | bool) -> None:
    if option.choices and value not in option.choices:
        raise InvalidArgument(
            f"--{option.name} has no such value",
            hint="use one of " + ", ".join(option.choices),
            argument=option.key,
        )


def _positionals(verb: Verb, words: list[str]) -> dict[str, str | int | bool]:
    values: dict[str, str | int | bool] = {}
    left = list(words)
    for positional in verb.positionals:
        if not left:
            if positional.is_required:
                raise InvalidArgument(
                    f"`amux {verb.name}` needs {positional.metavar}",
                    hint=f"usage: {verb.usage}",
                    argument=positional.key,
                )
            continue
        if positional.is_many:
            values[positional.key] = " ".join(left)
            left = []
            continue
        word = left.pop(0)
        if positional.choices and word not in positional.choices:
            raise InvalidArgument(
                f"{positional.metavar} has no such value",
                hint="use one of " + ", ".join(positional.choices),
                argument=positional.key,
            )
        values[positional.key] = word
    if left:
        raise InvalidArgument(
            f"`amux {verb.name}` takes no further argument",
            hint=f"usage: {verb.usage}",
            argument=left[0][:64],
        )
    return values


def _unknown_verb(words: list[str]) -> InvalidArgument:
    family = [name for name in verbs.VERBS if name.startswith(words[0] + " ")]
    if len(words) == 1 and family:
        return InvalidArgument(
            f"`amux {words[0]}` needs a verb",
            hint="use one of " + ", ".join(family),
            argument="verb",
        )
    close = nearest(" ".join(words[:2]), family or verbs.VERBS) or nearest(words[0], verbs.VERBS)
    heads = sorted({name.partition(" ")[0] for name in verbs.VERBS})
    hint = f"did you mean `amux {close}`?" if close else "amux knows " + ", ".join(family or heads)
    return InvalidArgument("there is no such verb", hint=hint, argument=" ".join(words[:2])[:64])


def _unknown_option(word: str, name: str) -> InvalidArgument:
    shown = word.partition("=")[0][:64]
    close = nearest(name, verbs.OPTIONS) if word.startswith("--") else ""
    hint = f"did you mean --{close}? else" if close else "see --help, or"
    return InvalidArgument(
        "there is no such option",
        hint=f"{hint} put what starts with - and is no option after --",
        argument=shown,
    )


def _options_hint(verb: Verb) -> str:
    names = ", ".join(f"--{name}" for name in verb.option_names)
    return f"its options are {names}" if names else "it has no options"


def _distance(left: str, right: str) -> int:
    """Count the edits between two short words."""
    row = list(range(len(right) + 1))
    for number, a in enumerate(left, start=1):
        corner, row[0] = row[0], number
        for place, b in enumerate(right, start=1):
            corner, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, corner + (a != b)),
            )
    return row[-1]
