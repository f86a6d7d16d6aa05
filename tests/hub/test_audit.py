"""The audit trail: what each call leaves behind, and what it never holds."""

import json
from datetime import timedelta

import pytest

from amux.core.identity import Caller
from amux.disk import atomic
from amux.disk.trail import Trail
from amux.errors import (
    AmuxError,
    InvalidArgument,
    NotSaved,
    PermissionDenied,
    RevisionConflict,
    Unauthenticated,
)
from amux.hub import history
from amux.hub.audit import Audit
from amux.hub.history import Wanted
from tests.support.rooms import BOB, EVE, START, Rooms

A, B, C = "a" * 64, "b" * 64, "c" * 64


def lines_of(audit: Audit, **wanted: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    after = 0
    while True:
        page = audit.read(Wanted(**wanted), after)
        found += page.lines
        after = page.after
        if not page.is_full:
            return found


def write(hub: Rooms, audit: Audit, path: str = "a.md", verb: str = "upsert") -> None:
    with hub.gate(audit).writing(hub.actor(BOB), verb, path, A, B) as admitted:
        admitted.announced()


@pytest.mark.requirement("M73")
def test_a_write_leaves_an_intent_and_an_outcome_that_belong_together(hub: Rooms) -> None:
    audit = hub.audit()
    given = hub.bind(hub.actor(BOB), "s-7")
    agent = hub.actor(BOB, str(given["credential"]), binding=str(given["binding"]), surface="rpc")
    with hub.gate(audit).writing(agent, "upsert", "notes/a.md", A, B) as admitted:
        admitted.announced()
        (intent,) = lines_of(audit)
        assert intent["state"] == "running"
    intent, outcome = lines_of(audit)
    common = {
        "actor": f"token:{str(given['credential'])[5:17]}", "principal": "bob", "session": "s-7",
        "surface": "rpc", "scope": "principal:bob", "verb": "upsert", "path": "notes/a.md",
        "time": START.isoformat(timespec="microseconds"), "before": A, "after": B,
    }  # fmt: skip
    assert intent == common | {"n": 1, "event": "intent", "state": "closed"}
    assert outcome == common | {"n": 2, "event": "outcome", "of": 1, "outcome": "ok"}


@pytest.mark.requirement("M73")
def test_the_outcome_is_the_code_and_claims_no_revision_that_was_not_written(hub: Rooms) -> None:
    audit = hub.audit()
    gate = hub.gate(audit)
    for raised, code in (
        (RevisionConflict("no", observed=C), "revision_conflict"),
        (ZeroDivisionError(), "internal"),
    ):
        with pytest.raises(type(raised)), gate.writing(hub.actor(), "upsert", "a.md", A, B):
            raise raised
        outcome = lines_of(audit)[-1]
        assert (outcome["outcome"], outcome.get("after")) == (code, None)
        assert not audit._trail._syncs._lines  # nobody waits for its announcement any more


@pytest.mark.requirement("M73")
def test_every_other_decision_leaves_one_line_refused_ones_too(hub: Rooms) -> None:
    audit = hub.audit()
    gate = hub.gate(audit)
    gate.reading(hub.actor(BOB), "get", "a.md")
    reader = hub.bind(hub.actor(BOB), verbs="read")
    agent = hub.actor(BOB, str(reader["credential"]))
    with pytest.raises(AmuxError):
        gate.reading(agent, "get", "a.md")
    agent = hub.actor(BOB, str(reader["credential"]), binding=str(reader["binding"]))
    with pytest.raises(PermissionDenied), gate.writing(agent, "upsert", "a.md", A, B):
        raise AssertionError
    told = [(line["verb"], line["outcome"], line["event"]) for line in lines_of(audit)]
    assert told == [
        ("get", "ok", "decision"),
        ("get", "binding_required", "decision"),
        ("upsert", "permission_denied", "decision"),
    ]


@pytest.mark.requirement("M73")
def test_a_stranger_is_told_of_by_what_the_kernel_says_and_nothing_that_it_claims(
    hub: Rooms,
) -> None:
    audit = hub.audit()
    gate = hub.gate(audit)
    token = hub.token()
    for uid, sent in ((EVE, None), (EVE, token[:-1]), (None, "amux_marker")):
        with pytest.raises((PermissionDenied, Unauthenticated)):
            gate.enter(Caller(uid=uid, token=sent))
    told = lines_of(audit)
    assert [(line.get("peer"), line["outcome"]) for line in told] == [
        (f"unix:{EVE}", "permission_denied"),
        (f"unix:{EVE}", "unauthenticated"),
        (None, "unauthenticated"),
    ]
    raw = (hub.home / "hub/audit.jsonl").read_bytes()
    assert token[18:61].encode() not in raw
    assert b"marker" not in raw


# --- reading ---


@pytest.mark.requirement("M73")
def test_lines_are_wanted_by_principal_path_session_and_time(hub: Rooms) -> None:
    audit = hub.audit()
    gate = hub.gate(audit)
    given = hub.bind(hub.actor(BOB), "s1")
    agent = hub.actor(BOB, str(given["credential"]), binding=str(given["binding"]))
    for actor, path in ((hub.actor(), "a.md"), (hub.actor(BOB), "b.md"), (agent, "a.md")):
        gate.reading(actor, "get", path)
        hub.later(hours=1)

    def numbers(**wanted: object) -> list[object]:
        return [line["n"] for line in lines_of(audit, **wanted)]

    assert numbers() == [1, 2, 3]
    assert numbers(principal="bob") == [2, 3]
    assert numbers(principal="bob", path="a.md") == [3]
    assert numbers(session="s1") == [3]
    assert numbers(path="c.md") == numbers(session="s2") == []
    for text, expected in (
        ("2026-01-31T13:00", [2, 3]), ("2026-01-31T14:30+01:00", [3]), ("90m", [3]), ("2h", [2, 3]),
        ("2026-02-01", []), ("2026-01-31T12:00:00Z", [1, 2, 3]), ("", [1, 2, 3]), ("1d", [1, 2, 3]),
    ):  # fmt: skip
        assert numbers(since=history.since(text, hub.now)) == expected, text


@pytest.mark.parametrize(
    "text", ["yesterday", "12", "h", "-1h", "1 h", "2026-13-01", "9" * 9 + "d"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        history.since(text, START)


@pytest.mark.requirement("M73")
def test_numbers_go_on_over_rotations_restarts_and_clocks_that_go_back(hub: Rooms) -> None:
    count = 0
    for round_number in range(4):
        again = hub.again(policy="per_principal")
        again.now -= timedelta(days=round_number)
        audit = again.audit(max_bytes=6000)
        for _ in range(20):
            write(again, audit)
            count += 2
        again.close()
    audit = hub.audit(max_bytes=6000)
    told = [line["n"] for line in lines_of(audit)]
    assert told == list(range(int(str(told[0])), count + 1))
    assert len(list((hub.home / "hub").glob("audit*"))) == 6
    for after in (0, told[5], count - 3, count):
        page = audit.read(Wanted(), int(str(after)))
        assert [line["n"] for line in page.lines] == [n for n in told if int(str(n)) > after][:200]


@pytest.mark.requirement("M73")
def test_an_answer_has_so_many_lines_and_says_where_to_go_on(hub: Rooms) -> None:
    audit = hub.audit()
    for number in range(251):
        hub.gate(audit).reading(hub.actor(), "get", "a.md" if number % 2 else "b.md")
    first = audit.read(Wanted(), 0)
    assert (len(first.lines), first.after, first.is_full) == (200, 200, True)
    rest = audit.read(Wanted(), first.after)
    assert (len(rest.lines), rest.after, rest.is_full) == (51, 251, False)
    assert len(lines_of(audit, path="a.md")) == 125


@pytest.mark.requirement("M73", "M74")
def test_an_intent_that_a_crash_cut_off_is_told_as_such(hub: Rooms) -> None:
    audit = hub.audit()
    write(hub, audit, "done.md")
    audit.intent(hub.grant(hub.actor()), "upsert", path="cut.md", before=A, after=B, must=True)
    with (hub.home / "hub/audit.jsonl").open("ab") as file:
        file.write(b'{"n":4,"time":"2026-01-31T12:00:00')
    again = hub.again(policy="per_principal")
    audit = again.audit()
    write(again, audit, "after.md")
    states = {line["path"]: line["state"] for line in lines_of(audit) if line["event"] == "intent"}
    assert states == {"done.md": "closed", "cut.md": "no outcome", "after.md": "closed"}
    (intent,) = lines_of(audit, path="cut.md")
    assert (intent["before"], intent["after"]) == (A, B)
    again.close()


@pytest.mark.requirement("M74")
@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"n":"x","time":1}',
        b'{"n":3}',
        b"\xff" * 40,
        b'{"n":3,"time":7}',
    ],
)
def test_lines_that_are_none_stop_no_reader_and_no_start(hub: Rooms, odd: bytes) -> None:
    write(hub, hub.audit())
    with (hub.home / "hub/audit.jsonl").open("ab") as file:
        file.write(odd + b"\n")
    again = hub.again(policy="per_principal")
    audit = again.audit()
    write(again, audit, "z.md")
    for wanted in ({}, {"since": START}, {"path": "z.md"}):
        assert [line.get("path") for line in lines_of(audit, **wanted)][-2:] == ["z.md", "z.md"]
    again.close()


# --- writing ---


@pytest.mark.requirement("M73")
def test_an_intent_is_on_the_disk_before_its_writer_goes_on(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = hub.audit()
    events: list[object] = []
    real_write, real_sync = atomic.write, atomic.fsync

    def write_seen(fd: int, data: memoryview) -> int:
        events.append(json.loads(bytes(data))["event"])
        return real_write(fd, data)

    def fsync_seen(fd: int) -> None:
        real_sync(fd)
        events.append("synced")

    monkeypatch.setattr(atomic, "write", write_seen)
    monkeypatch.setattr(atomic, "fsync", fsync_seen)
    with hub.gate(audit).writing(hub.actor(), "upsert", "a.md", A, B) as admitted:
        admitted.announced()
        events.append("rename")
    assert events == ["intent", "synced", "rename", "outcome"]


@pytest.mark.requirement("M74", "row-17")
@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_trail_that_cannot_be_written_refuses_upserts_and_nothing_else(
    hub: Rooms, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = hub.audit()
    with monkeypatch.context() as patch:
        patch.setattr(atomic, step, fails)
        with pytest.raises(NotSaved) as refused:
            write(hub, audit)
        assert refused.value.details["cause"] == "audit"
        write(hub, audit, verb="forget")
        write(hub, audit, verb="discard")
        hub.gate(audit).reading(hub.actor(), "get", "a.md")
    hub.gate(audit).reading(hub.actor(), "get", "later.md")
    told = lines_of(audit)
    if step == "write":
        assert [line["path"] for line in told] == ["later.md"]
        assert told[0]["audit_gap"] == 7  # the upsert twice, forget and discard twice, the get
    else:
        assert "audit_gap" not in told[-1]


def fails(*_: object) -> None:
    raise OSError(28, "injected")


@pytest.mark.requirement("M74")
def test_on_a_full_disk_the_reserve_is_for_writes(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = hub.audit()
    write(hub, audit)
    real = Trail.append

    def full(self: Trail, line: bytes, *, is_spare: bool = False) -> None:
        if is_spare:
            raise OSError(28, "full")
        real(self, line)

    monkeypatch.setattr(Trail, "append", full)
    for _ in range(5):
        hub.gate(audit).reading(hub.actor(), "get", "a.md")
    write(hub, audit, "b.md", verb="forget")
    told = lines_of(audit)
    assert [line["event"] for line in told] == ["intent", "outcome"] * 2
    assert [line.get("audit_gap") for line in told] == [None, None, 5, None]


def test_no_line_is_longer_than_a_path_and_some_names(hub: Rooms) -> None:
    audit = hub.audit()
    with hub.gate(audit).writing(hub.actor(), "discard", "x" * 500_000, "", ""):
        pass
    assert max(map(len, (hub.home / "hub/audit.jsonl").read_bytes().splitlines())) < 8192
