"""Disks, owners and odd files that get in the way: each is told by its reason, nothing is lost."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.errors import AmuxError, Code
from amux.journal.call.errand import Errand
from amux.journal.sessions import writing
from tests.support.journal_faces import Cli, InProcess, Mcp
from tests.support.mounts import read_only, small_disk
from tests.support.rights import cannot
from tests.support.roots import canonical_bytes, tree
from tests.support.watched import changes
from tests.support.writers import Receipt, Writer, workspace_in

DAY = ".devcodex/.memory/clients/codex/tasks/20260314.md"
SUMMARY = ".devcodex/.memory/clients/codex/SUMMARY.md"
STRANGER = 54_321
CONTENT = "the text of this call"

as_root = pytest.mark.usefixtures("as_root")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return workspace_in(tmp_path / "billing")


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        os.chmod(place, 0o755)  # another user comes by
        yield Path(place)


def given_away(base: Path) -> None:
    for path in (base, *base.rglob("*")):
        os.chown(path, STRANGER, STRANGER)


@as_root
@pytest.mark.slow
@pytest.mark.requirement("JA29", "J19", "J23")
@pytest.mark.parametrize("is_there", [False, True])
def test_what_uid_0_writes_in_a_users_tree_belongs_to_that_user(
    memory_disk: Path, tmp_path: Path, is_there: bool
) -> None:
    base = workspace_in(memory_disk / "billing")
    if is_there:
        (base / ".devcodex").mkdir()
    given_away(base)
    with Mcp(base, home=tmp_path) as face:
        opened = face.call("memory_session_write", content="text", row="row", title="T")
        face.call("memory_session_write", content="more", section=opened["section"])
        face.call("memory_decision_append", decision="so")
        face.call("memory_status")
    made = sorted((base / ".devcodex").rglob("*"))
    assert len(made) > 20
    for path in made:
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (STRANGER, STRANGER), path
    # The user goes on in it.
    os.seteuid(STRANGER)
    try:
        Writer(base, uid=STRANGER, session="user").write("of the user", title="mine", row="mine")
    finally:
        os.seteuid(0)


@as_root
@pytest.mark.requirement("J19", "JA29")
def test_a_tree_of_another_user_is_neither_read_nor_written(base: Path) -> None:
    Writer(base).write("text")
    given_away(base)
    before = tree(base)
    face = InProcess(base, uid=STRANGER + 1)
    wanted = ("permission_denied", "MEMORY_WORKSPACE_FOREIGN_OWNER")
    assert face.refused("memory_status").both == wanted
    assert face.refused("memory_session_write", content="x").both == wanted
    assert tree(base) == before


@pytest.mark.requirement("JA27", "J19", "J54")
@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder", "socket"])
def test_odd_things_in_the_way_are_refused_within_a_tenth_of_a_second(
    base: Path, kind: str
) -> None:
    outside = base.parent / "outside"
    (outside / "tasks").mkdir(parents=True)
    (outside / "tasks/20260314.md").write_bytes(b"theirs\n")
    day = base / DAY
    wanted = ("corrupt", "MEMORY_FILE_NOT_REGULAR")
    if kind == "link":
        day.parent.parent.parent.mkdir(parents=True)
        day.parent.parent.symlink_to(outside)
        wanted = ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")
    else:
        day.parent.mkdir(parents=True)
    match kind:
        case "fifo":
            os.mkfifo(day)
        case "folder":
            day.mkdir()
        case "socket":
            os.mknod(day, 0o600 | stat.S_IFSOCK)
        case "device":
            if os.geteuid():
                cannot("only uid 0 makes devices")
            os.mknod(day, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    face = InProcess(base)
    calls: list[Callable[[], tuple[str, str]]] = [
        lambda: face.refused("memory_session_write", content="x", date="20260314").both,
        lambda: face.refused("memory_session_read", date="20260314").both,
    ]
    for call in calls:
        begun = time.monotonic()
        assert call() == wanted
        assert time.monotonic() - begun < 0.1
    assert tree(outside) == {"tasks": "/", "tasks/20260314.md": b"theirs\n"}


# --- disks ---------------------------------------------------------------------------------------


@as_root
@pytest.mark.slow
@pytest.mark.requirement("JA33", "J63")
def test_a_full_disk_refuses_and_keeps_all_that_was_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size=320 * 1024) as disk:
        base = workspace_in(disk / "billing")
        writer = Writer(base)
        kept: list[str] = []
        refusal = None
        while refusal is None:
            text = f"text {len(kept)} {'x' * 9000}."
            before = canonical_bytes(base)
            try:
                writer.write(text, title=f"{len(kept)}")
            except AmuxError as full:
                refusal = full
            else:
                kept.append(text)
            assert len(kept) < 100
        assert refusal.code is Code.NOT_SAVED
        assert refusal.details["reason"] == "MEMORY_DISK_FULL"
        assert refusal.details["cause"] == "ENOSPC"
        assert canonical_bytes(base) == before
        data = (base / DAY).read_bytes()
        assert all(data.count(text.encode()) == 1 for text in kept)
        # Reading needs no room.
        with changes(base) as seen:
            found = InProcess(base, AMUX_TZ="Asia/Shanghai").call("memory_status")
        assert seen == []
        assert found["today"]
    assert len(kept) > 3


def fill(writer: Writer) -> None:
    for number in range(1, 14):
        writer.write("text", title="day", date=f"202603{number:02d}")


@as_root
@pytest.mark.slow
@pytest.mark.requirement("JA33", "J63")
def test_a_disk_without_inodes_refuses(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", nr_inodes=24) as disk:
        base = workspace_in(disk / "billing")
        writer = Writer(base)
        with pytest.raises(AmuxError) as caught:
            fill(writer)
        assert caught.value.details["reason"] == "MEMORY_DISK_FULL"
        assert not list((base / ".devcodex/.memory").rglob("*.tmp"))


@as_root
@pytest.mark.slow
@pytest.mark.requirement("JA33", "J63")
def test_a_read_only_disk_and_a_forbidden_directory_are_told_apart_from_a_full_one(
    memory_disk: Path, tmp_path: Path
) -> None:
    base = workspace_in(memory_disk / "billing")
    opened = Writer(base).write("text", row="row")
    before = canonical_bytes(base)
    wanted = ("permission_denied", "MEMORY_STORE_READ_ONLY")
    with read_only(base):
        for face in (InProcess(base), Cli(base, home=tmp_path, AMUX_AGENT="codex")):
            refusal = face.refused("memory_session_write", content="x", title="new")
            assert refusal.both == wanted
    given_away(base)
    (base / DAY).parent.chmod(0o500)
    os.seteuid(STRANGER)
    try:
        with pytest.raises(AmuxError) as caught:
            Writer(base, uid=STRANGER).write("x", section=opened["section"])
    finally:
        os.seteuid(0)
    assert (caught.value.code, caught.value.details["reason"]) == wanted
    assert caught.value.details["cause"] == "EACCES"
    assert canonical_bytes(base) == before


CALLS = (
    "open", "read", "write", "lseek", "stat", "fstat", "fsync", "rename", "unlink", "mkdir",
    "fchmod", "fchown", "scandir", "dup",
)  # fmt: skip


class Breaking:
    """Lets one call of the system fail, while the block runs; `name` tells which it was."""

    def __init__(self, nth: int, number: int) -> None:
        self.name = ""
        self._count = 0
        self._nth = nth
        self._number = number

    def __enter__(self) -> "Breaking":
        self._real = {name: getattr(os, name) for name in CALLS}
        self._rename, self._flock = atomic._renameat2, fcntl.flock
        for name, real in self._real.items():
            setattr(os, name, self._counted(name, real))
        atomic._renameat2 = self._counted("renameat2", self._rename)
        fcntl.flock = self._counted("flock", self._flock)
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        atomic._renameat2, fcntl.flock = self._rename, self._flock

    def _counted(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **more: object) -> object:
            self._count += 1
            if self._count == self._nth:
                self.name = name
                raise OSError(self._number, os.strerror(self._number))
            return real(*given, **more)

        return call


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.requirement("JA33", "J63", "J64")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_whichever_call_of_the_system_fails_the_answer_is_true(
    memory_disk: Path, number: int
) -> None:
    template = workspace_in(memory_disk / "template")
    own = Writer(template).write("earlier", title="ours", row="earlier")
    given: Receipt = {"content": CONTENT, "row": "the row", "section": own["section"]}
    old = (template / DAY).read_bytes(), (template / SUMMARY).read_bytes()
    reasons: dict[object, set[str]] = {}
    for nth in range(1, 2000):
        base = memory_disk / "w"
        shutil.copytree(template, base)
        errand = Writer(base).errand("write", **given)
        breaking = Breaking(nth, number)
        try:
            with breaking:
                answer = said(errand)
        finally:
            now = (base / DAY).read_bytes(), (base / SUMMARY).read_bytes()
            left = list((base / ".devcodex/.memory").rglob("*.tmp"))
        if not breaking.name:
            break
        assert breaking.name == "unlink" or left == [], breaking.name
        reasons.setdefault(judged(answer, old, now), set()).add(breaking.name)
        shutil.rmtree(base)
    else:
        pytest.fail("it never came through")
    assert {"written", "row pending", "index failed", "MEMORY_FILE_READBACK_MISMATCH"} <= set(
        reasons
    )
    definite = "MEMORY_STORE_READ_ONLY" if number == errno.EROFS else "MEMORY_DISK_FULL"
    assert {"write", "fsync", "rename"} <= reasons[definite]


def said(errand: Errand) -> Receipt | AmuxError:
    try:
        return writing.write(errand)
    except AmuxError as refusal:
        return refusal


def judged(
    answer: Receipt | AmuxError, old: tuple[bytes, bytes], now: tuple[bytes, bytes]
) -> object:
    """Hold an answer against the disk, and name it."""
    has_text, has_row = CONTENT.encode() in now[0], b"| the row |" in now[1]
    assert now[0].startswith(old[0])
    assert now[1].startswith(old[1])
    if isinstance(answer, AmuxError):
        reason = answer.details["reason"]
        if reason != "MEMORY_FILE_READBACK_MISMATCH":
            assert now == old
        return reason
    assert has_text
    event = answer["summaryEvent"]
    assert (event is not None) <= has_row
    warnings = answer["warnings"]
    assert isinstance(warnings, list)
    assert (event is None) == ({"code": "row-pending"} in warnings)
    if event is None:
        return "row pending"
    assert isinstance(event, dict)
    states = [answer["indexReceipt"], event["indexReceipt"]]
    return "index failed" if any(one["status"] == "failed" for one in states) else "written"  # type: ignore[index,call-overload]
