"""The verbs on a workspace's sessions and tasks: a tool each, answered with its JSON object.

Rule 1: an argument is a flag or a key of the object that --args names, never both.
Rule 2: nothing here knows what an argument means: the journal checks, as it does for MCP (J1).
Rule 3: no Hub is needed, asked or started.
"""

from amux.core import strict
from amux.core.text import to_json
from amux.disk import named
from amux.errors import AmuxError, InvalidArgument
from amux.journal.call.tool import Tool
from amux.runtime.context import Context
from amux.surface.cli import journal_render, output
from amux.surface.cli.journal_verbs import tool_of
from amux.surface.cli.parse import Given

ARGS_MAX_BYTES = 1024 * 1024  # as long as a line of MCP may be
_TRUTHS = {"true": True, "false": False}


def call(ctx: Context, given: Given) -> int:
    """Call the tool of the verb and print its answer."""
    verb = given.verb.name if given.verb is not None else ""
    tool = tool_of(verb)
    arguments = _arguments(ctx, given, tool)
    desk = ctx.desk(ctx.place(given.text("workspace")), client=None, session=given.text("session"))
    found = desk.call(tool.name, arguments)
    return output.answer(
        ctx,
        to_json(found).decode("utf-8"),
        as_json=given.has("json"),
        readable=lambda value: journal_render.readable(tool.name, value),
    )


def _arguments(ctx: Context, given: Given, tool: Tool) -> object:
    flags = {
        field.name: _value(field.kind, given.values[key])
        for field in tool.fields
        if field.is_plain and (key := field.flag.replace("-", "_")) in given.values
    }
    if not given.has("args"):
        return flags
    found = _object(ctx, given.text("args"))
    if not isinstance(found, dict):
        return flags or found
    both = sorted(found.keys() & flags.keys())
    if both:
        raise InvalidArgument(
            "an argument is given twice",
            hint="give it as a flag, or in the object of --args",
            argument=both[0],
            reason="MEMORY_ARGUMENT_UNKNOWN",
        )
    return {**found, **flags}


def _value(kind: str, value: str | int | bool) -> object:
    """Read what a flag says: truth is a word where its default is true."""
    return _TRUTHS.get(value, value) if kind == "boolean" and isinstance(value, str) else value


def _object(ctx: Context, file: str) -> object:
    try:
        return strict.decode(_bytes(ctx, file))
    except AmuxError as refusal:
        refusal.details.setdefault("argument", "args")
        raise


def _bytes(ctx: Context, file: str) -> bytes:
    if file == "-":
        if ctx.stdin.isatty():
            output.notice(ctx, "type the object of arguments; Ctrl-D ends it")
        data = ctx.stdin.read(ARGS_MAX_BYTES + 1)
    else:
        try:
            data = named.read(file.encode("utf-8"), max_bytes=ARGS_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                "the file cannot be read",
                hint="name a file of yours, or - for standard input",
                argument="args",
                cause=type(error).__name__,
            ) from error
    if len(data) > ARGS_MAX_BYTES:
        raise InvalidArgument(
            f"an object of arguments may have {ARGS_MAX_BYTES} bytes", argument="args"
        )
    return data
