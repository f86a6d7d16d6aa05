"""Children of a task: planned, leased, judged and gathered, by real processes where it counts."""

import subprocess
from pathlib import Path

import pytest

from amux.core import canonical
from tests.support import tasking
from tests.support.journal_faces import CLAUDE, Cli, Face, InProcess, Mcp
from tests.support.tasking import Task, admit, agent
from tests.support.workspaces import AT, tree

HEX = "ab" * 32
SOURCE = {"sourceHead": "abc", "dirtyDigest": "clean"}
WRITERS = (
    "memory_session_write", "memory_session_allocate", "memory_summary_append",
    "memory_decision_append", "memory_task_admit_v2", "memory_ingress_register",
    "memory_task_write_owner", "memory_cp_confirm", "memory_task_operation",
    "memory_artifact_mutation_reconcile_v1", "memory_task_terminal_v1", "memory_child_plan",
)  # fmt: skip
FORBIDDEN = ("permission_denied", "CHILD_AGENT_WRITE_FORBIDDEN")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tasking.workspace(tmp_path / "billing")


@pytest.fixture
def task(base: Path) -> Task:
    made = admit(agent(base))
    made.confirm()
    return made


def item(base: Path, name: str, **changes: object) -> dict[str, object]:
    root = base.parent / f"wt-{name}"
    (root / "src" / name).mkdir(parents=True, exist_ok=True)
    return {
        "workItemId": name, "displayName": f"item {name}", "mode": "isolated-worktree-patch",
        "allowedPaths": [f"src/{name}/"], "expectedWrites": [f"src/{name}/main.py"],
        "isolationRoot": str(root), "sessionPrompt": "do it", "validationRoute": "make test",
        "stopCondition": "tests pass", **changes,
    }  # fmt: skip


def plan(task: Task, *items: dict[str, object], **more: object) -> dict[str, object]:
    return task.face.call(
        "memory_child_plan", op="plan", owner=task.owner, items=list(items), source=SOURCE,
        **task.named, **more,
    )  # fmt: skip


def leases(planned: dict[str, object]) -> list[dict[str, object]]:
    found = planned["leases"]
    assert isinstance(found, list)
    return found


def digest_of(planned: dict[str, object]) -> str:
    made = planned["plan"]
    assert isinstance(made, dict)
    return str(made["planDigest"])


def evidence(lease: dict[str, object], **changes: object) -> dict[str, object]:
    name = lease["workItemId"]
    made: dict[str, object] = {
        "schemaVersion": "ChildAgentEvidenceV1", "planDigest": lease["planDigest"],
        "leaseDigest": lease["leaseDigest"], "workItemId": name, "attempt": lease["attempt"],
        "hostChildId": f"child-{name}", "status": "completed", "baseHead": lease["baseHead"],
        "dirtyDigest": lease["dirtyDigest"],
        "actualChangedRealpaths": [f"{lease['isolationRoot']}/src/{name}/main.py"],
        "forbiddenSharedSurfacesTouched": [], "patchDigest": HEX,
        "validationReceipts": [{"id": "make test", "status": "passed", "evidenceDigest": HEX}],
        "cleanup": {"complete": True, "ownedResidueCount": 0},
        "completedAt": "2026-03-14T09:21:00.000Z", **changes,
    }  # fmt: skip
    made.setdefault("evidenceDigest", canonical.digest(made))
    return made


def submit(
    face: Face, lease: dict[str, object], given: dict[str, object] | None = None, **more: object
) -> tuple[str, list[str], str]:
    found = face.call(
        "memory_child_submit", lease=lease["leaseId"],
        evidence=evidence(lease) if given is None else given, **more,
    )  # fmt: skip
    verdict = found["validation"]
    assert isinstance(verdict, dict)
    return str(verdict["verdict"]), list(verdict["reasons"]), str(found["leaseState"])


@pytest.mark.requirement("T66", "T67", "T68", "TA43")
def test_a_plan_hands_out_leases_and_moves_no_task(base: Path, task: Task) -> None:
    context = task.renew()["writeContext"]
    record = tasking.ledger_of(base) / f"task/{task.task_id}.json"
    before = record.read_bytes()
    planned = plan(task, item(base, "a"), item(base, "b"))
    assert planned["plan"]["status"] == "parallel-eligible"  # type: ignore[index]
    assert [one["workItemId"] for one in leases(planned)] == ["a", "b"]
    assert planned["writeContext"]["contextDigest"] == context["contextDigest"]  # type: ignore[index]
    assert record.read_bytes() == before
    assert leases(plan(task, item(base, "a"), item(base, "b"))) == leases(planned)
    serial = plan(task, item(base, "a"))
    assert (serial["plan"]["status"], serial["leases"]) == ("serial-fallback", [])  # type: ignore[index]
    inside = item(base, "b", isolationRoot=str(base / "wt"))
    assert plan(task, item(base, "a"), inside)["plan"]["status"] == "serial-fallback"  # type: ignore[index]
    (base.parent / "way-in").symlink_to(base)
    linked = item(base, "b", isolationRoot=str(base.parent / "way-in/wt"))
    assert plan(task, item(base, "a"), linked)["plan"]["status"] == "serial-fallback"  # type: ignore[index]


@pytest.mark.requirement("T66", "J19")
@pytest.mark.parametrize("path", ["../x", "/etc/", "a//b", "src/../../x/"])
def test_paths_of_items_stay_in_the_package(base: Path, task: Task, path: str) -> None:
    refusal = task.face.refused(
        "memory_child_plan", op="plan", owner=task.owner, source=SOURCE,
        items=[item(base, "a", allowedPaths=[path]), item(base, "b")], **task.named,
    )  # fmt: skip
    assert refusal.both == ("invalid_argument", "MEMORY_PATH_UNSAFE")


@pytest.mark.requirement("T71")
def test_only_the_owner_in_force_plans(base: Path, task: Task) -> None:
    planned = plan(task, item(base, "a"), item(base, "b"))
    other = Task(agent(base, "other"), task.receipt)
    refusal = other.face.refused(
        "memory_child_plan", op="cancel", owner=task.owner, planDigest=digest_of(planned),
        **task.named,
    )  # fmt: skip
    assert refusal.both == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")
    # Checkpoints play no part: what runs must be cancelled also when a file went stale.
    (task.root / "00-问题概况.md").write_text("another\n")
    cancelled = task.face.call(
        "memory_child_plan", op="cancel", owner=task.owner, planDigest=digest_of(planned)[:16],
        workItemIds=["a"], **task.named,
    )  # fmt: skip
    assert cancelled["cancelled"] == ["a"]
    assert [one["workItemId"] for one in cancelled["serialTakeover"]] == ["a"]  # type: ignore[union-attr]


@pytest.mark.requirement("T68", "T69", "T70", "TA44")
def test_of_what_children_hand_in_only_the_clean_may_be_reviewed(base: Path, task: Task) -> None:
    planned = plan(task, *(item(base, name) for name in "abcd"))
    a, b, c, d = leases(planned)
    child = agent(base, "child")
    (base.parent / "wt-b/src/b/out").symlink_to(base)
    assert submit(child, a) == ("accepted-for-root-review", [], "accepted")
    assert submit(child, a) == ("accepted-for-root-review", [], "accepted")
    forged = evidence(a, evidenceDigest=HEX)
    assert submit(child, a, forged) == (
        "quarantined", ["child-evidence-digest-invalid"], "accepted",
    )  # fmt: skip
    through = evidence(b, actualChangedRealpaths=[f"{b['isolationRoot']}/src/b/out/a.py"])
    assert submit(child, b, through)[1] == ["changed-realpath-outside-lease"]
    task.face.call(
        "memory_child_plan", op="cancel", owner=task.owner, planDigest=digest_of(planned),
        workItemIds=["c"], **task.named,
    )  # fmt: skip
    assert set(submit(child, c)[1]) == {
        "cancel-fence-changed", "root-serial-fallback-already-started",
    }  # fmt: skip
    late = agent(base, "late", at=AT + 301)
    assert submit(late, d)[1:] == (["lease-expired-or-time-invalid"], "quarantined")
    assert submit(child, d, evidence(d, hostChildId="child-a"))[1] == [
        "host-child-identity-duplicate",
    ]  # fmt: skip
    foreign = {"schemaVersion": "FencedTaskWriteOwnerLeaseV2"}
    assert submit(child, d, records=[foreign])[1] == ["record-type-forbidden"]
    # All of this moved nothing: the root goes on at once, and takes over what is left.
    assert task.begin("a.py")["phase"] == "dispatched"
    receipt = task.face.call(
        "memory_child_plan", op="integrate", owner=task.owner, planDigest=digest_of(planned),
        **task.named,
    )  # fmt: skip
    assert receipt["patchOrder"] == ["a"]
    takeover = receipt["serialTakeover"]
    assert isinstance(takeover, list)
    assert [one["workItemId"] for one in takeover] == ["b", "c", "d"]


@pytest.mark.requirement("T69", "T74")
@pytest.mark.parametrize("lease", ["cwl-" + "0" * 32, "cwl-x", "own-" + "0" * 20, ""])
def test_what_is_no_lease_is_refused(base: Path, task: Task, lease: str) -> None:
    plan(task, item(base, "a"), item(base, "b"))
    given = {"lease": lease} if lease else {}
    refusal = agent(base, "child").refused("memory_child_submit", evidence={"x": 1}, **given)
    assert refusal.both == ("invalid_argument", "AGENT_WORK_LEASE_INVALID")


@pytest.mark.requirement("T69")
@pytest.mark.parametrize(
    "given", [{}, {"x": 1}, {"actualChangedRealpaths": [7, None, {}]}, {"planDigest": "../x"}]
)
def test_nonsense_is_quarantined_and_breaks_nothing(
    base: Path, task: Task, given: dict[str, object]
) -> None:
    a, _ = leases(plan(task, item(base, "a"), item(base, "b")))
    assert submit(agent(base, "child"), a, given) == (
        "quarantined", ["schema-invalid"], "quarantined",
    )  # fmt: skip


@pytest.mark.requirement("T71", "TA45", "JA39", "J26")
@pytest.mark.parametrize("what", ["valid", "expired", "unknown", "garbage"])
def test_a_child_reads_the_memory_of_its_lease_and_writes_none(
    base: Path, task: Task, what: str
) -> None:
    a, b = leases(plan(task, item(base, "a"), item(base, "b")))
    worktree = base.parent / "wt-a"
    # The worktree has a memory of its own, which is none of the child's business.
    own = admit(agent(tasking.workspace(worktree)), "Other")
    root = base / ".devcodex"
    variable = {
        "valid": f"{a['leaseId']}@{root}", "expired": f"{a['leaseId']}@{root}",
        "unknown": f"cwl-{'0' * 32}@{root}", "garbage": "garbage",
    }[what]  # fmt: skip
    at = AT + 3_600 if what == "expired" else AT
    child = InProcess(worktree, session="child", at=at, AMUX_CHILD_LEASE=variable)
    before = tree(base), tree(worktree)
    for name in WRITERS:
        assert child.refused(name, **_arguments(name, task)).both == FORBIDDEN
    if what != "garbage":
        found = child.call("memory_task_resolve", name=tasking.NAME)
        assert (found["outcome"], found["activeRoot"]) == ("resolved-active", str(root))
        assert child.call("memory_context_plan")["activeRoot"] == str(root)
        assert child.call("memory_status")["activeRoot"] == str(root)
        assert child.call("memory_summary_query")["activeRoot"] == str(root)
        refusal = child.refused("memory_child_submit", lease=b["leaseId"], evidence=evidence(b))
        assert refusal.both == FORBIDDEN
    assert (tree(base), tree(worktree)) == before
    assert own.renew()["status"] == "active"


def _arguments(name: str, task: Task) -> dict[str, object]:
    """Give arguments that would be taken of anybody else."""
    owner = {"owner": task.owner, **task.named}
    return {
        "memory_session_write": {"content": "x"},
        "memory_session_allocate": {},
        "memory_summary_append": {"row": "| a | b | c | d | e | f | g |"},
        "memory_decision_append": {"decision": "x"},
        "memory_task_admit_v2": {"operation": "bind", "instruction": "go", **task.named},
        "memory_ingress_register": {"instruction": "x", "taskKind": "bugs", "routeKey": "x"},
        "memory_task_write_owner": {"operation": "renew", **owner},
        "memory_cp_confirm": {"phase": "CP1", "sourceMessage": "x", **task.named},
        "memory_task_operation": {"op": "settle", **owner},
        "memory_artifact_mutation_reconcile_v1": {
            "expectedCloseoutDigest": "0" * 16, **task.named,
        },
        "memory_task_terminal_v1": {"evidence": {"ecr": "x", "report": "y"}, **owner},
        "memory_child_plan": {"op": "cancel", "planDigest": "0" * 16, **owner},
    }[name]  # fmt: skip


def _git(*words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("T69", "T70", "T71", "TA44", "TA45")
def test_children_in_worktrees_of_their_own_hand_in_and_change_no_memory(
    tmp_path: Path,
) -> None:
    base, home = tmp_path / "billing", tmp_path / "home"
    _git("init", "-q", str(base))
    _git("-C", str(base), "commit", "-q", "--allow-empty", "-m", "x")
    for name in "abc":
        _git("-C", str(base), "worktree", "add", "-q", str(tmp_path / f"wt-{name}"))
    with Mcp(base, home=home, AMUX_SESSION="root") as root:
        task = admit(root)
        task.confirm()
        planned = plan(task, *(item(base, name) for name in "abc"))
        a, b, c = leases(planned)
        memory = memory_of(base)
        # The first child is an agent with a server of its own, the second works by commands.
        with Mcp(
            tmp_path / "wt-a", home=home, client=CLAUDE, AMUX_SESSION="child-a",
            AMUX_CHILD_LEASE=f"{a['leaseId']}@{a['activeRoot']}",
        ) as first:  # fmt: skip
            assert first.refused("memory_session_write", content="mine").both == FORBIDDEN
            (tmp_path / "wt-a/src/a/main.py").write_text("done = True\n")
            assert first.call("memory_task_resolve", name=tasking.NAME)["activeRoot"] == str(
                base / ".devcodex"
            )
            found = first.call("memory_child_submit", evidence=evidence(a, completedAt=now()))
            assert found["validation"]["verdict"] == "accepted-for-root-review"  # type: ignore[index]
            other = evidence(a, hostChildId="somebody else")
            beside = first.call("memory_child_submit", evidence=other)
            assert beside["leaseState"] == "accepted"
        second, third = (
            Cli(
                tmp_path / f"wt-{lease['workItemId']}", home=home, AMUX_SESSION="child",
                AMUX_CHILD_LEASE=f"{lease['leaseId']}@{lease['activeRoot']}",
            )
            for lease in (b, c)
        )  # fmt: skip
        outside = evidence(b, actualChangedRealpaths=[str(base / "main.py")])
        found = second.call("memory_child_submit", evidence=outside)
        assert found["validation"]["reasons"] == ["changed-realpath-outside-lease"]  # type: ignore[index]
        forged = evidence(b, patchDigest="cd" * 32, evidenceDigest=evidence(b)["evidenceDigest"])
        found = second.call("memory_child_submit", evidence=forged)
        assert found["validation"]["reasons"] == ["child-evidence-digest-invalid"]  # type: ignore[index]
        assert second.refused("memory_child_submit", lease=a["leaseId"], evidence={}).both == (
            FORBIDDEN
        )
        root.call(
            "memory_child_plan", op="cancel", owner=task.owner, workItemIds=["c"],
            planDigest=digest_of(planned), **task.named,
        )  # fmt: skip
        found = third.call("memory_child_submit", evidence=evidence(c))
        assert found["leaseState"] == "cancelled"
        assert memory_of(base) == memory
        receipt = root.call(
            "memory_child_plan", op="integrate", owner=task.owner,
            planDigest=digest_of(planned), **task.named,
        )  # fmt: skip
        assert receipt["patchOrder"] == ["a"]
        takeover = receipt["serialTakeover"]
        assert isinstance(takeover, list)
        assert [one["workItemId"] for one in takeover] == ["b", "c"]
        assert task.begin("src/a/main.py")["phase"] == "dispatched"


def memory_of(base: Path) -> dict[str, bytes | str]:
    """Give all below the active root but the records of children."""
    return {
        name: data
        for name, data in tree(base / ".devcodex").items()
        if not name.startswith(".runtime-state/ledger/child")
    }


def now() -> str:
    return "2026-03-14T09:21:00.000Z"


@pytest.mark.requirement("T72", "J7")
@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"op": "plan", "source": SOURCE}, "items"),
        ({"op": "plan", "items": [{"workItemId": "a", "displayName": "a", "mode": "read-only",
                                   "allowedPaths": []}]}, "source"),
        ({"op": "cancel"}, "planDigest"), ({"op": "integrate"}, "planDigest"),
    ],
)  # fmt: skip
def test_each_op_needs_what_it_is_about(
    task: Task, given: dict[str, object], argument: str
) -> None:
    refusal = task.face.refused("memory_child_plan", owner=task.owner, **task.named, **given)
    assert refusal.both == ("invalid_argument", "MEMORY_WRITER_ARGUMENT_REQUIRED")
    assert refusal.details["argument"] == argument


@pytest.mark.requirement("T68", "T70")
def test_a_plan_is_known_to_its_own_task_only(base: Path, task: Task) -> None:
    planned = plan(task, item(base, "a"), item(base, "b"), budget={"turns": 3})
    assert planned["plan"]["budget"] == {"turns": 3}  # type: ignore[index]
    other = admit(task.face, "Second")
    for op in ("cancel", "integrate"):
        refusal = task.face.refused(
            "memory_child_plan", op=op, owner=other.owner, planDigest=digest_of(planned),
            **other.named,
        )  # fmt: skip
        assert refusal.both == ("invalid_argument", "MEMORY_WRITER_ARGUMENT_INVALID")


@pytest.mark.requirement("T6", "T68")
def test_a_damaged_plan_stops_its_children_and_no_other(base: Path, task: Task) -> None:
    first = plan(task, item(base, "a"), item(base, "b"))
    second = plan(task, item(base, "c"), item(base, "d"))
    path = tasking.ledger_of(base) / f"child/{digest_of(first)}.json"
    path.write_bytes(path.read_bytes()[:-20])
    child = agent(base, "child")
    lost = child.refused(
        "memory_child_submit",
        lease=leases(first)[0]["leaseId"],
        evidence=evidence(leases(first)[0]),
    )
    assert lost.both == ("invalid_argument", "AGENT_WORK_LEASE_INVALID")
    assert submit(child, leases(second)[0])[0] == "accepted-for-root-review"
    refusal = task.face.refused(
        "memory_child_plan", op="integrate", owner=task.owner, planDigest=digest_of(first),
        **task.named,
    )  # fmt: skip
    assert refusal.both == ("corrupt", "MEMORY_LEDGER_CORRUPT")


@pytest.mark.requirement("T8", "T68")
def test_a_lease_of_the_place_that_was_copied_is_none_here(base: Path, task: Task) -> None:
    a, _ = leases(plan(task, item(base, "a"), item(base, "b")))
    copied = tasking.copy(base, base.parent / "copy")
    refusal = agent(copied, "child").refused(
        "memory_child_submit", lease=a["leaseId"], evidence=evidence(a)
    )
    assert refusal.both == ("invalid_argument", "AGENT_WORK_LEASE_INVALID")
