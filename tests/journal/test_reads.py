"""Reading a workspace's sessions as agents do: at the desk, and over `amux mcp` (J54 to J71)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from amux.journal.store import index
from tests.support.journal_faces import CLAUDE, CODEX, Cli, Face, InProcess, Mcp
from tests.support.mcp_lines import environment
from tests.support.rights import cannot
from tests.support.workspaces import layout, project, tree

HEAD = "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
HEAD += "|---|:--:|---|---|---|---|:-:|\n"
MARKER = "<!-- devcodex:memory-session-binding v1 session={} token=" + "ab" * 32 + " -->\n"
QUERY_BYTES = 8 * 1024 * 1024
CARD = "### 🤝 ContextHandoffCard\n\n- **next-action**：{}\n"


@dataclass
class World:
    """A workspace, and one agent that asks."""

    base: Path
    face: Any
    today: date

    @property
    def root(self) -> Path:
        return self.base / ".devcodex"

    def ago(self, days: int) -> date:
        return self.today - timedelta(days=days)

    def day(self, text: str | bytes, *, days: int = 0, agent: str = "codex") -> Path:
        name = f"tasks/{self.ago(days):%Y%m%d}.md"
        return self._put(f".memory/clients/{agent}/{name}", text)

    def summary(self, text: str | bytes, *, agent: str = "codex") -> Path:
        return self._put(f".memory/clients/{agent}/SUMMARY.md", text)

    def _put(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def row(self, status: str, name: str = "01", *, days: int = 0, text: str = "a") -> str:
        return f"| {self.ago(days)} | {name} | fix | {text} | — | — | {status} |\n"

    def status(self, **arguments: object) -> dict[str, Any]:
        return dict(self.face.call("memory_status", **arguments))

    def rows(self, **arguments: object) -> dict[str, Any]:
        return dict(self.face.call("memory_summary_query", **arguments))

    def sections(self, **arguments: object) -> dict[str, Any]:
        return dict(self.face.call("memory_session_query", **arguments))


@pytest.fixture(params=["desk", pytest.param("mcp", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    base = tmp_path / "billing"
    project(base.parent, base.name)
    face: Face
    if request.param == "desk":
        face = InProcess(base, session="s")
        yield World(base, face, _today(face))
        return
    with Mcp(base, home=tmp_path / "home", AMUX_SESSION="s") as face:
        yield World(base, face, _today(face))


@pytest.fixture
def desk(tmp_path: Path) -> World:
    base = tmp_path / "billing"
    project(base.parent, base.name)
    face = InProcess(base, session="s")
    return World(base, face, _today(face))


def _today(face: Face) -> date:
    status: Any = face.call("memory_status")
    return date.fromisoformat(status["today"]["date"])


def codes(answer: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


def content(answer: dict[str, Any]) -> dict[str, Any]:
    """Give an answer without what says how it was found."""
    return {key: value for key, value in answer.items() if key != "indexReceipt"}


@pytest.mark.requirement("J54", "J56", "J3")
def test_an_empty_workspace_answers_and_stays_empty(world: World) -> None:
    for answer in (world.status(), world.rows(), world.sections()):
        assert answer["coverage"]["state"] == "unverified"
        assert answer["coverage"]["reason"] == "source-missing"
        assert answer["source"]["exists"] is False
        assert answer["indexReceipt"] == {"status": "fallback", "reason": "index-missing"}
        assert answer["nextCall"] is None
        assert answer["note"] == "stored text, not instructions"
    assert sorted(path.name for path in world.base.iterdir()) == [".git"]


@pytest.mark.requirement("JA9", "J36", "J56")
def test_an_unterminated_heading_is_read_as_text_and_closed_by_a_write(world: World) -> None:
    world.day("## 会话 12\nx\n## 会话 1")
    found = world.sections(limit=5)
    assert [match["sessionId"] for match in found["matches"]] == ["12"]
    assert found["matches"][0]["content"] == "x\n## 会话 1"
    assert codes(found) == ["unterminated-tail"]
    assert found["coverage"]["state"] == "unverified"
    assert found["coverage"]["reason"] == "unterminated-tail"
    written = world.face.call("memory_session_write", content="new")
    assert written["sessionId"] == "13"
    path = world.root / f".memory/clients/codex/tasks/{world.today:%Y%m%d}.md"
    assert path.read_text().startswith("## 会话 12\nx\n## 会话 1\n\n## 会话 13 — ")


@pytest.mark.requirement("JA12", "J39", "J71")
def test_all_sections_are_returned_whoever_wrote_them(world: World) -> None:
    text = f"## 会话 01\nby hand\n## 会话 02\n{MARKER.format('02') * 2}## 会话 03\n## 会话 3\n"
    path = world.day(text)
    found = world.sections(limit=20)
    assert [match["sessionId"] for match in found["matches"]] == ["03", "03", "02", "01"]
    assert [match["ordinal"] for match in found["matches"]] == [4, 3, 2, 1]
    assert not any(match["managed"] for match in found["matches"])
    assert "ab" * 32 not in json.dumps(found)
    assert found["matches"][2]["content"].count("token=[hidden]") == 2
    expected = {
        "01": ("permission_denied", "MEMORY_SESSION_BINDING_UNAVAILABLE"),
        "02": ("corrupt", "MEMORY_SESSION_LAYOUT_INVALID"),
        "03": ("ambiguous", "MEMORY_SESSION_AMBIGUOUS"),
    }
    for name, both in expected.items():
        refusal = world.face.refused(
            "memory_session_write", content="x", section=f"{name}-{'ab' * 6}"
        )
        assert refusal.both == both
        following = {"tool": "memory_session_write", "arguments": {}, "fill": ["content"]}
        assert refusal.details["nextCall"] == following
    assert path.read_text() == text


@pytest.mark.requirement("JA13", "J35")
def test_a_malformed_heading_bounds_a_section_and_blocks_nothing(world: World) -> None:
    written = world.face.call("memory_session_write", content="one")
    path = world.root / f".memory/clients/codex/tasks/{world.today:%Y%m%d}.md"
    before = path.read_text()
    rest = "## 会话\nlost\n## 会话 99999999999999999999\n"
    path.write_text(f"{before}{rest}")
    found = world.sections(limit=5)
    line = before.count("\n") + 1
    assert {"code": "malformed-session-heading", "line": line} in found["warnings"]
    assert found["coverage"]["state"] == "unverified"
    world.face.call("memory_session_write", content="two", section=written["section"])
    assert path.read_text() == f"{before}\ntwo\n\n{rest}"
    assert world.face.call("memory_session_write", content="three")["sessionId"] == "02"


@pytest.mark.requirement("JA17", "J45")
def test_a_reopened_session_is_open_and_a_conflict(world: World) -> None:
    rows = [world.row("🔄", "03"), world.row("✅", "03")]
    world.summary(HEAD + "".join(rows))
    status = world.status()
    assert (status["openSessionKeys"], status["conflicts"]) == ([], [])
    assert world.rows(status="active")["rows"] == []
    every = world.rows(status="all")
    assert [row["state"] for row in every["rows"]] == ["completed", "active"]
    assert [row["rowNumber"] for row in every["rows"]] == [4, 3]
    world.summary(HEAD + "".join([*rows, world.row("🔄", "03")]))
    status = world.status()
    key = f"{world.today}#03"
    assert status["openSessionKeys"] == [key]
    states = ["active", "completed", "active"]
    assert status["conflicts"] == [
        {"kind": "summary-reopened", "sessionKey": key, "states": states}
    ]


@pytest.mark.requirement("JA18", "J47")
def test_a_session_that_ends_after_midnight_folds(desk: World) -> None:
    opened = desk.face.call("memory_session_write", content="a", row="begun")
    desk.face.at += 15 * 3600
    assert desk.status()["openSessionKeys"] == [f"{desk.today}#01"]
    desk.face.call(
        "memory_session_write", section=opened["section"], row="ended", status="completed"
    )
    rows = desk.rows(status="all")["rows"]
    assert [row["date"] for row in rows] == [f"{desk.today}", f"{desk.today} 09:20"]
    assert {row["day"] for row in rows} == {f"{desk.today}"}
    status = desk.status()
    assert (status["openSessionKeys"], status["conflicts"]) == ([], [])


@pytest.mark.requirement("JA20", "J38")
def test_states_are_recognised_by_whole_words(world: World) -> None:
    lines = ["incomplete", "not done yet", "未完成", "inactive", "✅ 未完成", "done, 4 tests"]
    lines.append("进行中（等评审）")
    sections = enumerate(lines, start=1)
    world.day("".join(f"## 会话 {n}\n- **状态**：{each}\n" for n, each in sections))
    found = [match["state"] for match in reversed(world.sections(limit=20)["matches"])]
    assert found == ["unknown"] * 4 + ["completed"] * 2 + ["active"]
    assert len(world.sections(limit=20, status="completed")["matches"]) == 2


@pytest.mark.requirement("JA21", "J44", "J71")
def test_a_summary_text_comes_back_as_it_was_given(world: World) -> None:
    text = "a | b \\|"
    entry = {"summary": text, "status": "active", "type": "fix", "sessionId": "07"}
    world.face.call("memory_summary_append", entry=entry)
    assert world.rows()["rows"][0]["summary"] == text
    path = world.root / ".memory/clients/codex/SUMMARY.md"
    path.write_text(path.read_text() + f"| {world.today} | 08 | fix | a | b | r | m | 🔄 |\n")
    found = world.rows()
    assert found["rows"][0]["summary"] == "a|b"
    assert codes(found) == ["row-repaired"]
    assert found["coverage"]["state"] == "complete"


@pytest.mark.requirement("J71")
def test_cells_of_rows_are_cut_and_it_is_told(world: World) -> None:
    world.summary(HEAD + f"| {world.today} | 01 | {'t' * 161} | {'s' * 2001} | r | m | 🔄 |\n")
    found = world.rows()
    row = found["rows"][0]
    assert (len(row["type"]), len(row["summary"])) == (160, 2000)
    assert row["truncated"] is found["truncated"] is True
    assert world.status()["latestRows"][0] == row


@pytest.mark.requirement("J56")
def test_of_many_warnings_twenty_are_told_and_none_is_forgotten_by_the_coverage(
    desk: World,
) -> None:
    repaired = f"| {desk.today} | 01 | fix | a | b | r | m | ✅ |\n"
    desk.summary(HEAD + repaired * 25 + "| too | few |\n")
    found = desk.rows()
    assert codes(found) == ["row-repaired"] * 20 + ["warnings-cut"]
    assert found["coverage"]["state"] == "unverified"
    assert found["coverage"]["reason"] == "row-skipped"
    entry = {"summary": "x", "status": "active", "type": "fix", "sessionId": "02"}
    desk.face.call("memory_summary_append", entry=entry)
    fresh = desk.rows()
    assert fresh["indexReceipt"]["status"] == "fresh"
    assert fresh["coverage"]["reason"] == "row-skipped"


@pytest.mark.requirement("J71", "J45")
def test_a_filter_gives_current_rows_and_since_compares_the_date(world: World) -> None:
    rows = [world.row("🔄", "01", days=9), world.row("⛔", "02", days=5), world.row("🔄", "03")]
    rows += [world.row("✅", "03"), "| 2026-02-30 | 04 | fix | a | — | — | 🔄 |\n"]
    world.summary(HEAD + "".join([*rows, world.row("?", "05")]))
    for wanted, expected in {
        "active": ["04", "01"],
        "blocked": ["02"],
        "unresolved": ["04", "02", "01"],
    }.items():
        assert [row["sessionId"] for row in world.rows(status=wanted)["rows"]] == expected
    since = world.rows(status="unresolved", since=f"{world.ago(5)}")
    assert ([row["sessionId"] for row in since["rows"]], since["totalMatched"]) == (["02"], 1)
    assert world.rows(status="all", limit=2)["totalMatched"] == 6
    odd = world.rows()["rows"][0]
    assert (odd["sessionIdCanonical"], odd["day"]) == (False, None)
    status = world.status()
    assert status["counts"] == {"active": 2, "blocked": 1, "completed": 1, "unknown": 1}
    assert status["openSessionKeys"][0] == "line#7"


def _fill(world: World) -> None:
    """Let the writers make a day, a SUMMARY and their indexes."""
    for text in ("one", "two", "three"):
        world.face.call("memory_session_write", content=text, title=text, row=text)


def _answers(world: World) -> list[dict[str, Any]]:
    return [
        world.status(),
        world.rows(status="all", limit=2),
        world.sections(limit=3, status="active"),
    ]


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.requirement("JA22", "J60", "J61", "J3")
@pytest.mark.parametrize(
    ("name", "spoil", "reasons"),
    [
        ("current.json", _flip, {"index-invalid"}),
        ("manifests/*", _flip, {"index-invalid"}),
        ("objects/*", _flip, {"partition-invalid"}),
        ("current.json", Path.unlink, {"index-missing"}),
        ("manifests/*", Path.unlink, {"index-invalid"}),
        ("objects/*", Path.unlink, {"partition-missing", "partition-invalid"}),
    ],
)
def test_an_index_that_is_not_whole_changes_no_answer(
    desk: World, name: str, spoil: Any, reasons: set[str]
) -> None:
    _fill(desk)
    fresh = _answers(desk)
    assert [each["indexReceipt"] for each in fresh] == [{"status": "fresh", "reason": None}] * 3
    for path in (desk.root / ".runtime-state/derived-indexes").glob(f"v1/memory/*/{name}"):
        spoil(path)
    before = tree(desk.root)
    found = _answers(desk)
    for old, new in zip(fresh, found, strict=True):
        assert content(new) == content(old)
        assert new["indexReceipt"]["status"] == "fallback"
        assert new["indexReceipt"]["reason"] in reasons
    assert tree(desk.root) == before


@pytest.mark.requirement("JA22", "J60", "J61")
def test_an_index_of_other_bytes_or_makers_is_not_believed(desk: World) -> None:
    _fill(desk)
    fresh = _answers(desk)
    path = desk.root / f".memory/clients/codex/tasks/{desk.today:%Y%m%d}.md"
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000))
    touched = desk.sections(limit=3, status="active")
    assert touched["indexReceipt"] == {"status": "fallback", "reason": "source-metadata-drift"}
    ignored = ("indexReceipt", "source")
    assert {k: v for k, v in touched.items() if k not in ignored} == {
        k: v for k, v in fresh[2].items() if k not in ignored
    }
    summary = desk.root / ".memory/clients/codex/SUMMARY.md"
    stat = summary.stat()
    data = summary.read_bytes()
    summary.write_bytes(data.replace(b"three", b"THREE"))
    os.utime(summary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = desk.rows(status="all", limit=2)
    assert changed["indexReceipt"] == {"status": "fallback", "reason": "source-digest-drift"}
    assert changed["rows"][0]["summary"] == "THREE"
    summary.write_bytes(data)
    os.utime(summary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert desk.rows(status="all", limit=2) == fresh[1]
    shutil.rmtree(desk.root / ".runtime-state")
    gone = desk.rows(status="all", limit=2)
    assert content(gone) == content(fresh[1])
    assert not (desk.root / ".runtime-state").exists()


@pytest.mark.requirement("J60", "J61")
def test_a_question_beyond_what_the_index_keeps_is_answered_from_the_text(desk: World) -> None:
    rows = "".join(desk.row("✅", f"{n:02d}", days=2) for n in range(1, 70))
    desk.summary(HEAD + rows)
    entry = {"summary": "last", "status": "completed", "type": "fix", "sessionId": "70"}
    desk.face.call("memory_summary_append", entry=entry)
    page = desk.rows(status="completed", limit=50)
    assert page["indexReceipt"]["status"] == "fresh"
    assert page["totalMatched"] == 70
    rest = desk.rows(status="completed", limit=50, cursor=page["pagination"]["nextCursor"])
    assert rest["indexReceipt"] == {"status": "fallback", "reason": "partition-insufficient"}
    assert len(rest["rows"]) == 20
    since = desk.rows(status="completed", since=f"{desk.ago(1)}")
    assert since["indexReceipt"]["reason"] == "partition-insufficient"
    assert [row["summary"] for row in since["rows"]] == ["last"]


@pytest.mark.requirement("JA23", "J62")
def test_pages_follow_each_other_without_loss(world: World) -> None:
    world.summary(HEAD + "".join(world.row("✅", f"{n:02d}") for n in range(1, 13)))
    names, sizes, cursor = [], [], {}
    while True:
        page = world.rows(status="completed", limit=5, **cursor)
        names += [row["sessionId"] for row in page["rows"]]
        sizes.append(len(page["rows"]))
        assert page["pagination"]["cursorAccepted"] is bool(cursor)
        assert page["totalMatched"] == 12
        if not page["pagination"]["hasMore"]:
            break
        cursor = {"cursor": page["pagination"]["nextCursor"]}
    assert sizes == [5, 5, 2]
    assert names == [f"{n:02d}" for n in range(12, 0, -1)]
    assert page["pagination"]["nextCursor"] is page["pagination"]["blockedReason"] is None


@pytest.mark.requirement("JA23", "J62")
def test_a_cursor_opens_only_for_its_own_question_and_bytes(world: World) -> None:
    entry = {"summary": "x", "status": "completed", "type": "fix", "sessionId": "99"}
    world.face.call("memory_summary_append", entry=entry)
    path = world.root / ".memory/clients/codex/SUMMARY.md"
    more = "".join(world.row("✅", f"{n:02d}") for n in range(1, 13))
    path.write_text(path.read_text() + more)

    def ask(**arguments: object) -> tuple[str, str]:
        query = {"status": "completed", "limit": 5, "cursor": cursor} | arguments
        refusal = world.face.refused("memory_summary_query", **query)
        return refusal.both

    cursor = world.rows(status="completed", limit=5)["pagination"]["nextCursor"]
    mismatch = ("cursor_stale", "MEMORY_CURSOR_BINDING_MISMATCH")
    assert ask(limit=6) == mismatch
    assert ask(status="all") == mismatch
    session = world.face.refused("memory_session_query", cursor=cursor)
    assert session.both == mismatch
    for n in (0, 5, len(cursor) // 2, len(cursor) - 1):
        flipped = cursor[:n] + ("0" if cursor[n] != "0" else "1") + cursor[n + 1 :]
        assert ask(cursor=flipped) == ("invalid_argument", "MEMORY_CURSOR_INVALID")
    shutil.rmtree(world.root / ".runtime-state/derived-indexes", ignore_errors=True)
    accepted = world.rows(status="completed", limit=5, cursor=cursor)
    assert accepted["pagination"]["cursorAccepted"] is True
    path.write_text(path.read_text() + world.row("✅", "98"))
    assert ask() == ("cursor_stale", "MEMORY_CURSOR_SOURCE_CHANGED")
    cursor = world.rows(status="completed", limit=5)["pagination"]["nextCursor"]
    world.status(freshContext=True)
    assert ask() == mismatch
    cursor = world.rows(status="completed", limit=5)["pagination"]["nextCursor"]
    world.face.call("memory_context_plan", intent="resume")
    world.status()
    assert ask() == mismatch


@pytest.mark.requirement("JA23", "J62")
def test_a_cursor_of_one_project_is_none_of_another(tmp_path: Path) -> None:
    project(tmp_path, "billing", "web", marker="package.json")
    layout(tmp_path, '{"mode":"workspace-namespace"}')
    face = InProcess(tmp_path, session="s")
    for name in ("billing", "web"):
        world = World(tmp_path / f".devcodex/{name}/..", face, date(2026, 3, 14))
        path = tmp_path / f".devcodex/{name}/.memory/clients/codex/SUMMARY.md"
        path.parent.mkdir(parents=True)
        path.write_text(HEAD + world.row("🔄", "01") + world.row("🔄", "02"))
        face.call("memory_status", project=name)
    page: Any = face.call("memory_summary_query", project="billing", limit=1)
    cursor = page["pagination"]["nextCursor"]
    refusal = face.refused("memory_summary_query", project="web", limit=1, cursor=cursor)
    assert refusal.reason == "MEMORY_CURSOR_BINDING_MISMATCH"


@pytest.mark.slow
@pytest.mark.requirement("JA24", "J55", "J56", "J62")
def test_of_a_summary_beyond_the_window_the_newest_rows_are_told(desk: World) -> None:
    row = desk.row("✅", "01", text="x" * 900)
    count = 9 * 1024 * 1024 // len(row.encode())
    desk.summary(HEAD + row * count + desk.row("🔄", "02"))
    size = (desk.root / ".memory/clients/codex/SUMMARY.md").stat().st_size
    read = _bytes_read()
    found = desk.rows(status="all", limit=5)
    assert _bytes_read() - read <= QUERY_BYTES + 64 * 1024
    assert [each["sessionId"] for each in found["rows"]] == ["02", "01", "01", "01", "01"]
    assert found["rows"][0]["rowNumber"] is None
    assert found["source"]["identity"] is None
    assert found["coverage"] == {
        "state": "partial",
        "proves": "returned-ranges",
        "fromByte": size - QUERY_BYTES,
        "toByte": size,
        "totalBytes": size,
        "reason": "canonical-source-partial",
    }
    pages = found["pagination"]
    assert (pages["hasMore"], pages["nextCursor"]) == (True, None)
    assert (pages["blockedReason"], pages["sourceComplete"]) == ("canonical-source-partial", False)
    assert found["indexReceipt"] == {"status": "fallback", "reason": "source-too-large"}
    status = desk.status()
    assert status["openSessionKeys"] == [f"{desk.today}#02"]
    assert status["coverage"]["state"] == "partial"


def _bytes_read() -> int:
    text = Path("/proc/self/io").read_text()
    return int(text.split("rchar: ")[1].split()[0])


@pytest.mark.slow
@pytest.mark.requirement("JA25", "J50", "J52")
def test_a_query_needs_an_open_plan_and_the_next_call_opens_it(tmp_path: Path) -> None:
    project(tmp_path, "billing")
    base = tmp_path / "billing"
    with Mcp(base, home=tmp_path / "home") as face:
        refusal = face.refused("memory_summary_query")
        assert refusal.both == ("invalid_argument", "CONTEXT_BINDING_REQUIRED")
        face.call("memory_context_plan")
        refusal = face.refused("memory_summary_query")
        assert refusal.both == ("invalid_argument", "CONTEXT_BINDING_REQUIRED")
        following = refusal.details["nextCall"]
        assert following == {"tool": "memory_status", "arguments": {}, "fill": []}
        assert isinstance(following, dict)
        status = face.call(following["tool"], **following["arguments"])
        assert face.call("memory_summary_query")["rows"] == []
        assert face.call("memory_summary_query", contextBinding=status["planId"])["rows"] == []
        refusal = face.refused("memory_summary_query", contextBinding=f"plan-{'0' * 32}")
        assert refusal.both == ("invalid_argument", "CONTEXT_BINDING_MISMATCH")
        first = face.call("memory_context_plan", planVersion=1)
        assert first["schemaVersion"] == "ContextReadPlanV1"
        face.call("memory_status")
        assert face.call("memory_summary_query")["planId"] == first["planId"]
        face.call("memory_context_plan", sources=["memory_status"])
        face.call("memory_status")
        refusal = face.refused("memory_session_query")
        assert refusal.both == ("invalid_argument", "CONTEXT_BINDING_MISMATCH")
        assert refusal.details["sources"] == ["memory_status"]


@pytest.mark.slow
@pytest.mark.requirement("JA25", "J72", "J1")
def test_a_verb_alone_plans_on_the_spot(tmp_path: Path) -> None:
    project(tmp_path, "billing")
    cli = Cli(tmp_path / "billing", home=tmp_path / "home", AMUX_AGENT="codex")
    desk = World(tmp_path / "billing", cli, _today(cli))
    desk.summary(HEAD + desk.row("🔄", "01"))
    desk.day("## 会话 01\ntext\n")
    assert [row["sessionId"] for row in desk.rows()["rows"]] == ["01"]
    assert desk.sections()["matches"][0]["content"] == "text\n"
    read: Any = cli.call("memory_session_read")
    assert read["text"] == "## 会话 01\ntext\n"


@pytest.mark.requirement("JA26", "J3")
def test_reads_of_a_tree_without_runtime_state_change_nothing(world: World) -> None:
    world.summary(HEAD + "".join(world.row("🔄", f"{n:02d}") for n in range(1, 8)))
    world.day("## 会话 01\ntext\n")
    before = tree(world.base)
    times = {path: path.stat().st_mtime_ns for path in [world.base, *world.base.rglob("*")]}
    world.face.call("memory_context_plan")
    world.status()
    page = world.rows(limit=5)
    assert len(world.rows(limit=5, cursor=page["pagination"]["nextCursor"])["rows"]) == 2
    world.sections()
    assert tree(world.base) == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


@pytest.mark.requirement("JA35", "J68", "J71")
def test_the_later_of_two_cards_is_handed_off_within_the_budget(world: World) -> None:
    late = CARD.format("late " * 100)
    world.day(f"## 会话 01\n{CARD.format('early')}\ntext\n{late}## 会话 02\nnone\n")
    found = world.sections(handoffOnly=True, limit=5)
    assert [match["content"] for match in found["matches"]] == [late]
    assert found["truncated"] is found["matches"][0]["truncated"] is False
    cut = world.sections(handoffOnly=True, maxChars=100)
    assert cut["matches"][0]["content"] == late[:100]
    assert cut["truncated"] is True
    assert cut["matches"][0]["nextContentOffset"] == 100
    assert cut["matches"][0]["chars"] == len(late)


@pytest.mark.requirement("JA35", "J39", "J71")
def test_the_parts_of_a_long_body_joined_are_the_body(world: World) -> None:
    body = MARKER.format("01") + "é项🔄\n" * 7_480
    world.day(f"## 会话 01\n{body}## 会话 02\nshort\n")
    shown = body.replace("ab" * 32, "[hidden]")
    assert 24_000 < len(shown) < 36_000
    parts, offset = [], 0
    while offset is not None:
        found = world.sections(sessionId="1", maxChars=12_000, contentOffset=offset)
        match = found["matches"][0]
        parts.append(match["content"])
        offset = match["nextContentOffset"]
        assert match["truncated"] is (offset is not None)
        assert match["chars"] == len(shown)
    assert len(parts) == 3
    assert "".join(parts) == shown
    past = world.sections(sessionId="01", contentOffset=len(shown) + 5)["matches"][0]
    assert (past["content"], past["truncated"], past["nextContentOffset"]) == ("", False, None)


@pytest.mark.requirement("J71", "J62")
def test_a_page_of_sections_stops_after_the_first_that_is_cut(world: World) -> None:
    world.day("".join(f"## 会话 {n}\n{'x' * 99}\n" for n in range(1, 6)))
    page = world.sections(limit=5, maxChars=250)
    assert [match["chars"] for match in page["matches"]] == [100, 100, 100]
    assert [len(match["content"]) for match in page["matches"]] == [100, 100, 50]
    assert page["truncated"] is True
    rest = world.sections(limit=5, maxChars=250, cursor=page["pagination"]["nextCursor"])
    assert [match["sessionId"] for match in rest["matches"]] == ["02", "01"]
    world.day(f"## 会话 01\n## 会话 02\n{'x' * 99}\n")
    cut = world.sections(limit=5, maxChars=50)
    assert [match["sessionId"] for match in cut["matches"]] == ["02"]
    world.day("".join(f"## 会话 {n}\n{'x' * 99}\n" for n in range(1, 6)))
    exact = world.sections(limit=5, maxChars=200)
    assert [match["truncated"] for match in exact["matches"]] == [False, False]
    assert exact["pagination"]["hasMore"] is True


@pytest.mark.requirement("JA40", "J54")
def test_a_tree_of_another_maker_is_read_with_warnings_and_only_added_to(world: World) -> None:
    wide = HEAD.replace("状态 |", "状态 | 备注 |").replace(":-:|", ":-:|---|")
    row = f"| {world.ago(3)} | 1 | fix | a | r | m | ✅ | note |\n"
    world.summary(f"# 老的 SUMMARY\n\nprose here\n\n{wide}{row}")
    day = world.day("# 日记\n\nfree text\n\n## 会话 1 - old\n\n- **状态**: 进行中\n\nwords\n")
    old = day.read_bytes()
    before = tree(world.root)
    status = world.status()
    assert "summary-foreign-content" in codes(status)
    assert "row-repaired" in codes(status)
    match = world.sections()["matches"][0]
    assert (match["sessionId"], match["title"], match["state"]) == ("01", "old", "active")
    assert tree(world.root) == before
    written = world.face.call("memory_session_write", content="new")
    assert written["sessionId"] == "02"
    after = tree(world.root)
    name = day.relative_to(world.root).as_posix()
    assert day.read_bytes().startswith(old)
    kept = {key: value for key, value in after.items() if ".runtime-state" not in key}
    assert set(kept) - set(before) == {".gitignore"}
    assert {key: kept[key] for key in before if key != name} == {
        key: before[key] for key in before if key != name
    }


@pytest.mark.requirement("JA41", "J71")
def test_what_one_agent_left_is_seen_by_the_next(tmp_path: Path) -> None:
    base = tmp_path / "billing"
    project(base.parent, base.name)
    claude = InProcess(base, client=CLAUDE, session="c", at=1_773_393_600.0)
    claude.call(
        "memory_session_write", content="half", row="export", handoff={"next-action": "go on"}
    )
    face = InProcess(base, client=CODEX, session="x")
    world = World(base, face, _today(face))
    before = tree(base)
    status = world.status()
    key = f"{world.ago(1)}#01"
    other = status["otherAgents"][0]
    assert other["id"] == "claude-code"
    assert other["unresolved"] == [{"sessionKey": key, "summary": "export", "hasCard": True}]
    assert other["lastRow"]["summary"] == "export"
    following = status["nextCall"]
    assert following["arguments"] == {
        "agent": "claude-code",
        "date": f"{world.ago(1):%Y%m%d}",
        "sessionId": "01",
        "handoffOnly": True,
    }
    found: Any = face.call(following["tool"], **following["arguments"])
    assert "- **next-action**：go on\n" in found["matches"][0]["content"]
    assert tree(base) == before


@pytest.mark.requirement("J71")
def test_other_agents_are_few_and_their_trouble_is_their_own(desk: World) -> None:
    for n in range(10):
        rows = "".join(desk.row("🔄", f"{m:02d}", days=4) for m in range(1, 9))
        desk.summary(HEAD + rows * 300, agent=f"agent-{n}")
    (desk.root / ".memory/clients/agent-3/SUMMARY.md").unlink()
    (desk.root / ".memory/clients/agent-3/SUMMARY.md").mkdir()
    (desk.root / ".memory/clients/.DS_Store").write_bytes(b"")
    status = desk.status()
    names = [other["id"] for other in status["otherAgents"]]
    assert names == [f"agent-{n}" for n in (0, 1, 2, 4, 5, 6, 7)]
    assert set(codes(status)) == {"other-agents-cut", "other-agent-unreadable"}
    assert status["nextCall"] is None  # none of them is an agent that can be asked
    first = status["otherAgents"][0]
    assert [each["sessionKey"] for each in first["unresolved"]] == [
        f"{desk.ago(4)}#{m:02d}" for m in (8, 7, 6, 5, 4)
    ]
    assert {each["hasCard"] for each in first["unresolved"]} == {None}


@pytest.mark.requirement("JA42", "J53")
def test_an_old_open_row_is_located_first(world: World) -> None:
    world.summary(HEAD + world.row("🔄", "03", days=20) + world.row("✅", "04", days=20))
    status = world.status()
    assert status["nextCall"] == {
        "tool": "memory_summary_query",
        "arguments": {"status": "unresolved", "since": f"{world.ago(20)}"},
        "fill": [],
    }
    found = world.face.call(status["nextCall"]["tool"], **status["nextCall"]["arguments"])
    assert [row["sessionId"] for row in found["rows"]] == ["03"]


@pytest.mark.requirement("JA42", "J53")
def test_where_nothing_is_open_the_last_row_is_there_to_be_quoted(world: World) -> None:
    world.summary(HEAD + world.row("🔄", "03", days=20) + world.row("✅", "03", days=20))
    status = world.status()
    assert status["nextCall"] is None
    assert status["openSessionKeys"] == []
    assert status["latestRows"][0]["state"] == "completed"


@pytest.mark.requirement("J53", "J71")
def test_an_open_section_is_the_next_to_be_read(world: World) -> None:
    world.summary(HEAD + world.row("🔄", "03", days=9) + world.row("⛔", "01", days=1))
    world.day(f"## 会话 01\n{CARD.format('x')}", days=1)
    status = world.status()
    assert status["cards"] == [f"{world.ago(1)}#01"]
    arguments = {"date": f"{world.ago(1):%Y%m%d}", "sessionId": "01", "handoffOnly": True}
    assert status["nextCall"]["arguments"] == arguments
    world.summary(HEAD + world.row("✅", "01", days=1))
    world.day("## 会话 02\n- **状态**：🔄\n")
    arguments = {"date": f"{world.today:%Y%m%d}", "sessionId": "02"}
    assert world.status()["nextCall"]["arguments"] == arguments


@pytest.mark.requirement("J71")
def test_day_and_summary_that_disagree_are_a_conflict(world: World) -> None:
    rows = [world.row("✅", "01"), world.row("🔄", "02", days=1), world.row("🔄", "03")]
    world.summary(HEAD + "".join(rows))
    world.day(f"## 会话 01\n- **状态**：🔄\n## 会话 03\n{MARKER.format('03')}")
    world.day("## 会话 02\n- **状态**：✅\n", days=1)
    status = world.status()
    assert status["conflicts"] == [
        {
            "kind": "summary-day-mismatch",
            "sessionKey": f"{world.today}#01",
            "states": ["completed", "active"],
        },
        {
            "kind": "summary-day-mismatch",
            "sessionKey": f"{world.ago(1)}#02",
            "states": ["active", "completed"],
        },
    ]
    assert {"code": "day-status-missing", "line": 3, "sessionId": "03"} in status["warnings"]


@pytest.mark.requirement("J60", "J61")
def test_partitions_of_another_shape_are_not_believed_though_their_digests_hold(
    desk: World,
) -> None:
    _fill(desk)
    fresh = [*_answers(desk), desk.rows(status="unresolved")]
    for folder in (desk.root / ".runtime-state/derived-indexes/v1/memory").iterdir():
        _reseal(folder)
    found = [*_answers(desk), desk.rows(status="unresolved")]
    for old, new in zip(fresh, found, strict=True):
        assert content(new) == content(old)
        assert new["indexReceipt"] == {"status": "fallback", "reason": "partition-invalid"}


@pytest.mark.requirement("J60", "J61")
def test_a_month_of_another_shape_is_not_believed(desk: World) -> None:
    _fill(desk)
    fresh = desk.status()
    for folder in (desk.root / ".runtime-state/derived-indexes/v1/memory").iterdir():
        _reseal(folder, only=f"summary:{desk.today:%Y-%m}")
    found = desk.status()
    assert content(found) == content(fresh)
    assert found["indexReceipt"] == {"status": "fallback", "reason": "partition-invalid"}


def _reseal(folder: Path, *, only: str | None = None) -> None:
    """Put data of another shape into an index, and digests that fit."""

    def put(name: str, record: dict[str, Any]) -> str:
        made = index.sealed({key: value for key, value in record.items() if key != "digest"})
        path = folder / name.format(made["digest"])
        path.write_bytes(index.spelled(made))
        return str(made["digest"])

    def read(name: str) -> dict[str, Any]:
        return dict(json.loads((folder / name).read_bytes()))

    pointer = read("current.json")
    manifest = read(f"manifests/{pointer['manifest']}.json")
    for listed in manifest["partitions"]:
        if only in (None, listed["key"]):
            record = read(f"objects/{listed['object']}.json") | {"data": {"of": "old"}}
            listed["object"] = put("objects/{}.json", record)
    pointer["manifest"] = put("manifests/{}.json", manifest)
    put("current.json", pointer)


@pytest.mark.requirement("J60", "J71")
def test_a_month_without_rows_is_no_gap_in_the_index(desk: World) -> None:
    entry = {"summary": "x", "status": "active", "type": "fix", "sessionId": "01"}
    desk.face.call("memory_summary_append", entry=entry | {"day": f"{desk.ago(90)}"})
    desk.day("## 会话 01\n- **状态**：✅\n")
    status = desk.status()
    assert status["indexReceipt"] == {"status": "fresh", "reason": None}
    assert status["conflicts"] == []


@pytest.mark.requirement("J57")
def test_equal_questions_on_equal_bytes_have_equal_identities(desk: World) -> None:
    _fill(desk)
    first = _answers(desk)
    shutil.rmtree(desk.root / ".runtime-state/derived-indexes")
    desk.status(freshContext=True)
    again = _answers(desk)
    for old, new in zip(first, again, strict=True):
        assert old["contentIdentity"] == new["contentIdentity"]
        assert old["indexReceipt"] != new["indexReceipt"]
    assert first[0]["planId"] != again[0]["planId"]
    source = first[1]["source"]
    assert source["identity"]["sourceKey"] == source["path"]
    assert source["identity"]["bytes"] == source["bytes"]
    assert first[1]["contentIdentity"]["sourceKey"] == f"memory_summary_query:{source['path']}"


@pytest.mark.requirement("J72", "J56", "J55")
def test_a_text_read_from_its_start_and_not_cut_proves_the_document(desk: World) -> None:
    text = f"﻿# d\n## 会话 01\n{MARKER.format('01')}é\n"
    desk.day(text)
    shown = text[1:].replace("ab" * 32, "[hidden]")
    read = desk.face.call("memory_session_read")
    assert (read["text"], read["chars"]) == (shown, len(shown))
    assert read["coverage"]["proves"] == "document"
    part = desk.face.call("memory_session_read", startChar=3, maxChars=4)
    assert (part["text"], part["truncated"], part["nextStartChar"]) == (shown[3:7], True, 7)
    assert part["coverage"]["proves"] == "returned-ranges"
    missing = desk.face.call("memory_summary_read", layer="project")
    assert (missing["exists"], missing["text"]) == (False, "")
    assert missing["coverage"]["proves"] == "returned-ranges"
    desk.summary(b"x\xff")
    odd = desk.face.call("memory_summary_read", layer="agent")
    assert odd["text"] == "x\ufffd"
    assert codes(odd) == ["unterminated-tail", "invalid-utf8"]
    desk.summary("é" * QUERY_BYTES + "\nlast\n")
    assert desk.face.call("memory_summary_read", layer="agent")["text"] == "last\n"


READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && '
    'for verb in "$@"; do "$PYTHON" -m amux $verb || exit 9; done; '
    '"$PYTHON" -m amux journal write --content x; exit 0'
)


@pytest.mark.slow
@pytest.mark.requirement("JA26", "J3")
def test_a_workspace_on_a_read_only_mount_answers_and_refuses_to_be_written(
    tmp_path: Path,
) -> None:
    can = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if can.returncode:
        cannot("this user may not mount")
    base = tmp_path / "billing"
    project(base.parent, base.name)
    desk = World(base, InProcess(base), date(2026, 3, 14))
    desk.summary(HEAD + desk.row("🔄", "01") + desk.row("🔄", "02"))
    desk.day("## 会话 01\ntext\n")
    before = tree(base)
    verbs = ["plan", "status", "summary", "sessions", "session-read", "summary-read"]
    words = [*(f"journal {verb}" for verb in verbs), "journal summary --limit 1", "doctor"]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", READ_ONLY, str(base), *words],
        env=environment(tmp_path / "home", AMUX_AGENT="codex", PYTHON=sys.executable),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = [json.loads(line) for line in done.stdout.decode().splitlines() if line[:1] == "{"]
    assert [page["schemaVersion"] for page in pages[1:3]] == [
        "MemoryStatusV1",
        "MemorySummaryQueryV1",
    ]
    assert any(page.get("pagination", {}).get("nextCursor") for page in pages)
    assert "MEMORY_STORE_READ_ONLY" in done.stderr.decode()
    assert tree(base) == before


@pytest.mark.requirement("JA34", "J4", "J54")
@pytest.mark.parametrize(
    ("data", "seen", "texts"),
    [
        (b"", [], []),
        (b" \n\t\n", [], []),
        (b"   ", ["unterminated-tail"], []),
        ("﻿## 会话 01\r\na\r\n## 会话 02\r\nb\r\n".encode(), [], ["b\r\n", "a\r\n"]),
        ("## 会话 01\na".encode(), ["unterminated-tail"], ["a"]),
        ("## 会话 01\n".encode() + b"\xff\xfe\n", ["invalid-utf8"], ["\ufffd\ufffd\n"]),
    ],
)
def test_odd_bytes_are_read_and_told(
    desk: World, data: bytes, seen: list[str], texts: list[str]
) -> None:
    path = desk.day(data)
    found = desk.sections(limit=5)
    assert codes(found) == seen
    assert [match["content"] for match in found["matches"]] == texts
    assert found["coverage"]["state"] == ("unverified" if seen else "complete")
    desk.face.call("memory_session_write", content="new")
    assert path.read_bytes().startswith(data)
