"""What the command line prints: the only module that does.

Rule 1: UTF-8 always, whatever the locale says: bytes go to the binary streams.
Rule 2: an answer is one JSON object and one newline, or on a terminal a readable form.
Rule 3: a refusal is one line of JSON, the last of standard error; notices are lines before it;
        standard output stays empty.
Rule 4: a terminal never gets a raw control or bidi character: stored text is data, and must
        not move the cursor, ring, or hide what stands beside it.
Rule 5: a reader that went away (`| head`) is no error of ours.
"""

import json
import re
from collections.abc import Callable

from amux.errors import AmuxError
from amux.runtime.context import Context, Output

INTERRUPTED = 130  # as shells report SIGINT

# C0 but tab and LF, DEL, C1, and what Unicode uses to reorder or hide text. Compiled where it is
# first used: a script, which gets JSON as it came, need not pay 2 ms for it.
_UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Escape what would act on a terminal instead of being shown."""
    return re.sub(_UNSAFE, _escape, text)


def answer(
    ctx: Context,
    text: str,
    *,
    as_json: bool,
    readable: Callable[[dict[str, object]], str],
) -> int:
    """Print one answer: JSON as it came, or on a terminal what `readable` makes of it."""
    if not ctx.stdout.isatty():
        return _write(ctx, f"{text}\n".encode("utf-8", "backslashreplace"))
    if as_json:
        return _write(ctx, re.sub(_UNSAFE, _json_escape, text + "\n").encode("utf-8"))
    value = json.loads(text)
    return _write(ctx, visible(readable(value).rstrip("\n") + "\n").encode("utf-8"))


def rows(
    ctx: Context,
    values: list[dict[str, object]],
    *,
    as_json: bool,
    readable: Callable[[dict[str, object]], str],
) -> bool:
    """Print one line each, as they come; False once nobody reads any more."""
    if not as_json and ctx.stdout.isatty():
        texts = [readable(value) for value in values]
        data = "".join(visible(text) + "\n" for text in texts if text).encode("utf-8")
    else:
        lines = "".join(spelled(value) + "\n" for value in values)
        is_shown = ctx.stdout.isatty()
        data = (re.sub(_UNSAFE, _json_escape, lines) if is_shown else lines).encode("utf-8")
    return _is_written(ctx, data)


def own(
    ctx: Context,
    value: dict[str, object],
    *,
    as_json: bool,
    readable: Callable[[dict[str, object]], str],
) -> int:
    """Print an answer that the command line made itself."""
    return answer(ctx, spelled(value), as_json=as_json, readable=readable)


def spelled(value: dict[str, object]) -> str:
    """Spell an object as one line of JSON; names that are not UTF-8 become printable."""
    return json.dumps(_printable(value), ensure_ascii=False, separators=(",", ":"))


def page(ctx: Context, text: str) -> int:
    """Print text that amux wrote: help, a script, an entry to paste."""
    # Paths in it that are not UTF-8 come out as the bytes that they are.
    return _write(ctx, text.encode("utf-8", "surrogateescape"))


def stored(ctx: Context, data: bytes) -> int:
    """Print a document's bytes: exact, but to a terminal, which gets them escaped."""
    if ctx.stdout.isatty():
        data = visible(data.decode("utf-8", "backslashreplace")).encode("utf-8")
    return _write(ctx, data)


def notice(ctx: Context, text: str) -> None:
    """Tell a person something beside the answer: one line on standard error."""
    line = visible(" ".join(_legible(text).splitlines()))
    _tell(ctx.stderr, f"amux: {line}\n")


def question(ctx: Context, text: str) -> None:
    """Ask a person on the terminal; the answer stands on the same line."""
    _tell(ctx.stderr, visible(text))


def refuse(ctx: Context, refusal: AmuxError) -> int:
    """Print a refusal and give its exit status."""
    _tell(ctx.stderr, re.sub(_UNSAFE, _json_escape, spelled(refusal.body())) + "\n")
    return refusal.exit_status


def interrupted(ctx: Context) -> int:
    """End after Ctrl-C."""
    _tell(ctx.stderr, "amux: interrupted\n")
    return INTERRUPTED


def _write(ctx: Context, data: bytes) -> int:
    _is_written(ctx, data)
    return 0


def _is_written(ctx: Context, data: bytes) -> bool:
    try:
        ctx.stdout.write(data)
        ctx.stdout.flush()
    except BrokenPipeError:
        # The interpreter would flush once more at its end and complain; a closed stream is left.
        _close(ctx)
        return False
    return True


def _close(ctx: Context) -> None:
    try:
        ctx.stdout.close()
    except OSError:
        return


def _tell(stderr: Output, text: str) -> None:
    try:
        stderr.write(text.encode("utf-8", "backslashreplace"))
        stderr.flush()
    except OSError:
        return  # nobody is there to be told; the exit status still says it


def _printable(value: object) -> object:
    """Make names of files that are not UTF-8 printable, whatever they are nested in."""
    if isinstance(value, str):
        return _legible(value)
    if isinstance(value, dict):
        return {str(key): _printable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(one) for one in value]
    return value


def _legible(text: str) -> str:
    """Show bytes of a name that Python could not read: as UTF-8, or escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _escape(found: re.Match[str]) -> str:
    point = ord(found.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _json_escape(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1] if found.group() != "\x7f" else "\\u007f"
