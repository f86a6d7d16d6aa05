"""The layout of a root: a newer one is left alone, an older one grows up (M2, row 19)."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.core import home
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import Corrupt, UpgradeRequired
from amux.hub import upgrade


def fixed(count: int) -> bytes:
    return b"s" * count


def everything(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    opened = Root.open(str(tmp_path))
    yield opened
    opened.close()


@pytest.mark.requirement("M1", "M2")
def test_an_empty_root_becomes_the_present_layout_for_its_owner_alone(
    root: Root, tmp_path: Path
) -> None:
    upgrade.bring_up(root, fixed)
    assert (tmp_path / "layout").read_text() == f"{home.LAYOUT}\n"
    for name in ("memory", "hub", "run"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    secret = tmp_path / "hub/secret"
    assert (secret.read_bytes(), secret.stat().st_mode & 0o777) == (b"s" * 32, 0o600)


@pytest.mark.requirement("M2", "row-19")
def test_a_newer_layout_is_refused_and_no_file_changes(root: Root, tmp_path: Path) -> None:
    upgrade.bring_up(root, fixed)
    (tmp_path / "layout").write_text(f"{home.LAYOUT + 1}\n")
    before = everything(tmp_path)
    with pytest.raises(UpgradeRequired):
        upgrade.require_known(root)
    with pytest.raises(UpgradeRequired):
        upgrade.bring_up(root, fixed)
    assert everything(tmp_path) == before


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("text", ["", "one", "-1", "1.0", "1 2"])
def test_a_layout_that_is_no_number_is_corrupt(root: Root, tmp_path: Path, text: str) -> None:
    (tmp_path / "layout").write_text(text)
    with pytest.raises(Corrupt):
        upgrade.require_known(root)


@pytest.mark.requirement("M2", "row-19")
@pytest.mark.parametrize("failing", range(1, 9))
def test_a_step_interrupted_anywhere_is_done_again(
    root: Root, tmp_path: Path, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change of the disk fails once, as at a power loss; a second start finishes."""
    calls = 0

    def counted(real):
        def call(*given, **named):
            nonlocal calls
            calls += 1
            if calls == failing:
                raise OSError(5, "injected")
            return real(*given, **named)

        return call

    for name in ("make_folder", "fsync", "rename", "create"):
        monkeypatch.setattr(atomic, name, counted(getattr(atomic, name)))
    try:
        upgrade.bring_up(root, fixed)
    except OSError:
        assert not (tmp_path / "layout").exists()
    monkeypatch.undo()
    upgrade.bring_up(root, fixed)
    assert (tmp_path / "layout").read_text() == f"{home.LAYOUT}\n"
    assert (tmp_path / "hub/secret").read_bytes() == b"s" * 32
    assert not list(tmp_path.rglob(".amux-*"))


@pytest.mark.requirement("M2", "row-19")
def test_an_older_root_keeps_its_documents_and_its_secret(root: Root, tmp_path: Path) -> None:
    (tmp_path / "memory/global").mkdir(parents=True)
    (tmp_path / "memory/global/a.md").write_text("kept")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/secret").write_bytes(b"o" * 32)
    (tmp_path / "layout").write_text("0\n")
    upgrade.bring_up(root, fixed)
    assert (tmp_path / "memory/global/a.md").read_text() == "kept"
    assert (tmp_path / "hub/secret").read_bytes() == b"o" * 32
