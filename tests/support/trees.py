"""Hand-made `.devcodex` trees as they are found in the wild: a table, one row a tree.

A row says what lies in the tree and what a reader of Codex's memory must find in it on
2026-03-14: the ids of today's sections in file order, how many SUMMARY rows there are, and which
warnings come up. Everything in it belongs to somebody else.
"""

from dataclasses import dataclass, field

DAY = ".memory/clients/codex/tasks/20260314.md"
YESTERDAY = ".memory/clients/codex/tasks/20260313.md"
SUMMARY = ".memory/clients/codex/SUMMARY.md"
DECISIONS = ".memory/SUMMARY.md"
TOKEN = "0123456789abcdef" * 4
MARK = "<!-- devcodex:memory-session-binding v1 session={} token=" + TOKEN + " -->\n"
HEAD = "# Agent SUMMARY — codex\n\n> 项目：app\n\n"
TABLE = (
    "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
    "|------|:----:|------|------|---------|---------|:----:|\n"
)
CARD = (
    "### 🤝 ContextHandoffCard\n\n- **task**：—\n- **next-action**：run the tests\n"
    "- **blocked-reason**：—\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One tree, and what reading it must show."""

    files: dict[str, str | bytes]
    ids: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    """Ids of headings that count once the last line was closed by a writer."""
    rows: int = 0
    warnings: set[str] = field(default_factory=set)
    project: str | None = None
    """Which project is read and written, in a tree of many."""
    below: str = ""
    """Where that project's active root lies."""


def section(number: str, body: str = "did a thing\n", title: str = "work") -> str:
    """Give a section as a managed writer left it."""
    return (
        f"## 会话 {number} — {title}\n\n- **时间**：2026-03-14 08:00 +00:00\n- **意图**：fix\n"
        f"- **状态**：🔄 reserved\n- **sourceMessage**：please\n{MARK.format(number)}"
        f"<!-- amux:session 0011223344556677 -->\n\n{body}\n"
    )


def row(
    day: str, number: str, state: str = "✅", summary: str = "did it", kind: str = "fix"
) -> str:
    """Give a row of a SUMMARY."""
    link = f"[{day[:10].replace('-', '')}.md](tasks/{day[:10].replace('-', '')}.md)"
    return f"| {day} | {number} | {kind} | {summary} | — | {link} | {state} |\n"


def crlf(text: str) -> str:
    """Give a text with the line ends of another system."""
    return text.replace("\n", "\r\n")


LEGACY = "## 会话 1：第一次\n\n- **状态**：✅ 完成\n\n手写的内容\n\n## 会话 #2 - second\nby hand\n"
HUNDRED = "".join(f"## 会话 {n:02} — n{n}\n\nbody of {n}\n\n" for n in range(1, 101))

TREES: dict[str, Tree] = {
    "nothing at all": Tree(files={}),
    "an empty memory": Tree(files={".memory/clients/codex/tasks/.keep": ""}),
    "empty files": Tree(files={DAY: b"", SUMMARY: b"", DECISIONS: b""}),
    "only blanks": Tree(
        files={DAY: " \n\t\n\n", SUMMARY: "\n\n \n", DECISIONS: "  \n"},
    ),
    "one managed section": Tree(
        files={DAY: section("01"), SUMMARY: HEAD + TABLE + row("2026-03-14 08:00", "01", "🔄")},
        ids=["01"], rows=1,
    ),
    "three managed sections": Tree(
        files={DAY: section("01") + section("02") + section("03")}, ids=["01", "02", "03"],
    ),
    "sections made by hand": Tree(files={DAY: LEGACY}, ids=["01", "02"]),
    "text before the first heading": Tree(
        files={DAY: "# 2026-03-14\n\n> notes of the day\n\n" + LEGACY}, ids=["01", "02"],
    ),
    "no heading at all": Tree(files={DAY: "# Diary\n\nnothing structured\n"}),
    "lines that end with CRLF": Tree(
        files={
            DAY: crlf(LEGACY + section("03")),
            SUMMARY: crlf(HEAD + TABLE + row("2026-03-14", "03")),
        },
        ids=["01", "02", "03"], rows=1,
    ),
    "lines that end with both": Tree(
        files={DAY: crlf(LEGACY) + section("03")}, ids=["01", "02", "03"],
    ),
    "a byte order mark": Tree(
        files={
            DAY: "\ufeff" + LEGACY,
            SUMMARY: "\ufeff" + TABLE + row("2026-03-13", "01"),
            DECISIONS: "\ufeff# 项目 SUMMARY\n",
        },
        ids=["01", "02"], rows=1,
    ),
    "a byte order mark and CRLF": Tree(
        files={DAY: "\ufeff" + crlf(section("01"))}, ids=["01"],
    ),
    "no newline at the end": Tree(
        files={
            DAY: section("01").rstrip("\n"),
            SUMMARY: (HEAD + TABLE + row("2026-03-14", "01")).rstrip("\n"),
        },
        ids=["01"], rows=1, warnings={"unterminated-tail"},
    ),
    "a heading that somebody is still writing": Tree(
        files={DAY: section("12") + "## 会话 1"},
        ids=["12"], closed=["01"], warnings={"unterminated-tail"},
    ),
    "a row that somebody is still writing": Tree(
        files={SUMMARY: HEAD + TABLE + row("2026-03-13", "01") + "| 2026-03-14 | 02 | fi"},
        rows=1, warnings={"unterminated-tail"},
    ),
    "bytes that are not UTF-8": Tree(
        files={
            DAY: LEGACY.encode() + b"\xff\xfe broken \xc3\n" + section("03").encode(),
            SUMMARY: (HEAD + TABLE + row("2026-03-14", "03")).encode().replace(b"did it", b"\xff"),
        },
        ids=["01", "02", "03"], rows=1, warnings={"invalid-utf8"},
    ),
    "control characters": Tree(
        files={DAY: "## 会话 01 — odd\n\na\x00b\x07c\x1b[2J\u2028d\u202ee\x0bf\x0cg\x85h\n"},
        ids=["01"],
    ),
    "a hundred sessions in a day": Tree(
        files={DAY: HUNDRED}, ids=[f"{number:02}" for number in range(1, 101)],
    ),
    "ids of all kinds": Tree(
        files={
            DAY: "## 会话 7 — a\n\nx\n## 会话 #08: b\n\nx\n## 会话 Release-2.x — c\n\nx\n"
            f"##  会话\t0009\nx\n## 会话 abc_def\n## 会话 {'z' * 64}\nx\n",
        },
        ids=["07", "08", "release-2.x", "09", "abc_def", "z" * 64],
    ),
    "one id three times": Tree(
        files={DAY: section("03") + "## 会话 3 — again\n\nx\n## 会话 03\n\ny\n"},
        ids=["03", "03", "03"],
    ),
    "headings that are none": Tree(
        files={
            DAY: section("01") + "## 会话\nstray\n## 会话 项目\nmore\n### 会话 05\n"
            "## 会议 06\n ## 会话 07\n##会话 08 — glued\nx\n",
        },
        ids=["01"], warnings={"malformed-session-heading"},
    ),
    "an id of twenty digits": Tree(
        files={DAY: "## 会话 99999999999999999999\n\nx\n## 会话 04\n\ny\n"},
        ids=["99999999999999999999", "04"],
    ),
    "a section with two markers": Tree(
        files={DAY: section("01") + MARK.format("01") + section("02")}, ids=["01", "02"],
    ),
    "another session's marker": Tree(
        files={DAY: "## 会话 05 — x\n\n" + MARK.format("04") + "\ntext\n"}, ids=["05"],
    ),
    "a fence that is never closed": Tree(
        files={DAY: "## 会话 01 — code\n\n```sh\nls\n\n## 会话 02 — next\n\ntext\n"},
        ids=["01", "02"],
    ),
    "a session over midnight": Tree(
        files={
            YESTERDAY: section("04").replace("2026-03-14", "2026-03-13"),
            DAY: "",
            SUMMARY: HEAD + TABLE + row("2026-03-13 23:50", "04", "🔄") + row("2026-03-13", "04"),
        },
        rows=2,
    ),
    "handoff cards": Tree(
        files={
            DAY: section("01", CARD + "\nlater\n\n" + CARD.replace("tests", "build")),
            SUMMARY: HEAD + TABLE + row("2026-03-14", "01", "⛔"),
        },
        ids=["01"], rows=1,
    ),
    "all words for a state": Tree(
        files={
            DAY: "".join(
                f"## 会话 {number:02} — s\n\n- **状态**：{word}\n"
                for number, word in enumerate(
                    ("incomplete", "✅ 未完成", "done, 4", "进行中（等）", "⏳", "已暂停", ""),
                    start=1,
                )
            ),
        },
        ids=[f"{number:02}" for number in range(1, 8)],
    ),
    "a wide table": Tree(
        files={
            SUMMARY: HEAD + TABLE
            + "| 2026-03-10 | 01 | fix | a | more | words | — | — | ✅ |\n"
            + row("2026-03-11", "02", summary=r"one \| two"),
        },
        rows=2, warnings={"row-repaired"},
    ),
    "rows that are too short": Tree(
        files={SUMMARY: HEAD + TABLE + "| 2026-03-10 | 01 | fix | a |\n" + row("2026-03-11", "02")},
        rows=1, warnings={"row-skipped"},
    ),
    "a summary in prose": Tree(
        files={SUMMARY: "# What we did\n\nWe fixed the export.\n\n- a list\n"},
        warnings={"summary-foreign-content"},
    ),
    "two tables with text between": Tree(
        files={
            SUMMARY: HEAD + TABLE + row("2026-03-10", "01") + "\n## 2026\n\nwords\n\n"
            + TABLE + row("2026-03-11", "02"),
        },
        rows=2, warnings={"summary-foreign-content"},
    ),
    "a heading after the table": Tree(
        files={SUMMARY: HEAD + TABLE + row("2026-03-10", "01") + "\n## Archive\n"}, rows=1,
    ),
    "dates and ids that are none": Tree(
        files={
            SUMMARY: HEAD + TABLE + row("2026-02-30", "01") + row("yesterday!!", "02")
            + row("2026-03-10", "会话") + row("2026-03-10", "7", "🔄"),
        },
        rows=4,
    ),
    "a row that was opened again": Tree(
        files={
            SUMMARY: HEAD + TABLE + row("2026-03-10", "03", "🔄") + row("2026-03-10", "03")
            + row("2026-03-10", "03", "🔄"),
        },
        rows=3,
    ),
    "a day and a row that disagree": Tree(
        files={
            DAY: section("01", "- **状态**：✅ completed\n"),
            SUMMARY: HEAD + TABLE + row("2026-03-14", "01", "🔄"),
        },
        ids=["01"], rows=1,
    ),
    "rows with blanks behind and text around": Tree(
        files={
            SUMMARY: HEAD + TABLE + row("2026-03-10", "01").replace("|\n", "|  \t\n")
            + "  | not a row |\n" + "| no end\n" + row("2026-03-11", "02"),
        },
        rows=2, warnings={"summary-foreign-content"},
    ),
    "memories of other agents": Tree(
        files={
            ".memory/clients/claude-code/SUMMARY.md": HEAD + TABLE + row("2026-03-13", "02", "🔄"),
            ".memory/clients/claude-code/tasks/20260313.md": section("02", CARD),
            ".memory/clients/copilot/tasks/20250101.md": LEGACY,
            ".memory/clients/旧的/SUMMARY.md": "x\n",
            ".memory/clients/README.md": "who is who\n",
            DAY: section("01"),
        },
        ids=["01"],
    ),
    "decisions of people and of writers": Tree(
        files={
            DECISIONS: "# 项目 SUMMARY — app\n\nRules we live by.\n\n## 决策记录\n\n"
            "| 日期 | 决策 | 原因 | 影响范围 | 证据 |\n|---|---|---|---|---|\n"
            "| 2026-01-02 | use UTC | — | all | — |\n",
        },
    ),
    "decisions above other text": Tree(
        files={
            DECISIONS: "## 决策记录\n\n| 日期 | 决策 | 原因 | 影响范围 | 证据 |\n"
            "|---|---|---|---|---|\n| 2026-01-02 | use UTC | — | all | — |\n"
            "\n## Notes\n\nwords without end",
        },
    ),
    "tasks, reports and files of people": Tree(
        files={
            "requirements/导出 CSV/.memory/task.json": '{"schemaVersion":"TaskIdentityV1"}',
            "requirements/导出 CSV/.memory/sessions.md": "# sessions\n",
            "reports/audit/codex/20260314/01--audit.md": "# audit\n",
            "README.md": "read me\n",
            "task-index.md": "| a |\n",
            "blob.bin": bytes(range(256)),
            "profile/config.json": '{"agent":"codex","theme":"dark"}\n',
            "migrations/v4/log.txt": "old",
            DAY: LEGACY,
        },
        ids=["01", "02"],
    ),
    "a layout of the seed": Tree(
        files={
            "layout.json": '{\n  "mode": "project-root",\n  "schemaVersion": "WorkspaceLayoutV1",\n'
            '  "createdBy": "devcodex"\n}\n',
            DAY: section("01"),
        },
        ids=["01"],
    ),
    "a workspace of many projects": Tree(
        files={
            "layout.json": '{"mode":"workspace-namespace"}',
            f"billing/{DAY}": section("01"),
            f"billing/{SUMMARY}": HEAD + TABLE + row("2026-03-14", "01"),
            f"web/{DAY}": LEGACY,
            f"workspace/{DECISIONS}": "# shared\n",
        },
        ids=["01"], rows=1, project="billing", below="billing/",
    ),
    "runtime state of another release": Tree(
        files={
            ".gitignore": "*.tmp",
            ".runtime-state/leases/old.json": "{}",
            ".runtime-state/memory.sqlite": b"SQLite format 3\x00",
            ".runtime-state/derived-indexes/v0/x.json": "{}",
            DAY: section("01"),
        },
        ids=["01"],
    ),
    "a line of half a megabyte": Tree(
        files={DAY: f"## 会话 01 — long\n\n{'长' * 170_000}\n## 会话 02 — short\n\nx\n"},
        ids=["01", "02"],
    ),
    "headings of markdown inside": Tree(
        files={
            DAY: "## 会话 01 — a\n\n### 🎯 任务摘要\n\ntext\n\n# Top\n\n## Other\n\n"
            "| 轮次 | 👤 用户消息 |\n|---|---|\n| 1 | hi |\n## 会话 02 — b\n",
        },
        ids=["01", "02"],
    ),
}  # fmt: skip
