"""Who changed this document, when, from which session: asked of a real Hub, killed ones too."""

import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.client import Client
from amux.errors import AmuxError
from tests.kill import tracer
from tests.kill.home import Home, revision_of, until
from tests.support.hub import RunningHub

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    yield found
    found.end()


def trail(hub: RunningHub, *words: str) -> list[dict[str, object]]:
    done = hub.cli("audit", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def switched(hub: RunningHub, name: str, value: str) -> dict[str, object]:
    to = Client(hub.config.socket_path)
    return to.ask("settings", {"name": name, "value": value}).value()


def as_session(hub: RunningHub, session: str, name: str, **given: object) -> dict[str, object]:
    """Make a call with the credential of a new session."""
    bound = hub.ask("bind", session=session, agent="codex", delegate=True)
    token, binding = str(bound["credential"]), str(bound["binding"])
    return called(hub, name, token, binding, given)


def called(
    hub: RunningHub, name: str, token: str, binding: str, given: dict[str, object]
) -> dict[str, object]:
    body = json.dumps(given).encode()
    head = (
        f"POST /v1/memory/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nAmux-Memory-Binding: {binding}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return json.loads(hub.raw(head.encode() + body).partition(b"\r\n\r\n")[2])


@pytest.mark.requirement("M73")
def test_each_write_is_answered_for_by_session_time_and_revisions(home: Home) -> None:
    home.enable().start()
    first = as_session(
        home, "s-one", "upsert", path="a.md", content="1", expected_revision="absent"
    )
    home.ask("upsert", path="a.md", content="2", expected_revision=first["revision"])
    as_session(home, "s-two", "forget", path="a.md", expected_revision=revision_of(b"2"))
    as_session(home, "s-two-again", "forget", path="a.md", expected_revision=revision_of(b"2"))
    with pytest.raises(AmuxError):
        home.ask("upsert", path="a.md", content="3", expected_revision="0" * 64)
    told = [line for line in trail(home, "--path", "a.md") if line["event"] == "outcome"]
    one, two = revision_of(b"1"), revision_of(b"2")
    assert [
        (line["verb"], line.get("session"), line["before"], line.get("after"), line["outcome"])
        for line in told
    ] == [
        ("upsert", "s-one", "absent", one, "ok"),
        ("upsert", None, one, two, "ok"),
        ("forget", "s-two", two, "absent", "ok"),
        ("forget", "s-two-again", "absent", "absent", "ok"),
        ("upsert", None, "0" * 64, None, "revision_conflict"),
    ]
    assert trail(home, "--session", "s-one", "--path", "a.md")[-1] == told[0]
    # Without a Hub the same trail is read in process.
    home.stop()
    assert [line for line in trail(home, "--path", "a.md") if line["event"] == "outcome"] == told


@pytest.mark.requirement("M73", "M23")
def test_a_write_that_a_kill_cut_off_has_its_intent_on_the_disk(home: Home) -> None:
    """At every system call of a replace: what the document became, an intent foretold."""
    home.enable().start()
    home.ask("upsert", path="a.md", content="0", expected_revision="absent")
    numbers = itertools.count(1)
    cut_off = 0
    for call in ("openat", "write", "fsync", "renameat2", "unlinkat"):
        for count in itertools.count(1):
            before = home.on_disk("a.md")
            new = f"text {next(numbers)}".encode()
            with tracer.attached(home.pid(), call, f"signal=KILL:when={count}"):
                try:
                    home.ask(
                        "upsert", path="a.md", content=new.decode(),
                        expected_revision=revision_of(before),
                    )  # fmt: skip
                    is_killed = False
                except AmuxError:
                    is_killed = True
            if is_killed:
                home.await_end()
                home.kill()  # reaps it
                home.start()
            found = home.on_disk("a.md")
            told = trail(home, "--path", "a.md")
            intents = [line for line in told if line["event"] == "intent"]
            mine = [line for line in intents if line["after"] == revision_of(new)]
            if found == new:
                (line,) = mine
                assert line["before"] == revision_of(before)
                assert line["actor"] == f"unix:{os.getuid()}"
                outcomes = {line["of"]: line["outcome"] for line in told if "of" in line}
                assert line["state"] == ("closed" if line["n"] in outcomes else "no outcome")
                assert outcomes.get(line["n"], "ok") == "ok"
                cut_off += line["state"] == "no outcome"
            if not is_killed:
                break
    assert cut_off >= 2
    assert home.ask("get", path="a.md")["revision"] == revision_of(home.on_disk("a.md"))


@pytest.mark.requirement("M73")
def test_the_intent_is_synced_before_the_rename_and_beside_the_temporary(
    home: Home, tmp_path: Path
) -> None:
    home.enable().start()
    home.ask("upsert", path="a.md", content="0", expected_revision="absent")
    log = tmp_path / "strace"
    pid = home.pid()
    command = [tracer.strace(), "-f", "-y", "-p", str(pid), "-o", str(log)]
    command += ["-e", "trace=fsync,renameat2,unlinkat"]
    tracing = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracing.stderr is not None
    tracing.stderr.readline()
    home.ask("upsert", path="a.md", content="1", expected_revision=revision_of(b"0"))
    home.ask("forget", path="a.md", expected_revision=revision_of(b"1"))
    tracing.send_signal(signal.SIGINT)
    tracing.communicate()
    lines = log.read_text().splitlines()

    def ends(pattern: str) -> list[int]:
        return [
            number for number, line in enumerate(lines)
            if re.search(pattern, line) and "unfinished" not in line
        ]  # fmt: skip

    synced = ends(r"fsync\(.*audit\.jsonl|fsync resumed")
    (renamed,) = ends(r"renameat2\(.*a\.md")
    forgotten = ends(r'unlinkat\(.*"a\.md"')
    assert synced[0] < renamed
    assert any(renamed < number < forgotten[0] for number in synced)


@pytest.mark.requirement("M73", "M63", "M75")
def test_no_content_query_or_token_is_in_any_file_but_the_documents(home: Home) -> None:
    home.enable().start()
    marker = "xyzzymarker"
    home.ask("principal_add", principal="bob")
    person = str(home.ask("token_create", kind="person", principal="bob")["token"])
    bound = home.ask("bind", session="s", agent="codex", delegate=True)
    agent = str(bound["credential"])
    secrets = [marker, person[18:61], agent[18:61]]
    home.ask("upsert", path="a.md", content=marker, expected_revision="absent")
    home.ask("search", query=f"{marker} other")
    home.ask("get", path="a.md")
    wrong = [
        lambda: home.ask("upsert", path="a.md", content=marker, expected_revision="absent"),
        lambda: home.ask("upsert", path="a.md", content=marker, expected_revision=marker),
        lambda: home.ask("upsert", path="a.md", content=marker + "\0", expected_revision="absent"),
        lambda: home.ask("search", query=" ".join(f"{marker}{n}" for n in range(17))),
        lambda: home.ask("list", cursor=marker),
        lambda: home.ask("token_revoke", id=person),
        lambda: home.ask("token_revoke", id=agent),
        lambda: home.ask("principal_add", principal=person),
        lambda: home.ask("principal_alias", principal="bob", alias=agent),
        lambda: switched(home, person, agent),
        lambda: home.ask("bind", session=person, agent=agent),
        lambda: home.ask("end", session=agent),
        lambda: home.ask("audit", since=person),
    ]
    for call in wrong:
        with pytest.raises(AmuxError):
            call()
    for token in (person, agent, person[:-1] + "x", agent[:-1], "Bearer " + person):
        called(home, "search", token, str(bound["binding"]), {"query": marker})
        called(home, "search", token, token, {"query": marker})
        called(home, "upsert", token, marker, {"path": "a.md", "content": marker})
        home.raw(f"POST /v1/{token} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    ask = home.ask
    ask("audit")
    ask("forget", path="a.md", expected_revision=revision_of(marker.encode()))
    home.stop()
    home.cli("audit", "--path", marker)
    assert (home.home / "hub/audit.jsonl").stat().st_size > 3000
    for path in home.home.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for secret in secrets:
                assert secret.encode() not in data, path
            assert hashlib.sha256(marker.encode()).hexdigest().encode() not in data or (
                path.name == "audit.jsonl"
            )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB, gone at the end."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a file system needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,nr_inodes=60", "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.requirement("M74", "M23", "row-17")
@pytest.mark.parametrize("full", ["bytes", "inodes"])
def test_on_a_full_disk_upserts_are_refused_and_everything_else_answers(
    small_disk: Path, full: str
) -> None:
    hub = RunningHub(small_disk / "home")
    try:
        hub.enable().start()
        for name in ("a.md", "b.md"):
            hub.ask("upsert", path=name, content="old", expected_revision="absent")
        fill(small_disk, full)
        old = revision_of(b"old")
        refusals = set()
        for _ in range(150):
            with pytest.raises(AmuxError) as refused:
                hub.ask("upsert", path="a.md", content="new", expected_revision=old)
            refusals.add(str(refused.value.code))
            assert hub.ask("get", path="a.md")["content"] == "old"
            assert len(hub.ask("search", query="old")["hits"]) == 2
        assert refusals == {"not_saved"}
        assert switched(hub, "memory.enabled", "true")["saved"] is True
        with pytest.raises(AmuxError) as refused:
            switched(hub, "memory.enabled", "false")
        assert refused.value.code == "not_saved"
        assert hub.ask("status")["settings"]["memory.enabled"]["saved"] is True
        assert hub.ask("forget", path="b.md", expected_revision=old)["already_absent"] is False
        assert hub.ask("get", path="b.md")["exists"] is False
        for file in small_disk.glob("filler*"):
            file.unlink()
        new = hub.ask("upsert", path="a.md", content="new", expected_revision=old)
        told = trail(hub)
        gaps = [line for line in told if line.get("audit_gap")]
        assert gaps or full == "inodes"  # without inodes the trail has room
        (last,) = [line for line in told if line.get("after") == new["revision"] and "of" in line]
        assert last["outcome"] == "ok"
        assert not list((small_disk / "home").rglob(".amux-*"))
    finally:
        hub.kill()


def fill(disk: Path, what: str) -> None:
    """Use up the room for bytes, or for files."""
    with pytest.raises(OSError, match="No space"):  # noqa: PT012
        if what == "inodes":
            for number in range(100):
                (disk / f"filler{number}").touch()
        with (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"f" * 4096)


@pytest.mark.requirement("M73")
def test_follow_shows_what_comes_over_a_restart_of_the_hub(home: Home) -> None:
    home.enable().start()
    home.ask("upsert", path="a.md", content="1", expected_revision="absent")
    with subprocess.Popen(
        [sys.executable, "-m", "amux", "audit", "--follow", "--path", "a.md"],
        env=home.environment,
        stdout=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        told = [json.loads(following.stdout.readline()) for _ in range(2)]
        assert [line["event"] for line in told] == ["intent", "outcome"]
        home.stop()
        home.start()
        home.ask("forget", path="a.md", expected_revision=revision_of(b"1"))
        told = [json.loads(following.stdout.readline()) for _ in range(2)]
        assert [line["verb"] for line in told] == ["forget", "forget"]
        assert told[1]["of"] == told[0]["n"]
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 130
    until(lambda: following.poll() is not None, "the follower to end")
