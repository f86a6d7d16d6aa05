"""The verbs that read: search, show, list, check."""

from amux.runtime.context import Context
from amux.surface.cli import calls, output, render
from amux.surface.cli.parse import Given


def search(ctx: Context, given: Given) -> int:
    """Find documents."""
    found = calls.ask(ctx, "search", given.wire("query", "path_prefix", "limit"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.search)


def show(ctx: Context, given: Given) -> int:
    """Read a part of a document."""
    found = calls.ask(ctx, "get", given.wire("path", "start_line", "end_line", "offset"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.show)


def list_documents(ctx: Context, given: Given) -> int:
    """List documents in path order."""
    found = calls.ask(ctx, "list", given.wire("path_prefix", "cursor"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.listing)


def check(ctx: Context, given: Given) -> int:
    """List what is no document, or remove one such file."""
    if given.has("remove"):
        found = calls.ask(ctx, "discard", {"path": given.text("remove")})
        return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.discarded)
    found = calls.ask(ctx, "check", {})
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.check)
