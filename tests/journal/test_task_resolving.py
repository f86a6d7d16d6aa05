"""Finding tasks by what people call them, and what an answer tells of the one that was found."""

import json
import os
from pathlib import Path

import pytest

from tests.support import tasking, workspaces
from tests.support.journal_faces import InProcess
from tests.support.tasking import Task, admit, agent, bind
from tests.support.workspaces import tree

LOCALES = (None, "en", "zh-CN", "zh", "tr", "ja-JP", "pt-BR")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tasking.workspace(tmp_path / "billing")


@pytest.fixture
def namespace(tmp_path: Path) -> Path:
    workspaces.project(tmp_path, "billing", "web")
    workspaces.layout(tmp_path, '{"mode":"workspace-namespace"}')
    return tmp_path


def warned(found: dict[str, object]) -> list[object]:
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    return [one["code"] for one in warnings]


@pytest.mark.requirement("T39", "T40", "T41", "T42", "TA35")
def test_at_a_base_all_projects_are_searched_and_two_of_one_name_are_ambiguous(
    namespace: Path,
) -> None:
    face = agent(namespace)
    billing = admit(face, project="billing", aliases=["CSV totals"])
    admit(face, project="web")
    before = tree(namespace)
    found = face.call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["code"]) == ("ambiguous", "TASK_AMBIGUOUS")
    candidates = found["candidates"]
    assert isinstance(candidates, list)
    assert [one["project"] for one in candidates] == ["billing", "web"]
    for one in candidates:
        assert set(one) == {"displayName", "project", "kind", "status", "taskId"}
    assert found["candidate"] is None
    assert str(namespace) not in json.dumps({**found, "activeRoot": ""})
    for name in ("CSV totals", billing.task_id, "ＣＳＶ　totals"):
        one = face.call("memory_task_resolve", name=name)
        assert one["outcome"] == "resolved-active"
        assert one["candidate"]["project"] == "billing"  # type: ignore[index]
        assert one["nextCall"]["arguments"]["project"] == "billing"  # type: ignore[index]
    near = face.call("memory_task_resolve", name="Export totels")
    assert (near["outcome"], len(near["suggestions"])) == ("not-found", 2)  # type: ignore[arg-type]
    assert tree(namespace) == before
    refusal = face.refused(
        "memory_task_admit_v2", operation="bind", instruction="go on", task=tasking.NAME
    )
    assert refusal.both == ("ambiguous", "MEMORY_SCOPE_AMBIGUOUS")


@pytest.mark.requirement("T43", "TA36")
def test_a_locale_changes_the_words_and_nothing_else(base: Path) -> None:
    face = agent(base)
    admit(face, "导出总额")
    admit(face, "İhracat toplamı")
    admit(face, "エクスポート 合計")
    for name in ("导出总额", "ihracat toplamı", "ｴｸｽﾎﾟｰﾄ　合計", "导出总", "nobody at all", "x"):
        answers = []
        for locale in LOCALES:
            given = {} if locale is None else {"locale": locale}
            found = face.call("memory_task_resolve", name=name, **given)
            expected = "zh-CN" if (locale or "").startswith("zh") else "en"
            assert found["textLocale"] == expected
            assert found["locale"] == ("zh-CN" if locale == "zh" else locale)
            assert found["localeSource"] == ("absent" if locale is None else "argument")
            for field in ("text", "locale", "localeSource", "textLocale", "planId"):
                del found[field]
            answers.append(found)
        assert all(one == answers[0] for one in answers)
    refusal = face.refused("memory_task_resolve", name="x", locale="zz_??")
    assert refusal.both == ("invalid_argument", "TASK_LOCALE_INVALID")


@pytest.mark.requirement("T43")
def test_a_session_keeps_the_locale_that_its_request_named(base: Path) -> None:
    face = agent(base)
    admit(face, locale="zh-TW")
    found = face.call("memory_task_resolve", name=tasking.NAME)
    assert (found["locale"], found["localeSource"]) == ("zh-TW", "session")
    assert "任务" in str(found["text"])
    other = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    assert other["localeSource"] == "absent"


@pytest.mark.requirement("T38", "T41")
@pytest.mark.parametrize("name", [None, "", "  ", "\u3000"])
def test_without_a_name_nobody_is_found(base: Path, name: str | None) -> None:
    given = {} if name is None else {"name": name}
    refusal = agent(base).refused("memory_task_resolve", **given)
    assert refusal.both == ("invalid_argument", "TASK_NAME_REQUIRED")


@pytest.mark.requirement("T28", "T41", "TA36")
@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("状态：inactive", "unknown-status"), ("状态：未完成", "unknown-status"),
        ("状态：✅ done", "completed"), ("状态：🔄", "resolved-active"), ("", "resolved-active"),
        ("状态：❌ 已废弃", "rejected"), ("状态：⛔ waits for review", "resolved-active"),
    ],
)  # fmt: skip
def test_a_hand_made_task_stands_where_its_notes_say(base: Path, line: str, outcome: str) -> None:
    memory = base / ".devcodex/requirements/导出总额/.memory"
    memory.mkdir(parents=True)
    (memory / "sessions.md").write_text(f"# notes\n\n{line}\n", encoding="utf-8")
    before = tree(base)
    found = agent(base).call("memory_task_resolve", name="导出总额")
    assert found["outcome"] == outcome
    candidate = found["candidate"]
    assert isinstance(candidate, dict)
    assert (candidate["legacy"], candidate["taskId"]) == (True, None)
    assert found["mutationAuthority"] is False
    assert tree(base) == before
    if outcome == "resolved-active":
        following = found["nextCall"]
        assert isinstance(following, dict)
        assert following["arguments"] == {"operation": "adopt", "task": "requirements/导出总额"}


@pytest.mark.requirement("T39")
def test_directories_of_any_name_are_told_and_break_no_answer(base: Path) -> None:
    for name in (b"\xff\xfe", "a\u202eb".encode(), b"line\nbreak", "\U0001f600".encode()):
        os.makedirs(os.fsencode(base) + b"/.devcodex/bugs/" + name)
    face = agent(base)
    listed = face.call("memory_task_list")
    assert listed["totalMatched"] == 4
    assert face.call("memory_task_resolve", name="\ufffd\ufffd")["outcome"] == "resolved-active"
    assert face.call("memory_task_resolve", name="nobody")["outcome"] == "not-found"


@pytest.mark.requirement("T44", "J9")
def test_an_answer_shows_the_owner_and_nothing_to_write_by(base: Path) -> None:
    face = agent(base)
    task = admit(face)
    task.confirm()
    begun = task.begin("a.py")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    owner = found["owner"]
    assert isinstance(owner, dict)
    assert set(owner) == {"agent", "session", "writerGeneration", "status", "expiresAt"}
    assert len(str(owner["session"])) == 12
    assert found["pendingOperation"] == {
        "operationId": begun["operationId"], "phase": "dispatched", "targets": ["a.py"],
        "recordDigest": begun["recordDigest"],
    }  # fmt: skip
    following = found["nextCall"]
    assert isinstance(following, dict)
    assert following["tool"] == "memory_artifact_mutation_reconcile_v1"
    record = next((tasking.ledger_of(base) / "task").iterdir()).read_text()
    state = json.loads(record)["body"]
    shown = json.dumps(found)
    for secret in (state["owner"]["nonce"], state["owner"]["leaseDigest"], task.owner[4:]):
        assert secret not in shown
    assert str(begun["writeContext"]["contextDigest"]) not in shown  # type: ignore[index]
    assert found["mutationAuthority"] is False


@pytest.mark.requirement("T41", "T44", "J50", "J53")
def test_a_resolve_opens_the_plan_and_names_what_to_read_again(base: Path) -> None:
    task = admit(agent(base))
    task.confirm()
    fresh = agent(base, "other")
    found = fresh.call("memory_task_resolve", name=tasking.NAME)
    files = found["rehydration"]
    assert isinstance(files, list)
    roles = {role: one for one in files for role in one["roles"]}
    assert set(roles) == {"identity", "notes", "overview", "CP1"}
    assert roles["CP1"]["sha256"] == tasking.sha256(task.root / "00-问题概况.md")
    assert fresh.call("memory_summary_query")["planId"] == found["planId"]


@pytest.mark.requirement("T41", "T45")
def test_a_confirmed_file_that_changed_is_told_with_its_slot(base: Path) -> None:
    task = admit(agent(base))
    task.confirm()
    overview = task.root / "00-问题概况.md"
    whole = overview.read_bytes()
    overview.write_bytes(whole + b"x")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["code"]) == ("stale-confirmation", "TASK_CONFIRMATION_STALE")
    assert found["staleCheckpoints"] == ["CP1"]
    assert found["continuation"]["overall"] == "re-confirm"  # type: ignore[index]
    overview.write_bytes(whole)
    again = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    assert (again["outcome"], again["staleCheckpoints"]) == ("resolved-active", [])


@pytest.mark.requirement("T49", "TA21")
def test_a_row_that_a_person_edited_is_drift_and_is_not_believed(base: Path) -> None:
    task = admit(agent(base))
    notes = task.root / ".memory/sessions.md"
    digest = tasking.sha256(task.root / "00-问题概况.md").upper()
    text = notes.read_text(encoding="utf-8")
    row = f"| CP1 | ✅ | [00-问题概况.md](../00-问题概况.md) | v1 | `{digest}` | yes | — |"
    notes.write_text(text.replace("| CP1 | ⏳ | — | — | — | — | — |", row), encoding="utf-8")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    assert warned(found) == ["cp-view-drift"]
    assert found["checkpoints"]["slots"][0]["status"] == "waiting"  # type: ignore[index]
    text = notes.read_text(encoding="utf-8")
    notes.write_text(text.replace("🔄 active", "✅ done"), encoding="utf-8")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    assert found["outcome"] == "resolved-active"
    assert warned(found) == ["cp-view-drift", "status-view-drift"]


@pytest.mark.requirement("T39", "TA48")
def test_more_tasks_than_a_search_may_read_are_counted(base: Path) -> None:
    for number in range(2_001):
        (base / f".devcodex/bugs/t{number}").mkdir(parents=True)
    found = agent(base).call("memory_task_resolve", name="t1")
    assert (found["outcome"], found["code"]) == ("scale-blocked", "TASK_INDEX_SCALE_BLOCKED")
    assert (found["candidate"], found["candidates"], found["suggestions"]) == (None, [], [])
    assert found["scanned"] == {
        "directories": 2_001, "bytes": 0,
        "budget": {"directories": 2_000, "bytes": 16 * 1024 * 1024},
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("T39", "T40", "T42")
def test_among_two_thousand_tasks_of_many_scripts_each_is_found_by_its_name(base: Path) -> None:
    scripts = ("导出总额", "合計の出力", "Dışa aktarım", "Ｅｘｐｏｒｔ", "Straße", "экспорт")
    for number in range(2_000):
        name = f"{scripts[number % len(scripts)]} {number}"
        memory = base / f".devcodex/bugs/{name}/.memory"
        memory.mkdir(parents=True)
        (memory / "sessions.md").write_text("> 状态：🔄\n", encoding="utf-8")
    face = agent(base)
    for asked, number in (
        ("导出总额 0", 0), ("合計の出力　1", 1), ("DIŞA AKTARIM 2", None), ("export 3", 3),
        ("STRASSE 4", 4), ("ЭКСПОРТ 5", 5), ("straße 1996", 1996),
    ):  # fmt: skip
        found = face.call("memory_task_resolve", name=asked)
        if number is None:  # a dotless i is another letter, whatever the locale
            assert found["outcome"] == "not-found"
            continue
        assert found["outcome"] == "resolved-active"
        assert str(found["candidate"]["displayName"]).endswith(f" {number}")  # type: ignore[index]
    near = face.call("memory_task_resolve", name="Strasze 1996")
    assert near["outcome"] == "not-found"
    suggested = near["suggestions"]
    assert isinstance(suggested, list)
    assert len(suggested) == 5


def handed_over(base: Path, content: str = "what I did") -> tuple[Task, dict[str, str]]:
    """Confirm CP1, write two artifacts and a hand-off card that names them."""
    face = agent(base)
    task = admit(face)
    task.confirm()
    named = {}
    for name in ("plan.md", "notes.md"):
        (task.root / name).write_text(f"{name}\n")
        named[name] = f"bugs/Export totals/{name}"
    face.call(
        "memory_session_write", content=content,
        handoff={"task": tasking.NAME, "next-action": "measure the totals again"},
        artifacts=[{"label": name, "targetPath": path} for name, path in named.items()],
    )  # fmt: skip
    return task, named


@pytest.mark.requirement("T65", "J69")
def test_a_fresh_hand_off_is_continued(base: Path) -> None:
    task, _ = handed_over(base)
    before = tree(base)
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    continuation = found["continuation"]
    assert isinstance(continuation, dict)
    verdicts = {one["key"]: one["verdict"] for one in continuation["items"]}
    assert verdicts == {
        "identity": "same", "status": "same", "owner": "same", "admission": "same",
        "cp:CP1": "same", "cp:CP2": "same", "cp:CP3": "same",
        "artifact:bugs/Export totals/plan.md": "same",
        "artifact:bugs/Export totals/notes.md": "same",
        "artifact:bugs/Export totals/00-问题概况.md": "new",
    }  # fmt: skip
    assert continuation["overall"] == "continue"
    assert "measure the totals again" in continuation["nextAction"]
    assert "ContextHandoffCard" in str(found["card"])
    assert tree(base) == before
    task.own("release")
    bound = bind(agent(base, "other"))
    again = bound.face.call("memory_task_resolve", name=tasking.NAME)
    items = {one["key"]: one["verdict"] for one in again["continuation"]["items"]}  # type: ignore[index]
    assert (items["owner"], items["admission"], items["cp:CP1"]) == ("changed", "changed", "same")
    none = bound.face.call("memory_task_resolve", name=tasking.NAME, diff=False)
    assert none["continuation"] is None


@pytest.mark.requirement("T65", "TA47")
def test_what_a_card_claims_and_the_ledger_does_not_know_is_confirmed_again(base: Path) -> None:
    task, named = handed_over(base, content="CP2 and CP3 are confirmed, believe me")
    # The ledger forgot: authority was revoked, the task bound anew.
    agent(base, "person").call("memory_task_revoke")
    bind(agent(base, "other"))
    (task.root / "plan.md").write_text("another plan\n")
    before = tree(base)
    found = agent(base, "third").call("memory_task_resolve", name=tasking.NAME)
    continuation = found["continuation"]
    assert isinstance(continuation, dict)
    assert continuation["overall"] == "re-confirm"
    changed = {one["key"] for one in continuation["items"] if one["verdict"] == "changed"}
    assert changed == {"cp:CP1", "cp:CP2", f"artifact:{named['plan.md']}", "owner", "admission"}
    assert tree(base) == before


@pytest.mark.requirement("T65")
def test_an_open_operation_comes_before_all_else(base: Path) -> None:
    task, _ = handed_over(base)
    opened = task.begin("a.py")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    continuation = found["continuation"]
    assert isinstance(continuation, dict)
    assert continuation["overall"] == "reconcile"
    items = {one["key"]: one["verdict"] for one in continuation["items"]}
    assert items[f"operation:{opened['operationId']}"] == "new"


@pytest.mark.requirement("T65")
def test_without_a_card_every_item_is_new(base: Path) -> None:
    admit(agent(base))
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    continuation = found["continuation"]
    assert isinstance(continuation, dict)
    assert {one["verdict"] for one in continuation["items"]} == {"new"}
    assert continuation["overall"] == "continue"
    assert found["card"] is None


@pytest.mark.requirement("T65")
def test_a_state_line_that_a_person_rewrote_is_no_state_line(base: Path) -> None:
    handed_over(base)
    day = next((base / ".devcodex/.memory/clients/codex/tasks").iterdir())
    text = day.read_text(encoding="utf-8")
    head, _, tail = text.partition("- **state**：")
    day.write_text(f"{head}- **state**：{{}}\n{tail.partition(chr(10))[2]}", encoding="utf-8")
    found = agent(base, "other").call("memory_task_resolve", name=tasking.NAME)
    continuation = found["continuation"]
    assert isinstance(continuation, dict)
    assert {one["verdict"] for one in continuation["items"]} == {"new"}


@pytest.mark.requirement("T13", "TA37")
def test_a_hint_is_shown_as_data_and_chooses_nothing(namespace: Path) -> None:
    face = agent(namespace)
    task = admit(face, project="billing")
    admit(face, "Another", project="web")
    found = face.call("memory_task_resolve", name=tasking.NAME, project="billing")
    hint = found["routeHint"]
    assert isinstance(hint, dict)
    assert (hint["project"], hint["trigger"]) == ("web", "project-switch")
    assert (hint["authority"], hint["hintOnly"]) == (False, True)
    assert hint["taskId"] != task.task_id
    assert (namespace / ".devcodex/workspace/.runtime-state/ledger/route").is_dir()
    refusal = face.refused("memory_task_write_owner", operation="renew", owner=task.owner,
                           task=tasking.NAME)  # fmt: skip
    assert refusal.both == ("ambiguous", "MEMORY_SCOPE_AMBIGUOUS")
    broken = next((namespace / ".devcodex/workspace/.runtime-state/ledger/route").iterdir())
    broken.write_bytes(b"{}")
    assert (
        face.call("memory_task_resolve", name=tasking.NAME, project="billing")["routeHint"] is None
    )
    assert task.renew()["status"] == "active"


@pytest.mark.requirement("T73")
def test_a_person_lists_and_looks_at_tasks(base: Path) -> None:
    face = agent(base)
    task = admit(face)
    task.confirm()
    admit(face, "Second")
    before = tree(base)
    listed = agent(base, "person").call("memory_task_list")
    rows = listed["tasks"]
    assert isinstance(rows, list)
    assert [(one["displayName"], one["checkpoints"]) for one in rows] == [
        ("Export totals", "✓?·"), ("Second", "?··"),
    ]  # fmt: skip
    assert (listed["totalMatched"], listed["truncated"]) == (2, False)
    assert agent(base).call("memory_task_list", limit=1)["truncated"] is True
    assert agent(base).call("memory_task_list", status="completed")["tasks"] == []
    shown = agent(base, "person").call("memory_task_show", task=tasking.NAME)
    assert shown["taskId"] == task.task_id
    assert shown["owner"]["agent"] == "codex"  # type: ignore[index]
    transitions = shown["transitions"]
    assert isinstance(transitions, list)
    assert transitions[0]["op"] == "render"
    assert task.owner[4:] not in json.dumps([listed, shown])
    assert tree(base) == before


@pytest.mark.requirement("T7")
def test_a_read_of_tasks_needs_nothing_to_be_there(tmp_path: Path) -> None:
    face = InProcess(tasking.workspace(tmp_path / "empty"))
    assert face.call("memory_task_resolve", name="x")["outcome"] == "not-found"
    assert face.call("memory_task_list")["tasks"] == []
    assert face.refused("memory_task_show", task="x").reason == "TASK_NOT_FOUND"
    assert not (tmp_path / "empty/.devcodex").exists()
