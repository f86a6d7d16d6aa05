"""Tasks over the journal's ring: how long a call takes, and who waits for whom (TP1 to 7, 10).

Rule 1: a time is the 95th percentile of 200 calls unless it says else.
Rule 2: what must never happen is counted, and its bound is none.
"""

import random
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from amux.journal.ledger import record
from amux.journal.ledger.ledger import Ledger
from amux.journal.ledger.state import RuntimeState
from amux.journal.store.root import Place, hold
from bench.measure import Figure, percentile, seconds
from tests.support import many_tasks, task_load, task_walk, tasking
from tests.support.journal_faces import Mcp
from tests.support.tasking import Task, admit, agent, bind

ROUNDS = 200
SHARE = 0.95
WORKERS, WORK_SECONDS = 12, 60.0
READERS, READ_SECONDS = 20, 30.0
MOVES = 10_000
COMMANDS = 100_000
RECORD_BYTES = 32 * 1024
MIB = 1024 * 1024

Call = Callable[[], object]


def figures() -> Iterator[Figure]:
    """Measure calls, then loads, then what a thousand tasks take."""
    with tempfile.TemporaryDirectory(prefix="amux-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        yield from _calls(folder / "calls", folder / "home")
        yield _transition(folder / "record")
        yield from _together(folder / "together")
        yield from _watched(folder / "watched")
        yield _moves(folder / "moves")
        yield _walk()
        yield from _many(folder / "many", folder / "home")


def _calls(base: Path, home: Path) -> Iterator[Figure]:
    tasking.workspace(base)
    with Mcp(base, home=home, AMUX_SESSION="bench") as face:
        names = [f"Task {number}" for number in range(ROUNDS // 4)]
        yield _time("admit a fresh task (TP2)", [lambda n=n: admit(face, n) for n in names], 150)
        task = admit(face)
        task.confirm()
        # Two requests in turn: a repeat of the last one commits nothing.
        renews: list[Call] = [task.renew, lambda: task.renew(freshContext=True)] * (ROUNDS // 2)
        yield _time("renew (TP3)", renews, 50)
        begins, settles = [], []
        for _ in range(ROUNDS):
            begins.append(seconds(lambda: task.begin(*task_load.TARGETS)))
            settles.append(seconds(task.settle))
        yield _figure("begin with four targets (TP3)", begins, 50)
        yield _figure("settle with four targets (TP3)", settles, 50)


def _transition(base: Path) -> Figure:
    """Time one change of a record by the files alone."""
    base.mkdir()
    place = Place(base=str(base), steps=(".devcodex",), uid=0)
    body = {"text": "x" * (RECORD_BYTES - 400)}
    times: list[float] = []

    def work(held: object) -> None:
        ledger = Ledger(RuntimeState.of(held))  # type: ignore[arg-type]
        found = ledger.change(None, record.first("task", "k", {"n": 0, **body}))
        for number in range(ROUNDS):
            made = found.successor({"n": number, **body})
            times.append(seconds(lambda m=made, f=found: ledger.change(f, m)))
            found = made

    hold(place, wait_ms=1000, act=work)
    return _figure("one transition of a 32 KiB record (TP4)", times, 5)


def _together(base: Path) -> Iterator[Figure]:
    names = _tasks(base, WORKERS)
    load = task_load.run(base, [("mix", name) for name in names], WORK_SECONDS)
    busy = [one for one in load.refused if one.startswith("busy/")]
    other = len(load.refused) - len(busy)
    yield _count(f"{WORKERS} processes, {load.calls} calls: other refusals (TP6)", other)
    yield Figure(
        name="tasks: the same: calls that found it busy (TP6)", ours=100 * len(busy) / load.calls,
        peer=None, unit="%", bound=0.1, of="of all calls",
    )  # fmt: skip
    waited = load.renew_p99() * 1000
    yield Figure(
        name="tasks: the same: renew, p99 (TP6)", ours=waited, peer=None, unit="ms", bound=500,
        of="as its caller waits",
    )  # fmt: skip


def _watched(base: Path) -> Iterator[Figure]:
    (name,) = _tasks(base, 1)
    roles = [("write", name), *[("read", name)] * READERS]
    load = task_load.run(base, roles, READ_SECONDS)
    committed = load.states(0)
    seen = {state for at in range(1, len(roles)) for state in load.states(at)}
    yield _count(f"{READERS} readers, {load.calls} calls: refused, unreadable (TP7)",
                 len(load.refused))  # fmt: skip
    yield _count("the same: states seen that none committed (TP7)", len(seen - committed))


def _moves(base: Path) -> Figure:
    """Move one task between two sessions by chance; count what no fence allows."""
    return _count(f"{MOVES} binds, releases, renewals: broken fences (TP10)", moves(base, MOVES))


def _walk() -> Figure:
    """Time a random walk through the pure core, its checks included."""
    return Figure(
        name=f"tasks: {COMMANDS} random commands (TP8)",
        ours=seconds(lambda: task_walk.walk(COMMANDS)), peer=None, unit="s", bound=60,
        of="pure core, no file system",
    )  # fmt: skip


def moves(base: Path, count: int, *, seed: int = 1) -> int:
    """Let two sessions bind, release and renew one task; count broken fences."""
    tasking.workspace(base)
    chance = random.Random(seed)
    first = admit(agent(base, "one"))
    sessions = {"one": first.face, "two": agent(base, "two")}
    held: dict[str, Task] = {"one": first}
    old: list[Task] = []
    generation, broken = 1, 0
    for number in range(count):
        who = chance.choice(("one", "two"))
        act = chance.choice(("bind", "release", "renew", "zombie"))
        try:
            if act == "bind":
                made = bind(sessions[who], f"{number}")
                now = _generation(made.receipt)
                broken += now <= generation
                old += held.values()
                generation, held = now, {who: made}
            elif act == "zombie" and old:
                _ = chance.choice(old).renew(freshContext=True)
                broken += 1  # a superseded nonce was taken
            elif who in held and act in ("release", "renew"):
                more = {"freshContext": True} if act == "renew" else {}
                now = _generation(held[who].own(act, **more))
                broken += now != generation + (act == "release")
                generation = now
                if act == "release":
                    old.append(held.pop(who))
        except Exception as refusal:
            if getattr(refusal, "code", "") not in {"lease_held", "lease_lost"}:
                raise
    return broken


def _generation(receipt: dict[str, object]) -> int:
    context = receipt["writeContext"]
    assert isinstance(context, dict)
    return int(context["writerGeneration"])


def _many(base: Path, home: Path) -> Iterator[Figure]:
    names = many_tasks.multiply(base, many_tasks.worked(base))
    sizes = list(many_tasks.sizes(base))
    yield Figure(
        name="tasks: 1,000 of 100 transitions: runtime state (TP5)", ours=sum(sizes) / MIB,
        peer=None, unit="MiB", bound=64, of="all files below .runtime-state",
    )  # fmt: skip
    yield Figure(
        name="tasks: the same: largest record (TP5)", ours=max(sizes) / 1024, peer=None, unit="KiB",
        bound=32, of="one file",
    )  # fmt: skip
    with Mcp(base, home=home, AMUX_SESSION="reader") as face:
        for what, asked in (("name", names[500]), ("taskId", str(uuid.UUID(int=501)))):
            calls: list[Call] = [lambda a=asked: face.call("memory_task_resolve", name=a)] * ROUNDS
            yield _time(f"resolve among 1,000 tasks by {what} (TP1)", calls, 300)
    shutil.rmtree(base)


def _tasks(base: Path, count: int) -> list[str]:
    """Admit and confirm tasks, and release them for others to bind."""
    tasking.workspace(base)
    names = [f"Task {number}" for number in range(count)]
    for name in names:
        task = admit(agent(base, "first"), name)
        task.confirm()
        task.own("release")
        task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
    return names


def _time(name: str, calls: "list[Call]", bound: float) -> Figure:
    return _figure(name, [seconds(call) for call in calls], bound)


def _figure(name: str, times: list[float], bound: float) -> Figure:
    return Figure(
        name=f"tasks: {name}", ours=percentile(times, SHARE) * 1000, peer=None, unit="ms",
        bound=bound, of=f"p95 of {len(times)} calls",
    )  # fmt: skip


def _count(name: str, count: int) -> Figure:
    return Figure(name=f"tasks: {name}", ours=count, peer=None, unit="", bound=0, of="none")
