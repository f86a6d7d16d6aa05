"""Hostile paths against every verb of every face: refused, nothing served, nothing touched."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faces import ABSENT, Face, Faces, Said, one_refusal, running_faces
from tests.support.hostile import hostile_paths

SECRET = "the-secret-outside"
VERBS = ("get", "upsert", "forget")
SAMPLE = 40  # of one process each

ARGUMENTS: dict[str, dict[str, object]] = {
    "get": {},
    "upsert": {"content": "hostile", "expected_revision": ABSENT},
    "forget": {"expected_revision": ABSENT},
}


@pytest.fixture(scope="module")
def fort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    """A Hub, and things around its scope that are worth stealing."""
    top = tmp_path_factory.mktemp("fort")
    with running_faces(top / "around" / "home") as faces:
        faces.put("a/inside.md", b"inside")
        memory = faces.hub.memory_dir.parent
        (memory / "global-evil").mkdir()
        for place in (top, top / "around", faces.hub.home, memory, memory / "global-evil"):
            for name in ("x.md", "CON.md"):
                (place / name).write_text(SECRET)
        yield faces


def snapshot(top: Path) -> dict[str, tuple[object, ...]]:
    """Tell of every file beneath a folder what a touch would change; calls do leave a trail."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(top):
        for name in {*folders, *files} - {"audit.jsonl"}:
            path = os.path.join(folder, name)
            seen = os.lstat(path)
            found[path] = (seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns)
    return found


def top_of(faces: Faces) -> Path:
    return faces.hub.home.parents[1]


def require_refused(said: Said, path: str) -> None:
    assert said.code == "invalid_argument", (path, said.text)
    assert said.details["argument"] == "path", (path, said.text)
    assert said.details["reason"], (path, said.text)
    assert SECRET not in said.text


def sayable(texts: list[str]) -> list[str]:
    """Leave out what the system itself allows no program to be told."""
    return [text for text in texts if "\0" not in text]


@pytest.mark.requirement("M11", "bug-25")
def test_there_are_more_than_800_texts_and_each_is_one() -> None:
    texts = hostile_paths()
    assert len(texts) == len(set(texts)) >= 800


@pytest.mark.slow
@pytest.mark.requirement("M11", "M12", "M48", "bug-25")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["rpc", "mcp"])
def test_every_hostile_path_is_refused_and_touches_nothing(
    fort: Faces, name: str, verb: str
) -> None:
    face: Face = getattr(fort, name)
    before = snapshot(top_of(fort))
    for path in hostile_paths():
        require_refused(face.call(verb, path=path, **ARGUMENTS[verb]), path)
    assert snapshot(top_of(fort)) == before
    assert face.get("a/inside.md").answer["content"] == "inside"


@pytest.mark.slow
@pytest.mark.requirement("M11", "M12", "M48", "bug-25")
def test_every_face_says_the_same_of_a_hostile_path(fort: Faces) -> None:
    texts = sayable(hostile_paths())
    before = snapshot(top_of(fort))
    for number, path in enumerate(random.Random(11).sample(texts, SAMPLE)):
        verb = VERBS[number % len(VERBS)]
        said = [face.call(verb, path=path, **ARGUMENTS[verb]) for face in fort.all]
        require_refused(said[0], path)
        one_refusal(said, "invalid_argument", "reason")
    assert snapshot(top_of(fort)) == before


@pytest.mark.slow
@pytest.mark.requirement("M40", "M48", "bug-25")
def test_a_hostile_prefix_or_name_to_discard_shows_and_removes_nothing(fort: Faces) -> None:
    before = snapshot(top_of(fort))
    for path in hostile_paths():
        found = [
            fort.rpc.search(SECRET, path_prefix=path),
            fort.mcp.search(SECRET, path_prefix=path),
            fort.rpc.call("list", path_prefix=path),
        ]
        for said in found:
            # A prefix may be unfinished, so some of these are prefixes: of nothing, or of all.
            if said.is_refusal:
                assert said.code == "invalid_argument"
            else:
                assert not said.answer.get("hits")
                shown = {row["path"] for row in said.answer.get("documents", [])}
                assert shown <= {"a/inside.md"}
        assert found[0].body == found[1].body
        assert fort.rpc.call("discard", path=path).code in {"not_found", "invalid_argument"}
    assert snapshot(top_of(fort)) == before


@pytest.mark.requirement("M11", "bug-25")
@pytest.mark.parametrize(
    "path",
    ["~/x.md", "~root/x.md", "$HOME/x.md", "%2e%2e/x.md", "x;rm -r y.md", "`id`.md", "$(id).md",
     "a&b.md", "%00.md", "!x.md", "#x.md", "[x].md", "{x,y}.md", "'x'.md", "x=y.md", "@x.md"],
)  # fmt: skip
def test_what_a_shell_or_a_url_would_expand_is_a_plain_name(
    faces: Faces, folder: str, path: str
) -> None:
    for face in faces.all:
        revision = face.upsert(f"{folder}/{path}", "plain").revision
        assert (faces.hub.memory_dir / folder / path).read_bytes() == b"plain"
        hits = face.search("plain", path_prefix=f"{folder}/").answer["hits"]
        assert [hit["path"] for hit in hits] == [f"{folder}/{path}"]
        assert face.forget(f"{folder}/{path}", revision).answer["already_absent"] is False
