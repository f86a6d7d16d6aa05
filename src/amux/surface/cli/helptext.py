"""`--help` at every level, made from the table of verbs and the table of refusals."""

import textwrap

from amux.errors import TABLE, Code
from amux.surface.cli.verb import Verb
from amux.surface.cli.verbs import GLOBAL_OPTIONS, VERBS

WIDTH = 80
# One meaning a status: what the caller does next.
STATUSES = {
    0: "done",
    1: "a bug or a broken file: tell us",
    2: "change the request",
    3: "look again",
    4: "ask someone",
    5: "try later",
    6: "find out first what happened",
    7: "not with this agent, or not so",
    130: "interrupted",
}


def render(words: tuple[str, ...]) -> str:
    """Give the help on a verb, on the verbs that begin so, or on all."""
    name = " ".join(words)
    verb = VERBS.get(name)
    below = [row for row in VERBS.values() if not name or row.name.startswith(name + " ")]
    if verb is None:
        return _overview(name, below)
    return _verb(verb) + (_table(below, "more verbs:") if below else "")


def statuses_of(verb: Verb) -> list[tuple[int, str, str]]:
    """List a verb's exit statuses with the codes behind them: the refusals of its row."""
    found: dict[int, list[str]] = {}
    for code in (*verb.refusals, Code.INTERNAL):
        found.setdefault(TABLE[code].exit, []).append(str(code))
    rows = [(0, STATUSES[0], "")]
    rows += [(status, STATUSES[status], ", ".join(found[status])) for status in sorted(found)]
    return [*rows, (130, STATUSES[130], "")]


def _overview(name: str, below: list[Verb]) -> str:
    title = f"amux {name}" if name else "amux"
    text = f"usage: {title} VERB [ARGUMENTS] [OPTIONS]\n\n"
    if not name:
        text += "One memory for every coding agent, owned by its user.\n\n"
    text += _table(below, "verbs:")
    if name:
        return text
    text += "\noptions:\n"
    text += "".join(_line(f"--{option.name}", option.about) for option in GLOBAL_OPTIONS)
    text += "\nexit statuses:\n"
    text += "".join(_line(str(status), meaning) for status, meaning in STATUSES.items())
    text += "\nexamples:\n"
    for start in ("system config set", "memory upsert", "memory search"):
        text += f"  {VERBS[start].examples[0][0]}\n"
    return text + "\n`amux VERB --help` says more on each.\n"


def _verb(verb: Verb) -> str:
    text = f"usage: {verb.usage}\n\n{_paragraph(verb.summary)}"
    if verb.about:
        text += _paragraph(verb.about)
    takes = [(one.usage.strip("[]"), one.about, one.choices) for one in verb.positionals]
    if verb.rest is not None:
        takes.append((f"-- {verb.rest.usage.strip('[]')}", verb.rest.about, ()))
    options = [(one.usage.strip("[]"), one.about, one.choices) for one in verb.options]
    if takes:
        text += "\narguments:\n" + "".join(_line(*row) for row in takes)
    text += "\noptions:\n" + "".join(_line(*row) for row in options)
    text += _line("--help", "show this")
    text += "\nexamples:\n" + "".join(
        f"  {command}\n      {what}\n" for command, what in verb.examples
    )
    text += "\nexit statuses:\n"
    for status, meaning, codes in statuses_of(verb):
        text += _line(str(status), f"{meaning} ({codes})" if codes else meaning)
    return text


def _table(verbs: list[Verb], title: str) -> str:
    return f"{title}\n" + "".join(_line(verb.name, verb.summary) for verb in verbs)


def _line(left: str, right: str, choices: tuple[str, ...] = ()) -> str:
    told = f"{right}; one of {', '.join(choices)}" if choices else right
    first = f"  {left:<22}"
    if len(left) > 21:
        first = f"  {left}\n{'':<24}"
    wrapped = textwrap.wrap(told, WIDTH - 24) or [""]
    return first + ("\n" + " " * 24).join(wrapped) + "\n"


def _paragraph(text: str) -> str:
    return textwrap.fill(text[0].upper() + text[1:].removesuffix(".") + ".", WIDTH) + "\n"
