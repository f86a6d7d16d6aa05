"""Each use case through each face: equal answers, equal bytes."""

import hashlib
import json

import pytest

from tests.support.faces import ABSENT, Faces

TEXT = '# Käse\r\n\r\n用户偏好 🧀 "x" \\ \t\nno final newline'


@pytest.mark.slow
@pytest.mark.requirement("M4", "M14", "M15", "M19", "M21", "M22", "M29", "M32")
def test_a_document_lives_and_dies_alike_through_every_face(faces: Faces, folder: str) -> None:
    path = f"{folder}/life.md"
    lives = []
    for face in faces.all:
        missing = face.get(path)
        created = face.upsert(path, TEXT)
        again = face.upsert(path, TEXT, created.revision)
        read = face.get(path)
        stale = face.upsert(path, "other", "0" * 64)
        stored = (faces.hub.memory_dir / path).read_bytes()
        found = face.search("用户偏好", path_prefix=f"{folder}/")
        gone = face.forget(path, created.revision)
        twice = face.forget(path, created.revision)
        steps = (missing, created, again, read, stale, found, gone, twice)
        lives.append([step.text for step in steps])
        assert stored == TEXT.encode("utf-8")
        assert created.revision == hashlib.sha256(stored).hexdigest()
        assert missing.answer["exists"] is False
        assert missing.revision == ABSENT
        assert again.answer == {"path": path, "revision": created.revision, "changed": False}
        assert read.answer["content"] == TEXT
        assert stale.details == {"observed": created.revision}
        assert [hit["path"] for hit in found.answer["hits"]] == [path]
        assert gone.answer["already_absent"] is False
        assert gone.answer["kept"] == twice.answer["kept"]
        assert "session timelines" in gone.answer["kept"]
        assert twice.answer["already_absent"] is True
    assert lives[0] == lives[1] == lives[2]


@pytest.mark.slow
@pytest.mark.requirement("M30", "M31")
def test_every_face_cuts_lines_and_offsets_alike(faces: Faces, folder: str) -> None:
    path = f"{folder}/lines.md"
    faces.put(path, "eins\nzwei\ndr€i\n".encode())
    wanted = [
        ({"start_line": 2, "end_line": 2}, "zwei\n", (2, 2)),
        ({"start_line": 3, "end_line": 99}, "dr€i\n", (3, 3)),
        ({"start_line": 4}, "", (0, 0)),
        ({"start_line": 0, "end_line": 0}, "eins\nzwei\ndr€i\n", (1, 3)),
        ({"offset": 5, "end_line": 2}, "zwei\n", (2, 2)),
        ({"offset": 17}, "", (0, 0)),
    ]
    for arguments, content, (first, last) in wanted:
        answers = [face.get(path, **arguments).answer for face in faces.all]
        assert answers[0] == answers[1] == answers[2]
        assert answers[0]["content"] == content
        assert (answers[0]["start_line"], answers[0]["end_line"]) == (first, last)
        assert answers[0]["total_lines"] == 3


@pytest.mark.slow
@pytest.mark.requirement("M34")
def test_rpc_and_cli_list_the_same_pages_and_nothing_twice(faces: Faces, folder: str) -> None:
    wanted = sorted(f"{folder}/{'x' * 80}{number:03}.md" for number in range(60))
    for path in wanted:
        faces.put(path, path.encode())
    seen: dict[str, list[str]] = {}
    for face in (faces.rpc, faces.cli):
        page = face.call("list", path_prefix=f"{folder}/").answer
        rows = list(page["documents"])
        while page["next_cursor"]:
            page = face.call("list", path_prefix=f"{folder}/", cursor=page["next_cursor"]).answer
            rows += page["documents"]
        assert [row["path"] for row in rows] == wanted
        assert rows[0]["revision"] == hashlib.sha256(wanted[0].encode()).hexdigest()
        seen[face.name] = [json.dumps(row) for row in rows]
    assert seen["rpc"] == seen["cli"]


@pytest.mark.requirement("M8", "M4")
def test_rpc_and_cli_check_and_remove_the_same_broken_files(faces: Faces, folder: str) -> None:
    path = f"{folder}/broken.md"
    faces.put(path, b"\xff\xfe")
    rows = [face.call("check").answer["broken"] for face in (faces.rpc, faces.cli)]
    assert rows[0] == rows[1]
    assert {"path": path, "reason": "not_utf8"} in rows[0]
    assert faces.cli.run("memory", "check", "--remove", path).answer["removed"] is True
    assert not (faces.hub.memory_dir / path).exists()
    assert faces.rpc.call("discard", path=path).code == "not_found"
