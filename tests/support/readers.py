"""All that the journal's reads answer about a tree, to be compared; one desk asks it all."""

from pathlib import Path

from amux.core import canonical
from amux.errors import AmuxError
from amux.journal.desk import Desk
from tests.support.journal_faces import late
from tests.support.writers import Receipt, Writer

STATUSES = ("active", "completed", "blocked", "unresolved", "all")
DATES = ("20260313", "20260314")


class Reader:
    """One process that asks."""

    def __init__(self, base: Path, **settings: str) -> None:
        self.desk = Desk(Writer(base, session="reader", **settings).around, late)
        self.receipts: list[Receipt] = []

    def ask(self, name: str, **given: object) -> Receipt:
        """Ask one thing; a refusal is an answer too."""
        try:
            return self.desk.call(f"memory_{name}", given)
        except AmuxError as refusal:
            return refusal.body()

    def answers(self) -> dict[str, Receipt]:
        """Ask everything; what the index had to say is kept apart, in `receipts`."""
        self._found: dict[str, Receipt] = {}
        self.receipts = []
        for limit in (1, 20):
            self._note("status", limit=limit)
        for status in STATUSES:
            for limit in (2, 50):
                self._pages("summary_query", status=status, limit=limit)
        self._note("summary_query", status="all", limit=50, since="2026-02-10")
        for date in DATES:
            for status in STATUSES:
                self._note("session_query", date=date, status=status, limit=20)
            self._note("session_query", date=date, handoffOnly=True, limit=20)
            self._note("session_query", date=date, sessionId="1", maxChars=20)
            self._note("session_query", date=date, sessionId="1", maxChars=20, contentOffset=20)
            self._pages("session_query", date=date, limit=1)
            self._note("session_read", date=date)
        self._note("summary_read")
        return self._found

    def _pages(self, name: str, **given: object) -> None:
        """Ask for a few pages, one after the other."""
        page = self._note(name, **given)
        for _ in range(3):
            cursor = _cursor(page)
            if cursor is None:
                break
            page = self._note(name, **given, cursor=cursor)

    def _note(self, name: str, **given: object) -> Receipt:
        answer = self.ask(name, **given)
        receipt = answer.pop("indexReceipt", None)
        if isinstance(receipt, dict):
            self.receipts.append(receipt)
        self._found[f"{name} {canonical.encode(given).decode()}"] = answer
        return answer


def _cursor(answer: Receipt) -> str | None:
    pagination = answer.get("pagination", answer)
    cursor = pagination.get("nextCursor") if isinstance(pagination, dict) else None
    return cursor if isinstance(cursor, str) else None
