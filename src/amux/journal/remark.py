"""What a reader noticed and read on: a code, where it stands, whose section it is (J56).

Rule 1: a remark refuses nothing; it says why an answer proves less than it seems to.
Rule 2: line numbers count from one; None where the file's start was not read (J55).
"""

from collections.abc import Iterable, Sequence

from amux.core.value import Value

MAX_REMARKS = 20  # in one answer; more are told by one last remark
CUT = "warnings-cut"

UNVERIFIED = frozenset(
    {"row-skipped", "malformed-session-heading", "unterminated-tail", "invalid-utf8"}
)


class Remark(Value, kw_only=False):
    """One thing that was noticed."""

    code: str
    line: int | None = None
    section: str | None = None

    def as_json(self) -> dict[str, object]:
        """Spell it for an answer: what is not known is left out."""
        found: dict[str, object] = {"code": self.code}
        if self.line is not None:
            found["line"] = self.line
        if self.section is not None:
            found["sessionId"] = self.section
        return found


def few(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Keep what an answer needs: those it may show, one more that tells of a cut, each code."""
    rest = {remark.code: remark for remark in reversed(remarks[MAX_REMARKS + 1 :])}
    shown = remarks[: MAX_REMARKS + 1]
    for remark in shown:
        rest.pop(remark.code, None)
    return (*shown, *rest.values())


def as_json(remarks: Iterable[Remark]) -> list[dict[str, object]]:
    """Spell at most 20 of them, each once, and say if there were more."""
    once = list(dict.fromkeys(remarks))
    shown = [remark.as_json() for remark in once[:MAX_REMARKS]]
    return [*shown, {"code": CUT}] if len(once) > MAX_REMARKS else shown
