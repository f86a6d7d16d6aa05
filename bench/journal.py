"""The journal over `amux mcp`, in a workspace of five years: how long agents wait (JP1 to 5, 13).

Rule 1: a figure is the 95th percentile of 200 calls, as the client sees them, unless it says else.
Rule 2: `fresh` is by the index, `parsed` without one; both give the same answer.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bench.measure import Figure, percentile, seconds
from tests.support import years
from tests.support.journal_faces import Mcp
from tests.support.journal_story import tell

ROUNDS = 200
REBUILDS = 40
PAGES = 100
MANY_DAYS = 40
SHARE = 0.95
OTHERS = (
    "claude-code", "cursor", "gemini-cli", "grok", "opencode", "pi", "copilot", "vscode-copilot",
)  # fmt: skip
MIB = 1024 * 1024

Call = Callable[[], object]


def figures() -> Iterator[Figure]:
    """Measure reads and writes in a new tree and in one of five years."""
    today = datetime.now(UTC).date()
    with tempfile.TemporaryDirectory(prefix="amux-bench-", dir=Path.cwd()) as folder:
        yield from _in_new_tree(Path(folder) / "new")
        yield _story(Path(folder))
        yield from _in_old_tree(Path(folder) / "old", today)


def _story(folder: Path) -> Figure:
    """Measure what two agents wait for in all while they hand a task over (JP13)."""
    costs = [tell(folder / f"story-{number}", folder / "home") for number in range(5)]
    waited = percentile([cost.seconds for cost in costs], 0.5) * 1000
    return Figure(
        name="journal: a task begun, handed over and ended (JP13)",
        ours=waited, peer=None, unit="ms", bound=700, of="all 12 calls, first ones included",
    )  # fmt: skip


def _in_new_tree(base: Path) -> Iterator[Figure]:
    (base / ".git").mkdir(parents=True)
    with _server(base) as face:
        yield from _writes(face, "new tree")


def _in_old_tree(base: Path, today: date) -> Iterator[Figure]:
    (base / ".git").mkdir(parents=True)
    root = base / ".devcodex"
    years.write(root, "codex", today)
    with _server(base) as face:
        _append(face, 0)()  # its writer makes the index
        alone = _p95(face, "memory_status")
        yield _figure("status, fresh", alone, 40)
        yield _figure("summary query, fresh", _p95(face, "memory_summary_query", status="all"), 40)
        for agent in OTHERS:
            years.write(root, agent, today)
        beside = _p95(face, "memory_status")
        yield _figure("status, what 8 other agents add", beside - alone, 20)
        yield _figure("page of 50 rows, fresh or parsed", _pages(face), 350)
        yield from _writes(face, "five-year tree")
        appends = map(_append, itertools.repeat(face), itertools.count(1))
        yield _figure("row and its index", _p95_of(next(appends) for _ in range(ROUNDS)), 150)
        rebuilt = _p95_of(_without_index(root, next(appends)) for _ in range(REBUILDS))
        yield _figure(f"row, index made anew ({REBUILDS} calls)", rebuilt, 500)
        _forget(root)
        yield _figure("status, parsed", _p95(face, "memory_status"), 350)
        yield _figure(
            "summary query, parsed", _p95(face, "memory_summary_query", status="all"), 350
        )
    yield from _full_day(base, root, today)
    with _server(base) as face:
        yield _memory(face, root)


def _full_day(base: Path, root: Path, today: date) -> Iterator[Figure]:
    years.write_full_day(root, "codex", today)
    _forget(root)
    with _server(base) as face:
        face.call("memory_status")
        yield _figure("sections of a 1 MiB day, parsed", _p95(face, "memory_session_query"), 80)
        face.call("memory_session_write", content="its writer makes the index")
        yield _figure("sections of a 1 MiB day, fresh", _p95(face, "memory_session_query"), 30)


def _writes(face: Mcp, where: str) -> Iterator[Figure]:
    """Time sections that are opened, and text that is added to one."""
    numbers = itertools.count()
    opened = face.call("memory_session_write", content="the first")

    def extend() -> object:
        return face.call(
            "memory_session_write", content=f"note {next(numbers)}", section=opened["section"]
        )

    def begin() -> object:
        number = next(numbers)
        day = date(2020, 1, 1) + timedelta(days=number % MANY_DAYS)  # few sections in each
        return face.call("memory_session_write", content=f"start {number}", date=f"{day:%Y%m%d}")

    yield _figure(f"text added to a section, {where}", _p95_of([extend] * ROUNDS), 50)
    yield _figure(f"section opened, {where}", _p95_of([begin] * ROUNDS), 50)


def _append(face: Mcp, number: int) -> Call:
    entry = {"summary": f"row {number}", "status": "active", "type": "fix", "sessionId": "01"}
    return lambda: face.call("memory_summary_append", entry=entry)


def _without_index(root: Path, call: Call) -> Call:
    _forget(root)
    return call


def _forget(root: Path) -> None:
    shutil.rmtree(root / ".runtime-state/derived-indexes", ignore_errors=True)


def _pages(face: Mcp) -> float:
    """Follow a hundred cursors; give the time of a page that 95 % of all are not over, in ms."""
    times: list[float] = []
    cursor: dict[str, object] = {}
    for _ in range(PAGES):
        found: dict[str, object] = {}

        def turn(cursor: dict[str, object] = cursor, found: dict[str, object] = found) -> None:
            found |= face.call("memory_summary_query", status="all", limit=50, **cursor)

        times.append(seconds(turn))
        pagination = found["pagination"]
        assert isinstance(pagination, dict)
        cursor = {"cursor": pagination["nextCursor"]}
    return percentile(times, SHARE) * 1000


def _memory(face: Mcp, root: Path) -> Figure:
    """Let a new server do all reads, without an index and with one; see how far it grew."""
    before = _peak(face)
    for is_fresh in (False, True):
        if is_fresh:
            _append(face, 0)()
        else:
            _forget(root)
        face.call("memory_status", limit=20)
        for status in ("all", "active", "completed"):
            face.call("memory_summary_query", status=status, limit=50)
        face.call("memory_session_query", limit=20, maxChars=50_000)
    return Figure(
        name="memory that all reads add",
        ours=(_peak(face) - before) / MIB,
        peer=None,
        unit="MiB",
        bound=64,
        of="peak of the server, its modules loaded late included (JP11)",
    )


def _peak(face: Mcp) -> int:
    status = Path(f"/proc/{face.process.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _server(base: Path) -> Mcp:
    return Mcp(base, home=base.parent / "home", AMUX_SESSION="bench")


def _p95(face: Mcp, tool: str, **arguments: object) -> float:
    return _p95_of([lambda: face.call(tool, **arguments)] * ROUNDS)


def _p95_of(calls: Iterator[Call] | list[Call]) -> float:
    """Give the milliseconds that 95 % of the calls are not over."""
    return percentile([seconds(call) for call in calls], SHARE) * 1000


def _figure(name: str, ours: float, bound: float) -> Figure:
    return Figure(
        name=f"journal: {name}", ours=ours, peer=None, unit="ms", bound=bound, of="p95 of calls"
    )
