"""Other programs edit the files behind a running Hub's back: row 15."""

import os
import subprocess
import sys
import threading
import time

import pytest

from tests.support.faces import ABSENT, Faces, Said
from tests.support.faulty_disk import FaultyDisk

EDITS = 200
# Another program: it saves as editors do, each time in another way, and says when it is done.
EDITOR = r"""
import os, sys
for line in sys.stdin:
    number, path = line.split()
    text = f"edited word{number}x by hand\n".encode()
    way = int(number) % 4
    if way == 0:
        with open(path, "wb") as file: file.write(text)
    elif way == 1:
        with open(path + "~", "wb") as file: file.write(text)
        os.replace(path + "~", path)
    elif way == 2:
        before = os.stat(path)
        with open(path, "r+b") as file: file.truncate(0); file.write(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        os.rename(path, path + ".bak"); open(path, "wb").write(text); os.unlink(path + ".bak")
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.requirement("row-15", "M9", "bug-4", "bug-14")
def test_each_of_200_edits_by_another_program_is_seen_at_once(faces: Faces) -> None:
    path = faces.hub.memory_dir / "notes" / "edited.md"
    faces.rpc.upsert("notes/edited.md", "edited word first").answer  # noqa: B018
    for number in range(50):
        faces.put(f"others/{number}.md", b"never edited")
    with subprocess.Popen(
        [sys.executable, "-c", EDITOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        for number in range(EDITS):
            editor.stdin.write(f"{number} {path}\n".encode())
            editor.stdin.flush()
            assert int(editor.stdout.readline()) == number
            face = (faces.rpc, faces.mcp)[number % 2]
            found = face.search(f"word{number}x").answer
            read = face.get("notes/edited.md")
            assert read.answer["content"] == f"edited word{number}x by hand\n"
            if not found["incomplete"]:
                (hit,) = found["hits"]
                assert hit["revision"] == read.revision
                assert f"word{number}x" in hit["snippet"]
            older = face.search(f"word{number - 1}x").answer
            assert older["hits"] == []
        editor.stdin.close()


@pytest.mark.slow
@pytest.mark.requirement("M8", "M9", "bug-14")
def test_what_was_edited_added_and_removed_while_the_hub_was_down_is_what_it_serves(
    faces: Faces,
) -> None:
    for name in ("kept", "edited", "removed"):
        faces.rpc.upsert(f"{name}.md", f"{name} sesame").answer  # noqa: B018
    assert len(faces.rpc.search("sesame").answer["hits"]) == 3
    assert faces.hub.stop() == 0
    faces.put("edited.md", b"sesame by hand")
    faces.put("deep/er/added.md", b"sesame too")
    (faces.hub.memory_dir / "removed.md").unlink()
    faces.hub.start()
    for face in faces.all:
        hits = face.search("sesame").answer["hits"]
        assert {hit["path"] for hit in hits} == {"kept.md", "edited.md", "deep/er/added.md"}
        assert face.get("edited.md").answer["content"] == "sesame by hand"
        assert face.get("removed.md").answer["exists"] is False


@pytest.mark.slow
@pytest.mark.requirement("row-15", "M9", "bug-2")
@pytest.mark.parametrize("way", ["in place", "by rename", "removed"])
def test_an_edit_between_check_and_rename_is_a_conflict_and_stays(
    faulty: Faces, disk: FaultyDisk, way: str
) -> None:
    revision = faulty.rpc.upsert("a.md", "old").revision
    path = faulty.hub.memory_dir / "a.md"
    said: list[Said] = []
    with disk.doing("hold-exchange"):
        writer = threading.Thread(
            target=lambda: said.append(faulty.mcp.upsert("a.md", "by the agent", revision))
        )
        writer.start()
        disk.await_event("held")
        match way:
            case "in place":
                path.write_bytes(b"by hand")
            case "by rename":
                (path.parent / "a.tmp").write_bytes(b"by hand")
                os.replace(path.parent / "a.tmp", path)
            case _:
                path.unlink()
    writer.join()
    assert said[0].code == "revision_conflict"
    found = faulty.rpc.get("a.md")
    assert said[0].details == {"observed": found.revision}
    if way == "removed":
        assert found.revision == ABSENT
    else:
        assert path.read_bytes() == b"by hand"
    deadline = time.monotonic() + 5
    while list(path.parent.glob(".amux-*")):
        assert time.monotonic() < deadline
