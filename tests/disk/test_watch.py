"""A watch knows what is there: with notices, without, and after losing some."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amux.disk import watch
from amux.disk.notices import Notice, Notices
from amux.disk.tree import Root
from amux.disk.watch import Watch


@pytest.fixture(params=[True, False], ids=["notices", "stat"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], set[str]]]:
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "top", has_notices=request.param)
    (tmp_path / "top").mkdir()

    def look() -> set[str]:
        refresh(watcher)
        assert watcher.is_complete
        return set(watcher.files)

    yield look
    watcher.close()
    root.close()


def refresh(watcher: Watch) -> set[str]:
    for _ in watcher.refresh():
        pass
    changed = set(watcher.changed)
    watcher.changed.clear()
    return changed


def truth(top: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(place, name), top)
        for place, _, names in os.walk(top)
        for name in names
    }


@pytest.mark.requirement("M9", "row-15", "bug-14")
def test_every_kind_of_change_is_seen_at_once(seen: Callable[[], set[str]], tmp_path: Path) -> None:
    top = tmp_path / "top"
    assert seen() == set()
    (top / "a.md").write_bytes(b"1")
    assert seen() == {"a.md"}
    (top / "deep" / "er").mkdir(parents=True)
    (top / "deep" / "er" / "b.md").write_bytes(b"1")
    assert seen() == {"a.md", "deep/er/b.md"}
    (top / "deep").rename(top / "moved")
    assert seen() == {"a.md", "moved/er/b.md"}
    (top / "moved" / "er" / "c.md").write_bytes(b"1")  # a watch survives its directory's rename
    assert seen() == {"a.md", "moved/er/b.md", "moved/er/c.md"}
    (top / "moved" / "er").rename(tmp_path / "outside")
    assert seen() == {"a.md"}
    (tmp_path / "outside" / "d.md").write_bytes(b"1")
    assert seen() == {"a.md"}
    shutil.move(tmp_path / "outside", top / "back")
    assert seen() == {"a.md", "back/b.md", "back/c.md", "back/d.md"}
    shutil.rmtree(top / "back")
    (top / "back").write_bytes(b"a file now")
    assert seen() == {"a.md", "back"}
    (top / "a.md").unlink()
    (top / "a.md").mkdir()
    assert seen() == {"back"}


@pytest.mark.requirement("M9")
def test_the_top_may_come_go_and_be_another(seen: Callable[[], set[str]], tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.rmdir()
    assert seen() == set()
    top.mkdir()
    (top / "a.md").touch()
    assert seen() == {"a.md"}
    top.rename(tmp_path / "old")
    assert seen() == set()
    top.mkdir()
    (top / "b.md").touch()
    assert seen() == {"b.md"}


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("has_notices", [True, False])
def test_what_changed_is_told_once(tmp_path: Path, has_notices: bool) -> None:
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "", has_notices=has_notices)
    (tmp_path / "a.md").write_bytes(b"1")
    (tmp_path / "b.md").write_bytes(b"1")
    assert refresh(watcher) == {"a.md", "b.md"}
    assert refresh(watcher) == set()
    (tmp_path / "a.md").write_bytes(b"22")
    (tmp_path / "b.md").unlink()
    assert refresh(watcher) == {"a.md", "b.md"}
    watcher.close()
    root.close()


@pytest.mark.requirement("M9", "M12")
@pytest.mark.parametrize("has_notices", [True, False])
def test_a_file_whose_other_name_goes_is_seen_to_have_one(
    tmp_path: Path, has_notices: bool
) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "a.md").touch()
    (tmp_path / "elsewhere").hardlink_to(tmp_path / "top" / "a.md")
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "top", has_notices=has_notices)
    refresh(watcher)
    assert watcher.files["a.md"].links == 2
    (tmp_path / "elsewhere").unlink()
    assert refresh(watcher) == {"a.md"}
    assert watcher.files["a.md"].links == 1
    watcher.close()
    root.close()


@pytest.mark.requirement("M23")
def test_temporaries_are_not_there(seen: Callable[[], set[str]], tmp_path: Path) -> None:
    (tmp_path / "top" / ".amux-0123456789abcdef").touch()
    assert seen() == set()
    (tmp_path / "top" / ".amux-fedcba9876543210").touch()
    (tmp_path / "top" / ".amux-0123456789abcdef").rename(tmp_path / "top" / "a.md")
    assert seen() == {"a.md"}


@pytest.mark.requirement("M8", "row-8")
def test_links_and_odd_names_are_names_and_nothing_is_followed(
    seen: Callable[[], set[str]], tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").touch()
    top = tmp_path / "top"
    (top / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(top / "fifo.md")
    (top / os.fsdecode(b"caf\xe9")).mkdir()
    (top / os.fsdecode(b"caf\xe9") / "x.md").touch()
    expected = {"link", "fifo.md", os.fsdecode(b"caf\xe9/x.md")}
    assert seen() == expected
    (top / "link").unlink()
    (top / "link").symlink_to(tmp_path)
    assert seen() == expected


@pytest.mark.requirement("M9")
def test_lost_notices_are_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.md").touch()
    refresh(watcher)
    real = Notices.read

    def lose(notices: Notices) -> tuple[list[Notice], bool]:
        while real(notices)[0]:
            pass
        monkeypatch.undo()
        return [], True

    monkeypatch.setattr(Notices, "read", lose)
    (tmp_path / "a" / "b" / "d.md").touch()
    (tmp_path / "a" / "b" / "c.md").unlink()
    assert refresh(watcher) == {"a/b/c.md", "a/b/d.md"}
    (tmp_path / "a" / "b" / "e.md").touch()  # and they are listened to again
    assert refresh(watcher) == {"a/b/e.md"}
    assert watcher.has_notices
    watcher.close()
    root.close()


@pytest.mark.slow
@pytest.mark.requirement("M9")
def test_a_full_queue_of_the_kernel_is_noticed(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "")
    refresh(watcher)
    one, other = tmp_path / "one.md", tmp_path / "other.md"
    one.touch()
    for _ in range(limit // 4 + 1):  # two notices a rename, two renames a round
        one.rename(other)
        other.rename(one)
    (tmp_path / "last.md").touch()
    assert refresh(watcher) == {"one.md", "last.md"}
    watcher.close()
    root.close()


@pytest.mark.requirement("M9", "M10")
@pytest.mark.parametrize("broken", ["open", "add"])
def test_where_the_kernel_gives_no_notices_everything_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def refuse(*_: object) -> None:
        return None

    monkeypatch.setattr(Notices, broken, refuse)
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.md").touch()
    assert refresh(watcher) == {"a/b.md"}
    assert not watcher.has_notices
    (tmp_path / "a" / "c.md").touch()
    assert refresh(watcher) == {"a/c.md"}
    root.close()


@pytest.mark.requirement("row-8", "M18")
@pytest.mark.parametrize("has_notices", [True, False])
def test_a_walk_stops_at_its_limit_and_says_so(tmp_path: Path, has_notices: bool) -> None:
    for number in range(60):
        (tmp_path / f"{number}").touch()
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "", max_entries=50, has_notices=has_notices)
    refresh(watcher)
    assert not watcher.is_complete
    assert len(watcher.files) == 50
    for number in range(20):
        (tmp_path / f"{number}").unlink()
    refresh(watcher)
    assert watcher.is_complete
    assert set(watcher.files) == {f"{number}" for number in range(20, 60)}
    watcher.close()
    root.close()


@pytest.mark.requirement("M42")
def test_a_refresh_that_is_given_up_goes_on_with_the_next(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}").mkdir()
        for name in range(40):
            (tmp_path / f"{number}" / f"{name}.md").touch()
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "")
    rounds = 0
    while set(watcher.files) != truth(tmp_path):
        rounds += 1
        assert rounds < 200
        steps = watcher.refresh()
        for _ in range(30):
            next(steps, None)
        steps.close()  # type: ignore[attr-defined]
    assert rounds > 1
    watcher.close()
    root.close()


@pytest.mark.requirement("M8")
def test_a_tree_too_deep_to_walk_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_MAX_DEPTH", 2)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "d.md").touch()
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "")
    refresh(watcher)
    assert set(watcher.files) == {"a/b/c"}
    assert refresh(watcher) == set()
    watcher.close()
    root.close()


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["write", "mkdir", "rmtree", "rename", "look"]), PATHS, PATHS),
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.requirement("M9")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS, has_notices=st.booleans())
def test_whatever_is_done_a_watch_knows_the_truth(
    tmp_path: Path, actions: list[tuple[str, str, str]], has_notices: bool
) -> None:
    top = tmp_path / "top"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    root = Root.open(str(tmp_path))
    watcher = Watch(root, "top", has_notices=has_notices)
    for action, one, other in [*actions, ("look", "", "")]:
        try:
            match action:
                case "write":
                    (top / one).write_bytes(os.urandom(3))
                case "mkdir":
                    (top / one).mkdir()
                case "rmtree":
                    shutil.rmtree(top / one)
                case "rename":
                    (top / one).rename(top / other)
                case _:
                    refresh(watcher)
                    assert set(watcher.files) == truth(top)
                    for path, known in watcher.files.items():
                        status = (top / path).stat()
                        assert (known.inode, known.size) == (status.st_ino, status.st_size)
        except OSError:
            continue
    watcher.close()
    root.close()
