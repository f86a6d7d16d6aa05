import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amux.disk import flock
from amux.disk.flock import LockUnsupportedError, Patience
from amux.disk.ground import Ground

UID = os.geteuid()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with Ground.make(str(tmp_path), [".devcodex"], uid=UID) as found:
        yield found


def exclusive(ground: Ground, name: str = "lock") -> flock.Flock | None:
    return flock.exclusive(ground, ground.folder, name, name)


@pytest.mark.requirement("J25")
def test_one_has_it_until_it_is_released(ground: Ground) -> None:
    first = exclusive(ground)
    assert first is not None
    assert first.counts
    assert exclusive(ground) is None
    first.release()
    first.release()
    second = exclusive(ground)
    assert second is not None
    second.release()


@pytest.mark.requirement("J25")
def test_a_lock_whose_file_was_deleted_or_made_anew_counts_no_more(ground: Ground) -> None:
    first = exclusive(ground)
    assert first is not None
    os.unlink(first.path)
    assert not first.counts
    second = exclusive(ground)
    assert second is not None
    assert second.counts
    assert not first.counts
    second.release()
    first.release()


@pytest.mark.requirement("J25")
@pytest.mark.parametrize("take", [flock.exclusive, flock.shared])
def test_a_file_that_is_replaced_between_open_and_lock_is_not_had(
    ground: Ground,
    monkeypatch: pytest.MonkeyPatch,
    take: Callable[..., flock.Flock | None],
) -> None:
    ask = flock.flock

    def replaced(fd: int, how: int) -> None:
        path = ground.where("lock")
        os.unlink(path)
        Path(path).touch()
        ask(fd, how)

    monkeypatch.setattr(flock, "flock", replaced)
    assert take(ground, ground.folder, "lock", "lock") is None


@pytest.mark.requirement("J25")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
def test_a_file_system_without_flock_is_told(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(*_: int) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(flock, "flock", unsupported)
    with pytest.raises(LockUnsupportedError):
        exclusive(ground)


@pytest.mark.requirement("J25")
def test_a_lock_that_excludes_nobody_is_told(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flock, "flock", lambda *_: None)
    with pytest.raises(LockUnsupportedError):
        exclusive(ground)


def test_the_living_share_a_file_and_a_probe_finds_them(ground: Ground) -> None:
    assert flock.probe(ground, "live") is None
    assert not flock.exists(ground, "live")
    one = flock.shared(ground, ground.folder, "live", "live")
    other = flock.shared(ground, ground.folder, "live", "live")
    assert one is not None
    assert other is not None
    assert flock.probe(ground, "live") is None
    one.release()
    assert flock.probe(ground, "live") is None
    other.release()
    alone = flock.probe(ground, "live")
    assert alone is not None
    assert flock.shared(ground, ground.folder, "live", "live") is None
    alone.release()


@pytest.mark.requirement("J25")
def test_a_lock_dies_with_its_process_and_passes_to_no_child(ground: Ground) -> None:
    program = (
        "import sys, subprocess, os; from amux.disk import flock;"
        "from amux.disk.ground import Ground;"
        "ground = Ground.make(sys.argv[1], ['.devcodex'], uid=os.geteuid());"
        "lock = flock.exclusive(ground, ground.folder, 'lock', 'lock');"
        "child = subprocess.Popen(['sleep', '60'], close_fds=False, stdout=subprocess.DEVNULL);"
        "print(child.pid, flush=True); input()"
    )
    base = os.path.dirname(ground.where())
    with subprocess.Popen(
        [sys.executable, "-c", program, base],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            assert exclusive(ground) is None
            process.kill()
            process.wait()
            lock = exclusive(ground)
            assert lock is not None
            lock.release()
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.requirement("J25")
def test_patience_pauses_by_chance_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = [100.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)
    patience = Patience(2000)
    while patience.pause():
        pass
    assert now[0] == pytest.approx(102.0)
    assert all(0.005 <= pause <= 0.025 for pause in slept[:-1])
    assert len({round(pause, 4) for pause in slept}) > 20
    # Who has waited for long tries more often than who has just come.
    assert sum(slept[:10]) / 10 > 3 * sum(slept[-50:-1]) / 49
    assert not Patience(0).pause()


def test_what_is_no_regular_file_is_no_lock(ground: Ground) -> None:
    os.mkfifo(ground.where("lock"))
    with pytest.raises(OSError, match="regular"):
        exclusive(ground)
