import pytest

from amux.core import canonical
from amux.journal.tasks import route
from amux.journal.tasks.route import Hint

NOW, LATER = "2026-03-14T01:20:00.000Z", "2026-03-15T01:20:00.000Z"
HINT = Hint(
    session_digest="a" * 64,
    project="billing",
    project_root_identity_digest="b" * 64,
    task_id="c15d0adc-5c3f-83e7-b39a-e6fcd2fed2dc",
    route_revision=1,
    state=route.LIVE,
    trigger=route.ADMISSION,
    expires_at=LATER,
)


@pytest.mark.requirement("T13")
def test_an_entry_is_a_hint_and_says_so() -> None:
    entry = route.entry(HINT)
    assert entry is not None
    assert entry["schemaVersion"] == "WorkspaceSessionRouteIndexV1"
    assert (entry["authority"], entry["hintOnly"]) == (False, True)
    assert entry["entryDigest"] == canonical.digest_without(entry, "entryDigest")
    assert set(entry) == {
        "schemaVersion", "sessionDigest", "project", "projectRootIdentityDigest", "taskId",
        "routeRevision", "state", "trigger", "expiresAt", "lastTerminalReceiptDigest", "authority",
        "hintOnly", "entryDigest",
    }  # fmt: skip
    read = route.read(entry, now=NOW)
    assert read is not None
    assert read.task_id == HINT.task_id


@pytest.mark.requirement("T13")
def test_an_entry_over_a_kilobyte_is_not_written() -> None:
    assert route.entry(HINT.replace(project="p" * 400)) is not None
    assert route.entry(HINT.replace(project="p" * 500)) is None


@pytest.mark.requirement("T13")
def test_a_hint_that_ended_or_is_damaged_says_nothing() -> None:
    entry = route.entry(HINT)
    assert entry is not None
    assert route.read(entry, now=LATER) is None
    unbound = route.entry(HINT.replace(state=route.UNBOUND))
    assert unbound is not None
    assert route.read(unbound, now=NOW) is None
    for change in ({"taskId": "other"}, {"authority": True}, {"extra": 1}, {"project": None}):
        assert route.read({**entry, **change}, now=NOW) is None
    assert route.read({}, now=NOW) is None


@pytest.mark.requirement("T13")
def test_a_trigger_says_why_a_hint_was_written() -> None:
    assert route.trigger(None, project="billing", is_admission=True) == "admission-bind"
    assert route.trigger(HINT, project="billing", is_admission=False) == "task-bind"
    assert route.trigger(HINT, project="web", is_admission=False) == "project-switch"
