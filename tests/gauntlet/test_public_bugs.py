"""Faults that users of other systems reported, each as one test of the whole kind.

Cases that another test proves are cited there: 1 and 40 in acceptance/test_writers, 6 in
kill/test_each_step, 7 and 23 in faces/test_refusals, 20 in faces/test_limits, 21 in
surface/mcp/test_offer, 37 in acceptance/test_places.
"""

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from amux.core import revision
from tests.support.faces import ABSENT, Faces, one_refusal
from tests.support.mcp_lines import McpProcess

PATHS = [  # the reported inputs, word by word
    "../x.md", "/etc/x.md", "a/../../x.md", "a\\..\\x.md", "x.md\0", ".", "a//b.md", "CON.md",
    "a.md:stream", "n" * 297 + ".md", unicodedata.normalize("NFD", "é.md"),
]  # fmt: skip


@pytest.mark.requirement("bug-2", "M9", "M21")
def test_bug_2_a_writer_with_an_old_revision_never_overwrites_a_newer_file(
    faces: Faces, folder: str
) -> None:
    path = f"{folder}/a.md"
    old = faces.rpc.upsert(path, "first").revision
    with McpProcess(faces.hub.home, "--tools=memory") as second:
        second.initialize()
        second.call("memory_get", path=path)
        newer = faces.mcp.upsert(path, "second", old).revision
        text, is_refusal = second.call(
            "memory_upsert", path=path, content="third", expected_revision=old
        )
    assert is_refusal
    assert newer in text
    assert (faces.hub.memory_dir / path).read_bytes() == b"second"


@pytest.mark.requirement("bug-4", "M9")
def test_bug_4_an_edited_note_is_found_by_its_new_word_at_once_and_not_by_its_old_one(
    faces: Faces, folder: str
) -> None:
    path, prefix = f"{folder}/a.md", f"{folder}/"
    made = faces.rpc.upsert(path, "the quick word0word fox").revision
    for number in range(1, 60):
        face = (faces.rpc, faces.mcp)[number % 2]
        made = face.upsert(path, f"the quick word{number}word fox", made).revision
        for one in (faces.rpc, faces.mcp):
            found = one.search(f"word{number}word", path_prefix=prefix).answer
            assert [hit["revision"] for hit in found["hits"]] == [made]
            old = one.search(f"word{number - 1}word", path_prefix=prefix).answer
            assert old["hits"] == []
            assert old["incomplete"] is False
    faces.rpc.forget(path, made).answer  # noqa: B018
    assert faces.mcp.search("quick", path_prefix=prefix).answer["hits"] == []


@pytest.mark.requirement("bug-6", "M8", "M23")
def test_bug_6_strays_and_broken_files_beside_documents_kill_nothing_and_are_told(
    faces: Faces, folder: str
) -> None:
    for name, data in {
        ".tmp": b"x", "a.md.tmp": b"x", "cut.md": "用户".encode()[:4], "a.md~": b"x",
        "empty.md": b"", "good.md": b"sesame",
    }.items():  # fmt: skip
        faces.put(f"{folder}/{name}", data)
    found = faces.mcp.search("sesame x", path_prefix=f"{folder}/").answer
    assert [hit["path"] for hit in found["hits"]] == [f"{folder}/good.md"]
    assert found["skipped_files"] >= 4
    assert faces.rpc.get(f"{folder}/empty.md").answer["exists"] is True
    assert faces.mcp.get(f"{folder}/cut.md").code == "corrupt"
    told = {row["path"] for row in faces.rpc.call("check").answer["broken"]}
    assert {f"{folder}/{name}" for name in (".tmp", "a.md.tmp", "cut.md", "a.md~")} <= told


@pytest.mark.requirement("bug-9", "M35")
@pytest.mark.parametrize(
    "query", ["止损", "护城河", "务护", "记得止损", "财", "做好财务护城河，记得止损"]
)
def test_bug_9_chinese_words_of_any_length_are_found(faces: Faces, folder: str, query: str) -> None:
    faces.put(f"{folder}/a.md", "做好财务护城河，记得止损".encode())
    for face in (faces.rpc, faces.mcp):
        found = face.search(query, path_prefix=f"{folder}/").answer
        assert [hit["path"] for hit in found["hits"]] == [f"{folder}/a.md"]
        assert found["relaxed"] is False


@pytest.mark.requirement("bug-11", "M37")
def test_bug_11_a_term_that_occurs_nowhere_empties_nothing_and_is_told(
    faces: Faces, folder: str
) -> None:
    faces.put(f"{folder}/a.md", b"user name is Lin")
    for query in ("user identity name", "nowhere1 nowhere2 Lin", "lin"):
        found = faces.mcp.search(query, path_prefix=f"{folder}/").answer
        assert [hit["path"] for hit in found["hits"]] == [f"{folder}/a.md"]
        counts = {one["term"]: one["documents"] for one in found["terms"]}
        assert counts.keys() == set(query.split())
        assert all((counts[term] == 0) == (term[:2] in {"id", "no"}) for term in counts)


@pytest.mark.requirement("bug-13", "M35", "M36")
@pytest.mark.parametrize("term", ["wrong-book", "crew:run", "ADR-0005", "std::move", "-book", "::"])
def test_bug_13_hyphens_and_colons_are_letters_like_any_other(
    faces: Faces, folder: str, term: str
) -> None:
    faces.put(f"{folder}/a.md", b"wrong-book crew:run ADR-0005 std::move")
    faces.put(f"{folder}/b.md", b"wrong crew adr run std")
    found = faces.rpc.search(term, path_prefix=f"{folder}/").answer
    assert found["hits"][0]["path"] == f"{folder}/a.md"


@pytest.mark.requirement("bug-14", "M9", "M39")
def test_bug_14_no_answer_is_confidently_empty_after_an_edit_behind_our_back(
    faces: Faces, folder: str
) -> None:
    for number in range(40):
        path = f"{folder}/{number % 3}/n{number % 5}.md"
        faces.put(path, f"edited away{number}away".encode())
        found = faces.mcp.search(f"away{number}away", path_prefix=f"{folder}/").answer
        assert found["hits"] or found["incomplete"]


@pytest.mark.requirement("bug-17", "M48")
@pytest.mark.parametrize("name", ["project", "scope"])
def test_bug_17_an_argument_that_nobody_knows_is_refused_and_not_dropped(
    faces: Faces, folder: str, name: str
) -> None:
    path = f"{folder}/a.md"
    said = [
        face.call("upsert", path=path, content="x", expected_revision=ABSENT, **{name: "other"})
        for face in faces.all
    ]
    assert {one.code for one in said} == {"invalid_argument"}
    assert {one.details["argument"].strip("-") for one in said} == {name}
    assert not (faces.hub.memory_dir / path).exists()


@pytest.mark.requirement("bug-20", "M16", "M60")
def test_bug_20_what_a_session_is_given_at_its_start_has_a_constant_size(faces: Faces) -> None:
    sizes = set()
    made = ABSENT
    for entry in ("", "x" * 2048, "x\n" * 64):
        made = faces.rpc.upsert("MEMORY.md", entry, made).revision
        with McpProcess(faces.hub.home) as process:
            introduction = process.initialize()
            tools = process.request("tools/list")["result"]
        sizes.add((len(str(introduction)), len(str(tools))))
        assert len(faces.mcp.get("MEMORY.md").text.encode()) < 2048 * 2 + 400
    faces.rpc.forget("MEMORY.md", made).answer  # noqa: B018
    assert len(sizes) == 1


@pytest.mark.requirement("bug-25", "M11", "M13", "M48")
@pytest.mark.parametrize("path", PATHS, ids=ascii)
def test_bug_25_a_path_that_could_escape_is_refused_in_one_way(
    faces: Faces, path: str, tmp_path: Path
) -> None:
    said = []
    for face in faces.all[: 2 if "\0" in path else 3]:
        said += [face.get(path), face.upsert(path, "x"), face.forget(path, ABSENT)]
    one_refusal(said, "invalid_argument", "argument", "reason")
    for one in said[1:]:
        assert one.error == said[0].error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("bug-25", "M12")
@pytest.mark.parametrize("kind", ["folder", "entry", "dangling", "hard link"])
def test_bug_25_a_link_is_followed_by_no_verb_of_any_face(
    faces: Faces, folder: str, kind: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("outside words")
    place = faces.hub.memory_dir
    path = f"{folder}/x.md"
    (place / folder).mkdir(parents=True)
    match kind:
        case "folder":
            (place / folder / "x").symlink_to(tmp_path)
            path = f"{folder}/x/outside.md"
        case "entry":
            path = "MEMORY.md"
            (place / path).symlink_to(outside)
        case "dangling":
            (place / path).symlink_to(tmp_path / "made.md")
        case _:
            os.link(outside, place / path)
    try:
        said = []
        for face in faces.all:
            said += [face.get(path), face.upsert(path, "x"), face.forget(path, "0" * 64)]
            assert face.search("outside words").answer["hits"] == []
        assert {one.code for one in said} == {"corrupt"}
        assert len({one.text for one in said}) == 1
        assert os.listdir(tmp_path) == ["outside.md"]
        assert outside.read_text() == "outside words"
    finally:
        if kind == "entry":
            (place / path).unlink()


@pytest.mark.requirement("bug-25", "M13")
@pytest.mark.parametrize(
    ("first", "second"),
    [("a.md", "A.md"), ("ﬁ.md", "fi.md"), ("straße.md", "STRASSE.md"), ("１.md", "1.md"),
     ("Dir/x.md", "dir/y.md"), ("ς.md", "Σ.md")],
)  # fmt: skip
def test_bug_25_two_names_that_some_disk_takes_for_one_are_not_both_created(
    faces: Faces, folder: str, first: str, second: str
) -> None:
    made = faces.rpc.upsert(f"{folder}/{first}", "first").revision
    error = one_refusal(
        [face.upsert(f"{folder}/{second}", "second") for face in faces.all],
        "invalid_argument",
        "existing",
    )
    assert error["details"]["reason"] == "case_collision"
    assert faces.mcp.get(f"{folder}/{second}").answer["exists"] is False
    faces.rpc.forget(f"{folder}/{first}", made).answer  # noqa: B018
    assert faces.mcp.upsert(f"{folder}/{second}", "second").answer["changed"] is True


@pytest.mark.requirement("bug-30", "M22")
def test_bug_30_after_forget_no_file_of_the_root_holds_the_text(faces: Faces, folder: str) -> None:
    marker = "marker-of-bug-30"
    path = f"{folder}/deep/a.md"
    made = faces.rpc.upsert(path, f"{marker} one").revision
    made = faces.mcp.upsert(path, f"{marker} two", made).revision
    faces.mcp.search(marker).answer  # noqa: B018
    faces.mcp.upsert(path, f"{marker} " + "\U0001f9c0" * 20_000, made).error  # noqa: B018
    kept = faces.mcp.forget(path, made).answer["kept"]
    assert kept == "session timelines and audit lines; what sessions have already read"
    for place, folders, files in os.walk(faces.hub.home):
        for name in files:
            file = Path(place, name)
            if file.is_file():
                assert marker.encode() not in file.read_bytes(), file
        assert "deep" not in folders
    assert marker.encode() not in faces.hub.log


@pytest.mark.slow
@pytest.mark.requirement("bug-42", "M14", "M33")
@pytest.mark.parametrize(
    "data",
    [b"", b" \n", b"\n\n\n", b"no newline", b"a\r\nb\r\n", b"\xef\xbb\xbfBOM\n", b"mixed\r\n\n\r",
     b"\xef\xbb\xbf", b"---\na: b\n---", "\u2028\u2029\u3000".encode()],
    ids=ascii,
)  # fmt: skip
def test_bug_42_every_file_comes_back_byte_for_byte(faces: Faces, folder: str, data: bytes) -> None:
    path = f"{folder}/a.md"
    for face in faces.all:
        made = face.upsert(path, data.decode("utf-8"))
        assert made.revision == revision.of(data)
        assert (faces.hub.memory_dir / path).read_bytes() == data
        come_back(faces, path, data)
        face.forget(path, made.revision).answer  # noqa: B018


@pytest.mark.requirement("bug-42", "M14", "M33")
def test_bug_42_what_a_person_wrote_by_hand_comes_back_whatever_it_holds(
    faces: Faces, folder: str
) -> None:
    data = "".join(map(chr, [*range(1, 160), 0x2028, 0xFEFF, 0x202E, 0xE0041])).encode()
    faces.put(f"{folder}/a.md", data)
    come_back(faces, f"{folder}/a.md", data)


def come_back(faces: Faces, path: str, data: bytes) -> None:
    for reader in faces.all:
        assert reader.read_all(path) == data
    assert faces.hub.cli("memory", "export", path).stdout == data


@pytest.mark.requirement("bug-19")
def test_bug_19_what_was_saved_in_a_worktree_outlives_it(
    faces: Faces, folder: str, tmp_path: Path
) -> None:
    def amux(where: Path, *words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "amux", *words],
            cwd=where, env=faces.hub.environment, input=stdin, capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout

    main, worktree = tmp_path / "main", tmp_path / "worktree"
    main.mkdir()
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(main)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True, capture_output=True)
    path = f"{folder}/a.md"
    amux(worktree, "memory", "upsert", path, "--expected-revision", ABSENT, stdin=b"kept")
    subprocess.run([*git, "worktree", "remove", "--force", str(worktree)], check=True)
    assert not worktree.exists()
    assert amux(main, "memory", "export", path) == b"kept"
