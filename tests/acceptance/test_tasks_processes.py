"""Tasks among real processes: MCP servers of agents, and a person's command line (TA1 to TA46)."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.journal_faces import CLAUDE, CODEX, Cli, Face, Mcp, Refused
from tests.support.task_agents import (
    NAME,
    OVERVIEW,
    TEXT,
    Place,
    admission,
    admission_of,
    owner_of,
    sha,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Sessions:
    """Agents' servers and people's terminals in one project, each with a session of its own."""

    def __init__(self, place: Place, home: Path, stack: ExitStack) -> None:
        self.place, self.home, self._stack = place, home, stack

    def agent(self, session: str, client: str = CODEX) -> Mcp:
        face = Mcp(self.place.base, home=self.home, client=client, AMUX_SESSION=session)
        return self._stack.enter_context(face)

    def person(self, session: str = "terminal") -> Cli:
        return Cli(self.place.base, home=self.home, AMUX_SESSION=session)


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    home = tmp_path / "home"
    home.mkdir()
    with ExitStack() as stack:
        yield Sessions(Place(tmp_path / "billing"), home, stack)


def bind(face: Face, words: str = "go on", **more: object) -> dict[str, object]:
    return face.call("memory_task_admit_v2", operation="bind", task=NAME, instruction=words, **more)


def confirm(face: Face) -> dict[str, object]:
    return face.call(
        "memory_cp_confirm", task=NAME, phase="CP1", artifactPath=OVERVIEW,
        artifactSha256=sha(TEXT), sourceMessage="yes",
    )  # fmt: skip


def begin(face: Face, owner: object, *targets: str, **more: object) -> dict[str, object]:
    return face.call(
        "memory_task_operation", op="begin", task=NAME, owner=owner,
        targets=list(targets or ("a.py",)), **more,
    )  # fmt: skip


@pytest.mark.requirement("T4", "TA1", "TA2", "TA18")
def test_an_agent_and_a_person_work_on_one_task_from_two_programs(sessions: Sessions) -> None:
    agent, person = sessions.agent("s-1"), sessions.person()
    first = agent.call("memory_task_admit_v2", **admission())
    assert (first["phase"], first["missing"]) == ("finalized", ["cp1"])
    told = confirm(person)
    assert (told["status"], told["ownerRenewed"]) == ("confirmed", False)
    assert agent.refused(
        "memory_task_operation", op="begin", task=NAME, owner=first["owner"], targets=["a.py"]
    ).both == ("lease_lost", "TASK_CP_NOT_OBSERVED")
    renewed = agent.call(
        "memory_task_write_owner", operation="renew", task=NAME, owner=first["owner"]
    )
    assert (renewed["missing"], renewed["mutationAuthority"]) == ([], True)
    assert begin(agent, first["owner"])["phase"] == "dispatched"


@pytest.mark.requirement("T56")
def test_a_command_line_quotes_the_context_that_it_has_seen(sessions: Sessions) -> None:
    person = sessions.person()
    owner = person.call("memory_task_admit_v2", **admission())["owner"]
    context = confirm(person)["writeContext"]
    assert isinstance(context, dict)
    refused = person.refused(
        "memory_task_operation", op="begin", task=NAME, owner=owner, targets=["a.py"]
    )
    assert refused.both == ("lease_lost", "TASK_WRITE_CONTEXT_STALE")
    begun = begin(person, owner, contextDigest=str(context["contextDigest"])[:16])
    assert begun["phase"] == "dispatched"


@pytest.mark.requirement("TA7")
def test_two_processes_of_one_session_admit_one_task(sessions: Sessions) -> None:
    faces = [sessions.agent("s-1") for _ in range(2)]
    barrier, found = threading.Barrier(2), []

    def ask(face: Mcp) -> None:
        barrier.wait(20)
        found.append(face.call("memory_task_admit_v2", **admission()))

    threads = [threading.Thread(target=ask, args=(face,)) for face in faces]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert sorted(bool(one["replayed"]) for one in found) == [False, True]
    assert len({one["owner"] for one in found}) == 1
    assert admission_of(sessions.place.state())["phase"] == "finalized"


@pytest.mark.requirement("T10", "T54", "T60", "TA24", "TA25")
def test_a_server_that_is_stopped_keeps_its_task_and_one_that_is_killed_does_not(
    sessions: Sessions,
) -> None:
    first, second = sessions.agent("s-1"), sessions.agent("s-2", CLAUDE)
    owner = first.call("memory_task_admit_v2", **admission())["owner"]
    confirm(first)
    (sessions.place.base / "a.py").write_text("before")
    begin(first, owner, "a.py")
    process = first.process.process
    os.kill(process.pid, signal.SIGSTOP)
    try:
        blocked = refused_bind(second)
        assert blocked.both == ("lease_held", "TASK_WRITE_OWNER_TAKEOVER_INVALID")
        assert "live-turn" in blocked.details["blocking"]  # type: ignore[operator]
    finally:
        os.kill(process.pid, signal.SIGCONT)
    (sessions.place.base / "a.py").write_text("after")
    process.kill()
    process.wait(10)
    blocked = refused_bind(second)
    assert blocked.details["blocking"] == ["operation"]
    call = blocked.details["nextCall"]
    assert isinstance(call, dict)
    settled = second.call(call["tool"], **call["arguments"])["operation"]
    assert isinstance(settled, dict)
    assert settled["effect"] == "known-applied"
    bound = bind(second)
    assert bound["transition"] == "takeover"
    assert owner_of(sessions.place.state())["writerGeneration"] == 2
    back = sessions.agent("s-1")
    assert back.refused(
        "memory_task_write_owner", operation="renew", task=NAME, owner=owner
    ).both == ("lease_lost", "TASK_WRITE_OWNER_CAS_MISMATCH")


def refused_bind(face: Face) -> Refused:
    try:
        found = bind(face)
    except Refused as refusal:
        return refusal
    raise AssertionError(found)


@pytest.mark.requirement("TA23")
def test_a_verb_of_the_command_line_lives_only_as_long_as_its_call(sessions: Sessions) -> None:
    person = sessions.person("p-1")
    person.call("memory_task_admit_v2", **admission())
    agent = sessions.agent("s-2", CLAUDE)
    # Nobody of the person's session is at work any more, and nothing is open.
    assert bind(agent)["transition"] == "takeover"


@pytest.mark.requirement("TA46")
def test_nothing_begins_on_a_checkpoint_that_its_owner_has_not_seen(sessions: Sessions) -> None:
    agent, person = sessions.agent("s-1"), sessions.person()
    owner = agent.call("memory_task_admit_v2", **admission())["owner"]
    barrier, answers = threading.Barrier(2), {}

    def work() -> None:
        barrier.wait(20)
        try:
            answers["begin"] = begin(agent, owner)["phase"]
        except Refused as refusal:
            answers["begin"] = refusal.reason

    def say_yes() -> None:
        barrier.wait(20)
        answers["confirm"] = confirm(person)["status"]

    threads = [threading.Thread(target=one) for one in (work, say_yes)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert answers["confirm"] == "confirmed"
    assert answers["begin"] in {
        "TASK_CP_NOT_CONFIRMED", "TASK_CP_NOT_OBSERVED", "TASK_WRITE_CONTEXT_STALE",
    }  # fmt: skip
    assert sessions.place.state()["operation"] is None
