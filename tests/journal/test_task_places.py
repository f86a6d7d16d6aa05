"""Where a task's authority ends: moved, copied, restored and broken ledgers (T8, T24)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import tasking, workspaces
from tests.support.journal_faces import Face, Refused
from tests.support.tasking import Task, admit, agent, bind, ledger_of, state_of
from tests.support.workspaces import tree

MISSING = ("not_found", "TASK_ADMISSION_TRANSACTION_MISSING")


def refused(face: Face, task: Task, operation: str = "renew") -> tuple[str, str]:
    return face.refused(
        "memory_task_write_owner", operation=operation, owner=task.owner, task=tasking.NAME
    ).both


def text_of(base: Path) -> dict[str, bytes | str]:
    """Give all that is no runtime state."""
    return {
        name: data
        for name, data in tree(base).items()
        if not name.startswith(".devcodex/.runtime-state")
    }


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tasking.workspace(tmp_path / "billing")


@pytest.fixture
def confirmed(base: Path) -> Task:
    task = admit(agent(base))
    task.confirm()
    return task


@pytest.mark.requirement("T24", "TA28", "T8", "J24")
def test_a_moved_workspace_has_its_text_and_no_authority_until_it_is_bound(
    base: Path, confirmed: Task
) -> None:
    moved = base.rename(base.parent / "invoices")
    before = text_of(moved)
    fresh = agent(moved)
    found = fresh.call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["ledgerCoverage"]) == ("resolved-active", "absent")
    assert found["owner"] is None
    assert refused(fresh, confirmed) == MISSING
    assert text_of(moved) == before
    bound = bind(fresh)
    assert bound.receipt["phase"] == "finalized"
    assert bound.receipt["transition"] == "relocation"
    assert bound.receipt["mutationAuthority"] is False
    assert bound.receipt["missing"] == ["cp1"]
    context = bound.receipt["writeContext"]
    assert isinstance(context, dict)
    assert context["writerGeneration"] == 2
    warnings = bound.receipt["warnings"]
    assert isinstance(warnings, list)
    assert [one["code"] for one in warnings] == ["cp-claimed"]
    assert bound.task_id == confirmed.task_id


@pytest.mark.requirement("T8", "TA29")
def test_of_two_copies_only_the_original_keeps_its_authority(base: Path, confirmed: Task) -> None:
    copied = tasking.copy(base, base.parent / "copy")
    assert confirmed.renew()["status"] == "active"
    other = agent(copied)
    assert refused(other, confirmed) == MISSING
    bound = bind(other)
    assert bound.receipt["transition"] == "relocation"
    assert confirmed.renew()["writerGeneration"] == 1
    assert (bound.owner, bound.task_id) != (confirmed.owner, "")
    assert bound.task_id == confirmed.task_id


@pytest.mark.requirement("T24", "TA28")
def test_a_clone_without_runtime_state_is_bound_as_a_new_place(base: Path, confirmed: Task) -> None:
    clone = tasking.copy(base, base.parent / "clone")
    shutil.rmtree(state_of(clone))
    other = agent(clone, "other")
    assert other.call("memory_task_resolve", name="CSV")["outcome"] == "not-found"
    found = other.call("memory_task_resolve", name=tasking.NAME)
    assert found["ledgerCoverage"] == "absent"
    assert refused(other, confirmed) == MISSING
    bound = bind(other)
    assert bound.receipt["transition"] == "relocation"
    assert bound.receipt["mutationAuthority"] is False


@pytest.mark.requirement("T24", "J14")
def test_a_linked_worktree_shares_the_authority_of_its_main_tree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run([*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    task = admit(agent(main))
    subprocess.run(
        [*git, "-C", str(main), "worktree", "add", "-q", str(tmp_path / "wt")], check=True
    )
    other = agent(tmp_path / "wt")
    renewed = other.call(
        "memory_task_write_owner", operation="renew", owner=task.owner, task=tasking.NAME
    )
    assert renewed["status"] == "active"
    assert not (tmp_path / "wt/.devcodex").exists()


@pytest.mark.requirement("T7", "T8", "TA30")
@pytest.mark.parametrize("what", ["ledger", "meta"])
def test_a_lost_ledger_costs_authority_and_no_text(base: Path, confirmed: Task, what: str) -> None:
    if what == "ledger":
        shutil.rmtree(ledger_of(base))
    else:
        (ledger_of(base) / "meta.json").unlink()
    before = tree(base)
    fresh = agent(base)
    found = fresh.call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["ledgerCoverage"]) == ("resolved-active", "absent")
    assert tree(base) == before
    assert refused(fresh, confirmed) == MISSING
    assert text_of(base) == {
        name: data
        for name, data in before.items()
        if not name.startswith(".devcodex/.runtime-state")
    }
    bound = bind(fresh)
    assert bound.receipt["phase"] == "finalized"
    if what == "meta":
        context = bound.receipt["writeContext"]
        assert isinstance(context, dict)
        assert (context["writerGeneration"], context["runtimeGeneration"]) == (2, 2)


@pytest.mark.requirement("T6", "T7", "TA30")
@pytest.mark.parametrize("what", ["noise", "half", "foreign-key", "older-copy"])
def test_one_damaged_record_stops_its_task_and_no_other(
    base: Path, confirmed: Task, what: str
) -> None:
    other = admit(agent(base, "other"), "Second")
    path = ledger_of(base) / f"task/{confirmed.task_id}.json"
    whole = path.read_bytes()
    damaged = {
        "noise": os.urandom(len(whole)),
        "half": whole[: len(whole) // 2],
        "foreign-key": (ledger_of(base) / f"task/{other.task_id}.json").read_bytes(),
        "older-copy": whole[:-3] + b"}}\n",
    }[what]
    path.write_bytes(damaged)
    before = text_of(base)
    fresh = agent(base)
    found = fresh.call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["ledgerCoverage"]) == ("resolved-active", "unreadable")
    assert (found["owner"], found["checkpoints"]) == (None, None)
    assert {"code": "ledger-unreadable"} in list(found["warnings"])  # type: ignore[call-overload]
    assert refused(fresh, confirmed) == ("corrupt", "MEMORY_LEDGER_CORRUPT")
    refusal = fresh.refused(
        "memory_task_admit_v2", operation="bind", instruction="go on", task=tasking.NAME
    )
    assert refusal.both == ("corrupt", "MEMORY_LEDGER_CORRUPT")
    assert refusal.details["record"] == f"task/{confirmed.task_id}.json"
    assert other.renew()["status"] == "active"
    assert path.read_bytes() == damaged
    assert text_of(base) == before
    path.unlink()
    assert bind(fresh, "go on after all").receipt["phase"] == "finalized"


@pytest.mark.requirement("T8", "TA31")
def test_a_backup_put_back_in_place_is_noticed_by_who_saw_more(base: Path) -> None:
    server = agent(base)
    task = admit(server)
    backup = base.parent / "backup"
    shutil.copytree(state_of(base), backup)
    task.confirm()
    shutil.rmtree(state_of(base))
    shutil.copytree(backup, state_of(base))
    refusal = server.refused(
        "memory_task_operation", op="begin", owner=task.owner, targets=["a"], task=tasking.NAME
    )
    assert refusal.both == ("lease_lost", "TASK_LEDGER_REWOUND")
    assert "amux task revoke" in refusal.hint


@pytest.mark.requirement("T8", "TA31")
def test_a_revoke_voids_nonces_that_a_backup_brought_back(base: Path) -> None:
    first = agent(base)
    old = admit(first)
    backup = base.parent / "backup"
    shutil.copytree(state_of(base), backup)
    old.own("release")
    current = bind(agent(base, "second"))
    shutil.rmtree(state_of(base))
    shutil.copytree(backup, state_of(base))
    revoked = agent(base, "person").call("memory_task_revoke")
    assert (revoked["previousGeneration"], revoked["runtimeGeneration"]) == (1, 2)
    for task in (old, current):
        assert refused(agent(base), task) == MISSING
    bound = bind(agent(base, "third"))
    context = bound.receipt["writeContext"]
    assert isinstance(context, dict)
    assert context["writerGeneration"] > 1
    assert context["runtimeGeneration"] == 2
    # The server that had seen more goes on too, once it binds again.
    bound.own("release")
    assert bind(first, "now me again").receipt["phase"] == "finalized"


@pytest.mark.requirement("T8", "TA29")
def test_a_ledger_copied_to_another_machine_grants_nothing_there(
    base: Path, confirmed: Task
) -> None:
    elsewhere = tasking.workspace(base.parent / "elsewhere")
    shutil.copytree(state_of(base), state_of(elsewhere))
    other = agent(elsewhere)
    refusal = other.refused(
        "memory_task_write_owner", operation="renew", owner=confirmed.owner, task=tasking.NAME
    )
    assert refusal.both == ("not_found", "TASK_NOT_FOUND")
    shutil.copytree(base / ".devcodex/bugs", elsewhere / ".devcodex/bugs")
    assert refused(other, confirmed) == MISSING


@pytest.mark.requirement("T23", "TA32")
def test_an_identity_with_one_digit_altered_is_told_and_refused(
    base: Path, confirmed: Task
) -> None:
    path = confirmed.root / ".memory/task.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    digit = value["identityDigest"][0]
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            f'"{value["identityDigest"]}"',
            f'"{"1" if digit == "0" else "0"}{value["identityDigest"][1:]}"',
        ),
        encoding="utf-8",
    )
    fresh = agent(base, "other")
    found = fresh.call("memory_task_resolve", name=tasking.NAME)
    assert (found["outcome"], found["code"]) == ("stale-confirmation", "TASK_IDENTITY_INVALID")
    refusal = fresh.refused(
        "memory_task_admit_v2", operation="bind", instruction="go on", task=tasking.NAME
    )
    assert refusal.both == ("corrupt", "TASK_IDENTITY_INVALID")


def lease_of(refusal: Refused) -> object:
    assert refusal.both == ("lease_lost", "TASK_ADMISSION_PROJECT_LEASE_INVALID")
    return refusal.details["failed"]


@pytest.mark.requirement("T12", "TA37")
def test_a_lease_is_compared_with_what_is_so_now_and_renewed(base: Path, confirmed: Task) -> None:
    face, begin = confirmed.face, {"op": "begin", "owner": confirmed.owner, "targets": ["a.py"]}
    layout = base / ".devcodex/layout.json"
    layout.write_text(layout.read_text().replace("}", ', "note": "mine"}'))
    refusal = face.refused("memory_task_operation", **begin, **confirmed.named)
    assert lease_of(refusal) == ["layoutIdentity"]
    following = refusal.details["nextCall"]
    assert isinstance(following, dict)
    assert face.call(following["tool"], **following["arguments"])["mutationAuthority"] is True
    assert confirmed.begin("other.py")["phase"] == "dispatched"
    face.call("memory_status", freshContext=True)
    refusal = face.refused("memory_task_operation", **begin, **confirmed.named)
    assert lease_of(refusal) == ["contextEpoch"]
    confirmed.renew()
    face.call(
        "memory_ingress_register", instruction="and another", taskKind="bugs", routeKey="x",
        routeRevision=3,
    )  # fmt: skip
    refusal = face.refused("memory_task_operation", **begin, **confirmed.named)
    assert lease_of(refusal) == ["routeRevision"]
    confirmed.renew()
    assert confirmed.begin("b.py")["phase"] == "dispatched"


@pytest.mark.requirement("T12", "T37", "TA37")
def test_an_owner_of_one_project_is_nobody_in_another(tmp_path: Path) -> None:
    workspaces.project(tmp_path, "billing", "web")
    workspaces.layout(tmp_path, '{"mode":"workspace-namespace"}')
    face = agent(tmp_path)
    billing = admit(face, project="billing")
    web = admit(face, project="web")
    refusal = face.refused(
        "memory_task_write_owner", operation="renew", owner=billing.owner, task=tasking.NAME,
        project="web",
    )  # fmt: skip
    assert refusal.both == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")
    shutil.copytree(
        tmp_path / ".devcodex/billing", tmp_path / ".devcodex/web", dirs_exist_ok=True
    )  # the whole memory of another project, ledger and identity included
    refusal = face.refused(
        "memory_task_write_owner", operation="renew", owner=billing.owner, task=tasking.NAME,
        project="web",
    )  # fmt: skip
    assert refusal.code in {"not_found", "corrupt", "ambiguous"}
    assert billing.renew()["status"] == "active"
    assert web.owner != billing.owner
