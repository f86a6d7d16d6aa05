"""The verb `memory edit`: a document in a person's own editor (M50).

Rule 1: what was opened decides what may be replaced: the revision at opening is expected.
Rule 2: unchanged bytes write nothing.
Rule 3: on any refusal the edited text stays in a private file, which the refusal names.
Rule 4: the copy lies in a folder of its own in the temporary directory, not in AMUX_HOME: a text
        that is later forgotten must have no copy there (M22).
"""

from amux.core import home
from amux.disk import named
from amux.errors import AmuxError, InvalidArgument
from amux.memory import limits
from amux.runtime.context import Context
from amux.surface.cli import calls, output, render, whole
from amux.surface.cli.parse import Given
from amux.surface.cli.write import text_of

PREFIX = f"amux-{home.EDIT_PREFIX}"  # of the folders in the temporary directory


def edit(ctx: Context, given: Given) -> int:
    """Open a document in an editor and save what comes back."""
    path = given.text("path")
    before = whole.read(ctx, path)
    process = ctx.late("process")
    folder = named.join(ctx.config.temp_dir, process.random_name(PREFIX))
    file = named.make_private(folder, path.rpartition("/")[2], before.data)
    try:
        status = process.edit(ctx.config.editor, file)
        named.keep_private(file)
        data = named.read(file, max_bytes=limits.BODY_MAX_BYTES)
        if status != 0:
            raise InvalidArgument(
                f"the editor ended with status {status}; nothing was saved",
                hint="edit again, or save the file with `amux memory upsert --file`",
                argument="EDITOR",
                status=status,
            )
        text = _saved(ctx, given, before, data)
    except AmuxError as refusal:
        if _is_unchanged(file, before.data):
            _remove(folder)
        else:
            refusal.details = {**refusal.details, "file": file}
        raise
    except KeyboardInterrupt:
        output.notice(ctx, f"the edited text is in {file}")
        raise
    except OSError as error:
        raise InvalidArgument(
            "the edited file is gone",
            hint="save under the name that the editor was given",
            file=file,
            cause=type(error).__name__,
        ) from error
    _remove(folder)
    return output.answer(ctx, text, as_json=given.has("json"), readable=render.upsert)


def _saved(ctx: Context, given: Given, before: whole.Whole, data: bytes) -> str:
    """Write what was edited, and give the answer's text."""
    if data == before.data:
        path = given.text("path")
        return output.spelled({"path": path, "revision": before.revision, "changed": False})
    arguments: dict[str, object] = {
        **given.wire("path", "allow_secret_like"),
        "content": text_of(data),
        "expected_revision": before.revision,
    }
    return calls.ask(ctx, "upsert", arguments).text


def _is_unchanged(file: str, data: bytes) -> bool:
    try:
        return named.read(file, max_bytes=limits.BODY_MAX_BYTES) == data
    except OSError:
        return False


def _remove(folder: str) -> None:
    """Remove the copy, and whatever back-up copies the editor left beside it."""
    for path in named.walk(folder):
        named.remove(path)
