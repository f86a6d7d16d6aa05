"""Each refusal that a face can give: one body, whoever asks."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.faces import (
    ABSENT,
    EXIT,
    STATUS,
    Face,
    Faces,
    Said,
    faces_of,
    one_refusal,
)
from tests.support.faulty_disk import FaultyDisk
from tests.support.hub import RunningHub
from tests.support.mcp_lines import McpProcess, code
from tests.support.mounts import read_only

STALE = "0" * 64


def at_once(calls: list[Callable[[], Said]]) -> list[Said]:
    """Make calls beside each other; give what each said, in their order."""
    said: list[Said | None] = [None] * len(calls)

    def make(index: int) -> None:
        said[index] = calls[index]()

    threads = [threading.Thread(target=make, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(said)
    return [one for one in said if one]


def everything(face: Face, path: str) -> list[Callable[[], Said]]:
    return [
        lambda: face.get(path),
        lambda: face.upsert(path, "x"),
        lambda: face.forget(path, STALE),
        lambda: face.search("x"),
    ]


@pytest.fixture
def disk(tmp_path: Path) -> FaultyDisk:
    return FaultyDisk(tmp_path)


@pytest.fixture
def faulty(tmp_path: Path, disk: FaultyDisk) -> Iterator[Faces]:
    """A Hub whose disk obeys the test."""
    hub = RunningHub(tmp_path / "home").enable()
    try:
        hub.start(launcher=disk.launcher)
        with faces_of(hub) as faces:
            yield faces
    finally:
        hub.kill()


@pytest.mark.slow
@pytest.mark.requirement("M21", "M48", "bug-2", "bug-23")
def test_a_stale_revision_is_a_conflict_that_tells_the_one_on_disk(
    faces: Faces, folder: str
) -> None:
    path = f"{folder}/a.md"
    observed = faces.rpc.upsert(path, "newer").revision
    for expected in (STALE, ABSENT):
        error = one_refusal(
            [face.upsert(path, "older", expected) for face in faces.all],
            "revision_conflict",
            "observed",
        )
        assert error["details"] == {"observed": observed}
        assert error == one_refusal(
            [face.forget(path, expected) for face in faces.all], "revision_conflict"
        )
    error = one_refusal(
        [face.upsert(f"{folder}/b.md", "x", STALE) for face in faces.all], "revision_conflict"
    )
    assert error["details"] == {"observed": ABSENT}
    assert (faces.hub.memory_dir / path).read_bytes() == b"newer"


@pytest.mark.requirement("M8", "M12", "M48", "bug-25")
@pytest.mark.parametrize(
    "kind", ["link", "dangling link", "hard link", "fifo", "folder link", "not UTF-8", "NUL", "big"]
)
def test_a_file_that_is_no_document_is_corrupt_and_stays_as_it_is(
    faces: Faces, folder: str, kind: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("outside")
    place = faces.hub.memory_dir / folder
    place.mkdir(parents=True)
    path = f"{folder}/x.md"
    target = place / "x.md"
    match kind:
        case "link":
            target.symlink_to(outside)
        case "dangling link":
            target.symlink_to(tmp_path / "nowhere.md")
        case "hard link":
            os.link(outside, target)
        case "fifo":
            os.mkfifo(target)
        case "folder link":
            (place / "sub").symlink_to(tmp_path, target_is_directory=True)
            path = f"{folder}/sub/outside.md"
        case "not UTF-8":
            target.write_bytes(b"ok \xff")
        case "NUL":
            target.write_bytes(b"ok \0")
        case _:
            target.write_bytes(b"x" * (64 * 1024 + 1))
    for verb in range(3):
        error = one_refusal(
            [everything(face, path)[verb]() for face in faces.all], "corrupt", "reason"
        )
        assert str(tmp_path) not in str(error)
    assert outside.read_text() == "outside"
    assert not (tmp_path / "nowhere.md").exists()
    found = faces.rpc.search("outside ok x", path_prefix=f"{folder}/").answer
    assert found["hits"] == []
    rows = {row["path"] for row in faces.rpc.call("check").answer["broken"]}
    assert path in rows or f"{folder}/sub" in rows


@pytest.mark.requirement("M48", "M57", "M33", "M45")
def test_what_is_named_and_gone_is_not_found(faces: Faces) -> None:
    said = [
        faces.rpc.post("/v1/memory/nothing", b"{}"),
        faces.rpc.call("discard", path="nothing.md"),
        faces.mcp.tool("result_continue", {"continuation": "feed.1"}),
        faces.cli.run("memory", "export", "nothing.md"),
        faces.cli.run("memory", "check", "--remove", "nothing.md"),
    ]
    assert {one.code for one in said} == {"not_found"}
    assert all(one.error["hint"] for one in said)
    assert said[1].error == said[4].error


@pytest.mark.slow
@pytest.mark.requirement("M34", "M48")
def test_a_cursor_of_another_question_is_stale(faces: Faces, folder: str) -> None:
    for number in range(60):
        faces.put(f"{folder}/{'y' * 90}{number}.md", b"")
    cursor = faces.rpc.call("list", path_prefix=f"{folder}/").answer["next_cursor"]
    assert isinstance(cursor, str)
    for wrong in (cursor, cursor[:-4], "garbage", "用", f"{folder}/a.md"):
        said = [face.call("list", path_prefix="z", cursor=wrong) for face in (faces.rpc, faces.cli)]
        one_refusal(said, "cursor_stale")


@pytest.mark.slow
@pytest.mark.requirement("M7", "M48", "row-1")
def test_while_memory_is_off_every_data_call_is_refused_and_no_file_is_touched(
    tmp_path: Path,
) -> None:
    hub = RunningHub(tmp_path / "home")
    hub.memory_dir.mkdir(parents=True)
    (hub.memory_dir / "kept.md").write_bytes(b"kept")
    try:
        hub.start()
        with faces_of(hub) as faces:
            for verb in range(4):
                error = one_refusal(
                    [everything(face, "kept.md")[verb]() for face in faces.all], "memory_disabled"
                )
                assert "amux system config set memory.enabled" in error["hint"]
            one_refusal([face.call("list") for face in (faces.rpc, faces.cli)], "memory_disabled")
            one_refusal([face.call("check") for face in (faces.rpc, faces.cli)], "memory_disabled")
            assert os.listdir(hub.memory_dir) == ["kept.md"]
            assert (hub.memory_dir / "kept.md").read_bytes() == b"kept"
            # On again, after a restart: the same MCP process works.
            hub.enable()
            assert faces.rpc.get("kept.md").code == "memory_disabled"
            hub.stop()
            hub.start()
            assert {face.get("kept.md").answer["content"] for face in faces.all} == {"kept"}
    finally:
        hub.kill()


@pytest.mark.slow
@pytest.mark.requirement("M2", "M48", "row-19")
def test_a_root_of_a_newer_amux_is_upgrade_required_and_stays_untouched(tmp_path: Path) -> None:
    hub = RunningHub(tmp_path / "home", AMUX_NO_AUTOSTART="0").enable()
    (hub.home / "layout").write_text("99\n")
    before = tree(hub.home)
    with McpProcess(hub.home, "--tools=memory", AMUX_NO_AUTOSTART="0") as process:
        process.initialize()
        text, is_refusal = process.call("memory_get", path="a.md")
        said = [Said("mcp", text, is_refusal=is_refusal), Faces(hub, process).cli.get("a.md")]
        error = one_refusal(said, "upgrade_required", "layout", "known")
        assert error["details"]["layout"] == 99
    for words in (["hub", "serve"], ["system", "config", "set", "memory.enabled", "false"]):
        done = hub.cli(*words)
        assert done.returncode == EXIT["upgrade_required"]
        assert code(done.stderr.decode().splitlines()[-1]) == "upgrade_required"
    assert tree(hub.home) == before


def tree(top: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else b""
        for path in sorted(top.rglob("*"))
    }


@pytest.mark.slow
@pytest.mark.requirement("M23", "M48")
def test_a_root_that_may_not_be_written_is_permission_denied(tmp_path: Path) -> None:
    home = tmp_path / "home"
    hub = RunningHub(home).enable()
    hub.memory_dir.mkdir(parents=True)
    (hub.memory_dir / "kept.md").write_bytes(b"kept")
    try:
        hub.start()
        with faces_of(hub) as faces, read_only(home / "memory"):
            # The Hub's handles are of the file system below; a start on this one sees it.
            hub.stop()
            hub.start()
            for call in (
                lambda face: face.upsert("new.md", "x"),
                lambda face: face.upsert("kept.md", "x", faces.rpc.get("kept.md").revision),
                lambda face: face.forget("kept.md", faces.rpc.get("kept.md").revision),
            ):
                error = one_refusal(map(call, faces.all), "permission_denied", "reason")
                assert error["details"]["reason"] == "root_not_writable"
            assert {face.get("kept.md").answer["content"] for face in faces.all} == {"kept"}
            hub.stop()
    finally:
        hub.kill()
    assert os.listdir(hub.memory_dir) == ["kept.md"]


@pytest.mark.slow
@pytest.mark.requirement("M23", "M48")
def test_a_disk_that_does_not_take_the_bytes_is_not_saved(faulty: Faces, disk: FaultyDisk) -> None:
    revision = faulty.rpc.upsert("a.md", "old").revision
    with disk.doing("fail-file"):
        for path, expected in (("a.md", revision), ("deep/new.md", ABSENT)):
            error = one_refusal(
                [face.upsert(path, "new", expected) for face in faulty.all], "not_saved", "cause"
            )
            assert error["details"]["cause"] == "EIO"
    assert faulty.rpc.get("a.md").answer["content"] == "old"
    assert os.listdir(faulty.hub.memory_dir) == ["a.md"]
    assert faulty.mcp.upsert("a.md", "new", revision).answer["changed"] is True


@pytest.mark.slow
@pytest.mark.requirement("M23", "M48", "M28")
def test_a_failure_after_the_rename_is_outcome_unknown_and_ends_the_hub(
    faulty: Faces, disk: FaultyDisk
) -> None:
    said = []
    revision = faulty.rpc.upsert("a.md", "0").revision
    for number, face in enumerate(faulty.all, start=1):
        with disk.doing("fail-folder"):
            said.append(face.upsert("a.md", str(number), revision))
            process = faulty.hub.process
            assert process is not None
            assert process.wait(timeout=15) == 1
        faulty.hub.start(launcher=disk.launcher)
        found = faulty.rpc.get("a.md")
        assert found.answer["content"] == str(number)
        revision = found.revision
    one_refusal(said, "outcome_unknown")
    assert b"Traceback" not in faulty.hub.log
    assert os.listdir(faulty.hub.memory_dir) == ["a.md"]


@pytest.mark.slow
@pytest.mark.requirement("M24", "M25", "M48", "bug-7")
def test_what_is_not_yet_durable_is_shown_to_nobody_and_waits_end_in_busy(
    faulty: Faces, disk: FaultyDisk
) -> None:
    revision = faulty.rpc.upsert("a.md", "old words").revision
    faulty.rpc.upsert("b.md", "other").answer  # noqa: B018
    readers: list[Callable[[Face], Said]] = [
        lambda face: face.get("a.md"),
        lambda face: face.search("words"),
        lambda face: face.upsert("a.md", "third", revision),
    ]
    with disk.doing("hold-folder"):
        held: list[Said] = []
        writer = threading.Thread(
            target=lambda: held.append(faulty.rpc.upsert("a.md", "new words", revision))
        )
        writer.start()
        disk.await_event("held")
        said = at_once(
            [lambda face=face, read=read: read(face) for read in readers for face in faulty.all]
        )
        for one in said:
            assert one.code == "busy", one.text
            assert "new words" not in one.text
        assert faulty.rpc.get("b.md").answer["content"] == "other"
        for index in range(0, len(said), 3):
            one_refusal(said[index : index + 3], "busy")
    writer.join()
    assert held[0].answer["changed"] is True
    assert faulty.rpc.get("a.md").answer["content"] == "new words"


@pytest.mark.slow
@pytest.mark.requirement("M28", "M48")
def test_a_lost_answer_is_outcome_unknown_for_a_write_and_unavailable_for_a_read(
    faulty: Faces, disk: FaultyDisk
) -> None:
    revision = faulty.rpc.upsert("a.md", "old").revision
    clients = (faulty.mcp, faulty.cli)
    with disk.doing("hold-file"):
        said: list[Said] = []
        asking = threading.Thread(
            target=lambda: said.extend(
                at_once([lambda face=face: face.upsert("a.md", "new", revision)
                         for face in clients])
            )
        )  # fmt: skip
        asking.start()
        disk.await_event("held", 2)
        faulty.hub.kill()
        asking.join()
    error = one_refusal(said, "outcome_unknown")
    assert "read" in error["hint"]
    assert {face.get("a.md").code for face in clients} == {"unavailable"}
    faulty.hub.start()
    assert faulty.rpc.get("a.md").answer["content"] == "old"


@pytest.mark.slow
@pytest.mark.requirement("M28", "M42")
def test_a_hub_that_hangs_is_unavailable_within_six_seconds(faces: Faces) -> None:
    assert faces.hub.process is not None
    faces.hub.process.send_signal(signal.SIGSTOP)
    try:
        said = at_once(
            [lambda face=face: face.get("a.md") for face in (faces.mcp, faces.cli)]
            + [lambda: faces.mcp.upsert("hang.md", "x"), lambda: faces.cli.upsert("hang.md", "x")]
        )
    finally:
        faces.hub.process.send_signal(signal.SIGCONT)
    one_refusal(said[:2], "unavailable")
    one_refusal(said[2:], "outcome_unknown")
    # What was sent and not answered may have happened or not; reading tells.
    assert faces.rpc.get("hang.md").answer["content"] in {"", "x"}


@pytest.mark.slow
@pytest.mark.requirement("M48", "M17")
def test_a_bug_is_internal_and_names_a_line_of_the_log_and_no_text(
    faulty: Faces, disk: FaultyDisk
) -> None:
    faulty.rpc.upsert("a.md", "private words").answer  # noqa: B018
    with disk.doing("bug"):
        said = [face.get("a.md") for face in faulty.all]
    incidents = [one.details.pop("incident") for one in said]
    assert len({one.text.replace(str(incident), "") for one, incident in
                zip(said, incidents, strict=True)}) == 1  # fmt: skip
    assert {one.code for one in said} == {"internal"}
    assert all(re.fullmatch("[0-9a-f]{8}", str(incident)) for incident in incidents)
    for incident in incidents:
        assert faulty.hub.log.count(str(incident).encode()) == 1
    assert b"private words" not in faulty.hub.log


@pytest.mark.slow
@pytest.mark.requirement("M3", "M48")
def test_a_second_hub_is_busy_and_names_the_pid_of_the_first(faces: Faces) -> None:
    assert faces.hub.process is not None
    done = faces.hub.cli("hub", "serve")
    assert done.returncode == EXIT["busy"]
    said = Said("cli", done.stderr.decode().splitlines()[-1], is_refusal=True)
    assert said.code == "busy"
    assert said.details["pid"] == faces.hub.process.pid
    assert faces.rpc.get("a.md").answer["exists"] is False


@pytest.mark.requirement("M49", "M48")
def test_statuses_of_http_and_exit_are_those_of_the_published_table(faces: Faces) -> None:
    from amux.errors import TABLE

    assert {str(code): row.exit for code, row in TABLE.items()}.items() <= EXIT.items()
    assert {
        str(code): row.http for code, row in TABLE.items() if row.http
    }.items() <= STATUS.items()
    done = faces.hub.cli("memory", "forget", "a.md", "--expected-revision", "nonsense")
    assert done.returncode == 2
    error = one_refusal(
        [face.forget("a.md", "nonsense") for face in faces.all], "invalid_argument", "argument"
    )
    assert error["details"]["argument"] == "expected_revision"
