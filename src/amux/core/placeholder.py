"""What documentation writes in place of a secret: examples, variables, dots and stars.

Rule 1: a text that teaches how to write a secret is not one; refusing it teaches people to
        switch the guard off.
Rule 2: chance must not make a placeholder: a random value of 40 characters passes as one less
        than once in ten thousand.
"""

import re

from amux.core.lazy import Lazy

_EXAMPLE = Lazy(
    r"example|placeholder|changeme|redacted|dummy|your(?:[_-]|api|token|key|secret|own)|x{5}|\*{3}|\.{3}|…|0{6}|12345|abcde"
    r"|IxMjM0NTY3ODkw",  # `1234567890` within base64: the token that everybody shows for JWT
    re.IGNORECASE,
)
_LOCAL = Lazy(r"localhost|127\.\d|0\.0\.0\.0|\[::1?\]", re.IGNORECASE)
_VARIABLE = Lazy(r"^[$%{<\[(&#]|\$[{(]|\{\{|%[sd]|<[a-z]|environ|getenv|process\.env")
_WORD = Lazy(
    r"pass|pwd|passwd|secret|token|test|user|demo|foo|sample|fake|mock|null|none|string|api_?key"
    r"|口令|密[码碼钥鑰]",
    re.IGNORECASE,
)
MIN_DISTINCT = 8  # of a token's characters; `ghp_aaaa…` and `AKIAXXXX…` have fewer


def is_example(token: str) -> bool:
    """Tell whether a value of a published format is one that stands for all of them."""
    return len(set(token)) < MIN_DISTINCT or _EXAMPLE.now.search(token) is not None


def is_stand_in(value: str) -> bool:
    """Tell whether what is given as a password only says that one goes there."""
    return any(pattern.now.search(value) for pattern in (_EXAMPLE, _VARIABLE, _WORD))


def is_local(host: str) -> bool:
    """Tell whether a host is the machine that the reader sits at."""
    return _LOCAL.now.match(host) is not None
