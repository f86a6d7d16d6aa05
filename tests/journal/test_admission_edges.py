"""Admissions that meet what people left, and steps that fail (T21, T25, T31, T32)."""

import errno
import os
from pathlib import Path

import pytest

from amux.disk import atomic
from amux.journal.tasks import identity
from tests.crash.test_tasks_killed import kill_in
from tests.support.task_agents import (
    NAME,
    OVERVIEW,
    ROOT,
    TEXT,
    Agent,
    Place,
    admission_of,
    codes,
    owner_of,
    sha,
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "billing")


def adopted(agent: Agent, **more: object) -> dict[str, object]:
    return agent.call(
        "memory_task_admit_v2", operation="adopt", task=ROOT, instruction="take it up", **more
    )


@pytest.mark.requirement("T25", "T31")
def test_notes_without_a_block_get_one_and_keep_all_else(place: Place) -> None:
    (place.task / ".memory").mkdir(parents=True)
    place.sessions.write_text("# my notes\n\nno table")
    (place.task / OVERVIEW).write_text("mine\n")
    found = adopted(Agent(place.base))
    assert (found["phase"], found["overview"]) == (
        "finalized", {"path": OVERVIEW, "sha256": sha("mine\n")},
    )  # fmt: skip
    text = place.sessions.read_text()
    assert text.startswith("# my notes\n\nno table\n\n## CP 确认记录\n")
    assert "| CP1 | ⏳ |" in text


@pytest.mark.requirement("T25", "T29")
def test_each_kind_has_its_overview(place: Place) -> None:
    agent = Agent(place.base)
    for number, (kind, variant, names) in enumerate(
        (
            ("bugs", "new", {"00-问题概况.md"}),
            ("requirements", "new", {"00-需求概况.md"}),
            ("requirements", "change", {"00-需求变更概况.md"}),
            ("requirements", "product-provided", {"00-需求概况.md", "01-产品需求.md"}),
            ("optimizations", "new", {"00-需求概况.md"}),
            ("scenario-tests", "new", {"00-需求概况.md"}),
        )
    ):
        more = {"productSource": "as\r\ngiven"} if variant == "product-provided" else {}
        found = agent.admit(
            instruction=f"w {number}", taskKind=kind, entryVariant=variant,
            displayName=f"T {number}", **more,
        )  # fmt: skip
        root = place.root / str(found["taskRootRelative"])
        assert {one.name for one in root.iterdir() if one.name != ".memory"} == names
        if more:
            assert (root / "01-产品需求.md").read_bytes() == b"as\ngiven\n"
    for kind, variant in (("bugs", "change"), ("optimizations", "fix")):
        assert agent.refused_to("admit", taskKind=kind, entryVariant=variant)[1] == (
            "TASK_ADMISSION_ENTRY_VARIANT_INVALID"
        )
    refused = agent.refusal(
        "admit", taskKind="requirements", entryVariant="product-provided", displayName="P"
    )
    assert refused.reason == "TASK_ADMISSION_OVERVIEW_INVALID"
    assert not (place.root / "requirements/P").exists()
    assert agent.refused_to("admit", overview=" \n ")[0] == "invalid_argument"
    assert agent.refused_to("admit", aliases=["a", "A"])[1] == "MEMORY_WRITER_ARGUMENT_INVALID"
    assert agent.refused_to("admit", aliases=[NAME.upper()])[1] == (
        "MEMORY_WRITER_ARGUMENT_INVALID"
    )


@pytest.mark.requirement("T31", "T32")
def test_a_step_that_fails_is_noted_and_gone_on_from(place: Place) -> None:
    kill_in(place, "identity-written")
    (place.task / OVERVIEW).mkdir()
    agent = Agent(place.base)
    for _ in range(2):
        refused = agent.refusal("admit")
        assert refused.both == ("corrupt", "MEMORY_FILE_NOT_REGULAR")
        before = place.bytes()
    assert place.bytes() == before
    (place.task / OVERVIEW).rmdir()
    found = agent.admit()
    assert found["phase"] == "finalized"
    assert isinstance(found["recovery"], dict)


@pytest.mark.requirement("T31", "T32")
def test_a_disk_that_fails_in_a_step_leaves_what_stands(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(place.base)
    plain = os.link

    def full(source: object, target: str, **more: object) -> None:
        if target == OVERVIEW:
            raise OSError(errno.ENOSPC, "full")
        plain(source, target, **more)  # type: ignore[arg-type]

    rename_free = atomic.rename_free

    def renamed(folder: object, source: str, target: str) -> bool:
        if target == OVERVIEW:
            raise OSError(errno.ENOSPC, "full")
        return rename_free(folder, source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(atomic, "rename_free", renamed)
    refused = agent.refusal("admit")
    assert refused.both == ("not_saved", "MEMORY_DISK_FULL")
    assert refused.details["phase"] == "identity-written"
    admission = admission_of(place.state())
    assert (admission["phase"], admission["failedFromPhase"], admission["errorReason"]) == (
        "needs-reconcile", "identity-written", "MEMORY_DISK_FULL",
    )  # fmt: skip
    monkeypatch.undo()
    found = agent.admit()
    assert found["phase"] == "finalized"
    recovery = found["recovery"]
    assert isinstance(recovery, dict)
    assert (recovery["failedFromPhase"], recovery["observedPhase"]) == (
        "identity-written", "identity-written",
    )  # fmt: skip
    assert recovery["createdFiles"] == [f"{ROOT}/{OVERVIEW}", f"{ROOT}/.memory/sessions.md"]


@pytest.mark.requirement("T32")
def test_a_finished_admission_whose_files_are_gone_is_no_repeat(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    place.sessions.unlink()
    refused = agent.refusal("admit")
    assert refused.both == ("admission_drift", "TASK_ADMISSION_READBACK_MISMATCH")
    assert refused.details["paths"] == [f"{ROOT}/.memory/sessions.md"]
    bound = agent.bind("go on")
    assert (bound["transition"], bound["phase"]) == ("rebind", "finalized")
    assert "| CP1 | ⏳ |" in place.sessions.read_text()
    place.sessions.write_text("# only words\n")
    agent.bind("once more")
    assert "| CP1 | ⏳ |" in place.sessions.read_text()
    (place.task / OVERVIEW).unlink()
    # Nothing needs it: who goes on may do so without, and may bring it back.
    assert agent.bind("and again")["overview"] == {"path": OVERVIEW, "sha256": None}
    agent.bind("with words", overview=TEXT)
    assert (place.task / OVERVIEW).read_text() == TEXT


@pytest.mark.requirement("T32", "T35")
def test_a_hand_off_may_wait_for_its_owner(place: Place) -> None:
    first, second = Agent(place.base), Agent(place.base, "sess-2", client="claude-code")
    first.admit()
    first.own("release")
    waiting = second.bind(acquireOwner=False)
    assert (waiting["phase"], waiting["status"], waiting["owner"]) == (
        "cp-state-written", "admitting", None,
    )  # fmt: skip
    call = waiting["nextCall"]
    assert isinstance(call, dict)
    made = second.call(call["tool"], **call["arguments"])
    assert (made["status"], made["writerGeneration"]) == ("active", 3)
    assert owner_of(place.state())["agent"] == "claude-code"


@pytest.mark.requirement("T20", "T24")
def test_bind_takes_tasks_and_adopt_takes_directories(place: Place) -> None:
    agent = Agent(place.base)
    place.task.mkdir(parents=True)
    refused = agent.refusal("bind")
    assert refused.both == ("admission_drift", "TASK_IDENTITY_BINDING_MISMATCH")
    assert refused.details["nextCall"]["arguments"]["operation"] == "adopt"  # type: ignore[index]
    assert agent.refused_to("own", "renew", owner="own-" + "0" * 20) == (
        "not_found", "TASK_ADMISSION_TRANSACTION_MISSING",
    )  # fmt: skip
    adopted(agent, overview=TEXT, displayName="Totals", aliases=["T"])
    assert agent.bind("go on", task="Totals")["phase"] == "finalized"
    assert agent.refused_to("bind", task="Totals", aliases=["U"]) == (
        "admission_drift", "TASK_IDENTITY_BINDING_MISMATCH",
    )  # fmt: skip


@pytest.mark.requirement("T22")
def test_a_directory_that_is_taken_twice_takes_no_task(place: Place) -> None:
    agent = Agent(place.base)
    made = agent.call("memory_ingress_register", instruction="fix", taskKind="bugs", routeKey="x")
    task_id = identity.task_id_of(str(made["ingressKey"]))
    for name in (NAME.upper(), f"{NAME}--{task_id[:8]}"):
        (place.root / "bugs" / name).mkdir(parents=True)
    before = place.bytes()
    refused = agent.refused(
        "memory_task_admit_v2", displayName=NAME, overview=TEXT, ingressRef=made["ingressRef"]
    )
    assert refused.both == ("revision_conflict", "TASK_DIRECTORY_COLLISION")
    assert place.bytes() == before


@pytest.mark.requirement("T25", "T29", "T31")
def test_a_change_of_a_requirement_has_an_overview_of_its_own(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit(taskKind="requirements", displayName="R")
    assert agent.refused_to("bind", "change it", task="R", entryVariant="change") == (
        "invalid_argument", "TASK_ADMISSION_OVERVIEW_INVALID",
    )  # fmt: skip
    found = agent.bind("change it", task="R", entryVariant="change", overview="more\n")
    assert found["overview"] == {"path": "00-需求变更概况.md", "sha256": sha("more\n")}
    assert (place.root / "requirements/R/00-需求概况.md").read_text() == TEXT
    assert agent.bind("go on", task="R")["overview"] == {
        "path": "00-需求概况.md", "sha256": sha(TEXT),
    }  # fmt: skip


@pytest.mark.requirement("T24")
def test_a_task_of_another_project_is_bound_nowhere_else(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    layout = place.root / "layout.json"
    layout.write_text(layout.read_text().replace("billing", "other"))
    assert Agent(place.base, "sess-2").refused_to("bind") == (
        "admission_drift", "TASK_IDENTITY_BINDING_MISMATCH",
    )  # fmt: skip


@pytest.mark.requirement("T51", "T52")
def test_a_reference_in_other_hands_renews_nothing(place: Place) -> None:
    agent, thief = Agent(place.base), Agent(place.base, "sess-2")
    agent.admit()
    thief.owner = agent.owner
    for operation in ("renew", "release"):
        refused = thief.refusal("own", operation)
        assert refused.both == ("permission_denied", "TASK_WRITE_OWNER_SESSION_MISMATCH")
    assert agent.own("renew")["status"] == "active"


@pytest.mark.requirement("T48")
def test_a_status_line_that_a_person_wrote_stays(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    text = place.sessions.read_text().replace("🔄 active", "🔄 nearly there")
    place.sessions.write_text(text)
    agent.confirm("CP1", OVERVIEW, sha(TEXT))
    (place.task / "reports").mkdir()
    for name in ("ecr.md", "done.md", "reports/r.md"):
        (place.task / name).write_text(name)
    evidence = {"ecr": "ecr.md", "completion": "done.md", "report": "reports/r.md"}
    found = agent.call(
        "memory_task_terminal_v1", task=NAME, owner=agent.owner,
        evidence={role: f"{ROOT}/{path}" for role, path in evidence.items()},
    )  # fmt: skip
    assert "status-line-drift" in codes(found)
    assert "🔄 nearly there" in place.sessions.read_text()


@pytest.mark.requirement("J69")
def test_a_card_says_where_the_task_stands(place: Place) -> None:
    agent = Agent(place.base)
    found = agent.admit()
    agent.call(
        "memory_session_write", title="work", content="half done", task=NAME,
        handoff={"next-action": "go on", "task": NAME},
    )  # fmt: skip
    day = next((place.root / ".memory/clients/codex/tasks").iterdir()).read_text()
    assert f"- **task**：{found['taskId']}" in day
    state = next(line for line in day.splitlines() if line.startswith("- **state**"))
    assert '"writerGeneration":1' in state


@pytest.mark.requirement("T20")
def test_a_task_is_named_by_its_id_too(place: Place) -> None:
    agent = Agent(place.base)
    task_id = str(agent.admit()["taskId"])
    assert agent.own("renew", task=task_id)["status"] == "active"
    assert agent.bind("go on", task=task_id)["transition"] == "rebind"
    absent = "00000000-0000-8000-8000-000000000000"
    assert agent.refused_to("own", "renew", task=absent) == ("not_found", "TASK_NOT_FOUND")


@pytest.mark.requirement("J15", "T12", "T17")
@pytest.mark.parametrize("layout", [None, '{"mode":"project-root"}\n'])
def test_a_request_from_before_the_layout_was_kept_still_counts(
    place: Place, layout: str | None
) -> None:
    if layout is not None:
        place.root.mkdir()
        (place.root / "layout.json").write_text(layout)
    agent = Agent(place.base)
    ref = agent.call("memory_ingress_register", instruction="fix", taskKind="bugs", routeKey="x")[
        "ingressRef"
    ]
    given = {"displayName": NAME, "overview": TEXT, "ingressRef": ref}
    first = agent.call("memory_task_admit_v2", **given)
    assert (first["phase"], first["missing"]) == ("finalized", ["cp1"])
    agent.owner = str(first["owner"])
    assert agent.call("memory_task_admit_v2", **given)["replayed"] is True
    agent.own("release")  # what is answered now rests on the request alone
    again = agent.call("memory_task_admit_v2", **given)
    assert (again["replayed"], again["owner"]) == (True, None)
    # Another hand's edit is another matter.
    (place.root / "layout.json").write_text(
        '{"mode":"project-root","note":"theirs","project":"billing"}\n'
    )
    assert agent.refused("memory_task_admit_v2", **given).details["failed"] == ["layoutIdentity"]
