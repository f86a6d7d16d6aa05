"""What may not be written into memory: secrets, and text that nobody sees (M77, M78).

Rule 1: a finding says kind and line. The value is in no finding, message, detail or log.
Rule 2: a guard answers; it never strips, masks or rewrites: what is stored is what was sent.
Rule 3: a published format is refused to everybody; a guess by shape may be overruled, by a person.
Rule 4: what was stored earlier stays readable and can be forgotten: guards are on writing.
"""

from amux.core import assigned, formats, invisible
from amux.core.value import Value
from amux.errors import InvalidArgument, SecretDetected

INVISIBLE = "invisible_text"


class Secret(Value, kw_only=False):
    """A secret was found: what it looks like and in which line, but not what it is."""

    kind: str
    line: int
    is_guess: bool


class Invisible(Value, kw_only=False):
    """An invisible character was found: which, in which line, at which byte."""

    character: str
    line: int
    at: int


def secret_in(text: str, *, min_entropy: float = assigned.MIN_ENTROPY) -> Secret | None:
    """Find a secret: of a published format first, then one that is only shaped like one.

    What is only shaped so must look made by chance by `min_entropy` bits a character.
    """
    found = formats.first_in(text)
    if found is not None:
        return Secret(found[0], _line(text, found[1]), is_guess=False)
    at = assigned.first_in(text, min_entropy=min_entropy)
    return None if at is None else Secret(assigned.KIND, _line(text, at), is_guess=True)


def invisible_in(text: str) -> Invisible | None:
    """Find an invisible character that is not part of ordinary text."""
    at = invisible.first_in(text)
    if at is None:
        return None
    return Invisible(
        f"U+{ord(text[at]):04X}", _line(text, at), len(text[:at].encode("utf-8", "surrogatepass"))
    )


def require_clean(text: str, *, allow_secret_like: bool) -> None:
    """Refuse text that holds invisible characters or a secret.

    With `allow_secret_like` a guess by shape passes; a published format never does.
    """
    hidden = invisible_in(text)
    if hidden is not None:
        raise InvalidArgument(
            "the content holds an invisible character that is not text",
            hint="remove it; nothing is stripped for you",
            argument="content",
            reason=INVISIBLE,
            character=hidden.character,
            line=hidden.line,
            at=hidden.at,
        )
    secret = secret_in(text)
    if secret is not None and not (allow_secret_like and secret.is_guess):
        raise SecretDetected(
            "the content holds what looks like a secret",
            hint="write where the secret is kept, not its value",
            kind=secret.kind,
            line=secret.line,
        )


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
