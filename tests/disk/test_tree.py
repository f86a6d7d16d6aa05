"""Nothing beneath a root leads out of it; both ways of the kernel."""

import ctypes
import errno
import multiprocessing
import multiprocessing.synchronize
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.disk import tree
from amux.disk.tree import Root
from amux.errors import Corrupt

SPAWN = multiprocessing.get_context("spawn")
EXCHANGE = 2


@pytest.fixture(params=[False, True], ids=["openat2", "stepwise"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "sub" / "f.md").write_bytes(b"inside")
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil" / "f.md").write_bytes(b"SECRET")
    opened = Root.open(str(tmp_path / "root"), stepwise=request.param)
    yield opened
    opened.close()


def reason(root: Root, path: str) -> object:
    with pytest.raises(Corrupt) as refused:
        root.read(path, max_bytes=100)
    return refused.value.details["reason"]


@pytest.mark.requirement("M12")
def test_a_file_beneath_is_read_whole(root: Root) -> None:
    assert root.read("sub/f.md", max_bytes=6) == b"inside"
    assert root.read("sub/g.md", max_bytes=6) is None
    assert root.read("none/f.md", max_bytes=6) is None
    assert root.read("sub/f.md/g.md", max_bytes=6) is None
    assert root.read("sub", max_bytes=6) is None


@pytest.mark.requirement("M12", "bug-25")
@pytest.mark.parametrize(
    "path",
    ["../root-evil/f.md", "sub/../../root-evil/f.md", "sub/../sub/f.md", "./sub/f.md", "sub//f.md",
     "/etc/passwd", "/sub/f.md"],
)  # fmt: skip
def test_a_path_that_is_not_plain_opens_nothing(root: Root, path: str) -> None:
    assert reason(root, path) == "other_file_system"


@pytest.mark.requirement("M12", "M8", "row-8")
def test_what_is_no_ordinary_file_is_named_and_not_read(root: Root, tmp_path: Path) -> None:
    top, outside = tmp_path / "root", tmp_path / "root-evil"
    (top / "link.md").symlink_to(outside / "f.md")
    (top / "inside-link.md").symlink_to("sub/f.md")
    (top / "dangling.md").symlink_to("nowhere")
    (top / "folder-link").symlink_to(outside)
    (top / "hard.md").hardlink_to(outside / "f.md")
    os.mkfifo(top / "fifo.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(top / "socket.md"))
    (top / "large.md").write_bytes(b"x" * 101)
    assert reason(root, "link.md") == "link"
    assert reason(root, "inside-link.md") == "link"
    assert reason(root, "dangling.md") == "link"
    assert reason(root, "folder-link/f.md") == "link"
    assert reason(root, "hard.md") == "hard_link"
    assert reason(root, "fifo.md") == "not_regular"
    assert reason(root, "socket.md") == "not_regular"
    assert reason(root, "large.md") == "too_large"


@pytest.mark.requirement("M23", "M26")
def test_a_file_replaced_while_it_is_read_is_the_old_one_or_the_new_one(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = Root._open

    def replaced_after(root: Root, path: str, flags: int) -> int:
        fd = real_open(root, path, flags)
        (tmp_path / "new").write_bytes(b"new")
        (tmp_path / "new").rename(tmp_path / "root" / path)
        return fd

    monkeypatch.setattr(Root, "_open", replaced_after)
    assert root.read("sub/f.md", max_bytes=100) == b"inside"
    monkeypatch.undo()
    assert root.read("sub/f.md", max_bytes=100) == b"new"


@pytest.mark.requirement("M12")
def test_a_look_does_not_follow_a_link(root: Root, tmp_path: Path) -> None:
    (tmp_path / "root" / "link.md").symlink_to("sub/f.md")
    seen = root.look("link.md")
    assert seen is not None
    assert seen.kind == "link"
    (tmp_path / "root" / "up").symlink_to("sub")
    with pytest.raises(Corrupt):
        root.look("up/f.md")


@pytest.mark.requirement("M12")
def test_a_mount_beneath_is_not_entered(root: Root) -> None:
    proc = Root.open("/", stepwise=not root._has_openat2)
    with pytest.raises(Corrupt) as refused:
        proc.read("proc/version", max_bytes=4096)
    assert refused.value.details["reason"] == "other_file_system"
    proc.close()


@pytest.mark.requirement("M12")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_without_openat2_is_served_step_by_step(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(base: int, path: str, flags: int) -> int:
        raise OSError(number, "not here", path, flags, base)

    monkeypatch.setattr(tree, "_openat2", refuse)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "root-evil")
    assert root.read("sub/f.md", max_bytes=6) == b"inside"
    assert reason(root, "link/f.md") == "link"


@pytest.mark.requirement("M12")
def test_a_directory_that_is_always_being_renamed_ends_in_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Libc:
        calls = 0

        def syscall(self, *_: object) -> int:
            self.calls += 1
            ctypes.set_errno(errno.EAGAIN)
            return -1

    libc = Libc()
    monkeypatch.setattr(tree, "_libc", libc)
    root = Root.open(str(tmp_path))
    with pytest.raises(OSError, match="unavailable"):
        root.folder("sub")
    assert 1 < libc.calls < 1000
    root.close()


@pytest.mark.requirement("M8", "row-8")
def test_names_that_are_not_utf8_are_shown_apart_and_never_raw(tmp_path: Path) -> None:
    names = [
        b"caf\xe9.md",
        b"caf\\xe9.md",
        "café.md".encode(),
        b"bell\x07.md",
        b"a\xe2\x80\xaeb.md",
    ]
    for name in names:
        (Path(os.fsencode(tmp_path).decode()) / os.fsdecode(name)).touch()
    root = Root.open(str(tmp_path))
    folder = root.folder("")
    assert folder is not None
    with folder:
        shown = {tree.shown(name) for name in folder.names()}
    assert shown == {
        "caf\\xe9.md", "caf\\x5cxe9.md", "café.md", "bell\\x07.md", "a\\xe2\\x80\\xaeb.md",
    }  # fmt: skip
    root.close()


@pytest.mark.requirement("M1")
def test_a_missing_root_is_made_for_us_alone(tmp_path: Path) -> None:
    Root.create(str(tmp_path / "a b" / "é:")).close()
    assert (tmp_path / "a b" / "é:").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a b").stat().st_mode & 0o777 == 0o700


@pytest.mark.requirement("M10")
def test_a_local_disk_is_no_network_file_system(tmp_path: Path) -> None:
    assert tree.network_type(str(tmp_path)) is None
    with pytest.raises(FileNotFoundError):
        tree.network_type(str(tmp_path / "none"))


@pytest.mark.requirement("M10")
@pytest.mark.parametrize(
    ("kind", "name"), [(0x6969, "nfs"), (0xFF534D42, "cifs"), (0x01021997, "9p"), (0xEF53, None)]
)
def test_a_network_file_system_is_known_by_its_type(
    monkeypatch: pytest.MonkeyPatch, kind: int, name: str | None
) -> None:
    class Libc:
        def statfs(self, path: bytes, answer: object) -> int:
            del path
            ctypes.memmove(answer, kind.to_bytes(8, "little"), 8)  # type: ignore[arg-type]
            return 0

    monkeypatch.setattr(tree, "_libc", Libc())
    assert tree.network_type("anywhere") == name


def swap(place: str, stop: multiprocessing.synchronize.Event) -> None:
    """Exchange a directory and a link to the outside as fast as the kernel can."""
    libc = ctypes.CDLL(None)
    one, other = os.fsencode(f"{place}/sub"), os.fsencode(f"{place}/evil")
    while not stop.is_set():
        for _ in range(200):
            libc.renameat2(-100, one, -100, other, EXCHANGE)


def naive(place: str) -> bytes:
    """Read as many servers do: resolve, compare, then open by name."""
    full = os.path.realpath(f"{place}/sub/f.md")
    if os.path.commonpath([full, place]) != place:
        return b""
    return Path(full).read_bytes()


@pytest.mark.slow
@pytest.mark.requirement("M12")
def test_a_directory_swapped_for_a_link_lets_nothing_out(root: Root, tmp_path: Path) -> None:
    place = os.path.realpath(tmp_path / "root")
    (tmp_path / "root" / "evil").symlink_to(tmp_path / "root-evil")
    stop = SPAWN.Event()
    attacker = SPAWN.Process(target=swap, args=(place, stop))
    attacker.start()
    try:
        inside = escaped = 0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                data = root.read("sub/f.md", max_bytes=100)
            except (Corrupt, OSError):
                continue
            assert data in {None, b"inside"}
            inside += data == b"inside"
        end = time.monotonic() + 20
        while not escaped and time.monotonic() < end:  # the control: the attack is a real one
            try:
                escaped += naive(place) == b"SECRET"
            except OSError:
                continue
    finally:
        stop.set()
        attacker.join()
    assert inside > 100
    assert escaped
