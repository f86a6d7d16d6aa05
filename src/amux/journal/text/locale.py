"""In which language an answer's text stands (T43); it changes nothing else.

Rule 1: an argument wins over what the session's record says; neither is absent.
Rule 2: no language is guessed from the characters of a name.
"""

import re

from amux.core.value import Value
from amux.journal.refusals import refuse

_SHAPE = re.compile(
    r"([A-Za-z]{2,3})(?:-([A-Za-z]{4}))?(?:-([A-Za-z]{2}|[0-9]{3}))?((?:-[A-Za-z0-9]{5,8})*)"
)
_MAX_CHARS = 32
ENGLISH, CHINESE = "en", "zh-CN"


class Locale(Value, kw_only=False):
    """A locale, who named it, and the language that text is written in for it."""

    locale: str | None
    source: str
    """`argument`, `session` or `absent`."""

    @property
    def text_locale(self) -> str:
        """Name the language of `text`."""
        return CHINESE if (self.locale or "").split("-")[0] == "zh" else ENGLISH

    def fields(self) -> dict[str, object]:
        """Spell it for a result."""
        return {
            "locale": self.locale,
            "localeSource": self.source,
            "textLocale": self.text_locale,
        }


def parse(text: str) -> str:
    """Give a locale in its one spelling, or refuse it.

    >>> parse("ZH-hans-cn")
    'zh-Hans-CN'
    """
    match = _SHAPE.fullmatch(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        raise refuse(
            "TASK_LOCALE_INVALID",
            "the locale is none",
            hint="give a language, and if need be script and region, such as zh-CN or pt-BR",
            argument="locale",
        )
    language, script, region, variants = match.groups(default="")
    parts = [language.lower(), script.title(), region.upper(), variants.lower().lstrip("-")]
    spelled = "-".join(part for part in parts if part)
    return CHINESE if spelled == "zh" else spelled


def choose(argument: str | None, of_session: str | None) -> Locale:
    """Choose the locale of a call: its argument, else the session's, else none."""
    if argument is not None:
        return Locale(parse(argument), "argument")
    if of_session is not None:
        return Locale(of_session, "session")
    return Locale(None, "absent")
