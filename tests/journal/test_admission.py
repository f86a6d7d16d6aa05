"""Admitting tasks: once, exactly as asked for, and anew only by words of a person (TA1-TA16)."""

import json
import os
import threading
from pathlib import Path

import pytest

from amux.core.canonical import digest
from amux.journal.ledger import shape
from amux.journal.tasks import identity, ingress, view
from amux.journal.tasks.projectlease import Standing
from amux.journal.text.namekey import name_key
from tests.support.journal_faces import InProcess
from tests.support.task_agents import (
    DAY,
    NAME,
    OVERVIEW,
    ROOT,
    TEXT,
    WORDS,
    Agent,
    Place,
    admission,
    admission_of,
    codes,
    owner_of,
    sha,
)
from tests.support.workspaces import AT

VECTOR_ROOT = "24dd0334b1e83eb4fe64debbebef1e8efd795c60cdf207293a2fd36fe97b142e"
VECTOR_SESSION = "93211895d97cd08bcb3108635e96ecd29f691f8662f82ce6e869c9ac99c055c6"
TASK_ID = "c15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "billing")


# --- the vectors ---------------------------------------------------------------------------------


@pytest.mark.requirement("T14", "T15", "T20", "T75")
def test_an_ingress_and_the_task_it_asks_for_have_the_keys_of_the_vectors() -> None:
    standing = Standing(
        project="billing", active_root="/w", physical_root="/w", root_identity=VECTOR_ROOT,
        layout_identity="none", session=VECTOR_SESSION, agent="codex", context_epoch="ctx-1",
        route_revision=1, generation=1,
    )  # fmt: skip
    said = ingress.instruction_digest(WORDS)
    asked = ingress.Asked(
        instruction_digest=said,
        instruction_chars=len(WORDS),
        task_kind="bugs",
        entry_variant="fix",
        route_key=name_key(NAME),
        source_event_id=ingress.default_event(said),
    )
    assert (asked.source_event_id, asked.route_key) == ("bc2f5577430cb0b5", "export totals")
    key = ingress.key_of(asked, standing)
    assert key == "30ac9acccf98e918d439b03e30a9d82fe54190eb138b82aaf8c633f6dec27f2c"
    assert identity.task_id_of(key) == TASK_ID


@pytest.mark.requirement("T19", "T26", "T75")
def test_the_files_of_a_task_are_those_of_the_vectors_to_the_byte() -> None:
    made = shape.seal(
        identity.Identity(
            aliases=("CSV totals",),
            created_at="2026-03-14T01:20:00.000Z",
            display_name=NAME,
            entry_variant="fix",
            project="billing",
            project_root_identity_digest=VECTOR_ROOT,
            task_id=TASK_ID,
            task_kind="bugs",
            task_root_relative=ROOT,
        )
    )
    data = made.render()
    assert made.identity_digest == (
        "dc80c6dda5d9211e3a8835f5d3a6c62c100ee502feacdc2f2107bb78fa698d52"
    )
    assert (len(data), digest(data)) == (
        532, "8236b4343a3211c382e8d9b8c47a24e075624d5d2321dd7a2447eb21485c295d",
    )  # fmt: skip
    assert identity.parse(data) == made
    sessions = view.new(
        display_name=NAME,
        task_id=TASK_ID,
        admission_id="admission-30ac9acccf98e918d439b03e30a9d82fe54190eb",
        route_key="export totals",
        project="billing",
    )
    assert (len(sessions), digest(sessions)) == (
        546, "35d0be12ec9490973df4d4aae2de3f9429926a4760479a7c9f0a54059682007e",
    )  # fmt: skip


# --- once ----------------------------------------------------------------------------------------


@pytest.mark.requirement("T25", "T29", "T31", "T36", "TA1")
def test_what_a_person_asks_for_becomes_one_task_with_its_files_and_owner(place: Place) -> None:
    found = Agent(place.base).admit()
    assert (found["phase"], found["status"], found["replayed"]) == ("finalized",) * 2 + (False,)
    assert (found["mutationAuthority"], found["missing"]) == (False, ["cp1"])
    assert (found["transition"], found["routeBinding"]) == ("acquire", "bound")
    assert found["nextCall"] == {
        "tool": "memory_cp_confirm",
        "arguments": {
            "task": NAME, "phase": "CP1", "artifactPath": OVERVIEW,
            "artifactSha256": sha(TEXT)[:16],
        },
        "fill": ["sourceMessage"],
    }  # fmt: skip
    assert [one.name for one in (place.root / "bugs").iterdir()] == [NAME]
    made = identity.parse((place.task / ".memory/task.json").read_bytes())
    assert isinstance(made, identity.Identity)
    assert made.render() == (place.task / ".memory/task.json").read_bytes()
    assert (made.task_id, made.created_at) == (found["taskId"], "2026-03-14T09:20:00.000Z")
    assert (place.task / OVERVIEW).read_text() == TEXT
    assert place.sessions.read_bytes() == view.new(
        display_name=NAME,
        task_id=made.task_id,
        admission_id=str(found["admissionId"]),
        route_key="export totals",
        project="billing",
    )
    assert owner_of(place.state())["writerGeneration"] == 1


@pytest.mark.requirement("T16", "TA2")
def test_the_same_request_again_is_answered_and_writes_nothing(place: Place) -> None:
    agent = Agent(place.base)
    first = agent.admit()
    before = place.bytes()
    again = agent.admit()
    assert (again["taskId"], again["owner"], again["replayed"]) == (
        first["taskId"], first["owner"], True,
    )  # fmt: skip
    registered = agent.call(
        "memory_ingress_register", instruction=WORDS, taskKind="bugs", routeKey="export totals"
    )
    assert (registered["ingressRef"], registered["replayed"]) == (first["ingressRef"], True)
    by_ref = agent.call(
        "memory_task_admit_v2",
        displayName=NAME,
        overview=TEXT,
        ingressRef=str(registered["ingressRef"])[:24],
    )
    assert (by_ref["owner"], by_ref["replayed"]) == (first["owner"], True)
    # By no words at all: the one whose use carries this very request (T18).
    by_none = agent.call("memory_task_admit_v2", displayName=NAME, overview=TEXT)
    assert (by_none["owner"], by_none["replayed"]) == (first["owner"], True)
    assert place.bytes() == before


@pytest.mark.requirement("T30", "T32", "TA3")
def test_the_same_words_for_another_text_are_a_conflict(place: Place) -> None:
    agent = Agent(place.base)
    first = agent.admit()
    before = place.bytes()
    refused = agent.refusal("admit", overview=TEXT + "!")
    assert refused.both == ("admission_drift", "TASK_ADMISSION_IDEMPOTENCY_CONFLICT")
    assert refused.details["taskId"] == first["taskId"]
    assert place.bytes() == before


@pytest.mark.requirement("TA8")
def test_what_people_write_into_a_task_is_no_drift(place: Place) -> None:
    agent = Agent(place.base)
    first = agent.admit()
    (place.task / OVERVIEW).write_text("people wrote this\n")
    with place.sessions.open("a") as file:
        file.write("\n## notes of people\n")
    assert agent.admit()["replayed"] is True
    agent.own("release")
    other = Agent(place.base, "sess-2", client="claude-code")
    bound = other.bind()
    assert (bound["phase"], bound["transition"]) == ("finalized", "handoff")
    assert bound["admissionGeneration"] == 2
    # Released is 2, bound is 3: the number grows with both.
    assert owner_of(place.state())["writerGeneration"] == 3
    assert bound["taskId"] == first["taskId"]
    assert (place.task / OVERVIEW).read_text() == "people wrote this\n"
    moved = agent.admit()
    assert (moved["replayed"], moved["owner"], moved["ownerMoved"]) == (True, None, True)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.requirement("T22", "TA9")
def test_a_directory_that_is_there_is_left_to_whom_it_belongs(place: Place) -> None:
    other = place.root / ROOT
    other.mkdir(parents=True)
    (other / "notes.md").write_text("mine\n")
    found = Agent(place.base).admit(displayName="export Totals")
    task_id = str(found["taskId"])
    assert found["taskRootRelative"] == f"bugs/export Totals--{task_id[:8]}"
    assert [one.name for one in other.iterdir()] == ["notes.md"]


@pytest.mark.requirement("T22", "TA10")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../x", "TASK_DIRECTORY_NAME_INVALID"),
        ("a/b", "TASK_DIRECTORY_NAME_INVALID"),
        ("CON", "TASK_DIRECTORY_NAME_RESERVED"),
        (".x", "TASK_DIRECTORY_NAME_INVALID"),
        ("x.", "TASK_DIRECTORY_NAME_INVALID"),
        ("   ", "TASK_DIRECTORY_NAME_REQUIRED"),
        ("界" * 60, "TASK_DIRECTORY_NAME_TOO_LONG"),
        ("a\x00b", "MEMORY_WRITER_ARGUMENT_INVALID"),
        ("a\u202eb", "MEMORY_WRITER_ARGUMENT_INVALID"),
    ],
)
def test_a_name_that_makes_no_directory_is_refused(place: Place, name: str, reason: str) -> None:
    agent = Agent(place.base)
    assert agent.refused_to("admit", displayName=name) == ("invalid_argument", reason)
    assert agent.refused_to("admit", displayName="x" * 161) == (
        "limit_exceeded", "MEMORY_WRITER_ARGUMENT_TOO_LARGE",
    )  # fmt: skip
    assert not place.root.exists()


@pytest.mark.requirement("TA10")
def test_a_name_is_kept_as_it_is_where_its_directory_cannot(place: Place) -> None:
    found = Agent(place.base).admit(displayName="A: B")
    assert (found["displayName"], found["taskRootRelative"]) == ("A: B", "bugs/A- B")


@pytest.mark.requirement("T23", "TA11")
def test_no_link_is_followed_into_a_task_or_the_ledger(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    agent = Agent(place.base)
    agent.admit()
    (place.root / "requirements").symlink_to(outside)
    assert agent.refused_to(
        "admit", instruction="another", taskKind="requirements", displayName="R"
    ) == ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")
    (place.root / "requirements").unlink()
    memory = place.task / ".memory"
    memory.rename(outside / "memory")
    memory.symlink_to(outside / "memory")
    before = {one: one.read_bytes() for one in outside.rglob("*") if one.is_file()}
    assert agent.refused_to("bind", task=str(place.state()["taskId"])) == (
        "corrupt", "TASK_PATH_REPARSE_BLOCKED",
    )  # fmt: skip
    memory.unlink()
    (outside / "memory").rename(memory)
    ledger = place.root / ".runtime-state/ledger/task"
    ledger.rename(outside / "task")
    ledger.symlink_to(outside / "task")
    assert agent.refused_to("own", "renew") == ("corrupt", "MEMORY_PATH_REPARSE_BLOCKED")
    assert len(before) == 2


# --- what was asked for --------------------------------------------------------------------------


@pytest.mark.requirement("T16", "TA12")
def test_one_message_holds_one_instruction(place: Place) -> None:
    agent = Agent(place.base)
    arguments = {"taskKind": "bugs", "routeKey": "x", "sourceEventId": "m-1"}
    agent.call("memory_ingress_register", instruction="one", **arguments)
    refused = agent.refused("memory_ingress_register", instruction="two", **arguments)
    assert refused.both == ("revision_conflict", "TASK_ADMISSION_INGRESS_STATE_MISMATCH")


@pytest.mark.requirement("T11")
def test_a_route_revision_only_grows(place: Place) -> None:
    agent = Agent(place.base)
    arguments = {"taskKind": "bugs", "routeKey": "x"}
    found = agent.call("memory_ingress_register", instruction="one", routeRevision=4, **arguments)
    assert found["routeRevision"] == 4
    refused = agent.refused(
        "memory_ingress_register", instruction="two", routeRevision=3, **arguments
    )
    assert refused.both == ("revision_conflict", "TASK_ROUTE_REVISION_STALE")


@pytest.mark.requirement("T17", "TA13")
def test_a_request_starts_nothing_after_its_day(place: Place) -> None:
    agent = Agent(place.base)
    registered = agent.call(
        "memory_ingress_register", instruction=WORDS, taskKind="bugs", routeKey="export totals"
    )
    agent.at = AT + DAY + 0.001
    refused = agent.refused(
        "memory_task_admit_v2",
        displayName=NAME,
        overview=TEXT,
        ingressRef=registered["ingressRef"],
    )
    assert refused.both == ("not_found", "TASK_ADMISSION_INSTRUCTION_EXPIRED")
    assert not (place.root / "bugs").exists()
    again = agent.call(
        "memory_ingress_register", instruction=WORDS, taskKind="bugs", routeKey="export totals"
    )
    assert (again["replayed"], again["expired"]) == (True, True)


@pytest.mark.requirement("T18")
def test_without_words_the_one_open_request_is_meant(place: Place) -> None:
    agent = Agent(place.base)
    bare = {"displayName": NAME, "overview": TEXT}
    assert agent.refused("memory_task_admit_v2", **bare).reason == (
        "TASK_ADMISSION_INGRESS_STATE_UNAVAILABLE"
    )
    for words in ("one", "two"):
        agent.call("memory_ingress_register", instruction=words, taskKind="bugs", routeKey="x")
    refused = agent.refused("memory_task_admit_v2", **bare)
    assert refused.both == ("ambiguous", "TASK_ADMISSION_INGRESS_INPUT_AMBIGUOUS")
    agent.at = AT + DAY + 1
    agent.call("memory_ingress_register", instruction="three", taskKind="bugs", routeKey="x")
    assert agent.call("memory_task_admit_v2", **bare)["phase"] == "finalized"


@pytest.mark.requirement("T17")
def test_an_ingress_is_its_own_sessions(place: Place) -> None:
    registered = Agent(place.base).call(
        "memory_ingress_register", instruction=WORDS, taskKind="bugs", routeKey="x"
    )
    refused = Agent(place.base, "sess-2").refused(
        "memory_task_admit_v2",
        displayName=NAME,
        overview=TEXT,
        ingressRef=registered["ingressRef"],
    )
    assert refused.both == ("permission_denied", "TASK_ADMISSION_HOST_SESSION_MISMATCH")


@pytest.mark.requirement("T17")
@pytest.mark.parametrize("kind", ["ingress", "use"])
def test_an_altered_request_is_found_out(place: Place, kind: str) -> None:
    agent = Agent(place.base)
    agent.admit()
    (path,) = (place.root / ".runtime-state/ledger" / kind).glob("*.json")
    record = json.loads(path.read_bytes())
    field = "routeKey" if kind == "ingress" else "ingressRef"
    record["body"][field] = "other"
    record["digest"] = digest({key: record[key] for key in record if key != "digest"})
    path.write_bytes(
        json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        + b"\n"
    )
    assert agent.refused_to("admit") == ("admission_drift", "TASK_ADMISSION_INGRESS_STATE_DRIFT")


@pytest.mark.requirement("T14", "TA14")
def test_the_words_of_a_person_stand_nowhere(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit(instruction="fix the zyxwvu totals")
    agent.call("memory_ingress_register", instruction="qponml", taskKind="bugs", routeKey="other")
    for data in place.bytes().values():
        assert b"zyxwvu" not in data
        assert b"qponml" not in data


@pytest.mark.requirement("TA15")
def test_one_request_binds_one_task(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    agent.admit(instruction="another one", displayName="Other")
    registered = agent.call(
        "memory_ingress_register",
        instruction="go on",
        taskKind="bugs",
        entryVariant="continue",
        routeKey="export totals",
    )
    ref = registered["ingressRef"]
    agent.call("memory_task_admit_v2", operation="bind", task=NAME, ingressRef=ref)
    refused = agent.refused("memory_task_admit_v2", operation="bind", task="Other", ingressRef=ref)
    assert refused.both == ("admission_drift", "TASK_ADMISSION_IDEMPOTENCY_CONFLICT")


@pytest.mark.requirement("T15", "TA16")
def test_the_same_words_after_a_hand_off_ask_anew_and_then_replay(place: Place) -> None:
    first, second = Agent(place.base), Agent(place.base, "sess-2")
    first.admit()
    first.own("release")
    first.bind("continue")
    first.own("release")
    second.bind("continue")
    second.own("release")
    before = owner_of(place.state())["writerGeneration"]
    anew = first.bind("continue")
    assert (anew["replayed"], anew["transition"]) == (False, "handoff")
    assert owner_of(place.state())["writerGeneration"] == before + 1
    again = first.bind("continue")
    assert (again["replayed"], again["owner"]) == (True, anew["owner"])
    assert owner_of(place.state())["writerGeneration"] == before + 1


@pytest.mark.requirement("T20", "T24", "T29")
def test_what_does_not_go_together_is_refused(place: Place) -> None:
    agent = Agent(place.base)
    assert agent.refused_to("admit", task=TASK_ID) == (
        "invalid_argument", "TASK_ADMISSION_TASK_ID_CALLER_FORBIDDEN",
    )  # fmt: skip
    assert agent.refused_to("admit", entryVariant="reopen") == (
        "invalid_argument", "TASK_ADMISSION_ENTRY_VARIANT_INVALID",
    )  # fmt: skip
    agent.admit()
    assert agent.refused_to("bind", displayName="Another") == (
        "admission_drift", "TASK_IDENTITY_BINDING_MISMATCH",
    )  # fmt: skip
    assert agent.refused_to("bind", task="nobody") == ("not_found", "TASK_NOT_FOUND")
    assert agent.refused_to("bind", entryVariant="reopen") == (
        "invalid_argument", "TASK_ADMISSION_ENTRY_VARIANT_INVALID",
    )  # fmt: skip
    registered = agent.call(
        "memory_ingress_register", instruction="x", taskKind="requirements", routeKey="x"
    )
    refused = agent.refused(
        "memory_task_admit_v2",
        displayName="X",
        overview=TEXT,
        taskKind="bugs",
        ingressRef=registered["ingressRef"],
    )
    assert refused.both == ("invalid_argument", "TASK_ADMISSION_ROUTE_INVALID")


@pytest.mark.requirement("T21", "T49", "TA42")
def test_a_task_of_the_first_version_is_adopted_with_its_files_as_they_are(place: Place) -> None:
    memory = place.task / ".memory"
    memory.mkdir(parents=True)
    first = {
        "taskId": "0b1f4a1e-7d0c-4b5e-9d39-0a6b0d6f2f11", "displayName": NAME, "aliases": ["CSV"],
        "createdAt": "2025-11-02T10:00:00.000Z", "identityRevision": 3,
    }  # fmt: skip
    (memory / "task.json").write_text(json.dumps(first))
    (place.task / OVERVIEW).write_text("old\n")
    (place.task / "plan.md").write_text("plan\n")
    rows = "".join(
        f"| {phase} | ✅ | [{name}](../{name}) | v1 | `{digests}` | ok | 2025-11-02 |\n"
        for phase, name, digests in (
            ("CP1", OVERVIEW, sha("old\n").upper()),
            ("CP2", "plan.md", sha("plan\n").upper()),
            ("CP3", "plan.md", sha("other").upper()),
        )
    )
    place.sessions.write_text(
        "# old\n\n## CP 确认记录\n\n| CP | 状态 | a | b | c | d | e |\n|--|--|--|--|--|--|--|\n"
        + rows
    )
    before = (memory / "task.json").read_bytes(), place.sessions.read_bytes()
    agent = Agent(place.base)
    found = agent.call(
        "memory_task_admit_v2", operation="adopt", task=NAME, instruction="take it up",
        overview="ignored",
    )  # fmt: skip
    agent.owner = str(found["owner"])
    assert (found["taskId"], found["phase"]) == (first["taskId"], "finalized")
    assert codes(found).count("cp-claimed") == 2
    assert "overview-ignored" in codes(found)
    assert ((memory / "task.json").read_bytes(), place.sessions.read_bytes()) == before
    second = identity.parse((memory / "task-identity-v2.json").read_bytes())
    assert isinstance(second, identity.Identity)
    assert (second.display_name, second.aliases, second.created_at) == (
        NAME, ("CSV",), first["createdAt"],
    )  # fmt: skip
    note = json.loads((memory / "task-identity-migration-v1.json").read_bytes())
    assert note == {
        "schemaVersion": "TaskIdentityMigrationV1", "taskId": first["taskId"],
        "sourceDigest": sha(before[0]),
        "targetDigest": sha((memory / "task-identity-v2.json").read_bytes()),
    }  # fmt: skip
    assert agent.refused_to("begin") == ("confirmation_required", "TASK_CP_NOT_CONFIRMED")
    again = agent.call(
        "memory_task_admit_v2", operation="adopt", task=NAME, instruction="take it up",
        overview="ignored",
    )  # fmt: skip
    assert (again["replayed"], again["owner"]) == (True, agent.owner)


@pytest.mark.requirement("T21", "T31")
def test_a_directory_without_an_identity_is_adopted(place: Place) -> None:
    place.task.mkdir(parents=True)
    (place.task / "notes.md").write_text("mine\n")
    agent = Agent(place.base)
    arguments = {"operation": "adopt", "task": ROOT, "instruction": "take it up"}
    assert agent.refused("memory_task_admit_v2", **arguments).both == (
        "invalid_argument", "TASK_ADMISSION_OVERVIEW_INVALID",
    )  # fmt: skip
    found = agent.call("memory_task_admit_v2", overview=TEXT, **arguments)
    assert (found["displayName"], found["phase"]) == (NAME, "finalized")
    again = agent.call("memory_task_admit_v2", overview=TEXT, **arguments)
    assert (again["replayed"], again["taskId"]) == (True, found["taskId"])


@pytest.mark.requirement("J15")
def test_the_first_admission_keeps_the_projects_name(place: Place) -> None:
    agent = Agent(place.base)
    agent.admit()
    layout = json.loads((place.root / "layout.json").read_bytes())
    assert (layout["mode"], layout["project"]) == ("project-root", "billing")
    # What the session means is judged with the layout that it made itself.
    assert agent.own("renew")["missing"] == ["cp1"]


@pytest.mark.requirement("TA7")
def test_two_calls_at_once_make_one_task(place: Place) -> None:
    faces = [Agent(place.base) for _ in range(4)]
    barrier, found = threading.Barrier(4), []

    def ask(face: InProcess) -> None:
        barrier.wait(10)
        found.append(face.call("memory_task_admit_v2", **admission()))

    threads = [threading.Thread(target=ask, args=(face,)) for face in faces]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert sorted(bool(one["replayed"]) for one in found) == [False, True, True, True]
    assert len({one["owner"] for one in found}) == len({one["taskId"] for one in found}) == 1
    assert len(place.records("task")) == 1
    assert admission_of(place.state())["phase"] == "finalized"


@pytest.mark.requirement("J11")
def test_a_secret_is_written_into_no_file_of_a_task(place: Place) -> None:
    agent = Agent(place.base)
    secret = f"the token is ghp_{'aB3dE5fG7h' * 4}"[:53]
    for name in ("overview", "displayName", "routeKey"):
        code, reason = agent.refused_to("admit", **{name: secret})
        assert (code, reason) == ("secret_detected", "MEMORY_SECRET_SUSPECTED"), name
    refused = agent.refused(
        "memory_ingress_register", instruction="x", taskKind="bugs", routeKey=secret
    )
    assert refused.reason == "MEMORY_SECRET_SUSPECTED"
    assert not os.path.lexists(place.root)
    agent.admit()
    assert agent.refused_to("confirm", "CP1", OVERVIEW, sha(TEXT), sourceMessage=secret)[1] == (
        "MEMORY_SECRET_SUSPECTED"
    )


@pytest.mark.requirement("J11")
def test_what_only_looks_like_a_secret_is_remarked(place: Place) -> None:
    found = Agent(place.base).admit(overview="set it\npassword=hunter22xyz\n")
    assert {"code": "secret-like", "line": 2} in found["warnings"]  # type: ignore[operator]
