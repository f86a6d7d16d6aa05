"""A disk without room: row 17."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.faces import ABSENT, Faces, faces_of, one_refusal
from tests.support.hub import RunningHub
from tests.support.mounts import small_disk

KIB = 1024


def fill_bytes(folder: Path) -> None:
    fd = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (64 * KIB, 4 * KIB, 1):
        with contextlib.suppress(OSError):
            while os.write(fd, b"x" * size):
                pass
    os.close(fd)


def fill_inodes(folder: Path) -> None:
    number = 0
    while True:
        try:
            (folder / f"filler-{number}").touch()
        except OSError:
            return
        number += 1


def empty(folder: Path) -> None:
    for path in folder.glob("filler*"):
        path.unlink()


@pytest.mark.slow
@pytest.mark.requirement("row-17", "M23", "M48")
@pytest.mark.parametrize(
    ("options", "fill"),
    [({"size": "2m"}, fill_bytes), ({"size": "8m", "nr_inodes": 60}, fill_inodes)],
    ids=["bytes", "inodes"],
)
def test_a_full_disk_takes_no_write_loses_nothing_and_lets_forget(
    tmp_path: Path, options: dict[str, object], fill: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    with small_disk(home, **options):
        # A Hub in the background: its log lies on the full disk too.
        hub = RunningHub(home).enable()
        try:
            assert hub.cli("hub", "start").returncode == 0
            with faces_of(hub) as faces:
                through_a_full_disk(faces, lambda: fill(home), lambda: empty(home))
        finally:
            assert hub.cli("hub", "stop").returncode == 0


def through_a_full_disk(faces: Faces, fill: Callable[[], None], empty: Callable[[], None]) -> None:
    old = "old sesame " * 2000
    names = ("a.md", "b.md", "c.md")
    revisions = {name: faces.rpc.upsert(name, old + name).revision for name in names}
    memory = faces.hub.memory_dir
    fill()
    for path, expected in (("a.md", revisions["a.md"]), ("new.md", ABSENT), ("f/new.md", ABSENT)):
        said = [face.upsert(path, "n" * 60 * KIB, expected) for face in faces.all]
        error = one_refusal(said, "not_saved", "cause")
        assert error["details"]["cause"] == "ENOSPC"
    assert sorted(os.listdir(memory)) == sorted(names)
    for face in faces.all:
        assert face.read_all("a.md") == (old + "a.md").encode()
        assert len(face.search("sesame").answer["hits"]) == 3
    # Each face makes some room; another one fills it up again before the next.
    for face, name in zip(faces.all, names, strict=True):
        assert face.forget(name, revisions[name]).answer["already_absent"] is False
        fill()
    assert faces.rpc.search("sesame").answer["hits"] == []
    assert faces.rpc.upsert("a.md", "n" * 60 * KIB).code == "not_saved"
    assert os.listdir(memory) == []
    empty()
    for face in faces.all:
        assert face.upsert(f"{face}.md", "n" * 60 * KIB).answer["changed"] is True
    assert sorted(os.listdir(memory)) == ["cli.md", "mcp.md", "rpc.md"]
