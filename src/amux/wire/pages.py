"""An oversized MCP answer and its pages (M57).

Rule 1: a page is at most 6 KiB as the model sees it, its wrapper included, whatever it holds.
Rule 2: joining `text` of all pages gives the answer byte for byte.
Rule 3: a page may be asked for again until its answer has expired: reading takes nothing away.
        The last page's `continuation` is null.
Rule 4: this file has no clock and no chance: `now` and new handles are arguments.
"""

from collections.abc import Callable

from amux.core.text import fit, to_json
from amux.errors import LimitExceeded, NotFound
from amux.memory.limits import (
    PAGE_MAX_BYTES,
    PAGED_ANSWERS_MAX,
    PAGED_BYTES_MAX,
    PAGED_KEEP_SECONDS,
)

_MOST_PAGES = 99_999  # more than PAGED_BYTES_MAX can become; its digits size the wrapper


class Pages:
    """The answers that one caller is still reading."""

    __slots__ = ("_answers", "_new_handle")

    def __init__(self, new_handle: Callable[[], str]) -> None:
        self._new_handle = new_handle
        # handle -> (texts, bytes, when it was cut), oldest first
        self._answers: dict[str, tuple[list[str], int, float]] = {}

    def open(self, answer: str, now: float) -> str:
        """Give an answer as it is where it fits, else its first page; the rest is kept."""
        size = len(answer.encode("utf-8"))
        if size <= PAGE_MAX_BYTES:
            return answer
        if size > PAGED_BYTES_MAX:
            raise LimitExceeded(
                "the answer is too large for pages", limit=PAGED_BYTES_MAX, size=size
            )
        handle = self._new_handle()
        texts = _cut(answer, handle)
        self._forget_expired(now)
        self._answers[handle] = (texts, size, now)
        while len(self._answers) > PAGED_ANSWERS_MAX or self._bytes() > PAGED_BYTES_MAX:
            del self._answers[next(iter(self._answers))]
        return _page(texts, handle, 0)

    def resume(self, continuation: str, now: float) -> str:
        """Give the page that a continuation names; refuses one that is unknown or expired."""
        self._forget_expired(now)
        handle, _, number = continuation.rpartition(".")
        texts = self._answers[handle][0] if handle in self._answers else []
        for index in range(1, len(texts)):
            if number == str(index):
                return _page(texts, handle, index)
        raise NotFound("the continuation is unknown or expired", hint="repeat the call")

    def _bytes(self) -> int:
        return sum(size for _, size, _ in self._answers.values())

    def _forget_expired(self, now: float) -> None:
        for handle, (_, _, born) in list(self._answers.items()):
            if now - born >= PAGED_KEEP_SECONDS:
                del self._answers[handle]


def _cut(answer: str, handle: str) -> list[str]:
    """Cut at characters so that each text fits into its page."""
    wrapper = to_json(_wrapped(_MOST_PAGES, _MOST_PAGES, f"{handle}.{_MOST_PAGES}", ""))
    room = PAGE_MAX_BYTES - len(wrapper)
    texts = []
    start = 0
    while start < len(answer):
        text = fit(answer[start : start + room], room)
        texts.append(text)
        start += len(text)
    return texts


def _page(texts: list[str], handle: str, index: int) -> str:
    continuation = f"{handle}.{index + 1}" if index + 1 < len(texts) else None
    page = _wrapped(index + 1, len(texts), continuation, texts[index])
    return to_json(page).decode("utf-8")


def _wrapped(page: int, pages: int, continuation: str | None, text: str) -> dict[str, object]:
    return {"page": page, "pages": pages, "continuation": continuation, "text": text}
