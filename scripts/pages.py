"""The generated parts of the documentation, as Markdown; cog puts them into the pages.

Rule 1: a page says nothing about a code, a verb or a limit that its table does not say.
"""

import ast
import re
from collections.abc import Iterator

from amux.errors import TABLE
from amux.journal.call import tools as journal
from amux.journal.call.tool import Field
from amux.journal.refusals import REASONS
from amux.surface.cli.verbs import GLOBAL_OPTIONS, VERBS
from amux.wire.tools import CALLS, TARGETS, TOOLS, Call
from scripts.imports import SOURCE

LIMIT_SOURCES = (
    ("Memory", "amux/memory/limits.py"),
    ("Paths", "amux/core/path.py"),
    ("Connections", "amux/connections.py"),
    ("Credentials", "amux/hub/rates.py"),
)
JOURNAL_LIMITS = (
    (
        "store/window",
        "WINDOW_BYTES",
        "an answer reads the end of a file and no more",
    ),
    (
        "store/files",
        "SOURCE_MAX_BYTES",
        "a file to be written is read whole; a larger one is refused",
    ),
    ("call/surroundings", "LOCK_WAIT_MS", "for another writer, in ms; `AMUX_LOCK_WAIT_MS` sets it"),
    ("call/surroundings", "LOCK_WAIT_MAX_MS", "as above, at most"),
    ("ledger/ledger", "MAX_RECORDS", "records of one workspace; beyond, no new task is admitted"),
    (
        "tasks/observing",
        "TARGET_MAX_BYTES",
        "a target is hashed; a larger one goes by its metadata",
    ),
    ("call/book", "MAX_PLANS", "memories that one process reads by turns without a new status"),
)


def errors() -> str:
    """Show every refusal: code, when, HTTP status, exit status, when to ask again."""
    rows = [
        f"| `{code}` | {row.when} | {row.http or '–'} | {row.exit} | {row.retry} |"
        for code, row in TABLE.items()
    ]
    return _table("code | when | HTTP | exit | ask again", rows)


def verbs() -> str:
    """Show every verb with its options, examples and refusals."""
    parts = [
        "Options of every verb: "
        + ", ".join(f"`--{option.name}` ({option.about})" for option in GLOBAL_OPTIONS)
        + "."
    ]
    for verb in VERBS.values():
        parts.append(f"## amux {verb.name}")
        parts.append(f"`{verb.usage}`")
        parts.append(_sentence(verb.summary) + (f" {verb.about}" if verb.about else ""))
        takes = [(part.usage, part.about) for part in verb.positionals]
        takes += [(part.usage, part.about) for part in verb.options]
        if verb.rest is not None:
            takes.append((f"-- {verb.rest.usage.strip('[]')}", verb.rest.about))
        if takes:
            rows = [f"| `{usage}` | {about} |" for usage, about in takes]
            parts.append(_table("argument | meaning", rows))
        examples = "\n".join(f"{command}  # {about}" for command, about in verb.examples)
        parts.append(f"```sh\n{examples}\n```")
        parts.append("May refuse with " + ", ".join(f"`{code}`" for code in verb.refusals) + ".")
    return "\n\n".join(parts)


def limits() -> str:
    """Show every number of the contract with its reason."""
    parts = []
    for title, name in LIMIT_SOURCES:
        rows = [f"| `{limit}` | {value} | {why} |" for limit, value, why in constants(name)]
        parts.append(f"### {title}\n\n" + _table("limit | value | why", rows))
    rows = []
    for module, limit, why in JOURNAL_LIMITS:
        values = {one: value for one, value, _ in constants(f"amux/journal/{module}.py")}
        rows.append(f"| `{limit}` | {values[limit]} | {why} |")
    parts.append("### Journal\n\n" + _table("limit | value | why", rows))
    return "\n\n".join(parts)


def constants(name: str) -> Iterator[tuple[str, str, str]]:
    """Read the numbers of a module: name, value, and the comment beside it."""
    source = (SOURCE / name).read_text(encoding="utf-8")
    lines = source.splitlines()
    values: dict[str, int | float] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        limit = node.targets[0].id
        value = _number(node.value, values)
        if value is not None and not limit.startswith("_"):
            values[limit] = value
            _, _, why = lines[node.lineno - 1].partition("#")
            yield limit, _shown(limit, value), why.strip()


def calls() -> str:
    """Show every call of the Hub with its arguments."""
    rows = [f"| `POST {TARGETS[name]}` | {_arguments(call)} |" for name, call in CALLS.items()]
    return _table("call | arguments", rows)


def tools() -> str:
    """Show every MCP tool as an agent is told of it."""
    rows = [f"| `{name}` | {_arguments(call)} | {call.about} |" for name, call in TOOLS.items()]
    return _table("tool | arguments | what the agent is told", rows)


def journal_tools() -> str:
    """Show the tools of the journal: where they are listed, their verbs and arguments."""
    rows = []
    for tool in journal.TOOLS.values():
        listed = "yes" if tool.name in journal.DEFAULT else "–"
        if tool.name in journal.EVERY and tool.name not in journal.DEFAULT:
            listed = "`--tools all`"
        if tool.name in journal.CHILD and tool.name not in journal.EVERY:
            listed = "to a child"
        arguments = ", ".join(map(_field, tool.fields))
        rows.append(
            f"| `{tool.name}` | `amux {tool.verb}` | {listed} | {tool.about} | {arguments} |"
        )
    return _table("tool | verb | in `tools/list` | what it does | arguments", rows)


def reasons() -> str:
    """Show every reason of the journal's refusals, by code."""
    found: dict[str, list[str]] = {}
    for reason, code in REASONS.items():
        found.setdefault(str(code), []).append(f"`{reason}`")
    rows = [f"| `{code}` | {', '.join(names)} |" for code, names in found.items()]
    return _table("code | `details.reason`", rows)


def _field(field: Field) -> str:
    shown = f"**`{field.name}`**" if field.is_required else f"`{field.name}`"
    if field.choices:
        return f"{shown} ({', '.join(map(str, field.choices))})"
    if field.most:
        return f"{shown} ({field.least}–{field.most})"
    return shown


def _arguments(call: Call) -> str:
    shown = [
        f"`{argument.name}`" if argument.is_required else f"[`{argument.name}`]"
        for argument in call.arguments
    ]
    return ", ".join(shown) or "none"


def _number(node: ast.expr, known: dict[str, int | float]) -> int | float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _number(left, known), _number(right, known)
            return None if one is None or other is None else one * other
        case _:
            return None


def _shown(limit: str, value: float) -> str:
    if "BYTES" in limit:
        for size, unit in ((1024 * 1024, "MiB"), (1024, "KiB")):
            if value >= size and value % size == 0:
                return f"{value // size:,} {unit}"
        return f"{value:,} bytes"
    if "SECONDS" in limit:
        return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
    return f"{value:,}"


def _sentence(words: str) -> str:
    return re.sub(r"^.", lambda first: first[0].upper(), words).rstrip(".") + "."


def _table(head: str, rows: list[str]) -> str:
    columns = head.count("|") + 1
    return "\n".join([f"| {head} |", "|" + " --- |" * columns, *rows])
