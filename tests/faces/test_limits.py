"""The table of limits, at each bound and one past it, through every face."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faces import ABSENT, Face, Faces, faces_of, one_refusal
from tests.support.hub import RunningHub

ENTRY = "MEMORY.md"
KIB = 1024
MIB = 1024 * KIB


def accepted(faces: Faces, path: str, content: str) -> None:
    """Write, read back and forget through each face in turn."""
    for face in faces.all:
        revision = face.upsert(path, content).revision
        assert face.read_all(path) == content.encode("utf-8")
        face.forget(path, revision).answer  # noqa: B018 - it refuses by raising


def refused(faces: Faces, path: str, content: str, code: str, *details: str) -> dict[str, object]:
    """Be refused through each face; nothing is there after."""
    error = one_refusal([face.upsert(path, content) for face in faces.all], code, *details)
    assert not (faces.hub.memory_dir / path).exists()
    return error


@pytest.mark.slow
@pytest.mark.requirement("M16", "M18", "bug-20")
@pytest.mark.parametrize(
    "content",
    ["x" * 2048, "é" * 1024, "x\n" * 64, "x\n" * 63 + "x", "\n" * 64, "\r" * 2048],
    ids=["2048 bytes", "2048 bytes of letters", "64 lines", "no last LF", "empty", "CR only"],
)
def test_an_entry_at_its_bounds_is_kept(faces: Faces, content: str) -> None:
    accepted(faces, ENTRY, content)


@pytest.mark.slow
@pytest.mark.requirement("M16", "M18", "bug-20")
@pytest.mark.parametrize(
    "content",
    ["x" * 2049, "é" * 1024 + "x", "x\n" * 64 + "x", "\n" * 65, "x" * 50 * KIB],
    ids=["2049 bytes", "2049 of letters", "64 lines and one byte", "65 lines", "50 KiB"],
)
def test_an_entry_past_its_bounds_is_refused_and_nothing_is_cut(faces: Faces, content: str) -> None:
    error = refused(faces, ENTRY, content, "limit_exceeded", "bytes", "lines", "max_bytes")
    assert error["details"] == {
        "bytes": len(content.encode()),
        "lines": content.count("\n") + (not content.endswith("\n")),
        "max_bytes": 2048,
        "max_lines": 64,
    }
    assert "topic documents" in error["hint"]


@pytest.mark.slow
@pytest.mark.requirement("M16")
def test_only_the_entry_at_the_top_is_an_entry(faces: Faces, folder: str) -> None:
    accepted(faces, f"{folder}/MEMORY.md", "x\n" * 1100)


@pytest.mark.slow
@pytest.mark.requirement("M18", "M14")
@pytest.mark.parametrize("character", ["x", "用", "🧀", '"', "\n", "\t"])
def test_a_document_of_64_kib_is_kept_and_one_byte_more_is_refused(
    faces: Faces, folder: str, character: str
) -> None:
    size = len(character.encode())
    content = character * (64 * KIB // size) + "x" * (64 * KIB % size)
    assert len(content.encode()) == 64 * KIB
    for face in (faces.rpc, faces.mcp):
        path = f"{folder}/{face}.md"
        revision = face.upsert(path, content).revision
        assert face.read_all(path) == content.encode()
        assert face.upsert(path, content[:-1], revision).answer["changed"] is True
    refused(faces, f"{folder}/over.md", content + "x", "limit_exceeded", "bytes", "max_bytes")


@pytest.mark.slow
@pytest.mark.requirement("M18", "M35", "row-6")
def test_a_query_has_at_most_512_bytes_and_16_terms_and_at_least_one(
    faces: Faces, folder: str
) -> None:
    prefix = f"{folder}/"
    sixteen = " ".join(f"t{number}" for number in range(16))
    for query in ("q" * 512, "é" * 256, sixteen, f"{sixteen} T1"):
        answers = [face.search(query, path_prefix=prefix).answer for face in faces.all]
        assert answers[0] == answers[1] == answers[2]
        assert len(answers[0]["terms"]) <= 16
    for query, code, detail in [
        ("q" * 513, "limit_exceeded", "max_bytes"),
        ("é" * 256 + "x", "limit_exceeded", "max_bytes"),
        (f"{sixteen} t16", "limit_exceeded", "max_terms"),
        ("", "invalid_argument", "argument"),
        (" \t\u3000\n", "invalid_argument", "argument"),
    ]:
        one_refusal([face.search(query) for face in faces.all], code, detail)


@pytest.mark.slow
@pytest.mark.requirement("M18", "M39")
def test_hits_are_5_unless_told_and_at_most_20(faces: Faces, folder: str) -> None:
    for number in range(25):
        faces.put(f"{folder}/{number:02}.md", b"sesame\n")
    for limit, shown in [({}, 5), ({"limit": 1}, 1), ({"limit": 20}, 20)]:
        answers = [
            face.search("sesame", path_prefix=f"{folder}/", **limit).answer for face in faces.all
        ]
        assert answers[0] == answers[1] == answers[2]
        assert len(answers[0]["hits"]) == shown
        assert answers[0]["truncated"] is True
        assert answers[0]["terms"] == [{"term": "sesame", "documents": 25}]
    for limit in (21, 0, -1, 10**17):
        error = one_refusal(
            [face.search("sesame", limit=limit) for face in faces.all], "invalid_argument", "max"
        )
        assert error["details"]["argument"] == "limit"


@pytest.mark.slow
@pytest.mark.requirement("M17", "M18", "M45")
def test_a_body_of_512_kib_is_read_and_one_byte_more_is_refused(faces: Faces, folder: str) -> None:
    path = f"{folder}/body.md"
    # 64 KiB of text, each character written in the longest way that JSON knows.
    start, end = b'{"content":"', f'","path":"{path}","expected_revision":"absent"}}'.encode()
    content = b"\\u0009" * (64 * KIB - 1)
    for size in (512 * KIB, 512 * KIB + 1):
        body = start + content + b"x" + end
        body += b" " * (size - len(body))
        said = faces.rpc.post("/v1/memory/upsert", body)
        if size == 512 * KIB:
            assert said.answer["changed"] is True
        else:
            assert said.code == "limit_exceeded"
            assert said.details == {"max_bytes": 512 * KIB}
    assert faces.mcp.read_all(path) == b"\t" * (64 * KIB - 1) + b"x"
    big = "x" * (512 * KIB)
    one_refusal(
        [face.upsert(f"{folder}/big.md", big) for face in faces.all], "limit_exceeded", "max_bytes"
    )


@pytest.mark.slow
@pytest.mark.requirement("M17", "row-5")
def test_no_answer_exceeds_its_budget_whatever_it_holds(faces: Faces) -> None:
    """The faces measure each answer; here is what makes answers large."""
    deep = "/".join(["用" * 33] * 4 + ["\U00020000" * 24]) + "/" + "{0}.md"
    deep_paths = [deep.format(letter * 5) for letter in "abcdefghijklmnopqrst"]
    for path in deep_paths:
        assert len(path.encode()) <= 512
        faces.put(path, ('\x01"\\\t' * 500 + " sesamsamen " + "\U0001f9c0\n" * 500).encode())
    terms = "sesamsamen " + " ".join("\U0001f9c0" * 5 + str(number) for number in range(15))
    for face in faces.all:
        found = face.search(terms, limit=20, path_prefix="用").answer
        assert found["truncated"] is True
        assert found["hits"], "a budget is no reason to show nothing"
        for hit in found["hits"]:
            assert len(json.dumps(hit["snippet"], ensure_ascii=False).encode()) <= 322
        assert face.get(deep_paths[0]).answer["truncated"] is True
    assert faces.mcp.search(terms, limit=20, path_prefix="用").pages > 1
    assert faces.rpc.call("list", path_prefix="用").answer["next_cursor"]


@pytest.mark.slow
@pytest.mark.requirement("row-5", "M17", "M31", "M57")
@pytest.mark.parametrize(
    ("character", "is_placed"),
    [("\x01", True), ('"', False), ("\t", False), ("🧀", False), ("\\", False)],
    ids=["U+0001 on disk", "quotes", "tabs", "4-byte characters", "backslashes"],
)
def test_the_worst_64_kib_are_read_whole_by_next_offset(
    faces: Faces, folder: str, character: str, is_placed: bool
) -> None:
    content = character * (64 * KIB // len(character.encode()))
    path, escaped = f"{folder}/worst.md", f"{folder}/escaped.md"
    if is_placed:
        faces.put(path, content.encode())
    else:
        faces.mcp.upsert(path, content).answer  # noqa: B018
    unit = "".join(
        f"\\u{int.from_bytes(pair, 'big'):04x}"
        for pair in zip(*[iter(character.encode("utf-16-be"))] * 2, strict=True)
    )
    body = f'{{"path":"{escaped}","expected_revision":"absent","content":"{unit * len(content)}"}}'
    if not is_placed and len(body) <= 512 * KIB:
        assert faces.rpc.post("/v1/memory/upsert", body.encode()).answer["changed"] is True
        assert faces.rpc.read_all(escaped) == content.encode()
    assert faces.rpc.read_all(path) == content.encode()
    assert faces.mcp.read_all(path) == content.encode()


@pytest.mark.slow
@pytest.mark.requirement("row-5", "M33", "M31")
def test_the_command_line_exports_the_worst_64_kib_byte_for_byte(faces: Faces, folder: str) -> None:
    data = ('\x01"\t🧀\r' * 9000).encode()[: 64 * KIB - 4] + b"last"
    data = data.decode(errors="ignore").encode()
    faces.put(f"{folder}/export.md", data)
    done = faces.hub.cli("memory", "export", f"{folder}/export.md")
    assert done.stdout == data


# --- the quota: a scope that is prepared on disk with the Hub stopped ---


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Faces]:
    """Give a Hub that is not started yet."""
    hub = RunningHub(tmp_path / "home").enable()
    hub.memory_dir.mkdir(parents=True)
    try:
        with faces_of(hub) as faces:
            yield faces
    finally:
        hub.kill()


@pytest.mark.slow
@pytest.mark.requirement("row-4", "M18", "M8", "M3")
def test_document_1025_is_refused_until_one_is_forgotten(full: Faces) -> None:
    for number in range(1024):
        full.put(f"d{number % 16}/{number}.md", b"x")
    full.hub.start()
    error = refused(full, "more.md", "y", "quota_exceeded", "documents", "bytes", "max_documents")
    assert error["details"]["documents"] == 1024
    revision = full.rpc.get("d0/0.md").revision
    for face in full.all:
        assert face.upsert("d0/0.md", "larger", revision).answer["changed"] is True
        assert (
            face.forget("d0/0.md", face.get("d0/0.md").revision).answer["already_absent"] is False
        )
        revision = face.upsert("d0/0.md", "y").revision
        assert face.upsert("more.md", "y").code == "quota_exceeded"
    (full.hub.memory_dir / "d1/1.md").unlink()  # a person's hands make room too
    assert full.mcp.upsert("more.md", "y").answer["changed"] is True


@pytest.mark.slow
@pytest.mark.requirement("row-4", "M18", "M8")
def test_byte_16_mib_is_kept_and_the_next_one_is_refused(full: Faces) -> None:
    for number in range(255):
        full.put(f"{number}.md", b"x" * (64 * KIB))
    full.put("last.md", b"x" * (64 * KIB - 10))
    full.hub.start()
    for face in full.all:
        refused(full, "eleven.md", "x" * 11, "quota_exceeded", "bytes", "max_bytes")
        revision = face.upsert("ten.md", "x" * 10).revision
        one_refusal(
            [one.upsert("ten.md", "x" * 11, revision) for one in full.all], "quota_exceeded"
        )
        one_refusal([one.upsert("new.md", "x") for one in full.all], "quota_exceeded", "max_bytes")
        # Growing by nothing is no growth: an empty document still fits, and equal size does.
        assert face.upsert("ten.md", "y" * 10, revision).answer["changed"] is True
        assert face.forget("ten.md", face.get("ten.md").revision).answer


@pytest.mark.slow
@pytest.mark.requirement("row-4", "M8", "M18")
def test_a_scope_over_its_quota_on_disk_may_shrink_and_not_grow(full: Faces) -> None:
    for number in range(257):
        full.put(f"{number}.md", b"x" * (64 * KIB))
    full.put("strays/no document.bin", b"x" * MIB)
    full.hub.start()
    for number, face in enumerate(full.all):
        path = f"{number}.md"
        revision = face.get(path).revision
        smaller = face.upsert(path, "small", revision).revision
        error = one_refusal(
            [one.upsert(path, "larger", smaller) for one in full.all], "quota_exceeded"
        )
        assert error["details"]["bytes"] > 16 * MIB
        assert face.get(path).answer["content"] == "small"


@pytest.mark.slow
@pytest.mark.requirement("M16")
def test_an_entry_made_too_large_by_hand_is_served_and_can_be_made_smaller(full: Faces) -> None:
    full.put(ENTRY, b"by hand\n" * 400)
    full.hub.start()

    def size_of(face: Face) -> int:
        return len(face.read_all(ENTRY))

    assert {size_of(face) for face in full.all} == {3200}
    revision = full.rpc.get(ENTRY).revision
    one_refusal([face.upsert(ENTRY, "x\n" * 65, revision) for face in full.all], "limit_exceeded")
    assert full.cli.upsert(ENTRY, "short", revision).answer["changed"] is True
    assert full.rpc.get("absent.md").revision == ABSENT
