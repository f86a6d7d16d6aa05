"""What an answer about a task says in words, in the language of its locale (T43).

Rule 1: the words repeat what the fields say; no program reads them, and nothing hangs on them.
"""

from collections.abc import Sequence

from amux.journal.tasks import resolve
from amux.journal.text.locale import CHINESE

_WORDS: dict[str, tuple[str, str]] = {
    resolve.RESOLVED: (
        "“{name}” is an active task. Read its files again; bind it before you write.",
        "“{name}”是进行中的任务。请先重新读取其文件，写入前先绑定。",
    ),
    resolve.COMPLETED: (
        "“{name}” is completed. Resolving does not reopen it; ask the person.",
        "“{name}”已完成。查找不会重新打开它，请询问用户。",
    ),
    resolve.REJECTED: (
        "“{name}” ended without being completed; ask the person.",
        "“{name}”已终止，未完成，请询问用户。",
    ),
    resolve.UNKNOWN_STATUS: (
        "“{name}” has a status line that nobody can read; ask the person.",
        "“{name}”的状态行无法识别，请询问用户。",
    ),
    resolve.STALE: (
        "“{name}”: what was confirmed is not what is there now ({what}); show it to the person.",
        "“{name}”：已确认的内容与现状不符（{what}），请让用户重新确认。",
    ),
    resolve.AMBIGUOUS: (
        "More than one task is called “{name}”; ask which is meant.",
        "有多个任务名为“{name}”，请询问用户指的是哪一个。",
    ),
    resolve.NOT_FOUND: (
        "No task is called “{name}”.{near}",
        "没有名为“{name}”的任务。{near}",
    ),
    resolve.SCALE_BLOCKED: (
        "There are more tasks than one search may read; give project.",
        "任务数量超出一次查找的上限，请指定 project。",
    ),
}


def sentence(
    outcome: str,
    text_locale: str,
    name: str,
    *,
    stale: Sequence[str] = (),
    problem: str | None = None,
    names: Sequence[str] = (),
) -> str:
    """Say an outcome in words."""
    is_chinese = text_locale == CHINESE
    near = ""
    if names:
        listed = ("、" if is_chinese else ", ").join(names)
        near = f"相近的有：{listed}。" if is_chinese else f" Near it: {listed}."
    what = problem or ", ".join(stale)
    return _WORDS[outcome][is_chinese].format(name=name, near=near, what=what)
