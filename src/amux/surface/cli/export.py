"""The verb `memory export`: a document's stored bytes, all of one revision (M33)."""

from amux.errors import NotFound
from amux.runtime.context import Context
from amux.surface.cli import output, whole
from amux.surface.cli.parse import Given


def export(ctx: Context, given: Given) -> int:
    """Write a document's bytes; nothing at all where they cannot be had whole."""
    document = whole.read(ctx, given.text("path"))
    if not document.exists:
        raise NotFound(
            "there is no such document",
            hint="`amux memory list` shows what is there",
            argument="path",
        )
    return output.stored(ctx, document.data)
