"""The rendered part of `sessions.md`, and only that (T26, T28, T48, T49)."""

from zoneinfo import ZoneInfo

import pytest

from amux.journal.machine import Refused
from amux.journal.tasks import checkpoint, view
from amux.journal.tasks.checkpoint import Answer, Checkpoints
from amux.journal.tasks.view import View

ROOT = "bugs/Export totals"
TABLE = (
    "| CP | 状态 | artifactPath | version | sha256 | sourceMessage | confirmedAt |\n"
    "|----|:----:|--------------|---------|--------|---------------|-------------|\n"
)
WAITING = "| CP1 | ⏳ | — | — | — | — | — |\n"
REST = "| CP2 | ⏹️ | — | — | — | — | — |\n| CP3 | ⏹️ | — | — | — | — | — |\n"
DIGEST = "ab" * 32


def confirmed(path: str = "plan.md", message: str = "yes") -> Checkpoints:
    answer = Answer(
        phase="CP1",
        is_exempt=False,
        artifact_path=path,
        artifact_sha256=DIGEST,
        artifact_version="v1",
        source_message=message,
        at="2026-03-14T09:20:00.000Z",
        session="s",
        agent="codex",
    )
    made = checkpoint.decide(checkpoint.start(), answer, {})
    assert not isinstance(made, Refused)
    return made.state


def seen(
    found: Checkpoints | None = None, *, stale: tuple[str, ...] = (), zone: str = "UTC"
) -> View:
    return View(
        checkpoints=found or checkpoint.start(), stale=stale, task_root=ROOT, zone=ZoneInfo(zone)
    )


@pytest.mark.requirement("T48")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"## CP 确认记录\n\n{TABLE}{WAITING}{REST}"),
        ("# notes", f"# notes\n\n## CP 确认记录\n\n{TABLE}{WAITING}{REST}"),
        (
            "### 3. CP 确认记录  \n\n| a |\n| b |\ntext\n| c |\n## next\n| d |\n",
            f"### 3. CP 确认记录  \n\n{TABLE}{WAITING}{REST}text\n| c |\n## next\n| d |\n",
        ),
        (
            "## CP 确认记录\n### sub\n| a |\n# top\n",
            f"## CP 确认记录\n### sub\n{TABLE}{WAITING}{REST}# top\n",
        ),
        (
            "## CP 确认记录\n## next\n",
            f"## CP 确认记录\n\n{TABLE}{WAITING}{REST}\n## next\n",
        ),
        ("## CP 确认记录", f"## CP 确认记录\n\n{TABLE}{WAITING}{REST}"),
        ("## CP 确认记录\n\n| unended", f"## CP 确认记录\n\n{TABLE}{WAITING}{REST}"),
    ],
)
def test_exactly_the_first_table_of_the_block_is_replaced(before: str, after: str) -> None:
    made = view.render(before.encode(), seen())
    assert made.decode() == after
    assert view.has_block(made)
    assert view.render(made, seen()) == made
    crlf = view.render(f"x\n{before}".replace("\n", "\r\n").encode(), seen())
    assert b"\n" not in crlf.replace(b"\r\n", b"")


@pytest.mark.requirement("T48")
def test_a_row_shows_what_was_confirmed() -> None:
    found = seen(confirmed("a b (1).md", "yes | no"), zone="Asia/Shanghai")
    text = view.render(b"", found).decode()
    assert (
        "| CP1 | ✅ | [a b (1).md](<../a b (1).md>) | v1 | "
        f"`{DIGEST.upper()}` | yes \\| no | 2026-03-14 17:20 +08:00 |\n"
    ) in text
    assert "| CP2 | ⏳ | — |" in text
    assert "| CP1 | ⚠️ stale |" in view.render(b"", seen(confirmed(), stale=("CP1",))).decode()


@pytest.mark.requirement("T49")
def test_a_row_is_drift_where_it_says_something_else() -> None:
    found = seen(confirmed())
    data = view.render(b"# x\n", found)
    assert view.drift(data, found) == []
    # Shown in another zone, or before it became stale, it says the same.
    assert view.drift(data, seen(confirmed(), zone="Asia/Shanghai")) == []
    assert view.drift(data, seen(confirmed(), stale=("CP1",))) == []
    for old, new in (
        (b"| v1 |", b"| v2 |"), (b"09:20", b"09:21"), (b"| yes |", b"| no |"),
        (DIGEST.upper().encode(), b"0" * 64), ("✅".encode(), "⏳".encode()),
        (b"2026-03-14 09:20 +00:00", b"yesterday"),
    ):  # fmt: skip
        harmed = data.replace(old, new)
        assert harmed != data
        assert view.drift(harmed, found) == [{"code": "cp-view-drift", "phase": "CP1"}], old
    without = b"".join(line for line in data.splitlines(True) if b"CP2" not in line)
    assert view.drift(without, found) == [{"code": "cp-view-drift", "phase": "CP2"}]
    rows = b"| CP3 | mine |\n\n"
    assert view.drift(rows + data, found) == [{"code": "cp-row-outside-block", "line": 1}]
    assert [one["phase"] for one in view.drift(b"", found)] == ["CP1", "CP2", "CP3"]


@pytest.mark.requirement("T49")
def test_only_rows_of_the_block_claim_anything() -> None:
    row = f"| CP2 | ✅ 已确认 | `plan.md` | {DIGEST} |\n"
    linked = f"| CP1 | ✅ | [p](<../a b.md>) | v1 | `{DIGEST.upper()}` | y | z |\n"
    block = f"## CP 确认记录\n\n| CP | 状态 |\n|--|--|\n{row}{linked}| CP3 | ⏳ | x | {DIGEST} |\n"
    assert [(one.phase, one.path, one.sha256) for one in view.claims(block.encode())] == [
        ("CP2", "`plan.md`", DIGEST), ("CP1", "a b.md", DIGEST),
    ]  # fmt: skip
    assert view.claims(row.encode()) == []


@pytest.mark.requirement("T48")
@pytest.mark.parametrize("status", [None, *view.ENDED])
def test_the_status_line_is_replaced_where_it_reads_as_we_wrote_it(status: str | None) -> None:
    line = view.status_line(status)
    for before in (None, *view.ENDED):
        data = f"# x\r\n{view.status_line(before)}\r\nrest".encode()
        assert view.with_status(data, status) == (f"# x\r\n{line}\r\nrest".encode(), True)
    for odd in ("> 当前状态：🔄 active, nearly", "- **状态**: done", "no line at all"):
        data = f"# x\n{odd}\n{line}\n".encode() if "line" not in odd else odd.encode()
        assert view.with_status(data, status) == (data, False)
