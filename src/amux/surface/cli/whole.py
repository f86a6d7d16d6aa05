"""Reading a whole document, page by page, at one revision.

Rule 1: pages of two revisions are never joined; a change between pages is one new try of the
        whole, then `revision_conflict` (M33).
"""

from amux.errors import Internal, InvalidArgument, RevisionConflict
from amux.runtime.context import Context
from amux.surface.cli import calls

TRIES = 2
ABSENT = "absent"


class Whole:
    """A document's stored bytes and their revision; `absent` and empty where there is none."""

    __slots__ = ("data", "revision")

    def __init__(self, data: bytes, revision: str) -> None:
        self.data = data
        self.revision = revision

    @property
    def exists(self) -> bool:
        """Tell whether there is a document."""
        return self.revision != ABSENT


def read(ctx: Context, path: str) -> Whole:
    """Read a document whole, or refuse it as one that keeps changing."""
    observed = ""
    for _ in range(TRIES):
        first = _page(ctx, path, 0)
        pages, revision = [first], str(first["revision"])
        while pages[-1]["truncated"] and revision:
            following = _page(ctx, path, _next(pages[-1]))
            pages.append(following)
            if following["revision"] != revision:
                observed, revision = str(following["revision"]), ""
        if revision:
            return Whole(b"".join(str(page["content"]).encode("utf-8") for page in pages), revision)
    raise RevisionConflict(
        "the document kept changing while it was read",
        hint="try again when nobody writes to it",
        observed=observed or str(_page(ctx, path, 0)["revision"]),
    )


def _page(ctx: Context, path: str, offset: int) -> dict[str, object]:
    arguments: dict[str, object] = {"path": path}
    if offset:
        arguments["offset"] = offset
    try:
        return calls.ask(ctx, "get", arguments).value()
    except InvalidArgument as refusal:
        # The document became shorter than where we were: that is a change like any other.
        if offset and refusal.details.get("argument") == "offset":
            return {"revision": "", "content": "", "truncated": False}
        raise


def _next(page: dict[str, object]) -> int:
    following = page["next_offset"]
    if not isinstance(following, int) or following <= 0:
        raise Internal("the Hub cut an answer and did not say where it goes on")
    return following
