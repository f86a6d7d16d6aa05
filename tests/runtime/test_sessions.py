"""Session records: what never changes, what is refused, and what a dead run leaves."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amux.core import timeline
from amux.errors import AmuxError, Busy, Code, InvalidArgument, NotFound
from amux.runtime import record as records
from amux.runtime.record import Protocol, Record, StartState
from amux.runtime.sessions import Sessions, Unreadable, new_id

NOW = "2026-11-30T12:00:00.000+00:00"
ID = "s-0123456789ab"


def state(session: str = ID, **more: Any) -> StartState:
    return StartState(
        session=session,
        name="a 'name'",
        agent="claude",
        agent_id="claude-code",
        agent_version="2.1.332",
        amux="0.1.0",
        outcome="bound",
        reason="",
        principal="local",
        native="11111111-2222-4333-8444-555555555555",
        binding="amux1:0011223344556677:global",
        hub="/home/a/.amux/run/hub.sock",
        protocol=Protocol(version=1, digest="ab" * 32, text="# Memory\n„ö“\n"),
        form="mcp",
        tools=("memory_get", "memory_search"),
        table_version=2,
        asks_writes=False,
        verbs="read",
        isolation="none",
        via="",
        native_args=("--model", "x", "a\nb"),
        cwd="/home/a/work",
        created="2026-11-30T12:00:00+00:00",
    ).replace(**more)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def sessions(home: Path) -> Sessions:
    return Sessions.create(str(home))


def file_of(home: Path, session: str = ID) -> Path:
    return home / "sessions" / session / "session.json"


def refused(call: Callable[[], object]) -> AmuxError:
    with pytest.raises(AmuxError) as caught:
        call()
    return caught.value


@pytest.mark.requirement("R4")
def test_a_record_is_read_back_as_it_was_and_is_its_owners_alone(
    home: Path, sessions: Sessions
) -> None:
    kept = Record(start=state(), natives=("n1",)).with_run().with_note("a note")
    sessions.write(kept)
    assert sessions.read(ID) == kept
    assert stat.S_IMODE(file_of(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(home).parent.stat().st_mode) == 0o700


@pytest.mark.requirement("R4")
def test_an_unbound_start_state_is_read_back_too(sessions: Sessions) -> None:
    unbound = state(
        outcome="failed", binding=None, protocol=None, form=None, tools=None, table_version=None,
        principal=None, native=None, native_args=(),
    )  # fmt: skip
    sessions.write(Record(start=unbound))
    assert sessions.read(ID).start == unbound
    assert not unbound.is_bound


@pytest.mark.requirement("R4")
def test_natives_notes_and_runs_are_added_and_the_start_state_stays(
    home: Path, sessions: Sessions
) -> None:
    sessions.write(Record(start=state()))
    before = json.loads(file_of(home).read_bytes())["start"]
    grown = sessions.read(ID).with_native("n1").with_native("n2").with_native("n1").with_run()
    sessions.write(grown)
    assert json.loads(file_of(home).read_bytes())["start"] == before
    assert sessions.read(ID).natives == ("n1", "n2")
    assert sessions.read(ID).first_native == "n1"


@pytest.mark.parametrize("name", ["-x", "--resume", "a/b", "../a", "", "a b", "x" * 200])
def test_what_could_be_an_option_or_a_path_is_no_native_id(name: str) -> None:
    assert not Record(start=state()).with_native(name).natives


@pytest.mark.requirement("R4")
def test_a_record_that_is_cut_anywhere_is_refused(home: Path, sessions: Sessions) -> None:
    sessions.write(Record(start=state(), natives=("n1",)))
    whole = file_of(home).read_bytes()
    for length in range(len(whole) - 1):
        file_of(home).write_bytes(whole[:length])
        assert refused(lambda: sessions.read(ID)).code is Code.CORRUPT


def edited(value: object) -> object:
    match value:
        case bool():
            return not value
        case None:
            return "x"
        case int():
            return value + 1
        case str():
            return value + "x"
        case list():
            return [*value, "x"]
    return {}


@pytest.mark.requirement("R4")
@pytest.mark.parametrize("name", tuple(state().fields()))
def test_a_start_state_that_was_edited_is_refused(
    name: str, home: Path, sessions: Sessions
) -> None:
    sessions.write(Record(start=state()))
    found = json.loads(file_of(home).read_bytes())
    found["start"][name] = edited(found["start"][name])
    file_of(home).write_text(json.dumps(found))
    assert refused(lambda: sessions.read(ID)).code is Code.CORRUPT


@pytest.mark.requirement("R4")
def test_a_record_of_a_newer_release_is_refused_as_such(home: Path, sessions: Sessions) -> None:
    sessions.write(Record(start=state()))
    found = json.loads(file_of(home).read_bytes())
    file_of(home).write_text(json.dumps({"format": found["format"] + 1, "something": "else"}))
    refusal = refused(lambda: sessions.read(ID))
    assert refusal.code is Code.UPGRADE_REQUIRED
    assert refusal.details["format"] == records.FORMAT + 1


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"format":1}', '{"format":"1"}', '{"format":1,"start":{}}', "\x00"],
    ids=repr,
)
def test_nonsense_is_no_record(text: str, home: Path, sessions: Sessions) -> None:
    sessions.write(Record(start=state()))
    file_of(home).write_text(text)
    assert refused(lambda: sessions.read(ID)).code is Code.CORRUPT


def test_a_record_in_the_place_of_another_is_refused(home: Path, sessions: Sessions) -> None:
    sessions.write(Record(start=state()))
    sessions.write(Record(start=state("s-ffffffffffff")))
    file_of(home).write_bytes(file_of(home, "s-ffffffffffff").read_bytes())
    assert refused(lambda: sessions.read(ID)).code is Code.CORRUPT


@pytest.mark.requirement("R4")
def test_a_link_to_a_record_is_not_followed(home: Path, sessions: Sessions, tmp_path: Path) -> None:
    sessions.write(Record(start=state()))
    elsewhere = tmp_path / "elsewhere"
    file_of(home).rename(elsewhere)
    file_of(home).symlink_to(elsewhere)
    assert refused(lambda: sessions.read(ID)).code is Code.CORRUPT


def test_all_are_listed_the_broken_with_the_reason_and_what_is_none_is_not(
    home: Path, sessions: Sessions
) -> None:
    sessions.write(Record(start=state()))
    sessions.write(Record(start=state("s-ffffffffffff")))
    file_of(home, "s-ffffffffffff").write_text("{")
    (home / "sessions" / "notes").mkdir()
    (home / "sessions" / "s-000000000000").mkdir()  # not begun
    good, bad = sessions.known()
    assert isinstance(good, Record)
    assert isinstance(bad, Unreadable)
    assert bad.refusal.code is Code.CORRUPT


def test_a_session_is_found_by_id_beginning_and_name_and_never_guessed(
    sessions: Sessions,
) -> None:
    sessions.write(Record(start=state("s-aaaa00000000", name="release")))
    sessions.write(Record(start=state("s-aaaa11111111", name="twice")))
    sessions.write(Record(start=state("s-bbbb00000000", name="twice")))
    assert sessions.find("s-aaaa00000000") == "s-aaaa00000000"
    assert sessions.find("s-aaaa0") == "s-aaaa00000000"
    assert sessions.find("release") == "s-aaaa00000000"
    for text in ("s-aaaa", "twice"):
        with pytest.raises(InvalidArgument) as caught:
            sessions.find(text)
        assert len(caught.value.details["candidates"]) == 2  # type: ignore[arg-type]
    for text in ("s-a", "", "nothing", "../x"):
        with pytest.raises(NotFound):
            sessions.find(text)


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "x" * 201, "a\u2028b"])
def test_a_name_that_would_disturb_a_list_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        records.require_name(name)


@pytest.mark.parametrize("name", ["", 'it\'s "fine"', "-x", "@home", "发布", "x" * 200])
def test_any_other_name_is_taken(name: str) -> None:
    assert records.require_name(name) == name


def test_a_session_runs_once_at_a_time_and_is_not_removed_meanwhile(sessions: Sessions) -> None:
    sessions.write(Record(start=state()))
    with sessions.held(ID):
        refusal = refused(lambda: sessions.remove(ID))
        assert refusal.code is Code.BUSY
        assert refusal.details["pid"] == os.getpid()
        with pytest.raises(Busy), sessions.held(ID):
            raise AssertionError("two runs at once")
    sessions.remove(ID)
    assert sessions.ids() == []
    with pytest.raises(NotFound):
        sessions.read(ID)


@pytest.mark.requirement("R3")
def test_a_runs_credential_and_files_are_private_and_gone_after_it(
    home: Path, sessions: Sessions
) -> None:
    sessions.write(Record(start=state()))
    directory = sessions.files_directory(ID)
    with sessions.held(ID):
        sessions.put_credential(ID, "amux_TOKEN")
        sessions.put_files(ID, {f"{directory}/text.md": "text"})
        for path in (Path(sessions.credential_file(ID)), Path(directory) / "text.md"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        sessions.sweep(ID)
    assert [path.name for path in file_of(home).parent.iterdir()] == ["session.json"]


@pytest.mark.requirement("R3")
def test_what_a_killed_run_left_is_removed_and_a_live_run_is_left_alone(
    sessions: Sessions,
) -> None:
    for session in (ID, "s-ffffffffffff"):
        sessions.write(Record(start=state(session)))
        sessions.put_credential(session, "amux_TOKEN")
    # A killed process leaves its lock file, which nobody holds.
    (Path(sessions.directory("s-ffffffffffff")) / "lock").write_text("{}")
    with sessions.held(ID):
        sessions.sweep_dead()
        assert Path(sessions.credential_file(ID)).exists()
    assert not Path(sessions.credential_file("s-ffffffffffff")).exists()


@pytest.mark.requirement("R3")
def test_a_run_that_was_broken_off_before_it_swept_is_swept_later(sessions: Sessions) -> None:
    sessions.write(Record(start=state()))
    with sessions.held(ID):
        sessions.put_credential(ID, "amux_TOKEN")
    assert Path(sessions.credential_file(ID)).exists()
    sessions.sweep_dead()
    assert not Path(sessions.credential_file(ID)).exists()
    assert not (Path(sessions.directory(ID)) / "lock").exists()


@pytest.mark.requirement("R13")
def test_a_timeline_is_read_as_it_was_written_but_for_torn_lines(
    home: Path, sessions: Sessions
) -> None:
    sessions.write(Record(start=state()))
    sessions.log(ID, timeline.prompt("one"), at=NOW, run=1)
    with (file_of(home).parent / "timeline.jsonl").open("a") as file:
        file.write('{"at":"x","run"')
        file.write("\n")
    sessions.log(ID, timeline.exit(0), at=NOW, run=1)
    assert [one.event.kind for one in sessions.timeline(ID)] == ["prompt", "exit"]
    mode = stat.S_IMODE((file_of(home).parent / "timeline.jsonl").stat().st_mode)
    assert mode == 0o600


def test_where_nothing_was_ever_started_there_are_no_sessions(tmp_path: Path) -> None:
    assert Sessions.open(str(tmp_path / "nowhere")) is None
    assert not (tmp_path / "nowhere").exists()


def test_an_id_is_shaped_like_one() -> None:
    assert records.is_id(new_id(os.urandom))
    assert not records.is_id("../../etc")
