import os
from pathlib import Path

import pytest

from amux.disk.ground import Ground
from amux.errors import AmuxError
from amux.journal.ledger.shape import seal
from amux.journal.tasks import resolve, survey, taskstatus
from amux.journal.tasks.identity import Identity
from amux.journal.tasks.survey import Survey

UUID = "c15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc"
OTHER = "d15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc"


def identity(path: str, *, task_id: str = UUID, name: str = "Export totals") -> bytes:
    return seal(
        Identity(
            aliases=("CSV totals",), created_at="2026-03-14T01:20:00.000Z", display_name=name,
            entry_variant="fix", project="billing", project_root_identity_digest="0" * 64,
            task_id=task_id, task_kind=path.partition("/")[0], task_root_relative=path,
        )
    ).render()  # fmt: skip


def task(root: Path, path: str, data: bytes | None, sessions: str | None = None) -> Path:
    memory = root / path / ".memory"
    memory.mkdir(parents=True)
    if data is not None:
        (memory / "task.json").write_bytes(data)
    if sessions is not None:
        (memory / "sessions.md").write_text(sessions, encoding="utf-8")
    return memory


def look(base: Path) -> Survey:
    ground = Ground.open(str(base), (".devcodex",), uid=os.geteuid())
    return survey.survey(ground, "billing", lambda _: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / ".devcodex"
    made.mkdir()
    return made


@pytest.mark.requirement("T28", "TA36")
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("> 当前状态：🔄 active", "active"),
        ("> 当前状态：✅ done", "completed"),
        ("- **状态**：❌ 已拒绝", "rejected"),
        ("Status: cancelled", "rejected"),
        ("状态：failed, really", "rejected"),
        ("状态：已废弃（旧）", "rejected"),
        ("状态: ⛔ waits", "active"),
        ("状态：inactive", "unknown"),
        ("状态：未完成", "unknown"),
        ("状态：🔄", "active"),
        ("状态：", "unknown"),
        ("| CP | 状态 |\nthe 状态: ✅", None),
        ("# nothing", None),
        ("# x\r\n> STATUS ： done\r\n状态：active", "completed"),
        ("\ufeff状态：✅", "completed"),
        ("rejected", None),
    ],
)
def test_the_first_status_line_is_read_as_people_write_it(text: str, status: str | None) -> None:
    assert taskstatus.of_text(text.encode()) == status


@pytest.mark.requirement("T28")
def test_archive_wins_over_lines_and_no_line_is_active(tmp_path: Path, root: Path) -> None:
    task(root, "bugs/a", identity("bugs/a"), "> 状态：❌")
    (root / "bugs/a/.archived").mkdir()
    task(root, "bugs/b", identity("bugs/b", task_id=OTHER), "nothing said")
    assert [one.status for one in look(tmp_path).candidates] == ["completed", "active"]


@pytest.mark.requirement("T28")
def test_a_line_beyond_the_first_64_kib_is_not_read(tmp_path: Path, root: Path) -> None:
    task(root, "bugs/a", identity("bugs/a"), "x\n" * 32 * 1024 + "状态：✅")
    assert [one.status for one in look(tmp_path).candidates] == ["active"]


@pytest.mark.requirement("T39", "TA32")
def test_what_is_odd_about_a_directory_hides_no_other(tmp_path: Path, root: Path) -> None:
    task(root, "bugs/good", identity("bugs/good"))
    digit = identity("bugs/bad", name="Bad").replace(
        b'"identityDigest": "', b'"identityDigest": "0'
    )
    task(root, "bugs/bad", digit)
    task(root, "bugs/moved", identity("bugs/elsewhere", name="Moved"))
    task(root, "bugs/huge", b" " * 65_537)
    task(root, "bugs/legacy", None)
    (root / "bugs/empty").mkdir()
    (root / "bugs/linked").mkdir()
    (root / "bugs/linked/.memory").symlink_to(root / "bugs/good/.memory")
    (root / "bugs/outside").symlink_to(tmp_path)
    (root / "bugs/file").write_text("no task")
    os.mkfifo(task(root, "bugs/fifo", None) / "task.json")
    found = look(tmp_path)
    problems = {one.segment: one.problem for one in found.candidates}
    assert problems == {
        "good": None, "bad": "identityDigest", "moved": "taskRootRelative", "huge": "unreadable",
        "legacy": None, "empty": None, "linked": "link", "fifo": "unreadable",
    }  # fmt: skip
    assert {one.segment for one in found.candidates if one.is_legacy} == {"legacy", "empty"}
    assert survey.locate("bad", found).problem == "identityDigest"
    assert survey.locate(UUID.upper(), Survey(candidates=found.candidates[:1])) is not None


@pytest.mark.requirement("T21")
def test_an_identity_of_the_first_version_is_read_until_a_second_lies_beside(
    tmp_path: Path, root: Path
) -> None:
    first = (
        f'{{"taskId":"{UUID}","displayName":"Old","aliases":["Older"],'
        '"createdAt":"2020-01-01T00:00:00.000Z","identityRevision":1}'
    )
    memory = task(root, "bugs/old", first.encode())
    (found,) = look(tmp_path).candidates
    assert (found.task_id, found.display_name, found.problem) == (UUID, "Old", None)
    (memory / "task-identity-v2.json").write_bytes(identity("bugs/old", name="Old"))
    (found,) = look(tmp_path).candidates
    assert found.aliases == ("CSV totals",)


@pytest.mark.requirement("T20")
def test_a_name_that_fits_several_or_none_is_refused(tmp_path: Path, root: Path) -> None:
    task(root, "bugs/a", identity("bugs/a"))
    task(root, "requirements/a", identity("requirements/a", task_id=OTHER))
    found = look(tmp_path)
    with pytest.raises(AmuxError) as refused:
        survey.locate("export TOTALS", found)
    assert refused.value.details["reason"] == "TASK_AMBIGUOUS"
    assert len(refused.value.details["candidates"]) == 2  # type: ignore[arg-type]
    with pytest.raises(AmuxError) as refused:
        survey.locate("Export totels", found)
    assert refused.value.details["reason"] == "TASK_NOT_FOUND"
    assert survey.locate(OTHER, found).kind == "requirements"


@pytest.mark.requirement("T39", "TA48")
def test_more_directories_than_may_be_read_are_counted_and_not_read(
    tmp_path: Path, root: Path
) -> None:
    for number in range(2_000):
        (root / f"bugs/t{number}").mkdir(parents=True)
    assert not look(tmp_path).is_blocked
    (root / "requirements/one").mkdir(parents=True)
    found = look(tmp_path)
    assert (found.is_blocked, found.folders, found.candidates) == (True, 2_001, ())


@pytest.mark.requirement("T39")
def test_bytes_count_as_far_as_they_may_be_read(tmp_path: Path, root: Path) -> None:
    data = identity("bugs/a")
    task(root, "bugs/a", data, "x" * 100_000)
    assert look(tmp_path).size == len(data) + 65_536
    both = Survey(size=resolve.ALL_BYTES) + Survey(size=1)
    assert both.is_blocked


@pytest.mark.requirement("TA11")
def test_a_kind_behind_a_link_is_refused(tmp_path: Path, root: Path) -> None:
    (root / "bugs").symlink_to(tmp_path)
    with pytest.raises(AmuxError) as refused:
        look(tmp_path)
    assert refused.value.details["reason"] == "MEMORY_PATH_REPARSE_BLOCKED"
