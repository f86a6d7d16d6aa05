"""Values that a text gives as a password, a secret or a token, in English or Chinese (M77).

Rule 1: this is a guess by shape, so it is guarded, and a person may overrule it: a name that
        means a secret, a sign or word that assigns, and a value that looks made by chance.
Rule 2: names of variables and files, code, versions and words joined by dashes are not values.
Rule 3: names are found by plain search first; the pattern runs where one stands, and nowhere else.
"""

import math
import re
from collections import Counter

from amux.core import placeholder
from amux.core.lazy import Lazy

KIND = "assigned secret"
MIN_ENTROPY = 3.0  # bits a character; words of eight letters have less, chance has more
MAX_VALUE = 128

# Parts of the names below, in lower case: where none stands, there is nothing to look at.
_HINTS = (
    "passw", "passphrase", "_pass", "pwd", "secret", "token", "key", "credential",
    "authorization", "bearer", "密码", "密碼", "密钥", "密鑰", "口令", "令牌",
)  # fmt: skip
# A value is of visible ASCII but quotes, comma and semicolon; Chinese text may follow it at once.
_ASSIGNED = Lazy(
    r"(?:passw(?:or)?d|passphrase|_pass|pwd|token|credentials?|authorization"
    r"|secret(?:[ _-]?(?:access[ _-]?)?key|[ _-]?id)?|key|密[码碼钥鑰]|口令|令牌)"
    r"[\"'`*\])]{0,3}"
    r"(?:[ \t]{0,3}(?:=>|:=|[=:：＝|])[ \t]{0,3}"
    r"|[ ](?:is|was)[ ](?:now[ ]|set[ ]to[ ])?"
    r"|[ ]?(?:改为|改成|改為|设为|設為|设置为|就是|是|为|為)[ ]?[:：]?[ ]?)"
    r"[\"'`* ]{0,4}(?:(?:bearer|basic|token)[ ]+)?"
    rf"([!#-&(-+\-.-:<-_a-~]{{8,{MAX_VALUE}}})"
    rf"|bearer[ ]+([A-Za-z0-9._~+/=-]{{20,{MAX_VALUE}}})",
    re.IGNORECASE,
)
# A key is a secret only where a word before it says so; a key of a dictionary is none.
_OF_SECRETS = Lazy(r"(?:api|access|private|auth|encryption|signing|master)[ _-]?$")
_BEFORE = 12
_CODE = Lazy(r"\w[\[(]|::|->|//|^--|^\d{4}-\d\d-\d\d|^[./~@\\]")
_PART = Lazy(r"[A-Za-z]+\d{0,3}|\d{1,4}[a-z]?")
_JOINT = Lazy(r"[-_./:+@=|\\]+")


def first_in(text: str, *, min_entropy: float = MIN_ENTROPY) -> int | None:
    """Find where a text gives a value for what it calls a password, a secret or a token."""
    # One character has a lower case of two; offsets must stay those of the text.
    low = text.replace("İ", "i").lower()
    for hint in _HINTS:
        at = low.find(hint)
        while at >= 0:
            found = _ASSIGNED.now.match(text, at)
            if found and _is_secret(found[1] or found[2], min_entropy) and _is_named(hint, low, at):
                return at
            at = low.find(hint, at + len(hint))
    return None


def _is_named(hint: str, low: str, at: int) -> bool:
    return hint != "key" or _OF_SECRETS.now.search(low[max(0, at - _BEFORE) : at]) is not None


def _is_secret(value: str, min_entropy: float) -> bool:
    """Tell a value that looks made by chance from a name, a word, code and a placeholder."""
    value = value.rstrip(".:!?)]}*_|>")
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    return (
        has_digit
        and has_letter
        and value.isascii()
        and not placeholder.is_stand_in(value)
        and not _CODE.now.search(value)
        and not _is_name(value)
        and _entropy(value) >= min_entropy
    )


def _is_name(value: str) -> bool:
    """Tell whether a value is words and numbers, joined: a name, a path, a version, a model."""
    parts = [part for part in _JOINT.now.split(value) if part]
    return len(parts) > 1 and all(_PART.now.fullmatch(part) for part in parts)


def _entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
