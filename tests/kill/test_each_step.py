"""The Hub killed, or failed by the disk, at each system call of a write; then it starts again.

Row 3 of the acceptance table, on the real process: whole old or whole new, no temporary left,
nothing else changed, quota figures equal to a recount, and the next command works.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from amux.core.home import AUDIT_FILE, HUB_DIR
from amux.disk.atomic import is_temporary
from tests.crash.traced import strace
from tests.kill.home import Home, refusal_of, revision_of, until
from tests.kill.tracer import CHANGING, attached

OLD, NEW = b"old text, the longer one of both\n", b"new text\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write to interrupt: the document before and after, and the kills it offers at least."""

    path: str
    before: bytes | None
    after: bytes | None
    steps: dict[str, int] = field(default_factory=dict)

    def prepare(self, home: Home) -> None:
        """Put the document as it is before."""
        found = home.on_disk(self.path)
        if found != self.before:
            self._ask(home, found, self.before)
        if self.before is None:
            # A crash may leave a new directory empty; the next create would not make it again.
            shutil.rmtree((home.memory_dir / self.path).parents[1], ignore_errors=True)

    def make(self, home: Home) -> None:
        """Ask for the write; raises the refusal."""
        self._ask(home, self.before, self.after)

    def _ask(self, home: Home, old: bytes | None, new: bytes | None) -> None:
        given = {"path": self.path, "expected_revision": revision_of(old)}
        if new is None:
            home.ask("forget", **given)
        else:
            home.ask("upsert", **given, content=new.decode())


WRITES = {
    "replace": Write(
        path="work/a.md",
        before=OLD,
        after=NEW,
        steps={"openat": 2, "write": 2, "fsync": 2, "renameat2": 1, "unlinkat": 1},
    ),
    "create": Write(
        path="new/folder/b.md",
        before=None,
        after=NEW,
        steps={"openat": 2, "write": 2, "fsync": 4, "renameat2": 1, "mkdirat": 2},
    ),
    "forget": Write(
        path="gone/c.md",
        before=OLD,
        after=None,
        steps={"openat": 1, "write": 1, "fsync": 1, "unlinkat": 2},
    ),
}


def require_sound(home: Home, write: Write) -> None:
    """Compare everything that the running Hub says with what stands on the disk."""
    assert not home.temporaries()
    assert home.on_disk("keep.md") == OLD
    listed = home.listed()
    assert listed == home.expected_list()
    assert home.counted() == home.recount()
    word = "text"
    hits = home.ask("search", query=word, path_prefix=write.path)["hits"]
    found = home.on_disk(write.path)
    assert [hit["revision"] for hit in hits] == ([revision_of(found)] if found else [])


def shown(home: Home, path: str) -> bytes | None:
    """Read a document by the command line, which starts a Hub where none runs."""
    done = home.amux("memory", "show", path)
    assert done.returncode == 0, done.stderr.decode()
    answer = json.loads(done.stdout)
    assert answer["revision"] == revision_of(home.on_disk(path))
    return answer["content"].encode() if answer["exists"] else None


@pytest.fixture
def full_home(home: Home) -> Home:
    """A home in which the smallest mistake of the quota would show."""
    home.enable()
    home.fill()
    (home.memory_dir / "keep.md").write_bytes(OLD)
    assert shown(home, "keep.md") == OLD
    return home


@pytest.mark.slow
@pytest.mark.requirement("M20", "M23", "M53", "row-3", "bug-6")
@pytest.mark.parametrize("name", WRITES)
def test_a_hub_killed_at_any_step_of_a_write_leaves_old_or_new(full_home: Home, name: str) -> None:
    home, write = full_home, WRITES[name]
    outcomes = set()
    for call in CHANGING:
        kills = 0
        for count in itertools.count(1):
            write.prepare(home)
            before = home.pid()
            with attached(before, call, f"signal=KILL:when={count}"):
                code = refusal_of(partial(write.make, home))
            if not code:
                break
            assert code == "outcome_unknown"
            home.await_end()
            kills += 1
            found = shown(home, write.path)
            assert home.pid() != before
            assert found in (write.before, write.after), (call, count)
            outcomes.add(found)
            require_sound(home, write)
        assert kills >= write.steps.get(call, 0), call
    # Both sides of the rename were met, or the kills were not where they should be.
    assert outcomes == {write.before, write.after}
    assert home.on_disk(write.path) == write.after
    home.kill_hub()
    assert shown(home, write.path) == write.after
    require_sound(home, write)


# What the caller learns when the first, second, ... of these calls fails; `!` where the Hub ends
# after it, because nobody can say any more what the disk holds.
FAILURES = {
    "replace": {"renameat2": ["not_saved"], "unlinkat": ["outcome_unknown!"], "mkdirat": []},
    "create": {
        "renameat2": ["not_saved"],
        "unlinkat": [],
        "mkdirat": ["not_saved", "not_saved"],
    },
    "forget": {"renameat2": [], "unlinkat": ["not_saved", "saved"], "mkdirat": []},
}
# The same of each file that is synced. Which thread syncs the trail is a race, so a count of calls
# names no file: strace does.
TRAIL, TEMPORARY = "trail", "temporary"
SYNC_FAILURES = {
    "replace": {TEMPORARY: "not_saved", TRAIL: "not_saved", "work": "outcome_unknown!"},
    "create": {
        ".": "not_saved!",
        "new": "not_saved!",
        TEMPORARY: "not_saved",
        TRAIL: "not_saved",
        "new/folder": "outcome_unknown!",
    },
    "forget": {TRAIL: "saved", "gone": "outcome_unknown!"},
}
TRIES = 12  # of that race, until each file was met
INJECTED = re.compile(r"fsync\(\d+<([^>]*)>\) = -1 EIO .*\(INJECTED\)")


@pytest.mark.slow
@pytest.mark.requirement("M23", "M28", "M53")
@pytest.mark.parametrize("name", WRITES)
def test_a_disk_that_fails_at_any_step_is_told_as_it_is(full_home: Home, name: str) -> None:
    home, write = full_home, WRITES[name]
    home.kill_hub()
    for call, expected in FAILURES[name].items():
        met = [outcome for outcome, _ in failures(home, write, call)]
        assert met == expected, call


@pytest.mark.slow
@pytest.mark.requirement("M23", "M28", "M53", "M73", "M74")
@pytest.mark.parametrize("name", WRITES)
def test_a_sync_that_fails_is_told_as_it_is_whichever_file_it_is_of(
    full_home: Home, name: str
) -> None:
    home, write, expected = full_home, WRITES[name], SYNC_FAILURES[name]
    home.kill_hub()
    trail = home.home / HUB_DIR / AUDIT_FILE
    assert list(failures(home, write, "fsync", only=trail)) == [(expected[TRAIL], {TRAIL})]
    seen: set[str] = {TRAIL}
    for _ in range(TRIES):
        for outcome, files in failures(home, write, "fsync"):
            # The trail may fail beside a file of the write; then that one's outcome counts.
            (file,) = files - {TRAIL} or files
            assert outcome == expected[file], files
            seen |= files
        if seen == expected.keys():
            return
    raise AssertionError(seen)


def failures(
    home: Home, write: Write, call: str, *, only: Path | None = None
) -> Iterator[tuple[str, set[str]]]:
    """Fail the first such call of a write, the second, ...; give what is told, and of which files.

    Each time it is looked whether what is told is true. With `only` calls on one file fail.
    """
    for count in itertools.count(1):
        home.start()
        write.prepare(home)
        failed = with_failure(home, write, call, count, only)
        if failed is None:
            home.kill_hub()
            return
        outcome, _ = failed
        found = home.on_disk(write.path)
        if outcome.startswith("saved"):
            assert found == write.after
        elif outcome.startswith("not_saved"):
            assert found == write.before
            assert not home.temporaries()
        # A Hub that ended is started by this command, and reads the truth from the disk.
        assert shown(home, write.path) == found
        assert found in (write.before, write.after)
        require_sound(home, write)
        home.kill_hub()
        yield failed


def with_failure(
    home: Home, write: Write, call: str, count: int, only: Path | None
) -> tuple[str, set[str]] | None:
    """Make a write while one system call of it fails; None where it came to no such call."""
    assert home.process is not None
    log = home.home.parent / "trace"
    with attached(home.process.pid, call, f"error=EIO:when={count}", log=log, only=only):
        outcome = refusal_of(partial(write.make, home)) or "saved"
        said = log.read_text()
        if "(INJECTED)" not in said:
            assert outcome == "saved"
            return None
    files = {_file_of(home, path) for path in INJECTED.findall(said)}
    kept = {"path": "keep.md", "content": OLD.decode(), "expected_revision": revision_of(OLD)}
    code = refusal_of(partial(home.ask, "upsert", **kept))
    if not code:
        return outcome, files
    assert code == "unavailable"
    assert home.process.wait(15) == 1
    return f"{outcome}!", files


def _file_of(home: Home, path: str) -> str:
    place = Path(path)
    if not place.is_relative_to(home.memory_dir):
        assert place.name.startswith("audit"), place
        return TRAIL
    return TEMPORARY if is_temporary(place.name) else str(place.relative_to(home.memory_dir))


@pytest.mark.slow
@pytest.mark.requirement("M8", "M23")
def test_a_document_that_the_disk_cannot_read_is_corrupt_and_the_others_are_served(
    home: Home,
) -> None:
    home.enable().start()
    assert home.process is not None
    for path in ("bad.md", "good.md"):
        home.ask("upsert", path=path, content=OLD.decode(), expected_revision="absent")
    bad = {"path": "bad.md", "expected_revision": revision_of(OLD)}
    with attached(home.process.pid, "read", "error=EIO", only=home.memory_dir / "bad.md"):
        for call in (
            partial(home.ask, "get", path="bad.md"),
            partial(home.ask, "upsert", **bad, content=NEW.decode()),
            partial(home.ask, "forget", **bad),
        ):
            assert refusal_of(call) == "corrupt"
        found = home.ask("search", query="text")
        assert [hit["path"] for hit in found["hits"]] == ["good.md"]
        assert found["skipped_files"] == 1
        assert home.listed().keys() == {"good.md"}
        assert home.ask("check")["broken"] == [{"path": "bad.md", "reason": "unreadable"}]
    assert home.ask("get", path="bad.md")["content"] == OLD.decode()


@pytest.mark.slow
@pytest.mark.requirement("M6", "M23", "M53")
def test_a_hub_killed_at_any_step_of_a_setting_has_the_old_one_or_the_new(home: Home) -> None:
    home.enable()
    assert home.amux("memory", "list").returncode == 0
    kills = 0
    for call in CHANGING:
        for count in itertools.count(1):
            assert home.amux("system", "config", "set", "memory.enabled", "true").returncode == 0
            with attached(home.pid(), call, f"signal=KILL:when={count}"):
                done = home.cli("system", "config", "set", "memory.enabled", "false")
                assert done.returncode in {0, 6}, done.stderr.decode()
            if done.returncode == 0:
                break
            home.await_end()
            kills += 1
            done = home.amux("memory", "list")
            is_enabled = json.loads((home.home / "hub/settings.json").read_text())["memory_enabled"]
            assert done.returncode == (0 if is_enabled else 4), done.stderr.decode()
            assert not home.temporaries()
    assert kills >= 6


STARTING = (
    "mkdir", "mkdirat", "fsync", "ftruncate", "rename", "renameat", "unlink", "bind", "listen",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("M2", "M3", "M23", "M53")
def test_a_start_killed_at_any_step_blocks_no_later_start(tmp_path: Path) -> None:
    kills = 0
    for call in STARTING:
        for count in itertools.count(1):
            fresh = Home(tmp_path / f"{call}-{count}")
            try:
                if not start_killed(fresh, call, count):
                    break
                kills += 1
                done = fresh.amux("memory", "list")
                assert done.returncode == 4, done.stderr.decode()
                assert (
                    json.loads(done.stderr.splitlines()[-1])["error"]["code"] == "memory_disabled"
                )
                assert not fresh.temporaries(), (call, count)
                assert len(fresh.hubs()) == 1
            finally:
                fresh.end()
    assert kills >= 15


def start_killed(home: Home, call: str, count: int) -> bool:
    """Start a Hub that is killed at one system call; False where it came to no such call."""
    starting = subprocess.Popen(
        [
            strace(), "-f", "-o", "/dev/null", f"-etrace={call}",
            f"-einject={call}:signal=KILL:when={count}",
            sys.executable, "-m", "amux", "hub", "serve",
        ],
        env=home.environment,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: starting.poll() is not None or is_answering(home), "the Hub to start or die")
        return not is_answering(home)
    finally:
        home.end()
        starting.kill()
        starting.wait()
        home.await_end()


def is_answering(home: Home) -> bool:
    return not refusal_of(partial(home.ask, "status", wait_seconds=1.0))
