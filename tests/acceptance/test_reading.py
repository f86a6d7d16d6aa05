"""Searching and reading through a real Hub: rows 6, 7 and 8."""

import os
import time
from pathlib import Path

import pytest

from tests.support.faces import Faces, one_refusal
from tests.support.samples import notes, questions

GIB = 1024 * 1024 * 1024
STRAYS = 9000


def paths(found: dict[str, object]) -> list[str]:
    return [hit["path"] for hit in found["hits"]]


@pytest.mark.slow
@pytest.mark.requirement("row-6", "M35", "M36", "M37", "bug-9", "bug-11", "bug-13")
def test_a_query_is_words_and_never_a_pattern(faces: Faces) -> None:
    documents = {
        "c.md": "c " * 500,
        "cpp.md": "We write C++ here.",
        "literal.md": 'say NOT foo/bar or "x',
        "negated.md": "foo and bar",
        "option.md": "run it with -v",
        "sum.md": "the totals of the month",
        "likes.md": "记录用户偏好设置",
        "latin.md": "abc",
        "wide.md": "ＡＢＣ",
        "regex.md": "a.*b and $(id)",
        "stop.md": "做好财务护城河，记得止损",
        "name.md": "user name is Lin",
        "terms.md": "wrong-book crew:run ADR-0005 std::move",
    }
    for path, text in documents.items():
        faces.put(path, text.encode())
    wanted = {
        "C++": {"cpp.md"},
        "-v": {"option.md"},
        "totals?": {"sum.md"},
        "用户偏好": {"likes.md"},
        "ＡＢＣ": {"latin.md", "wide.md"},
        "abc": {"latin.md", "wide.md"},
        "a.*b": {"regex.md"},
        "$(id)": {"regex.md"},
        "*": {"regex.md"},
        "止损": {"stop.md"},
        "护城河": {"stop.md"},
        "wrong-book": {"terms.md"},
        "crew:run": {"terms.md"},
        "ADR-0005": {"terms.md"},
        "std::move": {"terms.md"},
    }
    for query, found in wanted.items():
        answers = [face.search(query, limit=20).answer for face in faces.all]
        assert answers[0] == answers[1] == answers[2]
        assert set(paths(answers[0])) == found, query
        assert answers[0]["relaxed"] is False
    answers = [face.search('NOT foo/bar "x').answer for face in faces.all]
    assert answers[0] == answers[1] == answers[2]
    assert paths(answers[0])[0] == "literal.md"
    assert answers[0]["hits"][0]["matched_terms"] == [0, 1, 2]
    found = faces.rpc.search("user identity name").answer
    assert paths(found)[0] == "name.md"
    assert [term["documents"] for term in found["terms"]][1] == 0
    one_refusal(
        [face.search(" ".join(map(str, range(17)))) for face in faces.all], "limit_exceeded"
    )
    one_refusal([face.search("x" * 513) for face in faces.all], "limit_exceeded")


@pytest.mark.slow
@pytest.mark.requirement("row-7", "M41")
def test_chinese_questions_without_blanks_find_their_note_among_the_first_three(
    faces: Faces,
) -> None:
    for path, text in notes().items():
        faces.put(path, text.encode())
    asked = [one for one in questions() if one.is_chinese]
    assert len(notes()) >= 60
    assert len(questions()) >= 60
    assert len(asked) * 2 >= len(questions())
    right = 0
    for one in asked:
        found = faces.mcp.search(one.text, limit=3).answer
        assert found["incomplete"] is False
        right += found["relaxed"] and one.path in paths(found)
    assert right >= 0.8 * len(asked)


@pytest.mark.slow
@pytest.mark.requirement("row-8", "M8", "M12", "M39", "M42")
def test_a_scope_full_of_what_is_no_document_is_searched_in_time(
    faces: Faces, tmp_path: Path
) -> None:
    secret = tmp_path / "outside.md"
    secret.write_text("outside sesame")
    place = faces.hub.memory_dir
    faces.put("good.md", b"sesame")
    (place / "link.md").symlink_to(secret)
    (place / "folder").symlink_to(tmp_path)
    os.link(secret, place / "hard.md")
    os.mkfifo(place / "fifo.md")
    with open(place / "sparse.md", "wb") as sparse:
        sparse.truncate(GIB)
    with open(os.fsencode(place) + b"/\xff\xfe.md", "wb") as odd:
        odd.write(b"sesame")
    (place / "bad.md").write_bytes(b"sesame \xff")
    (place / "nul.md").write_bytes(b"sesame")
    for face in faces.all:
        begun = time.monotonic()
        found = face.search("sesame", limit=20).answer
        assert time.monotonic() - begun < 2
        assert paths(found) == ["good.md"]
        assert found["skipped_files"] >= 8
    for path in ("link.md", "folder/outside.md", "hard.md", "fifo.md", "sparse.md", "bad.md"):
        one_refusal([face.get(path) for face in faces.all], "corrupt", "reason")
        one_refusal([face.upsert(path, "x") for face in faces.all], "corrupt", "reason")
        one_refusal([face.forget(path, "0" * 64) for face in faces.all], "corrupt", "reason")
    for number in range(STRAYS):
        (place / f"stray-{number}").touch()
    for _ in range(3):  # the first one learns the folder, the others know it
        begun = time.monotonic()
        found = faces.rpc.search("sesame", limit=20).answer
        assert time.monotonic() - begun < 2
        assert found["incomplete"] is True
        assert found["scanned_files"] + found["skipped_files"] <= 8192
    assert faces.rpc.get("good.md").answer["content"] == "sesame"
    assert secret.read_text() == "outside sesame"
    assert (place / "sparse.md").stat().st_size == GIB
