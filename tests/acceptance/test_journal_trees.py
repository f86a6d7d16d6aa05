"""Existing trees: read without loss, and written to without touching a byte of anybody's."""

from pathlib import Path

import pytest

from tests.support.journal_faces import InProcess
from tests.support.trees import DAY, DECISIONS, SUMMARY, TREES, Tree
from tests.support.workspaces import project, tree

ALL_ROWS = {"status": "all", "limit": 50}
HIDDEN = "[hidden]"
every_tree = pytest.mark.parametrize("name", TREES)


def planted(base: Path, found: Tree) -> dict[str, str]:
    """Make a tree, and give the arguments that name its project."""
    project(base, ".", "billing", "web")
    for path, data in found.files.items():
        place = base / ".devcodex" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
    return {"project": found.project} if found.project else {}


def reader(base: Path, where: dict[str, str]) -> InProcess:
    """Give a reader that has taken the status."""
    desk = InProcess(base)
    desk.call("memory_status", **where)
    return desk


def text_of(found: Tree, path: str) -> str:
    """Give a file as a reader decodes it."""
    data = found.files.get(found.below + path, b"")
    text = (data.encode() if isinstance(data, str) else data).decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def read_whole(desk: InProcess, tool: str, **where: str) -> str:
    texts, start = [], 0
    while True:
        page = desk.call(tool, startChar=start, maxChars=9_000, **where)
        texts.append(str(page["text"]))
        if page["nextStartChar"] is None:
            return "".join(texts)
        start = int(str(page["nextStartChar"]))


def pages(
    desk: InProcess, tool: str, items: str, **asked: object
) -> tuple[list[dict[str, object]], set[str]]:
    """Follow the cursors of a query to its end; gives its items and the warnings."""
    found: list[dict[str, object]] = []
    warned: set[str] = set()
    cursor: dict[str, object] = {}
    while True:
        page = desk.call(tool, **asked, **cursor)
        warned |= {str(one["code"]) for one in page["warnings"]}  # type: ignore[attr-defined]
        found += page[items]  # type: ignore[operator]
        following = page["pagination"]["nextCursor"]  # type: ignore[index]
        if not following:
            return found, warned
        cursor = {"cursor": following}


def sections(desk: InProcess, **where: object) -> tuple[list[dict[str, object]], set[str]]:
    """Give today's sections in file order, each with its whole text."""
    found, warned = pages(
        desk, "memory_session_query", "matches", status="all", limit=20, maxChars=50_000, **where
    )
    for one in found:
        ids = [each["sessionId"] for each in found]
        while one["nextContentOffset"] is not None and ids.count(one["sessionId"]) == 1:
            rest = desk.call(
                "memory_session_query", sessionId=one["sessionId"], maxChars=50_000,
                contentOffset=one["nextContentOffset"], **where,
            )["matches"][0]  # type: ignore[index]  # fmt: skip
            one["content"] = str(one["content"]) + rest["content"]
            one["nextContentOffset"] = rest["nextContentOffset"]
    return found[::-1], warned


def covers(text: str, parts: list[str]) -> bool:
    """Tell whether a day is its sections' texts, with nothing but headings before each."""
    at = text.find("## 会话") if parts else len(text)
    for part in parts:
        begin = text.find(part, text.index("\n", at) + 1) if "\n" in text[at:] else len(text)
        head = text[at:begin]
        if begin < 0 or (head.strip() and not head.startswith("##")):
            return False
        at = begin + len(part)
    rest = text[at:]
    return not parts or not rest.strip() or rest.startswith("##")


@every_tree
@pytest.mark.requirement("J4", "J34", "J35", "J36", "J44", "J54", "JA40")
def test_a_tree_is_read_without_loss_and_without_a_change(tmp_path: Path, name: str) -> None:
    found = TREES[name]
    where = planted(tmp_path, found)
    before = tree(tmp_path)
    desk = InProcess(tmp_path)
    status = desk.call("memory_status", **where)
    warned = {str(one["code"]) for one in status["warnings"]}  # type: ignore[attr-defined]
    seen, more = sections(desk, **where)
    warned |= more
    assert [one["sessionId"] for one in seen] == found.ids
    rows, more = pages(desk, "memory_summary_query", "rows", **ALL_ROWS, **where)
    warned |= more
    assert len(rows) == found.rows
    assert found.warnings <= warned
    assert warned <= found.warnings | {"day-status-missing", "profile-agent-illegal"}
    day = text_of(found, DAY)
    shown = read_whole(desk, "memory_session_read", **where)
    assert shown == day.replace("0123456789abcdef" * 4, HIDDEN)
    if "malformed-session-heading" not in warned:
        assert covers(shown, [str(one["content"]) for one in seen])
    for layer, path in (("agent", SUMMARY), ("project", DECISIONS)):
        assert read_whole(desk, "memory_summary_read", layer=layer, **where) == text_of(found, path)
    assert tree(tmp_path) == before


def inserted(old: bytes | str, new: bytes | str) -> bytes:
    """Give the one piece that was put into a file; nothing where old bytes are not all there."""
    assert isinstance(old, bytes)
    assert isinstance(new, bytes)
    head = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if len({*pair}) > 1), len(old)
    )
    added = len(new) - len(old)
    return new[head : head + added] if added > 0 and new[head + added :] == old[head:] else b""


@every_tree
@pytest.mark.requirement("J2", "J4", "J47", "J48", "J63", "JA34", "JA40")
def test_a_tree_is_written_to_without_touching_a_foreign_byte(tmp_path: Path, name: str) -> None:
    found = TREES[name]
    where = planted(tmp_path, found)
    before = tree(tmp_path / ".devcodex") if (tmp_path / ".devcodex").exists() else {}
    desk = InProcess(tmp_path)
    was, _ = sections(reader(tmp_path, where), **where) if before else ([], set())
    opened = desk.call("memory_session_write", content="our text", title="ours", **where)
    written = desk.call(
        "memory_session_write", section=opened["section"], content="more of it", row="our row",
        status="completed", handoff={"next-action": "go on"}, **where,
    )  # fmt: skip
    decided = desk.call("memory_decision_append", decision="our decision", **where)
    assert written["summaryEvent"]
    assert decided["transaction"]
    after = tree(tmp_path / ".devcodex")
    ours = {f"{found.below}{path}" for path in (DAY, SUMMARY, DECISIONS)}
    for path, data in before.items():
        new = after[path]
        if path in ours:
            added = inserted(data, new)
            assert added
            # New lines end as the file's first line does.
            has_crlf = data.partition(b"\n")[0].endswith(b"\r")  # type: ignore[union-attr]
            assert added.count(b"\r\n") == (added.count(b"\n") if has_crlf else 0)
        else:
            assert new == data, path
    for path in after.keys() - before.keys():
        assert path in ours | {".gitignore"} or after[path] == "/" or ".runtime-state/" in path, (
            path
        )
    # Whatever was there is there still, for a reader of another process too.
    now, _ = sections(reader(tmp_path, where), **where)
    shown = [(str(one["sessionId"]), str(one["content"]).rstrip()) for one in now]
    for (number, text), one in zip(shown, was, strict=False):
        assert number == one["sessionId"]
        assert str(one["content"]).rstrip().startswith(text)
    assert [number for number, _ in shown] == [*found.ids, *found.closed, opened["sessionId"]]
    assert "more of it" in shown[-1][1]
    rows, _ = pages(reader(tmp_path, where), "memory_summary_query", "rows", **ALL_ROWS, **where)
    assert rows[0]["summary"] == "our row"
    # A row that was complete but for its newline stays one; half a row is no row of anybody's.
    assert len(rows) == found.rows + 1


def test_there_are_enough_trees() -> None:
    assert len(TREES) >= 30


@pytest.mark.requirement("J39", "J67")
def test_a_section_appended_by_a_plain_edit_is_read_by_all_and_extended_by_nobody(
    tmp_path: Path,
) -> None:
    found = TREES["one managed section"]
    planted(tmp_path, found)
    day = tmp_path / ".devcodex" / DAY
    number = "f3a9" * 8
    day.write_text(f"{day.read_text()}## 会话 {number} — no server\n\nwhat was done\n")
    desk = reader(tmp_path, {})
    seen, _ = sections(desk)
    assert [(one["sessionId"], one["managed"]) for one in seen] == [("01", True), (number, False)]
    assert desk.call("memory_session_write", content="next")["sessionId"] == "02"
    before = tree(tmp_path)
    refused = desk.refused(
        "memory_session_write", sessionId=number, sessionBinding="0" * 64, content="more"
    )
    assert refused.both == ("permission_denied", "MEMORY_SESSION_BINDING_UNAVAILABLE")
    assert tree(tmp_path) == before
