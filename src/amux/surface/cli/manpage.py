"""The man page, in roff, made from the table of verbs."""

from amux import __version__
from amux.surface.cli.helptext import STATUSES, statuses_of
from amux.surface.cli.verb import Option, Verb
from amux.surface.cli.verbs import GLOBAL_OPTIONS, VERBS

_FILES = (
    ("$AMUX_HOME", "everything amux keeps on this machine; ~/.amux if not set"),
    ("$AMUX_HOME/memory/", "the documents: ordinary UTF-8 Markdown, the only truth"),
    ("$AMUX_HOME/run/hub.log", "the log of a Hub in the background"),
)
_ENVIRONMENT = (
    ("AMUX_HOME", "where amux keeps everything"),
    ("AMUX_NO_AUTOSTART", "with 1, no verb starts a Hub"),
    ("VISUAL, EDITOR", "the editor of amux memory edit"),
    ("AMUX_WORKSPACE", "where the journal looks for the workspace; here if not set"),
    ("AMUX_SESSION", "whose session a call of the journal belongs to"),
    ("AMUX_AGENT", "which agent writes, where no MCP client says so"),
    ("AMUX_TZ", "the zone of the journal's dates and times"),
    ("AMUX_LOCK_WAIT_MS", "how long a write of the journal waits for another one"),
)


def render() -> str:
    """Give the page: one section 1 page for all verbs."""
    lines = [
        f'.TH AMUX 1 "" "amux {__version__}"',
        ".SH NAME",
        r"amux \- one memory for every coding agent, owned by its user",
        ".SH SYNOPSIS",
    ]
    for verb in VERBS.values():
        lines += [".br", rf"\fB{_text(verb.usage)}\fR"]
    lines += [
        ".SH DESCRIPTION",
        "Answers are one JSON object where standard output is no terminal, or with "
        + _text("--json")
        + ". A refusal is one line of JSON, the last of standard error.",
        ".SH VERBS",
    ]
    for verb in VERBS.values():
        lines += _verb(verb)
    lines.append(".SH OPTIONS")
    for option in GLOBAL_OPTIONS:
        lines += _option(option)
    lines.append(".SH EXIT STATUS")
    for status, meaning in STATUSES.items():
        lines += [".TP", str(status), _text(meaning)]
    for title, rows in (("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT)):
        lines.append(f".SH {title}")
        for name, about in rows:
            lines += [".TP", _text(name), _text(about)]
    return "\n".join(lines) + "\n"


def _verb(verb: Verb) -> list[str]:
    lines = [f'.SS "{_text("amux " + verb.name)}"', _text(verb.summary.capitalize() + ".")]
    if verb.about:
        lines += [".PP", _text(verb.about)]
    for positional in verb.positionals:
        lines += [".TP", rf"\fI{_text(positional.metavar)}\fR", _text(positional.about)]
    for option in verb.options:
        lines += _option(option)
    lines += [".PP", "Examples:"]
    for command, what in verb.examples:
        lines += [".PP", ".nf", _text("    " + command), ".fi", _text(what)]
    codes = "; ".join(
        f"{status} {meaning}" + (f" ({codes})" if codes else "")
        for status, meaning, codes in statuses_of(verb)
    )
    return [*lines, ".PP", _text(f"Exit statuses: {codes}.")]


def _option(option: Option) -> list[str]:
    value = rf" \fI{_text(option.metavar)}\fR" if option.metavar else ""
    told = option.about + (f"; one of {', '.join(option.choices)}" if option.choices else "")
    return [".TP", rf"\fB{_text('--' + option.name)}\fR{value}", _text(told)]


def _text(text: str) -> str:
    """Escape what roff would read as its own."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    escaped = "".join(one if one.isascii() else rf"\[u{ord(one):04X}]" for one in escaped)
    return r"\&" + escaped if escaped.startswith((".", "'", "\\(aq")) else escaped
