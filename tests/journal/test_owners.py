"""Owning a task and confirming its checkpoints, through the tools (TA17 to TA27)."""

import json
from pathlib import Path

import pytest

from tests.support.task_agents import (
    DAY,
    HOUR,
    NAME,
    OVERVIEW,
    TEXT,
    Agent,
    Place,
    admission_of,
    codes,
    owner_of,
    sha,
)
from tests.support.workspaces import AT


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "billing")


@pytest.fixture
def agent(place: Place) -> Agent:
    found = Agent(place.base)
    found.admit()
    return found


@pytest.fixture
def plan(place: Place, agent: Agent) -> tuple[str, str]:
    assert agent.owner  # the task's directory is there
    return place.artifact("plan.md", "first this, then that\n")


def person(place: Place) -> Agent:
    """Give a session in a terminal, that owns nothing."""
    return Agent(place.base, "terminal", client=None)


# --- checkpoints ---------------------------------------------------------------------------------


@pytest.mark.requirement("T46", "T47", "T57", "TA17")
def test_a_confirmation_binds_one_file_of_the_task_by_its_bytes(
    place: Place, agent: Agent, plan: tuple[str, str]
) -> None:
    before = place.bytes()
    assert agent.refused_to("begin") == ("confirmation_required", "TASK_CP_NOT_CONFIRMED")
    unbound = agent.refused(
        "memory_cp_confirm", task=NAME, phase="CP1", sourceMessage="yes", artifactPath=OVERVIEW
    )
    assert unbound.both == ("invalid_argument", "MEMORY_CP_CONFIRMATION_UNBOUND")
    assert unbound.details["observed"] == sha(TEXT)
    wrong = agent.refusal("confirm", "CP1", OVERVIEW, "0" * 64)
    assert wrong.both == ("revision_conflict", "MEMORY_CP_ARTIFACT_DIGEST_MISMATCH")
    assert wrong.details["observed"] == sha(TEXT)
    assert agent.refused_to("confirm", "CP2", *plan) == (
        "confirmation_required", "CHECKPOINT_EPOCH_CP_PREDECESSOR_MISSING",
    )  # fmt: skip
    (place.task / "link.md").symlink_to(place.task / "plan.md")
    for path in ("link.md", "nothing.md", ".memory/task.json"):
        assert agent.refused_to("confirm", "CP1", path, plan[1]) == (
            "invalid_argument", "MEMORY_CP_ARTIFACT_INVALID",
        ), path  # fmt: skip
    (place.task / "link.md").unlink()
    assert place.bytes() == before


@pytest.mark.requirement("T45", "T47", "T48", "T56", "TA18")
def test_the_owner_works_only_on_checkpoints_that_it_has_seen(
    place: Place, agent: Agent, plan: tuple[str, str]
) -> None:
    done = agent.confirm("CP1", OVERVIEW, sha(TEXT))
    assert (done["ownerRenewed"], done["mutationAuthority"], done["missing"]) == (True, True, [])
    assert "artifact-is-living-document" in codes(done)
    assert done["projection"] == "clean"
    assert place.sessions.read_text().count("| CP1 | ✅ |") == 1
    assert agent.begin()["phase"] == "dispatched"
    assert agent.settle()["effect"] == "known-not-applied"
    told = person(place).confirm("CP2", *plan)
    assert (told["ownerRenewed"], told["mutationAuthority"]) == (False, False)
    assert agent.refused_to("begin", "b.py") == ("lease_lost", "TASK_CP_NOT_OBSERVED")
    renewed = agent.own("renew")
    readback = renewed["cpReadback"]
    assert isinstance(readback, dict)
    assert [slot["status"] for slot in readback["slots"]] == ["confirmed", "confirmed", "waiting"]
    assert agent.begin("b.py")["phase"] == "dispatched"


@pytest.mark.requirement("T2", "T45", "T57", "TA19")
def test_what_was_confirmed_counts_as_long_as_its_bytes_are_there(
    place: Place, agent: Agent
) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    (place.task / OVERVIEW).write_text(TEXT + "!")
    assert agent.refused_to("begin") == ("confirmation_required", "TASK_CP_STALE")
    (place.task / OVERVIEW).write_text(TEXT)
    assert agent.begin()["phase"] == "dispatched"
    agent.settle()
    (place.task / ".archived").touch()
    assert agent.refused_to("begin", "b.py") == ("revision_conflict", "TASK_ARCHIVED")


@pytest.mark.requirement("T45", "TA20")
def test_other_bytes_for_the_first_checkpoint_are_a_new_epoch(place: Place, agent: Agent) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    (place.task / OVERVIEW).write_text("other\n")
    assert agent.refused_to("confirm", "CP1", OVERVIEW, sha("other\n")) == (
        "revision_conflict", "TASK_ADMISSION_CP_STATE_CONFLICT",
    )  # fmt: skip
    done = agent.confirm("CP1", OVERVIEW, sha("other\n"), artifactVersion="v2")
    assert (done["epoch"], done["artifactVersion"]) == (2, "v2")
    slots = place.state()["checkpoints"]["slots"]  # type: ignore[index]
    assert [slot["status"] for slot in slots] == ["confirmed", "waiting", "unstarted"]
    again = agent.confirm("CP1", OVERVIEW, sha("other\n"), artifactVersion="v2")
    assert (again["replayed"], again["epoch"]) == (True, 2)


@pytest.mark.requirement("T45")
def test_only_the_last_checkpoint_may_be_left_out(
    place: Place, agent: Agent, plan: tuple[str, str]
) -> None:
    exempt = {"task": NAME, "sourceMessage": "no plan needed", "exempt": True}
    for phase in ("CP1", "CP2"):
        assert agent.refused("memory_cp_confirm", phase=phase, **exempt).both == (
            "invalid_argument", "MEMORY_CP_CONFIRMATION_UNBOUND",
        )  # fmt: skip
    assert agent.refused("memory_cp_confirm", phase="CP3", **exempt).reason == (
        "CHECKPOINT_EPOCH_CP_PREDECESSOR_MISSING"
    )
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    agent.confirm("CP2", *plan)
    assert agent.call("memory_cp_confirm", phase="CP3", **exempt)["status"] == "exempt"
    assert "| CP3 | N/A |" in place.sessions.read_text()
    assert agent.call("memory_cp_confirm", phase="CP3", **exempt)["replayed"] is True


@pytest.mark.requirement("T49", "TA21")
def test_a_row_that_a_hand_wrote_confirms_nothing(
    place: Place, agent: Agent, plan: tuple[str, str]
) -> None:
    text = place.sessions.read_text()
    forged = f"| CP1 | ✅ | {OVERVIEW} | v1 | `{sha(TEXT).upper()}` | yes | 2026-03-14 |"
    place.sessions.write_text(text.replace("| CP1 | ⏳ | — | — | — | — | — |", forged))
    assert agent.refused_to("begin") == ("confirmation_required", "TASK_CP_NOT_CONFIRMED")
    agent.confirm("CP1", *plan)
    assert forged not in place.sessions.read_text()
    assert "plan.md" in place.sessions.read_text()


@pytest.mark.requirement("T48")
def test_a_view_that_cannot_be_written_is_pending_and_made_good_later(
    place: Place, agent: Agent
) -> None:
    memory = place.task / ".memory"
    kept = place.sessions.read_bytes()
    place.sessions.unlink()
    place.sessions.mkdir()
    done = agent.confirm("CP1", OVERVIEW, sha(TEXT))
    assert (done["projection"], done["status"]) == ("pending", "confirmed")
    assert "view-pending" in codes(done)
    place.sessions.rmdir()
    (memory / "sessions.md").write_bytes(kept)
    agent.own("renew")
    assert "| CP1 | ✅ |" in place.sessions.read_text()
    assert place.state()["projection"] == "clean"


@pytest.mark.requirement("T48", "T49")
def test_people_keep_all_of_the_file_but_the_table(place: Place, agent: Agent) -> None:
    text = place.sessions.read_text()
    outside = "\n## old table\n\n| CP1 | ✅ | mine |\n"
    place.sessions.write_text(f"before\n\n{text}{outside}".replace("\n", "\r\n"), newline="")
    done = agent.confirm("CP1", OVERVIEW, sha(TEXT))
    assert "cp-row-outside-block" in codes(done)
    data = place.sessions.read_bytes()
    assert data.startswith(b"before\r\n")
    assert data.endswith(outside.replace("\n", "\r\n").encode())
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert b"| CP1 | \xe2\x9c\x85 | [00-" in data


# --- owners --------------------------------------------------------------------------------------


@pytest.mark.requirement("T32", "T50", "T51", "T52", "T53", "TA23")
def test_a_hand_off_moves_the_fence_past_the_one_who_handed_it_over(
    place: Place, agent: Agent
) -> None:
    agent.own("release")
    agent.bind("go on")
    assert owner_of(place.state())["writerGeneration"] == 3
    old = agent.owner
    released = agent.own("release")
    assert (released["status"], released["owner"]) == ("released", None)
    other = Agent(place.base, "sess-2", client="claude-code")
    bound = other.bind()
    assert (bound["transition"], owner_of(place.state())["writerGeneration"]) == ("handoff", 5)
    assert other.bind()["replayed"] is True
    agent.owner = old
    for work in ("own", "begin"):
        words = ("renew",) if work == "own" else ()
        refused = agent.refusal(work, *words)
        assert refused.both == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")
        observed = refused.details["observed"]
        assert isinstance(observed, dict)
        assert (observed["writerGeneration"], observed["agent"]) == (5, "claude-code")
    assert other.own("renew")["writerGeneration"] == 5


@pytest.mark.requirement("T10", "T54", "TA24")
def test_no_clock_takes_a_task_from_a_session_that_lives(place: Place, agent: Agent) -> None:
    agent.at = AT
    other = Agent(place.base, "sess-2", client="claude-code", at=AT + HOUR)
    for at in (AT + HOUR, AT + DAY):
        other.at = at
        refused = other.refusal("bind")
        assert refused.both == ("lease_held", "TASK_WRITE_OWNER_TAKEOVER_INVALID")
        assert refused.details["blocking"] == ["live-turn"]
    assert agent.own("renew")["writerGeneration"] == 1


@pytest.mark.requirement("T54", "T58", "T60", "TA25")
def test_a_task_is_taken_over_once_its_session_is_gone_and_nothing_is_open(
    place: Place, agent: Agent
) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    (place.base / "a.py").write_text("before")
    begun = agent.begin("a.py")
    (place.base / "a.py").write_text("after")
    agent.end()
    other = Agent(place.base, "sess-2", client="claude-code")
    refused = other.refusal("bind")
    assert refused.both == ("lease_held", "TASK_WRITE_OWNER_TAKEOVER_INVALID")
    assert refused.details["blocking"] == ["operation"]
    call = refused.details["nextCall"]
    assert isinstance(call, dict)
    assert call["tool"] == "memory_artifact_mutation_reconcile_v1"
    settled = other.call(call["tool"], **call["arguments"])
    assert settled["operation"]["effect"] == "known-applied"  # type: ignore[index]
    assert settled["operation"]["operationId"] == begun["operationId"]  # type: ignore[index]
    bound = other.bind()
    assert (bound["transition"], owner_of(place.state())["writerGeneration"]) == ("takeover", 2)
    assert agent.refused_to("own", "renew") == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")


@pytest.mark.requirement("T35", "TA26")
def test_an_admission_is_finished_later_by_the_permission_it_gave(place: Place) -> None:
    agent = Agent(place.base)
    waiting = agent.admit(acquireOwner=False)
    assert (waiting["phase"], waiting["owner"]) == ("cp-state-written", None)
    assert waiting["status"] == "admitting"
    call = waiting["nextCall"]
    assert isinstance(call, dict)
    lease = call["arguments"]["continuationLease"]
    assert agent.admit(acquireOwner=False)["replayed"] is True
    other = Agent(place.base, "sess-2")
    assert other.refused_to("own", "acquire", continuationLease=lease) == (
        "permission_denied", "TASK_ADMISSION_CONTINUATION_MISMATCH",
    )  # fmt: skip
    off = lease[:-1] + ("0" if lease[-1] != "0" else "1")
    assert agent.refused_to("own", "acquire", continuationLease=off)[1] == (
        "TASK_ADMISSION_CONTINUATION_MISMATCH"
    )
    assert agent.refused_to("own", "acquire", continuationLease="adl-1") == (
        "invalid_argument", "TASK_ADMISSION_CONTINUATION_INVALID",
    )  # fmt: skip
    made = agent.own("acquire", continuationLease=lease)
    assert (made["status"], made["writerGeneration"], made["replayed"]) == ("active", 1, False)
    assert admission_of(place.state())["phase"] == "finalized"
    again = agent.own("acquire", continuationLease=lease)
    assert (again["owner"], again["replayed"]) == (made["owner"], True)


@pytest.mark.requirement("T35", "TA26")
def test_a_permission_ends_with_time_and_with_its_use(place: Place) -> None:
    agent = Agent(place.base)
    waiting = agent.admit(acquireOwner=False)
    lease = waiting["nextCall"]["arguments"]["continuationLease"]  # type: ignore[index]
    agent.at = AT + 31 * 60
    assert agent.refused_to("own", "acquire", continuationLease=lease) == (
        "not_found", "TASK_ADMISSION_CONTINUATION_EXPIRED",
    )  # fmt: skip
    renewed = agent.admit(acquireOwner=False)
    fresh = renewed["nextCall"]["arguments"]["continuationLease"]  # type: ignore[index]
    assert fresh != lease
    assert agent.admit()["phase"] == "finalized"  # the new request makes the owner
    assert agent.refused_to("own", "acquire", continuationLease=fresh) == (
        "lease_lost", "TASK_ADMISSION_CONTINUATION_REPLAYED",
    )  # fmt: skip


@pytest.mark.requirement("T53", "TA27")
def test_a_renewal_is_a_repeat_only_while_nothing_was_committed_since(
    place: Place, agent: Agent
) -> None:
    assert agent.own("renew")["replayed"] is False
    before = place.bytes()
    assert agent.own("renew")["replayed"] is True
    assert place.bytes() == before
    person(place).confirm("CP1", OVERVIEW, sha(TEXT))
    renewed = agent.own("renew")
    assert (renewed["replayed"], renewed["missing"]) == (False, [])


@pytest.mark.requirement("T12", "T51")
def test_a_session_that_means_another_layout_renews_first(place: Place, agent: Agent) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    layout = place.root / "layout.json"
    known = json.loads(layout.read_bytes())
    layout.write_text(json.dumps(known | {"note": "a person's"}))
    refused = agent.refusal("begin")
    assert refused.both == ("lease_lost", "TASK_ADMISSION_PROJECT_LEASE_INVALID")
    assert refused.details["failed"] == ["layoutIdentity"]
    call = refused.details["nextCall"]
    assert isinstance(call, dict)
    # The repeat of its admission rests on the same lease, and names the same way out.
    again = agent.refusal("admit")
    assert again.both == ("lease_lost", "TASK_ADMISSION_PROJECT_LEASE_INVALID")
    assert again.details["failed"] == ["layoutIdentity"]
    assert again.details["nextCall"]["arguments"]["operation"] == "renew"  # type: ignore[index]
    assert agent.call(call["tool"], **call["arguments"])["missing"] == []
    assert agent.begin()["phase"] == "dispatched"
    assert agent.admit()["replayed"] is True


@pytest.mark.requirement("J51", "T51")
def test_a_renewal_in_a_fresh_context_names_a_new_epoch_once(place: Place, agent: Agent) -> None:
    first = owner_of(place.state())["projectLease"]["contextEpoch"]  # type: ignore[index]
    agent.own("renew", freshContext=True)
    second = owner_of(place.state())["projectLease"]["contextEpoch"]  # type: ignore[index]
    assert second != first
    assert agent.own("renew", freshContext=True)["replayed"] is True
    (session,) = place.records("session")
    assert session["contextEpoch"] == second
    # Another process of the session means the same context (J51).
    twin = Agent(place.base)
    twin.owner = agent.owner
    assert twin.own("renew")["missing"] == ["cp1"]


@pytest.mark.requirement("T12", "T17", "T53")
def test_after_a_compaction_the_repeat_of_an_admission_gives_the_reference_back(
    agent: Agent,
) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    agent.call("memory_status", freshContext=True)
    found = agent.admit()
    assert (found["replayed"], found["owner"]) == (True, agent.owner)
    assert found["missing"] == ["project-lease"]
    call = found["nextCall"]
    assert isinstance(call, dict)
    assert call["arguments"]["operation"] == "renew"
    assert agent.call(call["tool"], **call["arguments"])["missing"] == []


@pytest.mark.requirement("T37", "T52")
def test_without_an_admission_or_an_owner_nothing_is_granted(place: Place, agent: Agent) -> None:
    (path,) = (place.root / ".runtime-state/ledger/task").glob("*.json")
    path.unlink()
    for work in (("own", "renew"), ("begin",), ("confirm", "CP1", OVERVIEW, sha(TEXT))):
        assert agent.refused_to(*work) == (
            "not_found", "TASK_ADMISSION_TRANSACTION_MISSING",
        ), work  # fmt: skip
    bound = agent.bind("take it up again")
    assert (bound["transition"], bound["phase"]) == ("relocation", "finalized")


@pytest.mark.requirement("T32", "T52")
def test_an_owner_is_not_made_where_one_is(place: Place) -> None:
    agent = Agent(place.base)
    waiting = agent.admit(acquireOwner=False)
    other = Agent(place.base, "sess-2", client="claude-code")
    refused = other.refusal("bind")
    assert refused.both == ("lease_held", "FINALIZED_TASK_RESUME_OWNER_BUSY")
    assert refused.details["blocking"] == ["admission-lease"]
    other.at = AT + HOUR
    assert other.bind()["phase"] == "finalized"
    lease = waiting["nextCall"]["arguments"]["continuationLease"]  # type: ignore[index]
    assert agent.refused_to("own", "acquire", continuationLease=lease)[1] == (
        "TASK_ADMISSION_CONTINUATION_MISMATCH"
    )


@pytest.mark.requirement("T10", "TA50")
def test_a_live_file_that_somebody_deleted_is_made_again_by_the_next_call(
    place: Place, agent: Agent
) -> None:
    live = place.root / ".runtime-state/live"
    for path in live.iterdir():
        path.unlink()
    agent.own("renew")
    other = Agent(place.base, "sess-2", client="claude-code")
    refused = other.refusal("bind")
    assert refused.details["blocking"] == ["live-turn"]


@pytest.mark.requirement("T10", "T53")
def test_a_process_that_repeats_a_renewal_lives_from_then_on(place: Place, agent: Agent) -> None:
    agent.own("renew")
    agent.end()
    twin = Agent(place.base)
    twin.owner = agent.owner
    assert twin.own("renew")["replayed"] is True
    refused = Agent(place.base, "sess-2", client="claude-code").refusal("bind")
    assert refused.details["blocking"] == ["live-turn"]


@pytest.mark.requirement("T10")
def test_an_admission_that_is_repeated_by_another_process_lives_too(
    place: Place, agent: Agent
) -> None:
    agent.end()
    twin = Agent(place.base)
    assert twin.admit()["replayed"] is True
    refused = Agent(place.base, "sess-2", client="claude-code").refusal("bind")
    assert refused.details["blocking"] == ["live-turn"]


# --- notes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("T27", "TA49")
def test_the_owner_writes_into_the_notes_of_its_task(place: Place, agent: Agent) -> None:
    agent.call("memory_session_write", title="work", content="half done", task=NAME)
    assert place.sessions.read_text().rstrip().endswith("half done")
    other = Agent(place.base, "sess-2", client="claude-code")
    assert other.refused("memory_session_write", title="w", content="mine", task=NAME).both == (
        "permission_denied",
        "TASK_WRITE_OWNER_SESSION_MISMATCH",
    )
    assert agent.refused(
        "memory_session_write", title="w", content="done", task=NAME, status="completed"
    ).both == ("invalid_argument", "TASK_TERMINAL_REQUIRED")


@pytest.mark.requirement("T29", "TA41")
def test_a_task_that_ended_is_bound_again_only_as_reopened(place: Place, agent: Agent) -> None:
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    (place.task / "reports").mkdir()
    for name in ("ecr.md", "done.md", "reports/r.md"):
        (place.task / name).write_text(name)
    root = "bugs/Export totals"
    evidence = {
        "ecr": f"{root}/ecr.md", "completion": f"{root}/done.md", "report": f"{root}/reports/r.md",
    }  # fmt: skip
    agent.call("memory_task_terminal_v1", task=NAME, owner=agent.owner, evidence=evidence)
    old = agent.owner
    assert "> 当前状态：✅ completed" in place.sessions.read_text()
    assert agent.refused_to("bind") == ("revision_conflict", "FINALIZED_TASK_RESUME_TERMINAL")
    assert agent.admit()["status"] == "terminal"
    bound = agent.bind("open it again", entryVariant="reopen")
    assert (bound["phase"], bound["transition"]) == ("finalized", "reopen")
    state = place.state()
    assert state["lifecycleRevision"] == 2
    assert [slot["status"] for slot in state["checkpoints"]["slots"]] == [  # type: ignore[index]
        "waiting", "unstarted", "unstarted",
    ]  # fmt: skip
    assert "> 当前状态：🔄 active" in place.sessions.read_text()
    # From here on the line is people's: nothing but an end or a reopening touches it.
    place.sessions.write_text(place.sessions.read_text().replace("🔄 active", "✅ completed"))
    assert "status-line-drift" not in codes(agent.confirm("CP1", OVERVIEW, sha(TEXT)))
    assert "> 当前状态：✅ completed" in place.sessions.read_text()
    agent.owner = old
    assert agent.refused_to("own", "renew") == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")


@pytest.mark.requirement("T23")
def test_a_directory_that_was_renamed_is_not_the_task_that_it_says(
    place: Place, agent: Agent
) -> None:
    place.task.rename(place.task.parent / "Another")
    for work in (("bind",), ("own", "renew")):
        assert agent.refused_to(*work) == ("corrupt", "TASK_IDENTITY_INVALID"), work
    (place.task.parent / "Another").rename(place.task)
    assert agent.own("renew")["status"] == "active"
