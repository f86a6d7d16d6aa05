"""Whatever becomes of the files of a ledger: text stays, reads answer, nothing is granted by it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import tasking
from tests.support.journal_faces import InProcess, Refused
from tests.support.tasking import Task, admit, agent, bind, ledger_of, state_of
from tests.support.workspaces import tree

EXPECTED = {
    ("corrupt", "MEMORY_LEDGER_CORRUPT"), ("not_found", "TASK_ADMISSION_TRANSACTION_MISSING"),
    ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED"), ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH"),
    ("lease_lost", "TASK_WRITE_CONTEXT_STALE"), ("lease_lost", "TASK_CP_NOT_OBSERVED"),
    ("confirmation_required", "TASK_CP_NOT_CONFIRMED"),
    ("lease_lost", "TASK_ADMISSION_PROJECT_LEASE_INVALID"),
    ("not_found", "TASK_WRITE_OWNER_MISSING"),
}  # fmt: skip


class World:
    """A task that was handed over once, and its ledger as it was before and is now."""

    def __init__(self, folder: Path) -> None:
        self.base = tasking.workspace(folder / "billing")
        self.first = admit(agent(self.base, "first"))
        self.before = folder / "before"
        shutil.copytree(state_of(self.base), self.before)
        self.first.confirm()
        self.first.own("release")
        self.second = bind(agent(self.base, "second"))
        self.context = self.second.renew()["writeContext"]
        for task in (self.first, self.second):
            task.face.desk._book.live.release_all()  # type: ignore[attr-defined]
        self.kept = folder / "kept"
        shutil.copytree(state_of(self.base), self.kept)

    def restore(self) -> None:
        shutil.rmtree(state_of(self.base), ignore_errors=True)
        shutil.copytree(self.kept, state_of(self.base))

    def files(self) -> list[Path]:
        return sorted(path for path in ledger_of(self.base).rglob("*") if path.is_file())

    def text(self) -> dict[str, bytes | str]:
        return {
            name: data
            for name, data in tree(self.base).items()
            if not name.startswith(".devcodex/.runtime-state")
        }

    def face(self, session: str) -> InProcess:
        return InProcess(self.base, session=session, seed=9)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield World(Path(folder))


Damage = Callable[[World, Path, int], bool]
"""Harms one file by chance; False where that cannot be done to it."""


def truncated(_world: World, path: Path, chance: int) -> bool:
    data = path.read_bytes()
    path.write_bytes(data[: chance % len(data)])
    return True


def flipped(_world: World, path: Path, chance: int) -> bool:
    data = bytearray(path.read_bytes())
    data[chance % len(data)] ^= 1 << (chance % 8)
    path.write_bytes(data)
    return True


def deleted(_world: World, path: Path, _chance: int) -> bool:
    path.unlink()
    return True


def emptied(_world: World, path: Path, _chance: int) -> bool:
    path.write_bytes(b"")
    return True


def lengthened(_world: World, path: Path, chance: int) -> bool:
    with path.open("ab") as file:
        file.write(b"\n" if chance % 2 else b"{}")
    return True


def copied(world: World, path: Path, chance: int) -> bool:
    others = [one for one in world.files() if one != path]
    path.write_bytes(others[chance % len(others)].read_bytes())
    return True


def linked(world: World, path: Path, chance: int) -> bool:
    others = [one for one in world.files() if one != path]
    path.unlink()
    path.symlink_to(others[chance % len(others)])
    return True


def without_folder(_world: World, path: Path, _chance: int) -> bool:
    if path.name == "meta.json":
        return False
    shutil.rmtree(path.parent)
    return True


def put_back(world: World, path: Path, _chance: int) -> bool:
    old = world.before / path.relative_to(state_of(world.base))
    if not old.is_file() or path.parent.name == "task":  # of a task's record, see TA31
        return False
    path.write_bytes(old.read_bytes())
    return True


DAMAGES: list[Damage] = [
    truncated, flipped, deleted, emptied, lengthened, copied, linked, without_folder, put_back,
]  # fmt: skip


def outcome(call: Callable[[], dict[str, object]]) -> tuple[str, str] | None:
    try:
        call()
    except Refused as refusal:
        return refusal.both
    return None


@pytest.mark.slow
@pytest.mark.requirement("T2", "T6", "T7", "T8", "TA30")
@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(DAMAGES), st.integers(0, 1_000), st.integers(0, 1_000_000),
    st.sampled_from(["renew", "begin", "zombie"]),
)  # fmt: skip
def test_no_damage_to_a_ledger_grants_anything_or_costs_a_word(
    world: World, damage: Damage, which: int, chance: int, act: str
) -> None:
    world.restore()
    files = world.files()
    if not damage(world, files[which % len(files)], chance):
        return
    before, text = tree(world.base), world.text()
    found = world.face("reader").call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["mutationAuthority"]) == ("resolved-active", False)
    if found["ledgerCoverage"] != "complete":
        assert (found["owner"], found["checkpoints"], found["pendingOperation"]) == (
            None, None, None,
        )  # fmt: skip
    assert world.face("reader").call("memory_task_list")["totalMatched"] == 1
    assert tree(world.base) == before
    told = outcome(lambda: _act(world, act))
    assert told is None or told in EXPECTED
    if act == "zombie":
        assert told is not None
    assert world.text() == text
    world.restore()
    assert outcome(lambda: _act(world, "renew")) is None


def _act(world: World, act: str) -> dict[str, object]:
    context = world.context
    assert isinstance(context, dict)
    if act == "zombie":
        return Task(world.face("first"), world.first.receipt).renew()
    task = Task(world.face("second"), world.second.receipt)
    if act == "renew":
        return task.renew()
    return task.begin("a.py", contextDigest=context["contextDigest"])
