"""A workspace after five years of work: 1,826 days, 9,130 sections, 18,260 rows (journal §17)."""

from datetime import date, timedelta
from pathlib import Path

DAYS, SECTIONS = 1826, 5
TEXT = "导出接口返回过期的总数: the totals in the CSV lag one day because a cache is kept too long"
HEADER = (
    "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
    "|------|:----:|------|------|---------|---------|:----:|\n"
)


def write(root: Path, agent: str, last: date) -> None:
    """Write the days and the SUMMARY of an agent below an active root, up to this date."""
    home = root / ".memory/clients" / agent
    (home / "tasks").mkdir(parents=True)
    rows = [f"# Agent SUMMARY — {agent}\n\n> 项目：billing\n\n", HEADER]
    for number in range(DAYS):
        day = last - timedelta(days=DAYS - 1 - number)
        name = f"{day:%Y%m%d}.md"
        (home / "tasks" / name).write_text(
            "".join(_section(day, n) for n in range(1, SECTIONS + 1))
        )
        rows += [
            f"| {day} 09:{n:02d} | {n:02d} | fix | {TEXT}, part {number} of {n} | — "
            f"| [{name}](tasks/{name}) | {glyph} |\n"
            for n in range(1, SECTIONS + 1)
            for glyph in "🔄✅"
        ]
    (home / "SUMMARY.md").write_text("".join(rows))


def write_full_day(root: Path, agent: str, day: date) -> None:
    """Write a day of 1 MiB: a hundred sections."""
    section = _section(day, 1).partition("\n")[2] + f"{TEXT}\n" * 90
    path = root / ".memory/clients" / agent / f"tasks/{day:%Y%m%d}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"## 会话 {n:02d} — {TEXT}\n{section}\n" for n in range(1, 101)))


def _section(day: date, number: int) -> str:
    token = f"{number:02d}" * 32
    return (
        f"## 会话 {number:02d} — {TEXT}\n\n- **时间**：{day} 09:{number:02d} +00:00\n"
        f"- **意图**：fix\n- **状态**：🔄 reserved\n- **sourceMessage**：{TEXT}\n"
        f"<!-- devcodex:memory-session-binding v1 session={number:02d} token={token} -->\n"
        f"<!-- amux:session {'0' * 16} -->\n\n{TEXT}\n\n- **状态**：✅ completed\n\n"
    )
