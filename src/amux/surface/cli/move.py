"""The verb `memory move`: another path for the same bytes (M51).

Rule 1: the bytes are at NEW, durably, before OLD is touched: at no instant are there none.
Rule 2: moved is what was read at R. If OLD is something else by then, or gone, NEW is taken
        back at its own revision, and the answer is `revision_conflict`.
Rule 3: whatever else goes wrong leaves both, and the refusal says which exist, by revision.
"""

from amux.core.text import to_json
from amux.errors import AmuxError, InvalidArgument, NotFound, RevisionConflict
from amux.runtime.context import Context
from amux.surface.cli import calls, output, render, whole
from amux.surface.cli.parse import Given
from amux.surface.cli.whole import ABSENT
from amux.surface.cli.write import text_of


def move(ctx: Context, given: Given) -> int:
    """Create NEW with the bytes of OLD, then forget OLD."""
    old, new, expected = (given.text(name) for name in ("old", "new", "expected_revision"))
    if old == new:
        raise InvalidArgument("OLD and NEW are the same path", argument="new")
    document = whole.read(ctx, old)
    if not document.exists and expected == ABSENT:
        raise NotFound("there is no document to move", argument="old")
    if document.revision != expected:
        raise _changed(document.revision, {})
    try:
        revision = _create(ctx, given, document)
        _finish(ctx, old, new, expected, revision)
    except AmuxError as refusal:
        if "documents" not in refusal.details:
            refusal.details = {**refusal.details, "documents": _existing(ctx, old, new)}
        raise
    except KeyboardInterrupt:
        found = to_json(_existing(ctx, old, new)).decode("utf-8")
        output.notice(ctx, f"the move was interrupted; now there are {found}")
        raise
    answer = {"old": old, "path": new, "revision": revision, "moved": True}
    return output.own(ctx, answer, as_json=given.has("json"), readable=render.moved)


def _create(ctx: Context, given: Given, document: whole.Whole) -> str:
    """Put the bytes at NEW, where nothing may be."""
    arguments: dict[str, object] = {
        "path": given.text("new"),
        "content": text_of(document.data),
        "expected_revision": ABSENT,
        **given.wire("allow_secret_like"),
    }
    return str(calls.ask(ctx, "upsert", arguments).value()["revision"])


def _finish(ctx: Context, old: str, new: str, expected: str, revision: str) -> None:
    """Forget OLD at R, or take NEW back if OLD is not R any more."""
    arguments: dict[str, object] = {"path": old, "expected_revision": expected}
    try:
        gone = calls.ask(ctx, "forget", arguments).value()
        observed = ABSENT if gone["already_absent"] else ""
    except RevisionConflict as conflict:
        observed = str(conflict.details["observed"])
    if observed:
        # Somebody changed or forgot OLD since we read it, so what we copied is not its last
        # word: NEW must not keep alive a text that was corrected or forgotten.
        calls.ask(ctx, "forget", {"path": new, "expected_revision": revision})
        raise _changed(observed, {old: observed, new: ABSENT})


def _existing(ctx: Context, old: str, new: str) -> dict[str, object]:
    """Say what is at both paths now, as far as the Hub still answers."""
    return {path: _revision(ctx, path) for path in (old, new)}


def _revision(ctx: Context, path: str) -> str:
    try:
        return str(calls.ask_running(ctx, "get", {"path": path}).value()["revision"])
    except AmuxError as refusal:
        return f"unknown: {refusal.code}"


def _changed(observed: str, documents: dict[str, object]) -> RevisionConflict:
    details = {"documents": documents} if documents else {}
    return RevisionConflict(
        "the document changed since it was read; nothing was moved",
        hint="read it again, and move it at its new revision",
        observed=observed,
        **details,
    )
