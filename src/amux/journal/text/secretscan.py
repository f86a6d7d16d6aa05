"""What a writer's new text may not hold, or may hold with a warning: secrets (J11).

Rule 1: a token format, a private key and credentials in an address are refused, by kind and line;
        there is no override. A value that is only shaped like a secret passes with a warning,
        because journals quote configuration.
Rule 2: the value stands in no refusal and in no warning.
"""

from collections.abc import Iterator, Mapping

from amux.core import guard
from amux.journal.refusals import refuse
from amux.journal.remark import Remark

SECRET_LIKE = "secret-like"
# A warning costs less than a refusal, so words with a number behind them are told too.
MIN_ENTROPY = 2.5


def scan(arguments: Mapping[str, object]) -> list[Remark]:
    """Look at every string of a writer's arguments: refuse a secret, remark what looks like one."""
    found: list[Remark] = []
    for name, text in _strings("", arguments):
        secret = guard.secret_in(text, min_entropy=MIN_ENTROPY)
        if secret is None:
            continue
        if not secret.is_guess:
            raise refuse(
                "MEMORY_SECRET_SUSPECTED",
                "the new text holds what looks like a secret",
                hint="write where the secret is kept, not its value, and send the call again",
                argument=name,
                kind=secret.kind,
                line=secret.line,
            )
        found.append(Remark(SECRET_LIKE, secret.line))
    return found


def _strings(path: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, inner in value.items():
                yield from _strings(f"{path}.{key}" if path else str(key), inner)
        case list() | tuple():
            for at, inner in enumerate(value):
                yield from _strings(f"{path}[{at}]", inner)
        case _:
            pass
