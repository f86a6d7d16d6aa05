"""The published formats of secrets: a value of one of them is never memory (M77).

Rule 1: one row a format: its name, the literals of which one is in every value, the pattern.
        A token is one long word, and a text has few of these: only they are searched, and only
        where a literal stands. So a row costs microseconds.
Rule 2: a pattern says length and alphabet as published; a prefix alone is a word, not a secret.
Rule 3: letters are ASCII here: a Chinese character before a token is its end, not part of it.
Rule 4: what repeats without a bound begins where nothing of its alphabet stands before: no text
        makes a pattern slow.
"""

import re
from collections.abc import Iterator
from itertools import compress, repeat
from operator import contains

from amux.core import placeholder
from amux.core.lazy import Lazy
from amux.core.value import Value


class Format:
    """One published format; `is_spread` if blanks or slashes may stand within it."""

    __slots__ = ("is_spread", "kind", "literals", "pattern")

    def __init__(
        self, kind: str, literals: tuple[str, ...], pattern: Lazy, is_spread: bool
    ) -> None:
        self.kind = kind
        self.literals = literals
        self.pattern = pattern
        self.is_spread = is_spread


def _row(kind: str, literals: str, pattern: str, *, spread: bool = False) -> Format:
    return Format(kind, tuple(literals.split()), Lazy(pattern, re.ASCII), spread)


MIN_TOKEN = 16  # characters; the shortest format below has more

_END = r"(?![A-Za-z0-9_-])"

FORMATS = (
    _row("AWS access key id", "AKIA ASIA", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    _row(
        "AWS secret access key",
        "ecret_access_key SECRET_ACCESS_KEY ecretAccessKey",
        r"(?i:secret_?access_?key)[\"'`]?\s{0,3}(?:=>|[:=])\s{0,3}[\"'`]?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        spread=True,
    ),
    _row("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b"),
    _row("GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b"),
    _row(
        "GitLab token",
        "glpat- gldt- glrt- glptt- glcbt-",
        r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}",
    ),
    _row("Google API key", "AIza", rf"\bAIza[A-Za-z0-9_-]{{35}}{_END}"),
    _row("Google client secret", "GOCSPX-", rf"\bGOCSPX-[A-Za-z0-9_-]{{28}}{_END}"),
    _row(
        "Slack token",
        "xox xapp-",
        r"\b(?:xox[abeoprs]-(?:\d-)?[0-9]{8,}-|xapp-\d-[A-Z0-9]+-)[A-Za-z0-9-]{16,}",
    ),
    _row(
        "Slack webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,}/[A-Z0-9]{8,}/[A-Za-z0-9]{20,}",
        spread=True,
    ),
    _row("Stripe key", "k_live_ whsec_", r"\b(?:[rs]k_live|whsec)_[A-Za-z0-9+]{24,}"),
    _row("Anthropic key", "sk-ant-", r"\bsk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,}"),
    _row(
        "OpenAI key",
        "sk-proj- sk-svcacct- sk-admin- T3BlbkFJ",
        r"\bsk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
    ),
    _row("OpenRouter key", "sk-or-v1-", r"\bsk-or-v1-[0-9a-f]{64}\b"),
    _row("Groq key", "gsk_", r"\bgsk_[A-Za-z0-9]{52}\b"),
    _row("Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{34,}\b"),
    _row("npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _row("PyPI token", "pypi-AgE", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    _row("Docker token", "dckr_pat_ dckr_oat_", r"\bdckr_[po]at_[A-Za-z0-9_-]{27,32}"),
    _row("Vault token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _row("age secret key", "AGE-SECRET-KEY-1", r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b"),
    _row(
        "private key",
        "-----BEGIN",
        # Between the first line and the key stand quotes, indents, escaped line ends, headers.
        r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s>\"'+|]|\\[nr])+"
        r"(?:[A-Za-z-]{1,20}: [^\n]{1,100}\n\s*){0,4}([A-Za-z0-9+/]{40})",
        spread=True,
    ),
    _row(
        "JSON web token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{20,}",
    ),
    _row("SendGrid key", "SG.", rf"\bSG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}{_END}"),
    _row("Twilio key", "SK", r"\bSK[0-9a-f]{32}\b"),
    _row("Telegram bot token", ":AA", rf"\b[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    _row(
        "Discord token",
        ".",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b",
    ),
    _row(
        "Discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}",
        spread=True,
    ),
    _row("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    _row(
        "Azure storage key",
        "AccountKey=",
        r"\bAccountKey=([A-Za-z0-9+/]{80,90}==)",
        spread=True,
    ),
    _row("Tailscale key", "tskey-", r"\btskey-[a-z]{2,12}-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,}"),
    _row("Databricks token", "dapi", r"\bdapi[0-9a-f]{32}\b"),
    _row("Grafana token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    _row("Linear key", "lin_api_", r"\blin_api_[A-Za-z0-9]{40}\b"),
    _row("Notion token", "ntn_", r"\bntn_[A-Za-z0-9]{46}\b"),
    _row("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    _row("amux token", "amux_", rf"\bamux_[0-9a-f]{{12}}_[A-Za-z0-9_-]{{43}}_[0-9a-f]{{8}}{_END}"),
)


# Most literals have one of these, and most texts have few: what stands nowhere is asked once.
_SIGNS = "_-.:/="


class _Group(Value, kw_only=False):
    """Literals that have a sign in common, and beside each the format that it belongs to."""

    sign: str
    literals: list[str]
    owners: list[Format]


def _groups(*, spread: bool) -> tuple[_Group, ...]:
    found: dict[str, _Group] = {}
    for row in FORMATS:
        for literal in row.literals if row.is_spread == spread else ():
            sign = next((one for one in _SIGNS if one in literal), "")
            group = found.setdefault(sign, _Group(sign, [], []))
            group.literals.append(literal)
            group.owners.append(row)
    return tuple(found.values())


_TIGHT, _SPREAD = _groups(spread=False), _groups(spread=True)

# A colon and an at sign frame the password; greedy, because a password may hold an at sign.
_IN_URL = Lazy(r"://[^\s/:@'\"<>`]{0,64}:([^\s/'\"<>`]{4,128})@(\[[0-9a-fA-F:.]+\]|[\w.-]+)")
URL_KIND = "password in a URL"


def first_in(text: str) -> tuple[str, int] | None:
    """Find a value of a published format: its kind, and where it begins."""
    split = text.replace("/", " ").split()
    words = "\n".join([word for word in split if len(word) >= MIN_TOKEN])
    for where, groups in ((words, _TIGHT), (text, _SPREAD)):
        for row in dict.fromkeys(_rows(where, groups)):
            for found in row.pattern.now.finditer(where):
                if not placeholder.is_example(found[found.lastindex or 0]):
                    return row.kind, text.index(found[0])
    for found in _IN_URL.now.finditer(text):
        if _is_password(found[1]) and not placeholder.is_local(found[2]):
            return URL_KIND, found.start()
    return None


def _rows(text: str, groups: tuple[_Group, ...]) -> Iterator[Format]:
    """Give the formats of which a literal stands in a text, some of them twice."""
    for group in groups:
        if group.sign in text:
            # Every write comes through here, so they are looked for without a loop of ours.
            yield from compress(group.owners, map(contains, repeat(text), group.literals))


def _is_password(text: str) -> bool:
    """Tell a password from what an address shows in its place, and from a port."""
    if len(text) < 6 or placeholder.is_stand_in(text):
        return False
    has_digit = any(character.isdigit() for character in text)
    has_letter = any(character.isalpha() for character in text)
    return has_letter and (has_digit or len(set(text)) >= placeholder.MIN_DISTINCT)
