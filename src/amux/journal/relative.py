"""A path argument: relative, plain, inside its root (J19). Pure."""

import unicodedata

from amux.journal.refusals import refuse

MAX_BYTES = 1024


def problem(path: str) -> str | None:
    """Name the rule that a path argument breaks, or None for one that is safe."""
    if not path or path.startswith("/"):
        return "relative"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return "too-long"
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        return "segment"
    for character in path:
        if character in "\\:" or unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
            return "character"
    return None


def require(path: str) -> str:
    """Give back a path argument that is safe, or refuse it."""
    rule = problem(path)
    if rule is not None:
        raise refuse(
            "MEMORY_PATH_UNSAFE",
            "the path is not a plain relative one",
            hint="name a file below the root, with / between its steps",
            rule=rule,
        )
    return path
