"""By what key two names of a task are the same name (T38), and how far apart two keys are (T42).

Rule 1: NFKC, casefold, NFKC, runs of white space to one blank, trimmed; nothing is split,
        transliterated or guessed, so a name in any script is treated alike.
Rule 2: a key finds; it is never shown and never stored in place of the name.
"""

import re
import unicodedata
from collections import Counter

# White_Space of Unicode. `str.split` would also cut at four control characters that are none.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
KEY_MAX_CHARS = 200  # of a key that is measured against others: it bounds the work


def name_key(name: str) -> str:
    """Give the key of a name.

    >>> name_key("  Straße  1 ") == name_key("STRASSE 1")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return _BLANKS.sub(" ", folded).strip(" ")


def distance(one: str, other: str, *, at_most: int) -> int | None:
    """Count the insertions, deletions and changes of one character that lead to the other.

    None where it takes more than `at_most`.

    >>> distance("totals", "totels", at_most=2)
    1
    """
    if len(one) < len(other):
        one, other = other, one
    # Neither length nor letters may differ by more: that spares most pairs the table below.
    if len(one) - len(other) > at_most or len(one) - _common(one, other) > at_most:
        return None
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, start=1):
        diagonal, row[0] = row[0], at
        for index, right in enumerate(other, start=1):
            diagonal, row[index] = (
                row[index],
                min(row[index] + 1, row[index - 1] + 1, diagonal + (left != right)),
            )
        if min(row) > at_most:
            return None
    return row[-1] if row[-1] <= at_most else None


def _common(one: str, other: str) -> int:
    return (Counter(one) & Counter(other)).total()
