"""The verbs that write one document: upsert, forget."""

from amux.disk import named
from amux.errors import InvalidArgument, LimitExceeded
from amux.memory import limits
from amux.runtime.context import Context
from amux.surface.cli import calls, output, render
from amux.surface.cli.parse import Given


def upsert(ctx: Context, given: Given) -> int:
    """Replace a document, or create it, by the bytes of a file or of standard input."""
    content = text_of(_content(ctx, given.text("file")))
    arguments = {**given.wire("path", "expected_revision", "allow_secret_like"), "content": content}
    found = calls.ask(ctx, "upsert", arguments)
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.upsert)


def forget(ctx: Context, given: Given) -> int:
    """Remove a document."""
    found = calls.ask(ctx, "forget", given.wire("path", "expected_revision"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.forget)


def text_of(data: bytes) -> str:
    """Read a document's bytes as text; refuses what is not UTF-8, naming the place."""
    if len(data) > limits.BODY_MAX_BYTES:
        raise LimitExceeded(
            f"a request body may have {limits.BODY_MAX_BYTES} bytes",
            hint="split the document by topic",
            max_bytes=limits.BODY_MAX_BYTES,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            "the content is not UTF-8",
            hint="save it as UTF-8",
            argument="content",
            at=error.start,
        ) from error


def _content(ctx: Context, file: str) -> bytes:
    if file in {"", "-"}:
        if ctx.stdin.isatty():
            output.notice(ctx, "type the document; Ctrl-D ends it")
        return ctx.stdin.read(limits.BODY_MAX_BYTES + 1)
    try:
        return named.read(file.encode("utf-8"), max_bytes=limits.BODY_MAX_BYTES)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            "the file cannot be read",
            hint="see whether it exists and may be read",
            argument="file",
            cause=type(error).__name__,
        ) from error
