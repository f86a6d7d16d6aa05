import os
import stat
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.disk.ground import BlockedError, ForeignOwnerError, Ground

UID = os.geteuid()
STRANGER = 54_321
needs_root = pytest.mark.usefixtures("as_root")


def opened(base: Path, *steps: str, uid: int = UID) -> Ground | None:
    return Ground.open(str(base), steps, uid=uid)


def look(base: Path) -> None:
    ground = opened(base, ".devcodex", "billing")
    assert ground is not None
    with ground:
        ground.open_folder(".memory/clients/x")


def make(base: Path) -> None:
    with Ground.make(str(base), [".devcodex", "billing"], uid=UID) as ground:
        ground.make_folder(".memory/clients/x").close()


def test_what_is_missing_is_none_and_nothing_is_made(tmp_path: Path) -> None:
    assert opened(tmp_path, ".devcodex", "billing") is None
    assert opened(tmp_path / "gone", ".devcodex") is None
    (tmp_path / ".devcodex").mkdir()
    with Ground.make(str(tmp_path), [".devcodex"], uid=UID) as ground:
        assert ground.open_folder(".memory/clients") is None
    assert os.listdir(tmp_path / ".devcodex") == []


@pytest.mark.requirement("J19", "J63")
def test_directories_are_made_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o277)
    try:
        with Ground.make(str(tmp_path), [".devcodex", "billing"], uid=UID) as ground:
            ground.make_folder("a/b").close()
    finally:
        os.umask(old)
    for path in (".devcodex", ".devcodex/billing", ".devcodex/billing/a/b"):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o700


@pytest.mark.requirement("J19")
@pytest.mark.parametrize("at", ["", "billing", "billing/.memory", "billing/.memory/clients"])
@pytest.mark.parametrize("kind", ["link", "dangling", "file", "fifo"])
def test_a_step_that_is_no_directory_is_blocked(tmp_path: Path, at: str, kind: str) -> None:
    outside = tmp_path / "outside"
    (outside / "tasks").mkdir(parents=True)
    odd = tmp_path / ".devcodex" / at
    odd.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "link":
            odd.symlink_to(outside)
        case "dangling":
            odd.symlink_to(tmp_path / "nowhere")
        case "file":
            odd.write_bytes(b"x")
        case _:
            os.mkfifo(odd)
    with pytest.raises(BlockedError):
        look(tmp_path)
    with pytest.raises(BlockedError):
        make(tmp_path)
    assert os.listdir(outside) == ["tasks"]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.requirement("J19")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".devcodex" / ".memory").mkdir(parents=True)
    with pytest.raises(ForeignOwnerError):
        opened(tmp_path, ".devcodex", uid=STRANGER)
    with pytest.raises(ForeignOwnerError):
        Ground.make(str(tmp_path), [".devcodex"], uid=STRANGER)


@needs_root
@pytest.mark.requirement("J19")
def test_a_directory_of_another_user_deep_inside_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ".devcodex" / ".memory" / "clients"
    deep.mkdir(parents=True)
    for path in (tmp_path / ".devcodex", deep.parent):
        os.chown(path, STRANGER, STRANGER)
    ground = opened(tmp_path, ".devcodex", uid=STRANGER)
    assert ground is not None
    with ground:
        ground.make_folder(".memory").close()
        with pytest.raises(ForeignOwnerError):
            ground.open_folder(".memory/clients")


@needs_root
@pytest.mark.requirement("J19")
def test_uid_0_gives_what_it_makes_to_the_owner_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / ".devcodex").mkdir()
    os.chown(tmp_path / ".devcodex", STRANGER, STRANGER + 1)
    with Ground.make(str(tmp_path), [".devcodex", "billing"], uid=0) as ground:
        ground.make_folder(".memory/clients").close()
    for path in tmp_path.rglob("*"):
        status = path.stat()
        assert (status.st_uid, status.st_gid) == (STRANGER, STRANGER + 1)


@pytest.mark.requirement("J63")
def test_each_directory_made_is_durable_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    make, sync = atomic.make_folder, atomic.fsync

    def made(folder: atomic.Handle, name: str) -> None:
        done.append(f"make {name}")
        make(folder, name)

    def synced(fd: int) -> None:
        done.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
        sync(fd)

    monkeypatch.setattr(atomic, "make_folder", made)
    monkeypatch.setattr(atomic, "fsync", synced)
    with Ground.make(str(tmp_path), [".devcodex"], uid=UID) as ground:
        ground.make_folder("a/b").close()
        assert done == [
            "make .devcodex", f"sync {tmp_path.name}", "make a", "sync .devcodex", "make b",
            "sync a",
        ]  # fmt: skip
        done.clear()
        ground.sync_way("a/b")
        assert done == [f"sync {tmp_path.name}", "sync .devcodex", "sync a"]
