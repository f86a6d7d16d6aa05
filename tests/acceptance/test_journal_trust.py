"""What the journal trusts, and what it takes as text: odd files, forms, sources at odds."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.journal_faces import InProcess
from tests.support.workspaces import project, tree

STATUS, SESSION, WRITE = "memory_status", "memory_session_query", "memory_session_write"
NAME = "Export endpoint returns stale totals"
PROMPT_SECONDS = 0.1  # JA27; CPU time, so that a busy machine proves nothing


@pytest.fixture
def here(tmp_path: Path) -> Path:
    project(tmp_path / "here", ".")
    return tmp_path / "here"


def a_socket(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY)
    before = os.getcwd()  # the path of a socket may have 107 bytes
    try:
        os.fchdir(folder)
        made.bind(path.name)
    finally:
        os.chdir(before)
        os.close(folder)
        made.close()


def a_device(path: Path) -> None:
    if os.geteuid() == 0:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # as /dev/zero: reading never ends
    else:
        os.mkfifo(path)


@pytest.mark.requirement("JA27", "J54", "J19")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, a_socket, a_device])
def test_a_day_that_is_no_file_is_refused_at_once(here: Path, make: Callable[[Path], None]) -> None:
    tasks = here / ".devcodex/.memory/clients/codex/tasks"
    tasks.mkdir(parents=True)
    make(tasks / "20260314.md")
    face = InProcess(here)
    face.refused(STATUS)  # whatever a first call imports is not counted
    for name, arguments in (
        (STATUS, {}),
        (WRITE, {"content": "a"}),
        ("memory_session_read", {}),
        ("memory_session_allocate", {}),
    ):
        start = time.process_time()
        refusal = face.refused(name, **arguments)
        assert time.process_time() - start < PROMPT_SECONDS
        assert refusal.both == ("corrupt", "MEMORY_FILE_NOT_REGULAR")


@pytest.mark.requirement("JA27", "J19")
@pytest.mark.parametrize("below", [".memory", ".memory/clients", ".memory/clients/codex"])
def test_a_link_on_the_way_is_not_followed(here: Path, tmp_path: Path, below: str) -> None:
    outside = tmp_path / "outside"
    (outside / "codex/tasks").mkdir(parents=True)
    (outside / "clients/codex/tasks").mkdir(parents=True)
    (outside / "tasks").mkdir()
    link = here / ".devcodex" / below
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    before = tree(outside)
    face = InProcess(here)
    for name, arguments in ((STATUS, {}), (WRITE, {"content": "a"}), (WRITE, {"row": "r"})):
        refusal = face.refused(name, **arguments)
        assert refusal.both == ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")
    assert tree(outside) == before


FORMS = """\
### 📨 对话记录

| 轮次 | 👤 用户消息 | 🤖 AI执行 | 状态 |
|---|---|
| 1 | a | b | c | d | e

### 🎯 任务摘要
### 📋 任务清单
T1 no mark at all
#### 📄 关联报告
[a link](nowhere/at/all.md)
### 💡 关键决策
### ⚠️ 待跟进
### 📦 编码检查点
```
an unclosed fence
"""


@pytest.mark.requirement("J41")
def test_the_form_of_a_text_is_no_reason_to_refuse_it(here: Path) -> None:
    face = InProcess(here)
    receipt = face.call(WRITE, content=FORMS)
    again = face.call(WRITE, section=receipt["section"], content="and more")
    assert again["sessionId"] == receipt["sessionId"]
    next_one = face.call(WRITE, content="the fence swallowed nothing", title="next")
    assert next_one["sessionId"] == "02"
    face.call(STATUS)
    (match,) = face.call(SESSION, sessionId="01")["matches"]
    assert FORMS.rstrip("\n") in match["content"]
    assert "and more" in match["content"]


def admitted(face: InProcess) -> dict[str, object]:
    return face.call(
        "memory_task_admit_v2",
        instruction="fix the stale totals",
        taskKind="bugs",
        displayName=NAME,
        overview="The totals lag one day.",
    )


@pytest.mark.requirement("J10", "J45")
def test_a_summary_is_an_index_and_overrules_nothing(here: Path) -> None:
    face = InProcess(here, session="s")
    admitted(face)
    section = face.call(WRITE, title=NAME, content="working on it", status="active")
    face.call(
        "memory_summary_append",
        entry={
            "summary": f"{NAME}: all done, confirmed by everybody",
            "status": "completed",
            "type": "fix",
            "sessionId": section["sessionId"],
        },
    )
    status = face.call(STATUS)
    (conflict,) = status["conflicts"]
    assert conflict["kind"] == "summary-day-mismatch"
    found = face.call("memory_task_resolve", name=NAME)
    assert found["outcome"] == "resolved-active"
    slots = {slot["phase"]: slot["status"] for slot in found["checkpoints"]["slots"]}
    assert slots == {"CP1": "waiting", "CP2": "unstarted", "CP3": "unstarted"}
    assert found["mutationAuthority"] is False


@pytest.mark.requirement("J49", "J10")
def test_a_task_has_a_memory_of_its_own_beside_the_agents(here: Path) -> None:
    face = InProcess(here, session="s")
    receipt = admitted(face)
    memory = here / ".devcodex" / str(receipt["taskRootRelative"]) / ".memory"
    assert sorted(path.name for path in memory.iterdir()) == ["sessions.md", "task.json"]
    face.call(WRITE, content="a note of the task", task=NAME)
    assert "a note of the task" in (memory / "sessions.md").read_text(encoding="utf-8")
