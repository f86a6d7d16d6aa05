"""The derived index (J58 to J61): made by writers only, believed by nobody, missed by no answer."""

import fcntl
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from amux.core import canonical
from amux.disk import atomic
from amux.errors import AmuxError
from amux.journal.store import index
from tests.support.journal_faces import Cli, Mcp
from tests.support.readers import Reader
from tests.support.roots import canonical_bytes, tree
from tests.support.watched import changes
from tests.support.writers import Receipt, Writer, workspace_in

DAY = ".devcodex/.memory/clients/codex/tasks/20260314.md"
SUMMARY = ".devcodex/.memory/clients/codex/SUMMARY.md"
INDEXES = ".devcodex/.runtime-state/derived-indexes"
EXAMPLES = int(os.environ.get("JP9_EXAMPLES", "40"))  # the bound of JP9 is 1,000

FRESH: Receipt = {"status": "fresh", "reason": None}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Give a tree with three sections and four rows, whose indexes are fresh."""
    base = workspace_in(tmp_path / "billing")
    writer = Writer(base)
    for number in range(3):
        writer.write(f"text {number}", title=f"{number}", row=f"row {number}", intent="fix")
    section = writer.write("more", title="last")["section"]
    writer.write("end", section=section, row="done", status="completed")
    return base


def folder(base: Path, date: str | None = None) -> Path:
    scope = index.Scope(agent="codex", project="billing", scope="project", date=date)
    return base / ".devcodex" / scope.folder


def only(place: Path) -> Path:
    """Give the newest file of a directory by the pointer beside it."""
    pointer = json.loads((place.parent / "current.json").read_bytes())
    manifest = place.parent / "manifests" / f"{pointer['manifest']}.json"
    if place.name == "manifests":
        return manifest
    keys = {one["key"]: one["object"] for one in json.loads(manifest.read_bytes())["partitions"]}
    return place / f"{keys.get('summary:status') or next(iter(keys.values()))}.json"


def receipt_of(answer: Receipt) -> Receipt:
    found = answer["indexReceipt"]
    assert isinstance(found, dict)
    return found


@pytest.mark.requirement("J58", "J59")
def test_an_index_is_pointer_manifest_and_objects_each_named_by_its_digest(base: Path) -> None:
    top = folder(base)
    pointer = json.loads((top / "current.json").read_bytes())
    assert set(pointer) == {"schemaVersion", "generation", "manifest", "committedAt", "digest"}
    assert pointer["digest"] == canonical.digest_without(pointer, "digest")
    manifest = json.loads((top / f"manifests/{pointer['manifest']}.json").read_bytes())
    assert set(manifest) == {
        "schemaVersion", "generation", "previous", "producer", "format", "source", "partitions",
        "digest",
    }  # fmt: skip
    data = (base / SUMMARY).read_bytes()
    assert manifest["source"] == {
        "path": SUMMARY.removeprefix(".devcodex/"),
        "bytes": len(data),
        "mtimeNs": (base / SUMMARY).stat().st_mtime_ns,
        "sha256": canonical.digest(data),
    }
    assert [one["key"] for one in manifest["partitions"]] == [
        "summary:2026-03", "summary:current", "summary:status",
    ]  # fmt: skip
    for one in manifest["partitions"]:
        record = json.loads((top / f"objects/{one['object']}.json").read_bytes())
        assert set(record) == {"schemaVersion", "key", "format", "data", "digest"}
        assert record["key"] == one["key"]
        assert record["digest"] == canonical.digest_without(record, "digest") == one["object"]
    day = json.loads((folder(base, "20260314") / "current.json").read_bytes())
    assert day["schemaVersion"] == "MemoryIndexPointerV1"


@pytest.mark.requirement("J58")
def test_the_folder_of_a_scope_is_named_by_the_digest_of_what_it_is_of() -> None:
    shared = {"agent": "codex", "project": "billing", "scope": "project"}
    summary = index.Scope(**shared)
    assert summary.digest == canonical.digest({**shared, "source": "summary"})
    day = index.Scope(**shared, date="20260314")
    assert day.digest == canonical.digest({**shared, "source": "daily", "date": "20260314"})


@pytest.mark.requirement("J59")
def test_two_generations_are_kept_and_nothing_else(base: Path) -> None:
    writer = Writer(base)
    for number in range(4):
        writer.write(f"again {number}", title=f"again {number}", row=f"again {number}")
    for top in (folder(base), folder(base, "20260314")):
        manifests = {
            path.stem: json.loads(path.read_bytes()) for path in (top / "manifests").iterdir()
        }
        now = json.loads((top / "current.json").read_bytes())["manifest"]
        assert set(manifests) == {now, manifests[now]["previous"]}
        reachable = {one["object"] for each in manifests.values() for one in each["partitions"]}
        assert {path.stem for path in (top / "objects").iterdir()} == reachable


@pytest.mark.requirement("J59", "J61")
def test_an_index_that_cannot_be_written_fails_no_write(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(base / INDEXES)
    (base / INDEXES).write_bytes(b"a file in the way")
    found = Writer(base).write("text", title="new", row="new row")
    assert receipt_of(found) == {"status": "failed", "reason": "ENOTDIR"}
    assert b"new row" in (base / SUMMARY).read_bytes()
    (base / INDEXES).unlink()
    create = atomic.create

    def full(at: atomic.Handle, name: str) -> int:
        if ".json." in name:
            raise OSError(28, "no space left")
        return create(at, name)

    monkeypatch.setattr(atomic, "create", full)
    found = Writer(base).write("text", title="newer")
    assert receipt_of(found) == {"status": "failed", "reason": "ENOSPC"}


@pytest.mark.requirement("J59")
def test_a_repeat_writes_no_index_and_tells_how_it_stands(base: Path) -> None:
    writer = Writer(base)
    assert receipt_of(writer.write("same", title="same"))["status"] == "written"
    assert receipt_of(writer.write("same", title="same")) == {"status": "reused", "reason": None}
    shutil.rmtree(base / INDEXES)
    found = writer.write("same", title="same")
    assert receipt_of(found) == {"status": "failed", "reason": "index-missing"}
    assert not (base / INDEXES).exists()


@pytest.mark.requirement("J59", "J61")
@pytest.mark.parametrize("key", ["summary:2026-03", "summary:current", "summary:status"])
def test_what_is_damaged_is_not_carried_over_into_the_next_index(base: Path, key: str) -> None:
    top = folder(base)
    pointer = json.loads((top / "current.json").read_bytes())
    manifest = json.loads((top / f"manifests/{pointer['manifest']}.json").read_bytes())
    objects = {one["key"]: one["object"] for one in manifest["partitions"]}
    flipped(top / f"objects/{objects[key]}.json")
    Writer(base).write("text", title="new", row="new row")
    reader = Reader(base)
    present = reader.answers()
    assert FRESH in reader.receipts
    shutil.rmtree(base / INDEXES)
    assert reader.answers() == present


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def resealed(base: Path, producer: str) -> None:
    """Give every index to another producer, with all digests right."""
    for pointer in (base / INDEXES).rglob("current.json"):
        told = json.loads(pointer.read_bytes())
        manifest = pointer.parent / f"manifests/{told['manifest']}.json"
        record = {**json.loads(manifest.read_bytes()), "producer": producer}
        record["digest"] = canonical.digest_without(record, "digest")
        (manifest.parent / f"{record['digest']}.json").write_bytes(canonical.encode(record) + b"\n")
        told["manifest"] = record["digest"]
        told["digest"] = canonical.digest_without(told, "digest")
        pointer.write_bytes(canonical.encode(told) + b"\n")


def rewritten(path: Path) -> None:
    """Change one letter outside; size and time stay as they were."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"row 1", b"row 9").replace(b"text 1", b"text 9"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CASES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "nothing": (lambda _: None, None),
    "pointer flipped": (lambda top: flipped(top / "current.json"), "index-invalid"),
    "manifest flipped": (lambda top: flipped(only(top / "manifests")), "index-invalid"),
    "object flipped": (lambda top: flipped(only(top / "objects")), "partition-invalid"),
    "pointer deleted": (lambda top: (top / "current.json").unlink(), "index-missing"),
    "manifest deleted": (lambda top: only(top / "manifests").unlink(), "index-invalid"),
    "object deleted": (lambda top: only(top / "objects").unlink(), "partition-missing"),
    "folder removed": (shutil.rmtree, "index-missing"),
    "pointer is a fifo": (
        lambda top: ((top / "current.json").unlink(), os.mkfifo(top / "current.json")),
        "index-invalid",
    ),
    "objects is a link": (
        lambda top: (shutil.rmtree(top / "objects"), (top / "objects").symlink_to("/tmp")),
        "partition-invalid",
    ),
}  # fmt: skip


@pytest.mark.requirement("JA22", "J60", "J61", "J3")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("date", [None, "20260314"], ids=["summary", "day"])
def test_whatever_happens_to_an_index_the_answer_stays_and_the_reason_is_told(
    base: Path, case: str, date: str | None
) -> None:
    reader = Reader(base)
    reader.ask("status")
    asked = (
        ("summary_query", {"status": "all"}) if date is None else ("session_query", {"date": date})
    )
    before = reader.ask(asked[0], **asked[1])
    assert before.pop("indexReceipt") == FRESH
    harm, reason = CASES[case]
    harm(folder(base, date))
    was = tree(base)
    with changes(base) as seen:
        after = reader.ask(asked[0], **asked[1])
    assert seen == []
    assert tree(base) == was
    wanted = FRESH if reason is None else {"status": "fallback", "reason": reason}
    if case == "object flipped" and date is None:
        # Which of the partitions a question needs is its own business.
        assert after["indexReceipt"] in (wanted, FRESH)
        after.pop("indexReceipt")
        status = reader.ask("status")
        assert status["indexReceipt"] == wanted
    elif case == "object deleted" and date is None:
        assert after.pop("indexReceipt") in (wanted, FRESH)
        assert reader.ask("status")["indexReceipt"] == wanted
    else:
        assert after.pop("indexReceipt") == wanted
    assert after == before


@pytest.mark.requirement("JA22", "J60", "J61")
@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda base: resealed(base, "amux/0.0.1"), "index-producer-mismatch"),
        (lambda base: os.utime(base / SUMMARY, ns=(1, 1)), "source-metadata-drift"),
        (lambda base: rewritten(base / SUMMARY), "source-digest-drift"),
    ],
    ids=["producer", "touched", "rewritten"],
)
def test_an_index_of_other_bytes_or_another_release_is_not_believed(
    base: Path, harm: Callable[[Path], object], reason: str
) -> None:
    reader = Reader(base)
    reader.ask("status")
    harm(base)
    found = reader.ask("summary_query", status="all")
    assert found.pop("indexReceipt") == {"status": "fallback", "reason": reason}
    shutil.rmtree(base / INDEXES)
    absent = reader.ask("summary_query", status="all")
    absent.pop("indexReceipt")
    assert found == absent


@pytest.mark.requirement("JA22", "J60")
def test_a_reader_takes_the_index_while_the_lock_is_held(base: Path) -> None:
    reader = Reader(base)
    fd = os.open(base / ".devcodex/.runtime-state/memory.lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        assert reader.ask("status")["indexReceipt"] == FRESH
    finally:
        os.close(fd)


@pytest.mark.slow
@pytest.mark.requirement("J60", "J55")
def test_a_file_larger_than_a_window_has_no_index_to_go_by(base: Path) -> None:
    with (base / SUMMARY).open("ab") as file:
        file.write(b"\n" + b"prose\n" * 1_500_000)
    reason = "source-too-large"
    found = Reader(base).ask("status")
    assert found["indexReceipt"] == {"status": "fallback", "reason": reason}
    entry = {"summary": "s", "status": "active", "type": "fix", "sessionId": "1"}
    receipt = Writer(base).call("append", entry=entry)
    assert receipt["indexReceipt"] == {"status": "failed", "reason": reason}


@pytest.mark.slow
@pytest.mark.requirement("J3", "J2")
@pytest.mark.parametrize("kept", [True, False], ids=["with state", "without"])
def test_no_read_of_any_face_changes_a_byte(base: Path, tmp_path: Path, kept: bool) -> None:
    if not kept:
        shutil.rmtree(base / ".devcodex/.runtime-state")
    home = tmp_path / "home"
    home.mkdir()
    cli = Cli(base, home=home, AMUX_AGENT="codex")
    before = tree(base)
    with changes(base) as seen:
        with Mcp(base, home=home) as face:
            face.call("memory_status", freshContext=True)
            face.call("memory_summary_query", status="all")
            face.call("memory_session_query", date="20260314", limit=20)
            face.call("memory_context_plan", intent="resume")
            face.call("memory_task_resolve", name="nothing of this name")
        for words in (
            ["journal", "status"],
            ["journal", "summary"],
            ["journal", "plan"],
            ["journal", "sessions", "--date", "20260314"],
            ["journal", "session-read", "--date", "20260314"],
            ["journal", "summary-read"],
            ["workspace", "doctor"],
            ["doctor"],
            ["workspace", "init", "--dry-run"],
            ["task", "resolve", "--name", "nothing"],
            ["task", "list"],
        ):
            done = cli.run(*words)
            assert done.returncode in (0, 3), (words, done.stderr)
    assert seen == []
    assert tree(base) == before


# --- random trees and edits ----------------------------------------------------------------------

HEADERS = (
    "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
    "|------|:----:|------|------|---------|---------|:----:|\n"
)
DAYS = ("2026-03-14", "2026-03-13", "2026-02-01", "2025-12-31", "2026-02-30")
IDS = ("01", "1", "02", "7", "abc", "#3", "?")
STATES = ("🔄", "✅", "⛔", "done, 4", "not done", "进行中（x）", "")
ROWS = st.builds(
    "| {} 10:00 | {} | fix | {} | — | {} | {} |\n".format,
    st.sampled_from(DAYS),
    st.sampled_from(IDS),
    st.sampled_from(("a", "a \\| b", "", "x" * 300)),
    st.sampled_from(("—", "— | more | more", "m")),
    st.sampled_from(STATES),
)
SUMMARY_PIECES = st.one_of(
    ROWS,
    ROWS,
    ROWS,
    st.sampled_from(
        (HEADERS, "# heading\n", "prose\n", "\n", "| too | few |\n", "| open row\n", "  | 1 |\n")
    ),
)
HEADINGS = st.builds(
    lambda name, title: f"## 会话 {name}{title}\n",
    st.sampled_from(("01", "1", "#2", "3", "abc", "", "!", "9" * 70)),
    st.sampled_from((" — title", "", "：x", " y")),
)
DAY_PIECES = st.one_of(
    HEADINGS,
    st.sampled_from(
        (
            "- **状态**：✅ done\n", "- **状态**：🔄\n", "- **意图**：fix\n", "text\n", "\n",
            "```\n",
            "### 🤝 ContextHandoffCard\n\n- **next-action**：go\n", "### other\n", "# top\n",
            f"<!-- devcodex:memory-session-binding v1 session=01 token={'ab' * 32} -->\n",
            "<!-- amux:session 93211895d97cd08b -->\n",
        )
    ),
)  # fmt: skip


def file_of(pieces: st.SearchStrategy[str], head: str) -> st.SearchStrategy[bytes]:
    def spelled(parts: list[str], start: str, is_crlf: bool, is_cut: bool, tail: bytes) -> bytes:
        data = (start + "".join(parts)).encode()
        if is_crlf:
            data = data.replace(b"\n", b"\r\n")
        return (data[:-3] if is_cut and len(data) > 3 else data) + tail

    return st.builds(
        spelled,
        st.lists(pieces, max_size=14),
        st.sampled_from(("", head, head, "\ufeff" + head)),
        st.sampled_from((False, False, False, True)),
        st.sampled_from((False, False, False, True)),
        st.sampled_from((b"", b"", b"", b"\xff\xfe\n", b"\n\n")),
    )


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from(("a", "b", "c")), st.booleans()),
        st.tuples(st.just("extend"), st.sampled_from(("x", "y")), st.booleans()),
        st.tuples(st.just("append"), st.sampled_from(DAYS[:4]), st.sampled_from(STATES[:3])),
        st.tuples(st.just("outside day"), DAY_PIECES, st.booleans()),
        st.tuples(st.just("outside row"), SUMMARY_PIECES, st.booleans()),
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def memory_disk() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("JP9", "J61", "J3", "J60", "J63")
@settings(
    max_examples=EXAMPLES,
    # An example takes a third of a second: shrinking one would take minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    summary=file_of(SUMMARY_PIECES, "# Agent SUMMARY — codex\n\n" + HEADERS),
    day=file_of(DAY_PIECES, ""),
    edits=EDITS,
    seed=st.integers(0, 2**32),
)
def test_with_the_index_present_absent_stale_corrupt_or_foreign_all_answers_are_equal(
    memory_disk: Path,
    summary: bytes,
    day: bytes,
    edits: list[tuple[str, str, object]],
    seed: int,
) -> None:
    base = workspace_in(memory_disk / "w" / "billing")
    try:
        compare(base, summary, day, edits, random.Random(seed))
    finally:
        shutil.rmtree(memory_disk / "w")


def compare(
    base: Path,
    summary: bytes,
    day: bytes,
    edits: list[tuple[str, str, object]],
    chance: random.Random,
) -> None:
    for path, data in ((base / SUMMARY, summary), (base / DAY, day)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    writer = Writer(base)
    sections: list[object] = []
    stale = base / "stale"
    for number, edit in enumerate(edits):
        if number == len(edits) - 1 and (base / INDEXES).exists():
            shutil.copytree(base / INDEXES, stale)
        was = {path: (base / path).read_bytes() for path in (SUMMARY, DAY)}
        do(base, writer, edit, number, sections)
        for path, old in was.items():
            assert edit[0].startswith("outside") or only_added(old, (base / path).read_bytes())
    reader = Reader(base)
    text = canonical_bytes(base)
    with changes(base) as seen:
        present = reader.answers()
    assert seen == []
    top = base / INDEXES
    if not top.exists():
        return
    shutil.copytree(top, base / "kept")
    for harm in (
        lambda: stale.exists() and shutil.copytree(stale, top),
        lambda: corrupted(base, chance),
        lambda: corrupted(base, chance),
        lambda: foreign(base),
        lambda: resealed_copy(base),
        lambda: None,  # absent
    ):
        shutil.rmtree(top, ignore_errors=True)
        harm()
        with changes(base) as seen:
            assert reader.answers() == present
        assert seen == []
    left = canonical_bytes(base)
    for name, data in text.items():
        assert left[name] == data


def shared(one: bytes, other: bytes) -> int:
    """Count the bytes that two begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def only_added(old: bytes, new: bytes) -> bool:
    """Tell whether new bytes are the old ones with something put in at one place.

    An unterminated last line may have been closed.
    """
    for before in (old, old + b"\n", old + b"\r\n"):
        front = shared(before, new)
        back = shared(before[front:][::-1], new[front:][::-1])
        if front + back == len(before):
            return True
    return False


def do(
    base: Path,
    writer: Writer,
    edit: tuple[str, str, object],
    number: int,
    sections: list[object],
) -> None:
    kind, text, more = edit
    row: Receipt = {"row": f"row {number}"} if more else {}
    try:
        match kind:
            case "open":
                found = writer.write(text, title=f"{text} {number}", **row)
                sections.append(found["section"])
            case "extend" if sections:
                status = "completed" if more else "blocked"
                writer.write(text, section=sections[-1], status=status, **row)
            case "append":
                writer.call("append", row=f"| {text} | 01 | fix | s {number} | — | — | {more} |")
            case "outside day" | "outside row":
                path = base / (DAY if kind == "outside day" else SUMMARY)
                data = path.read_bytes()
                added = text.encode()
                path.write_bytes(data + added if more else added + data)
    except AmuxError:
        pass  # a random tree may hold what no writer would add to


def corrupted(base: Path, chance: random.Random) -> None:
    """Flip, cut, empty or remove files of the index, here and there."""
    shutil.copytree(base / "kept", base / INDEXES)
    files = sorted(path for path in (base / INDEXES).rglob("*") if path.is_file())
    for path in chance.sample(files, min(len(files), 3)):
        data = bytearray(path.read_bytes())
        match chance.randrange(4):
            case 0 if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                path.write_bytes(data)
            case 1:
                path.write_bytes(data[: chance.randrange(len(data) + 1)])
            case 2:
                path.write_bytes(b"{}")
            case _:
                path.unlink()


def foreign(base: Path) -> None:
    """Put each scope's index where another's belongs."""
    scopes = sorted((base / "kept/v1/memory").iterdir())
    for one, other in zip(scopes, [*scopes[1:], scopes[0]], strict=True):
        shutil.copytree(one, base / INDEXES / "v1/memory" / other.name)


def resealed_copy(base: Path) -> None:
    shutil.copytree(base / "kept", base / INDEXES)
    resealed(base, "somebody/9")
