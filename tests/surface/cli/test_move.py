"""`memory move`: the bytes are at one of both paths at every instant."""

import json
import os
import signal
import subprocess
import sys

import pytest

from amux.errors import (
    AmuxError,
    Busy,
    InvalidArgument,
    NotSaved,
    QuotaExceeded,
    RevisionConflict,
)
from tests.support.command import Command, Done
from tests.support.fake_hub import ABSENT, FakeHub, revision

TEXT = "# long enough for two pages 用户\n".encode()
R = revision(TEXT)
MOVE = ["memory", "move", "old.md", "new/n.md", "--expected-revision", R]


def move(amux: Command, *, expected: str = R) -> Done:
    return amux.run("memory", "move", "old.md", "new/n.md", "--expected-revision", expected)


@pytest.fixture(autouse=True)
def _document(hub: FakeHub) -> None:
    hub.documents["old.md"] = TEXT


@pytest.mark.requirement("M51")
def test_move_puts_the_bytes_at_the_new_path_first(amux: Command, hub: FakeHub) -> None:
    seen: list[set[str]] = []
    hub.before = lambda _name, _given: seen.append(set(hub.documents))
    assert move(amux).answer == {
        "old": "old.md", "path": "new/n.md", "revision": R, "moved": True,
    }  # fmt: skip
    assert hub.documents == {"new/n.md": TEXT}
    assert all(seen)
    assert hub.names()[-2:] == ["upsert", "forget"]


@pytest.mark.requirement("M51")
def test_move_at_a_stale_revision_changes_nothing(amux: Command, hub: FakeHub) -> None:
    done = move(amux, expected="0" * 64)
    assert done.code == "revision_conflict"
    assert done.details["observed"] == R
    assert hub.documents == {"old.md": TEXT}
    assert set(hub.names()) == {"get"}


@pytest.mark.requirement("M51")
def test_move_of_a_missing_document_is_refused(amux: Command, hub: FakeHub) -> None:
    hub.documents.clear()
    assert move(amux).details["observed"] == ABSENT
    assert move(amux, expected=ABSENT).code == "not_found"


def test_move_onto_itself_is_refused(amux: Command, hub: FakeHub) -> None:
    done = amux.run("memory", "move", "old.md", "old.md", "--expected-revision", R)
    assert done.code == "invalid_argument"
    assert hub.calls == []


@pytest.mark.requirement("M51", "row-22")
def test_a_taken_path_is_not_overwritten_and_the_refusal_says_what_exists(
    amux: Command, hub: FakeHub
) -> None:
    hub.documents["new/n.md"] = b"taken"
    done = move(amux)
    assert done.code == "revision_conflict"
    assert done.details["documents"] == {"old.md": R, "new/n.md": revision(b"taken")}
    assert hub.documents == {"old.md": TEXT, "new/n.md": b"taken"}


@pytest.mark.requirement("M51", "row-22")
@pytest.mark.parametrize("after", [b"changed", None], ids=["changed", "forgotten"])
def test_a_change_in_between_takes_the_new_document_back(
    amux: Command, hub: FakeHub, after: bytes | None
) -> None:
    def change(name: str, given: dict[str, object]) -> None:
        if name == "forget" and given["path"] == "old.md":
            hub.documents.pop("old.md")
            if after is not None:
                hub.documents["old.md"] = after

    hub.before = change
    done = move(amux)
    assert done.code == "revision_conflict"
    assert done.details["observed"] == revision(after)
    assert hub.documents == ({"old.md": after} if after is not None else {})


@pytest.mark.requirement("M51", "row-22")
@pytest.mark.parametrize(
    "refusal",
    [Busy("no"), NotSaved("no"), QuotaExceeded("no"), InvalidArgument("no", argument="path")],
    ids=lambda refusal: str(refusal.code),
)
@pytest.mark.parametrize("step", ["upsert", "forget"])
def test_whatever_interrupts_a_move_loses_nothing_and_is_told(
    amux: Command, hub: FakeHub, step: str, refusal: AmuxError
) -> None:
    hub.answers[step] = refusal
    done = move(amux)
    assert done.code == refusal.code
    there = {path: revision(hub.documents.get(path)) for path in ("old.md", "new/n.md")}
    assert done.details["documents"] == there
    assert there["old.md"] == R
    assert there["new/n.md"] == (R if step == "forget" else ABSENT)


@pytest.mark.requirement("M51", "row-22")
@pytest.mark.parametrize("step", ["upsert", "forget"])
def test_a_lost_answer_is_outcome_unknown_and_says_what_exists(
    amux: Command, hub: FakeHub, step: str
) -> None:
    hub.silent = {step}
    done = move(amux)
    assert done.status == 6
    there = {path: revision(hub.documents.get(path)) for path in ("old.md", "new/n.md")}
    assert done.details["documents"] == there
    assert R in there.values()


@pytest.mark.requirement("M51", "row-22")
def test_a_new_document_that_somebody_changed_is_not_taken_back(
    amux: Command, hub: FakeHub
) -> None:
    def change(name: str, _given: dict[str, object]) -> None:
        if name == "forget":
            hub.documents |= {"old.md": b"changed", "new/n.md": b"also changed"}

    hub.before = change
    done = move(amux)
    assert done.code == "revision_conflict"
    assert hub.documents == {"old.md": b"changed", "new/n.md": b"also changed"}
    assert done.details["documents"] == {
        "old.md": revision(b"changed"), "new/n.md": revision(b"also changed"),
    }  # fmt: skip


@pytest.mark.requirement("M51")
def test_a_hub_that_is_gone_is_told_as_unknown(amux: Command, hub: FakeHub) -> None:
    def refuse(name: str, _given: dict[str, object]) -> None:
        if "upsert" in hub.names():
            raise RevisionConflict("no", observed="x") if name == "upsert" else Busy("no")

    hub.before = refuse
    details = move(amux).details["documents"]
    assert details == {"old.md": "unknown: busy", "new/n.md": "unknown: busy"}


@pytest.mark.requirement("M51", "row-22")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["upsert", "forget"])
def test_a_move_that_is_stopped_at_any_step_leaves_the_bytes(
    amux: Command, hub: FakeHub, step: str, is_done: bool, number: signal.Signals
) -> None:
    """The Hub gets the step; the command is stopped before or after the Hub did it."""
    children: list[subprocess.Popen[bytes]] = []

    def stop(name: str, given: dict[str, object]) -> None:
        if name == step and hub.names().count(step) == 1:
            if is_done:
                getattr(hub, f"_{name}")(**given)
            children[0].send_signal(number)
            if number == signal.SIGKILL:
                children[0].wait()
            raise Busy("nobody hears this")

    hub.before = stop
    hub.silent = {step}
    children.append(
        subprocess.Popen(
            [sys.executable, "-m", "amux", *MOVE],
            env={"PATH": os.environ["PATH"], "AMUX_HOME": amux.config.home},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    )
    out, err = children[0].communicate(timeout=20)
    assert out == b""
    assert TEXT in hub.documents.values()
    if step == "upsert":
        assert hub.documents["old.md"] == TEXT
    if number == signal.SIGINT and children[0].returncode == 130:
        said = err.decode()
        found = json.loads(said[said.index("{") : said.index("}") + 1])
        assert found == {path: revision(hub.documents.get(path)) for path in found}
