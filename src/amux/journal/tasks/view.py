"""The part of `sessions.md` that is rendered: checkpoint table and status line (T26, T48, T49).

Rule 1: rows are output only. What a person writes in them is shown as drift, and never believed.
Rule 2: exactly the table's run of lines, and the status line if it still reads as we rendered it,
        are replaced; every other byte of the file stays.
Rule 3: bytes in, bytes out; lines end as the file's first line does.
"""

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

from amux.core.value import Value
from amux.journal.moment import Moment
from amux.journal.tasks.checkpoint import CONFIRMED, EXEMPT, PHASES, WAITING, Checkpoints, Slot
from amux.journal.text import insertion, table
from amux.journal.text.link import Link

NAME = "sessions.md"
HEADING = "CP 确认记录"
COLUMNS = ("CP", "状态", "artifactPath", "version", "sha256", "sourceMessage", "confirmedAt")
EMPTY = "—"
_RULE = "|----|:----:|--------------|---------|--------|---------------|-------------|\n"
_HEADER = table.render(COLUMNS) + _RULE
_STALE = "⚠️ stale"
_GLYPHS = {WAITING: "⏳", CONFIRMED: "✅", EXEMPT: "N/A"}
_UNSTARTED = "⏹️"
_HEADING = re.compile(r"(#{1,6})[ \t]+.*")
STATUS_LINE = re.compile(r"[\s>*-]*(当前状态|状态|status)[\s*]*[:：](.*)", re.IGNORECASE)
_LINKED = re.compile(r"\[.*\]\(<?(.*?)>?\)")
_DIGEST = re.compile(r"`?([0-9A-Fa-f]{64})`?")
ACTIVE = "🔄 active"
ENDED = ("completed", "rejected", "cancelled", "failed")

Warning = dict[str, object]  # noqa: A001 - its name in J56


class View(Value):
    """What is to be seen of a task's checkpoints."""

    checkpoints: Checkpoints
    stale: Sequence[str]
    task_root: str
    """Below the active root."""
    zone: tzinfo | None = None
    """In which times are shown; none is the machine's."""

    @property
    def document(self) -> str:
        """Name the file that shows it."""
        return f"{self.task_root}/.memory/{NAME}"


class Claim(Value):
    """A row that says of a file that it was confirmed, where the ledger knows of nothing (T49)."""

    phase: str
    path: str
    """Relative to the task's root."""
    sha256: str


class _Block(Value, kw_only=False):
    heading: int
    end: int
    table: tuple[int, int]
    """The run of lines that is the table; empty where there is none yet."""


def new(
    *, display_name: str, task_id: str, admission_id: str, route_key: str, project: str
) -> bytes:
    """Spell `sessions.md` as a task begins with it (T26)."""
    rows = "".join(
        table.render((phase, glyph, *[EMPTY] * 5))
        for phase, glyph in zip(PHASES, ("⏳", _UNSTARTED, _UNSTARTED), strict=True)
    )
    text = (
        f"# {display_name} — 工作流状态\n\n"
        f"> 当前状态：{ACTIVE}\n"
        f"> TaskIdentity：{task_id}\n"
        f"> Admission：{admission_id}\n"
        f"> Route：{route_key}\n"
        f"> Project：{project}\n\n"
        f"## {HEADING}\n\n{_HEADER}{rows}"
    )
    return text.encode("utf-8")


def has_block(data: bytes) -> bool:
    """Tell whether the file has a place for the checkpoints."""
    return _block(_lines(data)) is not None


def render(data: bytes, view: View) -> bytes:
    """Give the file with its table as it is to be; a block is appended where none is."""
    text = _HEADER + "".join(table.render(_cells(slot, view)) for slot in view.checkpoints.slots)
    lines = _raw(data)
    block = _block(_lines(data))
    if block is None:
        closed = insertion.close(data)
        return insertion.insert(closed, len(closed), f"## {HEADING}\n\n{text}").data
    start, end = block.table
    if start == end:
        closed = insertion.close(data)
        return insertion.insert(closed, _length(_raw(closed)[:start]), text).data
    at, rest = _length(lines[:start]), _length(lines[:end])
    newline = insertion.newline_of(data)
    made = text.encode("utf-8").replace(b"\n", newline)
    return data[:at] + made + data[rest:]


def with_status(data: bytes, status: str | None) -> tuple[bytes, bool]:
    """Give the file with the status line of a task that ended so, or of one that goes on.

    The second is False where the line does not read as we render it: then it stays as it is.
    """
    wanted = status_line(status)
    lines = _raw(data)
    for index, line in enumerate(_lines(data)):
        if STATUS_LINE.match(line) is None:
            continue
        if line == wanted:
            return data, True
        if line not in {status_line(one) for one in (None, *ENDED)}:
            return data, False
        ending = lines[index][len(lines[index].rstrip(b"\r\n")) :]
        lines[index] = wanted.encode("utf-8") + ending
        return b"".join(lines), True
    return data, False


def status_line(status: str | None) -> str:
    """Spell the status line of a task that ended so; None is one that goes on."""
    if status is None:
        return f"> 当前状态：{ACTIVE}"
    return f"> 当前状态：{'✅' if status == 'completed' else '❌'} {status}"


def drift(data: bytes, view: View) -> list[Warning]:
    """Name each row that is not as the ledger has it, and rows that stand elsewhere (T49)."""
    lines = _lines(data)
    block = _block(lines)
    start, end = (0, 0) if block is None else block.table
    rows: dict[str, list[list[str]]] = {phase: [] for phase in PHASES}
    found: list[Warning] = []
    for index, line in enumerate(lines):
        cells = table.cells_of(line)
        if cells is None or cells[0] not in rows:
            continue
        if start <= index < end:
            rows[cells[0]].append(cells)
        else:
            found.append({"code": "cp-row-outside-block", "line": index + 1})
    for slot in view.checkpoints.slots:
        seen = rows[slot.phase]
        if len(seen) != 1 or not _is_as_rendered(seen[0], slot, view):
            found.append({"code": "cp-view-drift", "phase": slot.phase})
    return found


def claims(data: bytes) -> list[Claim]:
    """Find the rows of the block that say confirmed, with the file and digest that they name."""
    lines = _lines(data)
    block = _block(lines)
    if block is None:
        return []
    found = []
    for line in lines[block.table[0] : block.table[1]]:
        cells = table.cells_of(line) or [""]
        if cells[0] not in PHASES or not any(cell.startswith("✅") for cell in cells):
            continue
        digest = next((hit for cell in cells if (hit := _DIGEST.fullmatch(cell))), None)
        if digest is not None:
            path = _claimed_path(cells)
            found.append(Claim(phase=cells[0], path=path, sha256=digest[1].lower()))
    return found


def _claimed_path(cells: Sequence[str]) -> str:
    for cell in cells[1:]:
        linked = _LINKED.fullmatch(cell)
        if linked is not None:
            return linked[1].removeprefix("../")
    return cells[2] if len(cells) > 2 else ""


def _cells(slot: Slot, view: View) -> list[str]:
    known = slot.confirmation
    glyph = _GLYPHS.get(slot.status, _UNSTARTED)
    if slot.phase in view.stale:
        glyph = _STALE
    if known is None:
        return [slot.phase, glyph, *[EMPTY] * 5]
    target = f"{view.task_root}/{known.artifact_path}"
    return [
        slot.phase,
        glyph,
        Link(known.artifact_path, target).render(view.document) if known.artifact_path else EMPTY,
        known.artifact_version or EMPTY,
        f"`{known.artifact_sha256.upper()}`" if known.artifact_sha256 else EMPTY,
        known.source_message or EMPTY,
        _stamp(known.confirmed_at, view.zone),
    ]


def _is_as_rendered(cells: Sequence[str], slot: Slot, view: View) -> bool:
    """Tell whether a row says what the ledger says, in whatever zone its time was shown.

    Whether a confirmed file is stale is seen anew at each look: both words are as rendered.
    """
    wanted = _cells(slot, view)
    if len(cells) != len(wanted):
        return False
    glyphs = {wanted[1], _STALE, "✅"} if slot.status == CONFIRMED else {wanted[1]}
    if cells[1] not in glyphs or list(cells[2:6]) != [one.strip() for one in wanted[2:6]]:
        return False
    return cells[6] == wanted[6] or _instant(cells[6]) == _instant(wanted[6]) is not None


def _stamp(iso: str, zone: tzinfo | None) -> str:
    return Moment(datetime.fromisoformat(iso).astimezone(zone)).stamp


def _instant(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp.replace(" ", "T", 1).replace(" ", "")).timestamp()
    except ValueError:
        return None


def _block(lines: Sequence[str]) -> _Block | None:
    for index, line in enumerate(lines):
        heading = _HEADING.fullmatch(line)
        if heading is not None and line.rstrip().endswith(HEADING):
            end = _end(lines, index + 1, len(heading[1]))
            return _Block(index, end, _table(lines, index + 1, end))
    return None


def _end(lines: Sequence[str], start: int, level: int) -> int:
    for index in range(start, len(lines)):
        heading = _HEADING.fullmatch(lines[index])
        if heading is not None and len(heading[1]) <= level:
            return index
    return len(lines)


def _table(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    first = next((at for at in range(start, end) if lines[at].startswith("|")), None)
    if first is None:
        return (start, start)
    last = first
    while last < end and lines[last].startswith("|"):
        last += 1
    return (first, last)


def _length(lines: Sequence[bytes]) -> int:
    return sum(len(line) for line in lines)


def _raw(data: bytes) -> list[bytes]:
    """Split at newlines only, each kept with its line."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _lines(data: bytes) -> list[str]:
    """Give the lines as text, without their endings and a leading BOM."""
    return [
        line.removeprefix(insertion.BOM if index == 0 else b"")
        .rstrip(b"\n")
        .removesuffix(b"\r")
        .decode("utf-8", "replace")
        for index, line in enumerate(_raw(data))
    ]
