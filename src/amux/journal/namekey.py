"""By what key two names of a task are the same name (T38), and how far apart two keys are (T42).

Rule 1: NFKC, casefold, NFKC, runs of white space to one blank, trimmed; nothing is split,
        transliterated or guessed, so a name in any script is treated alike.
Rule 2: a key finds; it is never shown and never stored in place of the name.
"""

import re
import unicodedata

# White_Space of Unicode. `str.split` would also cut at four control characters that are none.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
KEY_MAX_CHARS = 200  # of a key that is compared with others by distance: it bounds the work


def name_key(name: str) -> str:
    """Give the key of a name.

    >>> name_key("  Straße  1 ") == name_key("STRASSE 1")
    True
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return _BLANKS.sub(" ", folded).strip(" ")


def distance(one: str, other: str) -> int:
    """Count the insertions, deletions and changes of one character that lead to the other.

    >>> distance("totals", "totels")
    1
    """
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, start=1):
        diagonal, row[0] = row[0], at
        for index, right in enumerate(other, start=1):
            diagonal, row[index] = (
                row[index],
                min(row[index] + 1, row[index - 1] + 1, diagonal + (left != right)),
            )
    return row[-1]
