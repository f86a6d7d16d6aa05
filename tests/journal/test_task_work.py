"""Operations, their reconciliation, and the end of a task (T56 to T64), at the desk."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.disk import regular
from amux.disk.tree import Folder
from tests.support import tasking
from tests.support.tasking import Task, admit, agent, bind, ledger_of, state_of
from tests.support.workspaces import AT, tree

UNSETTLED = ("outcome_unknown", "TASK_OPERATION_UNSETTLED")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    made = tasking.workspace(tmp_path / "billing")
    (made / "a.py").write_text("a = 1\n")
    return made


@pytest.fixture
def task(base: Path) -> Task:
    made = admit(agent(base))
    made.confirm()
    return made


def refused(task: Task, tool: str, **arguments: object) -> tuple[str, str]:
    given = {"owner": task.owner, **task.named, **arguments}
    return task.face.refused(tool, **given).both


def makes_unreadable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have a file refuse to be read, as one of another user does; tests may run as root."""
    facts = regular.facts

    def blind(folder: Folder, wanted: str) -> regular.Facts | None:
        if wanted == name:
            raise PermissionError(13, "permission denied")
        return facts(folder, wanted)

    monkeypatch.setattr(regular, "facts", blind)


@pytest.mark.requirement("T58", "T59", "TA38")
def test_what_was_done_is_told_by_the_files(base: Path, task: Task) -> None:
    begun = task.begin("a.py", "new.py")
    assert (begun["phase"], begun["effect"], begun["replayed"]) == (
        "dispatched", "unknown", False,
    )  # fmt: skip
    assert str(begun["operationId"]).startswith("op-")
    targets = begun["targets"]
    assert isinstance(targets, list)
    assert [one["before"] for one in targets] == [tasking.sha256(base / "a.py"), "absent"]
    settled = task.settle()
    assert (settled["phase"], settled["effect"]) == ("settled", "known-not-applied")
    task.begin("a.py", "new.py")
    (base / "new.py").write_text("b = 2\n")
    settled = task.settle()
    assert settled["effect"] == "known-applied"
    targets = settled["targets"]
    assert isinstance(targets, list)
    assert [one["after"] for one in targets] == [
        tasking.sha256(base / "a.py"), tasking.sha256(base / "new.py"),
    ]  # fmt: skip


@pytest.mark.requirement("T53", "T58", "TA38")
def test_the_same_begin_again_is_answered_and_not_dispatched_twice(base: Path, task: Task) -> None:
    begun = task.begin("a.py")
    before = tree(base)
    again = task.begin("a.py")
    assert (again["replayed"], again["operationId"]) == (True, begun["operationId"])
    assert tree(base) == before
    settled = task.settle()
    assert task.settle()["replayed"] is True
    assert settled["replayed"] is False


@pytest.mark.requirement("T58")
def test_beginning_another_settles_the_one_before(base: Path, task: Task) -> None:
    first = task.begin("a.py")
    (base / "a.py").write_text("a = 2\n")
    second = task.begin("b.py", kind="create")
    settled = second["settledOperation"]
    assert isinstance(settled, dict)
    assert (settled["operationId"], settled["effect"]) == (first["operationId"], "known-applied")
    released = task.own("release")
    assert released["settledOperation"]["operationId"] == second["operationId"]  # type: ignore[index]


@pytest.mark.requirement("T58", "J19")
@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "a//b", "active:../x", "c:\\x"])
def test_a_target_is_a_plain_path(task: Task, path: str) -> None:
    assert refused(task, "memory_task_operation", op="begin", targets=[path]) == (
        "invalid_argument", "MEMORY_PATH_UNSAFE",
    )  # fmt: skip
    assert refused(task, "memory_task_operation", op="begin") == (
        "invalid_argument", "MEMORY_WRITER_ARGUMENT_REQUIRED",
    )  # fmt: skip


@pytest.mark.requirement("T58")
def test_a_target_may_lie_in_the_active_root_and_a_large_one_is_named_by_its_metadata(
    base: Path, task: Task
) -> None:
    begun = task.begin("active:bugs/Export totals/00-问题概况.md")
    assert begun["targets"][0]["before"] == tasking.sha256(  # type: ignore[index]
        task.root / "00-问题概况.md"
    )
    with (base / "large.bin").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    begun = task.begin("large.bin")
    before = begun["targets"][0]["before"]  # type: ignore[index]
    assert str(before).startswith("stat:")
    assert task.settle()["effect"] == "known-not-applied"


@pytest.mark.requirement("T2", "T54", "T60", "TA25", "TA38")
def test_an_unknown_effect_blocks_all_that_would_hide_it(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = task.begin("a.py")
    digest = str(opened["recordDigest"])
    with monkeypatch.context() as patched:
        makes_unreadable(patched, "a.py")
        assert refused(task, "memory_task_operation", op="settle") == UNSETTLED
        assert refused(task, "memory_task_operation", op="begin", targets=["b.py"]) == UNSETTLED
        assert refused(task, "memory_task_write_owner", operation="release") == UNSETTLED
        assert refused(task, "memory_task_terminal_v1", evidence=task.evidence()) == (
            "outcome_unknown", "TASK_TERMINAL_OPERATION_UNSETTLED",
        )  # fmt: skip
        assert (
            task.face.refused(
                "memory_artifact_mutation_reconcile_v1", expectedCloseoutDigest=digest, **task.named
            ).both
            == UNSETTLED
        )
        assert task.face.refused(
            "memory_task_operation", op="begin", owner=task.owner, targets=["a.py"],
            kind="command", **task.named,
        ).reason == "TASK_OPERATION_UNSETTLED"  # fmt: skip
    assert task.face.refused(
        "memory_artifact_mutation_reconcile_v1", expectedCloseoutDigest="0" * 64, **task.named
    ).both == ("revision_conflict", "ARTIFACT_RECONCILIATION_CAS_MISMATCH")
    done = task.face.call(
        "memory_artifact_mutation_reconcile_v1", expectedCloseoutDigest=digest[:16], **task.named
    )
    assert (done["status"], done["mutationAuthority"]) == ("reconciled", False)
    assert done["operation"]["phase"] == "settled"  # type: ignore[index]
    assert task.face.refused(
        "memory_artifact_mutation_reconcile_v1", expectedCloseoutDigest="1" * 64, **task.named
    ).both == ("not_found", "TASK_OPERATION_NOT_FOUND")


@pytest.mark.requirement("T54", "T60", "TA25")
def test_who_takes_over_reconciles_what_a_dead_session_left_open(base: Path, task: Task) -> None:
    opened = task.begin("a.py")
    other = agent(base, "other", at=AT + 86_400)
    live = other.refused(
        "memory_artifact_mutation_reconcile_v1", task=tasking.NAME,
        expectedCloseoutDigest=str(opened["recordDigest"]),
    )  # fmt: skip
    assert live.both == ("lease_held", "ARTIFACT_RECONCILIATION_OWNER_LIVE")
    refusal = other.refused(
        "memory_task_admit_v2", operation="bind", instruction="take over", task=tasking.NAME
    )
    assert refusal.details["blocking"] == ["live-turn", "operation"]
    _dies(task)
    refusal = other.refused(
        "memory_task_admit_v2", operation="bind", instruction="take over", task=tasking.NAME
    )
    assert refusal.both == ("lease_held", "TASK_WRITE_OWNER_TAKEOVER_INVALID")
    assert refusal.details["blocking"] == ["operation"]
    following = refusal.details["nextCall"]
    assert isinstance(following, dict)
    done = other.call(following["tool"], **following["arguments"])
    assert done["status"] == "reconciled"
    after = done["nextCall"]
    assert isinstance(after, dict)
    assert after["arguments"]["operation"] == "bind"
    bound = bind(other, "take over")
    assert bound.receipt["transition"] == "takeover"
    assert refused(task, "memory_task_operation", op="begin", targets=["a.py"]) == (
        "lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH",
    )  # fmt: skip


def _dies(task: Task) -> None:
    """Let go of what the kernel drops when a process dies."""
    task.face.desk._book.live.release_all()  # type: ignore[attr-defined]


@pytest.mark.requirement("T56", "T58")
def test_a_begin_is_bound_to_what_the_process_last_saw(base: Path, task: Task) -> None:
    fresh = Task(agent(base), task.receipt)
    assert refused(fresh, "memory_task_operation", op="begin", targets=["a.py"]) == (
        "lease_lost", "TASK_WRITE_CONTEXT_STALE",
    )  # fmt: skip
    context = fresh.renew()["writeContext"]
    assert isinstance(context, dict)
    assert fresh.begin("a.py")["phase"] == "dispatched"
    # The first server has not seen the renewal and the begin of the second one.
    assert refused(task, "memory_task_operation", op="settle") == (
        "lease_lost", "TASK_WRITE_CONTEXT_STALE",
    )  # fmt: skip
    quoted = fresh.renew()["writeContext"]
    assert isinstance(quoted, dict)
    settled = task.settle(contextDigest=quoted["contextDigest"])
    assert settled["phase"] == "settled"


@pytest.mark.requirement("T57", "T59", "TA19")
def test_work_that_was_begun_can_be_settled_under_an_authority_that_went_stale(
    task: Task,
) -> None:
    task.begin("a.py")
    (task.root / "00-问题概况.md").write_text("another requirement\n")
    assert task.settle()["phase"] == "settled"
    assert refused(task, "memory_task_operation", op="begin", targets=["a.py"]) == (
        "confirmation_required", "TASK_CP_STALE",
    )  # fmt: skip
    (task.root / "00-问题概况.md").write_text(tasking.OVERVIEW)
    assert task.begin("a.py")["phase"] == "dispatched"
    task.settle()
    (task.root / ".archived").touch()
    assert refused(task, "memory_task_operation", op="begin", targets=["a.py"]) == (
        "revision_conflict", "TASK_ARCHIVED",
    )  # fmt: skip


Spoil = Callable[[Task, dict[str, object]], object]


def _three(_task: Task, evidence: dict[str, object]) -> object:
    return evidence.pop("ecr")


def _twin(task: Task, evidence: dict[str, object]) -> object:
    os.link(task.root / "ecr.md", task.root / "twin.md")
    evidence["completion"] = "bugs/Export totals/twin.md"
    return None


def _same(_task: Task, evidence: dict[str, object]) -> object:
    evidence["completion"] = evidence["ecr"]
    return None


def _digest(_task: Task, evidence: dict[str, object]) -> object:
    evidence["ecr"] = {"path": evidence["ecr"], "sha256": "0" * 64}
    return None


def _size(_task: Task, evidence: dict[str, object]) -> object:
    evidence["ecr"] = {"path": evidence["ecr"], "bytes": 99}
    return None


def _outside(task: Task, evidence: dict[str, object]) -> object:
    (task.root / "done.md").write_text("done")
    evidence["report"] = "bugs/Export totals/done.md"
    return None


def _elsewhere(task: Task, evidence: dict[str, object]) -> object:
    (task.root.parent / "stray.md").write_text("x")
    evidence["ecr"] = "bugs/stray.md"
    return None


def _fifo(task: Task, _evidence: dict[str, object]) -> object:
    (task.root / "ecr.md").unlink()
    os.mkfifo(task.root / "ecr.md")
    return None


def _link(task: Task, _evidence: dict[str, object]) -> object:
    (task.root / "ecr.md").unlink()
    (task.root / "ecr.md").symlink_to(task.root / "00-问题概况.md")
    return None


def _empty(task: Task, _evidence: dict[str, object]) -> object:
    (task.root / "ecr.md").write_bytes(b"")
    return None


def _large(task: Task, _evidence: dict[str, object]) -> object:
    (task.root / "ecr.md").write_bytes(bytes(8 * 1024 * 1024 + 1))
    return None


def _missing(task: Task, _evidence: dict[str, object]) -> object:
    (task.root / "ecr.md").unlink()
    return None


def _unsafe(_task: Task, evidence: dict[str, object]) -> object:
    evidence["ecr"] = "bugs/Export totals/../x"
    return None


@pytest.mark.requirement("T62", "T63", "TA39")
@pytest.mark.parametrize(
    ("spoil", "code", "end"),
    [
        (_three, "invalid_argument", "INCOMPLETE"), (_twin, "invalid_argument", "DUPLICATE"),
        (_same, "invalid_argument", "DUPLICATE"), (_unsafe, "invalid_argument", "PATH_INVALID"),
        (_outside, "invalid_argument", "SCOPE_INVALID"),
        (_elsewhere, "invalid_argument", "SCOPE_INVALID"),
        (_fifo, "invalid_argument", "FILE_INVALID"), (_link, "invalid_argument", "FILE_INVALID"),
        (_empty, "invalid_argument", "FILE_INVALID"), (_large, "invalid_argument", "FILE_INVALID"),
        (_missing, "invalid_argument", "FILE_INVALID"),
        (_digest, "revision_conflict", "DIGEST_MISMATCH"),
        (_size, "revision_conflict", "DIGEST_MISMATCH"),
    ],
)  # fmt: skip
def test_evidence_that_does_not_stand_ends_nothing(
    task: Task, spoil: Spoil, code: str, end: str
) -> None:
    evidence = task.evidence()
    spoil(task, evidence)
    before = {path: path.read_bytes() for path in ledger_of(task.root.parents[2]).rglob("*.json")}
    assert refused(task, "memory_task_terminal_v1", evidence=evidence) == (
        code, f"TASK_TERMINAL_EVIDENCE_{end}",
    )  # fmt: skip
    after = {path: path.read_bytes() for path in ledger_of(task.root.parents[2]).rglob("*.json")}
    assert after == before
    assert task.renew()["status"] == "active"


@pytest.mark.requirement("T63", "TA39")
def test_a_file_that_changes_while_it_is_hashed_is_no_evidence(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = task.evidence()
    read = regular.read

    def touched(folder: Folder, name: str, *, max_bytes: int) -> regular.Found | None:
        found = read(folder, name, max_bytes=max_bytes)
        if name == "ecr.md":
            (task.root / "ecr.md").write_text("changed meanwhile")
        return found

    monkeypatch.setattr(regular, "read", touched)
    assert refused(task, "memory_task_terminal_v1", evidence=evidence) == (
        "revision_conflict", "TASK_TERMINAL_EVIDENCE_FILE_DRIFT",
    )  # fmt: skip


@pytest.mark.requirement("T62", "TA39")
def test_a_task_that_moved_is_not_ended_blindly(base: Path, task: Task) -> None:
    other = Task(agent(base), task.receipt)
    other.renew()
    assert refused(task, "memory_task_terminal_v1", evidence=task.evidence()) == (
        "lease_lost", "TASK_TERMINAL_STATE_CAS_MISMATCH",
    )  # fmt: skip
    assert refused(
        Task(agent(base, "stranger"), task.receipt), "memory_task_terminal_v1",
        evidence=task.evidence(),
    ) == ("lease_lost", "TASK_TERMINAL_OWNER_MISMATCH")  # fmt: skip


@pytest.mark.requirement("T62")
def test_only_a_task_with_its_requirement_confirmed_is_completed(base: Path) -> None:
    task = admit(agent(base))
    assert refused(task, "memory_task_terminal_v1", evidence=task.evidence()) == (
        "confirmation_required", "TASK_TERMINAL_CP_CONFIRMATION_REQUIRED",
    )  # fmt: skip
    ended = task.finish(terminalStatus="cancelled")
    assert ended["receipt"]["terminalStatus"] == "cancelled"  # type: ignore[index]
    notes = (task.root / ".memory/sessions.md").read_text(encoding="utf-8")
    assert "> 当前状态：❌ cancelled" in notes
    found = agent(base).call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["code"]) == ("rejected", "TASK_REJECTED")


@pytest.mark.requirement("T61", "T62", "T64", "TA40", "T13")
def test_a_task_ends_once_and_its_receipt_is_told_again(base: Path, task: Task) -> None:
    task.begin("a.py")
    (base / "a.py").write_text("a = 2\n")
    ended = task.finish()
    assert ended["closeout"] == {"projection": "clean", "routeBinding": "unbound"}
    assert ended["settledOperation"]["effect"] == "known-applied"  # type: ignore[index]
    receipt = ended["receipt"]
    assert isinstance(receipt, dict)
    assert [one["role"] for one in receipt["evidence"]] == [
        "ecr", "report", "memory", "completion",
    ]  # fmt: skip
    assert receipt["evidence"][2]["path"] == "bugs/Export totals/.memory/sessions.md"
    notes = task.root / ".memory/sessions.md"
    assert "> 当前状态：✅ completed" in notes.read_text(encoding="utf-8")
    assert not (state_of(base) / "live").exists() or not list((state_of(base) / "live").iterdir())
    before = tree(base)
    again = task.finish()
    assert (again["replayed"], again["receipt"]) == (True, receipt)
    assert tree(base) == before
    assert refused(
        task, "memory_task_terminal_v1", terminalStatus="failed", evidence=task.evidence()
    ) == ("revision_conflict", "TASK_TERMINAL_REPLAY_MISMATCH")
    found = agent(base).call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["routeHint"]) == ("completed", None)


@pytest.mark.requirement("T64", "TA40")
def test_a_closeout_that_failed_is_finished_by_the_same_call(base: Path, task: Task) -> None:
    evidence = task.evidence()
    notes = task.root / ".memory/sessions.md"
    hidden = notes.rename(task.root / ".memory/hidden")
    notes.mkdir()
    evidence["memory"] = ".memory/SUMMARY.md"
    (base / ".devcodex/.memory").mkdir(exist_ok=True)
    (base / ".devcodex/.memory/SUMMARY.md").write_text("x\n")
    ended = task.finish(evidence=evidence)
    assert ended["closeout"]["projection"] == "pending"  # type: ignore[index]
    following = ended["nextCall"]
    assert isinstance(following, dict)
    notes.rmdir()
    hidden.rename(notes)
    again = task.face.call(following["tool"], **following["arguments"])
    assert (again["replayed"], again["receipt"]) == (True, ended["receipt"])
    assert again["closeout"]["projection"] == "clean"  # type: ignore[index]
    assert "✅ completed" in notes.read_text(encoding="utf-8")


@pytest.mark.requirement("T32", "T51", "TA41")
def test_a_task_that_ended_is_only_reopened_by_that_word(base: Path, task: Task) -> None:
    task.finish()
    other = agent(base, "other")
    assert other.refused(
        "memory_task_admit_v2", operation="bind", instruction="again", task=tasking.NAME
    ).both == ("revision_conflict", "FINALIZED_TASK_RESUME_TERMINAL")
    bound = bind(other, "open it again", entryVariant="reopen")
    context = bound.receipt["writeContext"]
    assert isinstance(context, dict)
    assert (bound.receipt["transition"], context["lifecycleRevision"]) == ("reopen", 2)
    assert bound.receipt["missing"] == ["cp1"]
    assert refused(task, "memory_task_operation", op="begin", targets=["a.py"])[0] == "lease_lost"


@pytest.mark.requirement("T9", "T75")
def test_what_a_task_did_stays_in_its_chain(base: Path, task: Task) -> None:
    for number in range(10):
        task.begin("a.py")
        (base / "a.py").write_text(f"a = {number}\n")
        settled = task.settle()
    context = settled["writeContext"]
    assert isinstance(context, dict)
    shown = agent(base).call("memory_task_show", task=tasking.NAME)
    assert shown["settled"] == 10
    ended = task.finish()
    assert ended["receipt"]["settledSetDigest"] == context["settledSetDigest"]  # type: ignore[index]


@pytest.mark.requirement("T37")
def test_without_a_ledger_state_nothing_is_inferred(base: Path, task: Task) -> None:
    (ledger_of(base) / f"task/{task.task_id}.json").unlink()
    missing = ("not_found", "TASK_ADMISSION_TRANSACTION_MISSING")
    fresh = Task(agent(base), task.receipt)
    assert refused(fresh, "memory_task_operation", op="begin", targets=["a.py"]) == missing
    assert refused(fresh, "memory_task_terminal_v1", evidence=task.evidence()) == missing
    assert (
        fresh.face.refused(
            "memory_artifact_mutation_reconcile_v1", expectedCloseoutDigest="0" * 64, **task.named
        ).both
        == missing
    )
    assert refused(fresh, "memory_child_plan", op="cancel", planDigest="0" * 64) == missing
