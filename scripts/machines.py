"""State diagrams of tasks, written into docs/tasks.md from the tables that the code goes by."""

from collections.abc import Iterator

from amux.journal.admission import admission
from amux.journal.children import worklease
from amux.journal.tasks import checkpoint, lease, operation

START = "[*]"


def diagram(name: str) -> str:
    """Draw one machine as a Mermaid state diagram."""
    arrows = "\n".join(f"    {_state(a)} --> {_state(b)}: {by}" for a, by, b in MACHINES[name]())
    return f"```mermaid\nstateDiagram-v2\n{arrows}\n```"


def _admission() -> Iterator[tuple[str | None, str, str]]:
    first = next(iter(admission.TABLE))
    yield None, "admit, adopt, bind", first
    for phase, following in admission.TABLE.items():
        yield phase, "effect read back", following


def _lease() -> Iterator[tuple[str | None, str, str]]:
    for name, (before, after, moves) in lease.TABLE.items():
        for status in before:
            yield status, f"{name}, new generation" if moves else name, after


def _checkpoint() -> Iterator[tuple[str | None, str, str]]:
    yield checkpoint.UNSTARTED, "the one before is confirmed", checkpoint.WAITING
    for (before, command), after in checkpoint.TABLE.items():
        yield before, command, after


def _operation() -> Iterator[tuple[str | None, str, str]]:
    for (before, command), after in operation.TABLE.items():
        yield before, command, after


def _child() -> Iterator[tuple[str | None, str, str]]:
    for (before, command), after in worklease.TRANSITIONS.items():
        yield before, command, after


MACHINES = {
    "admission": _admission,
    "owner": _lease,
    "checkpoint": _checkpoint,
    "operation": _operation,
    "child": _child,
}


def _state(name: str | None) -> str:
    return START if name is None else name.replace("-", "_")
