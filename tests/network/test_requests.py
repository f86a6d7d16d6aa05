"""Requests as strangers make them: too slow, too large, too many, and with wrong tokens."""

import contextlib
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.connections import DOOR_PLACES, PEER_PLACES, Door
from tests.network.conftest import Loopback
from tests.support.hub import RunningHub
from tests.support.network import (
    GET,
    UPSERT,
    Reply,
    dialled,
    knocked,
    launcher,
    local,
    network_hub,
    person,
    port_of,
    request,
)

KIB = 1024
HURRIED = {"surface__rpc__BODY_SECONDS": 0.5, "connections__REQUEST_SECONDS": 1.5}


def asked(loopback: Loopback, target: str, body: bytes, **headers: str) -> Reply:
    sent = request("POST", target, body, Authorization=loopback.bearer, **headers)
    return Reply(knocked(dialled(loopback.port), sent))


def upsert(path: str, content: str, **more: str) -> bytes:
    return json.dumps(
        {"path": path, "content": content, "expected_revision": "absent"} | more
    ).encode()


# --- who calls ---


@pytest.mark.requirement("M63", "M76")
@pytest.mark.parametrize("said", ["unix", "unix, 127.0.0.1", "127.0.0.1", "[unix]:0"])
def test_no_header_says_who_the_peer_is(loopback: Loopback, said: str) -> None:
    """From loopback a server behind a proxy would believe it, and take it for the owner's uid."""
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        sent = request("POST", GET, b'{"path": "a.md"}', **{name: said})
        reply = Reply(knocked(dialled(loopback.port), sent))
        assert (reply.status, reply.code) == (401, "unauthenticated")


@pytest.mark.requirement("M76")
def test_the_log_tells_a_made_up_path_so_that_it_can_be_read(loopback: Loopback) -> None:
    target = "/v1/%1b%5b2J%0aINFO%20all%20is%20well%e2%80%ae" + "y" * 8000
    sent = request("POST", target, b"{}", Authorization=loopback.bearer)
    assert Reply(knocked(dialled(loopback.port), sent)).code == "not_found"
    (line,) = (one for one in loopback.hub.log.splitlines() if b"all is well" in one)
    assert rb"/v1/\x1b[2J\x0aINFO all is well\xe2\x80\xaeyyy" in line
    assert line.endswith(b" refused: not_found")
    assert len(line) < 300


# --- size and form ---


@pytest.mark.requirement("M45", "M18")
def test_a_text_of_64_kib_may_be_six_times_that_as_json(loopback: Loopback) -> None:
    text = "\t" * 64 * KIB
    body = upsert("wide.md", text).replace(b"\\t", b"\\u0009")
    assert len(body) > 6 * 64 * KIB
    reply = asked(loopback, UPSERT, body)
    assert reply.code == "ok"
    assert (loopback.hub.memory_dir / "wide.md").read_bytes() == text.encode()


@pytest.mark.slow
@pytest.mark.requirement("M45", "M18")
def test_a_body_of_512_kib_is_read_and_one_byte_more_is_not(loopback: Loopback) -> None:
    body = upsert("full.md", "x")
    full = body + b" " * (512 * KIB - len(body))
    assert asked(loopback, UPSERT, full).code == "ok"
    for _ in range(5):  # the refusal is heard although nobody reads what is still being sent
        reply = asked(loopback, UPSERT, upsert("over.md", "x") + b" " * 512 * KIB)
        assert (reply.status, reply.code) == (413, "limit_exceeded")
    sent = request("POST", UPSERT, b"", Authorization=loopback.bearer)
    sent = sent.replace(b"Content-Length: 0", b"Content-Length: %d" % (512 * KIB + 1))
    assert Reply(knocked(dialled(loopback.port), sent)).code == "limit_exceeded"
    assert not (loopback.hub.memory_dir / "over.md").exists()


@pytest.mark.slow
@pytest.mark.requirement("M63", "M76")
def test_a_refusal_that_comes_before_a_large_body_is_heard(loopback: Loopback) -> None:
    large = upsert("large.md", "x" * 60 * KIB) + b" " * 400 * KIB
    for _ in range(10):
        sent = request("POST", UPSERT, large, Authorization="Bearer nonsense")
        assert Reply(knocked(dialled(loopback.port), sent)).code == "unauthenticated"
        sent = request("POST", UPSERT, large, host="evil.example")
        assert Reply(knocked(dialled(loopback.port), sent)).code == "permission_denied"
        sent = request("POST", "/v1/nowhere", large, Authorization=loopback.bearer)
        assert Reply(knocked(dialled(loopback.port), sent)).code == "not_found"


@pytest.mark.requirement("M63", "M76")
def test_who_is_still_sending_when_he_is_refused_is_not_cut_off(loopback: Loopback) -> None:
    sent = request("POST", UPSERT, b" " * 300 * KIB, host="evil.example")
    with dialled(loopback.port) as line:
        line.sendall(sent[: 100 * KIB])
        received = b""
        while b"permission_denied" not in received:
            received += line.recv(65536)
        # Some systems throw away what they have received when the other end resets.
        for at in range(100 * KIB, len(sent), 50 * KIB):
            line.sendall(sent[at : at + 50 * KIB])
            assert not line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        assert line.recv(1) == b""


@pytest.mark.requirement("M45", "M48")
@pytest.mark.parametrize(
    "body",
    [
        b'{"path":"a.md","path":"b.md"}',
        b'{"path":"a.md","scope":"x"}',
        b'{"path":1}',
        b"[]",
        b"",
        b'{"path":"a.md"',
    ],
)
def test_a_body_that_is_not_as_it_should_be_is_refused(loopback: Loopback, body: bytes) -> None:
    assert asked(loopback, GET, body).code == "invalid_argument"


# --- time and places ---


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    home = tmp_path_factory.mktemp("h", numbered=True)
    with network_hub(home / "a", launched=launcher(**HURRIED), listen="127.0.0.1:0") as hub:
        yield hub


def dribbled(connection: socket.socket, sent: bytes, drop: bytes, seconds: float = 10.0) -> bytes:
    """Send bytes, then one more every so often, until the other end hangs up."""
    received = b""
    deadline = time.monotonic() + seconds
    with connection:
        connection.sendall(sent)
        connection.settimeout(0.05)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                try:
                    chunk = connection.recv(65536)
                except ConnectionResetError:
                    return received
                if not chunk:
                    return received
                received += chunk
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(drop)
    raise AssertionError("nobody hung up")


@pytest.mark.slow
@pytest.mark.requirement("M76")
@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_a_body_that_drips_is_refused_and_its_connection_closed(
    hurried: RunningHub, transport: str
) -> None:
    bearer = f"Bearer {person(hurried)}"
    sent = request("POST", UPSERT, b"{", Authorization=bearer).replace(
        b"Content-Length: 1\r\n", b"Content-Length: 500000\r\n"
    )
    sent = sent.replace(b"Connection: close", b"Connection: keep-alive")
    line = dialled(port_of(hurried)) if transport == "tcp" else local(hurried.config.socket_path)
    reply = Reply(dribbled(line, sent, b" "))
    assert (reply.status, reply.code) == (503, "unavailable")
    assert reply.headers["connection"] == "close"


@pytest.mark.slow
@pytest.mark.requirement("M76")
@pytest.mark.parametrize(
    ("sent", "drop"),
    [
        (b"", b""),  # connects and says nothing
        (b"POST /v1/memory/get HTTP/1.1\r\n", b"X-A: b\r\n"),  # a head without end
        (b"POST /v1/memory/get HTTP/1.1\r\nX: ", b"y"),  # a header without end
        (b"P", b""),
    ],
)
def test_a_request_that_never_arrives_ends_its_connection(
    hurried: RunningHub, sent: bytes, drop: bytes
) -> None:
    port, path = port_of(hurried), hurried.config.socket_path
    assert b"200" not in dribbled(dialled(port), sent, drop)
    assert b"200" not in dribbled(local(path), sent, drop)


@pytest.mark.slow
@pytest.mark.requirement("M76")
def test_a_head_without_end_is_not_kept(loopback: Loopback) -> None:
    began = time.monotonic()
    dribbled(dialled(loopback.port), b"GET / HTTP/1.1\r\nX: ", b"y" * 4096)
    assert time.monotonic() - began < 5  # not the time ended it, but the size


@pytest.mark.requirement("M76")
def test_one_stranger_leaves_places_and_strangers_leave_the_owner_his() -> None:
    door = Door(is_owners=False)
    assert [door.enter("a") for _ in range(PEER_PLACES + 1)].count(True) == PEER_PLACES
    assert door.enter("b")
    door.leave("a")
    assert door.enter("a")
    assert not door.enter("a")
    many = [door.enter(str(peer)) for peer in range(DOOR_PLACES)]
    assert many.count(True) == DOOR_PLACES - PEER_PLACES - 1
    owners = Door(is_owners=True)
    assert [owners.enter(0) for _ in range(DOOR_PLACES + 1)].count(True) == DOOR_PLACES


@pytest.mark.slow
@pytest.mark.requirement("M76")
def test_who_takes_all_places_shuts_nobody_else_out(loopback: Loopback) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(PEER_PLACES):
            held.enter_context(dialled(loopback.port))
        sent = request("POST", GET, b'{"path":"a.md"}', Authorization=loopback.bearer)
        deadline = time.monotonic() + 10
        while (reply := Reply(knocked(dialled(loopback.port), sent))).code == "ok":
            assert time.monotonic() < deadline  # the held ones are accepted one after another
        assert (reply.status, reply.code) == (503, "busy")
        assert loopback.hub.ask("get", path="a.md")["exists"] is False
    deadline = time.monotonic() + 10
    while Reply(knocked(dialled(loopback.port), sent)).code != "ok":
        assert time.monotonic() < deadline


# --- tokens that are wrong ---


def median_of(loopback: Loopback, count: int = 60) -> float:
    def one() -> float:
        began = time.perf_counter()
        assert asked(loopback, GET, b'{"path":"a.md"}').code == "ok"
        return time.perf_counter() - began

    return statistics.median(one() for _ in range(count))


@pytest.mark.slow
@pytest.mark.requirement("M76", "M63")
def test_ten_thousand_wrong_tokens_do_not_slow_a_right_one(folder: Path) -> None:
    with network_hub(folder / "a", listen="127.0.0.1:0") as hub:
        loopback = Loopback(hub)
        wrong = loopback.token[:20] + "A" * 34 + loopback.token[54:]
        median_of(loopback)  # warm
        before = median_of(loopback)
        count = 10_000

        def guess() -> None:
            # Who guesses does not wait for the answer, which is slow for him alone.
            for _ in range(count * 3 // 10):  # some find no place, which is no guess
                sent = request("POST", GET, b"{}", Authorization=f"Bearer {wrong}")
                with contextlib.suppress(OSError), dialled(loopback.port) as line:
                    line.sendall(sent)

        threads = [threading.Thread(target=guess) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = hub.log.count(b"refused: unauthenticated")
        assert said >= count
        after = median_of(loopback)
        assert after <= 2 * before, f"{after * 1000:.2f} ms after {before * 1000:.2f} ms"
        # Who is wrong waits, and his waiting ends.
        began = time.perf_counter()
        sent = request("POST", GET, b"{}", Authorization=f"Bearer {wrong}")
        assert Reply(knocked(dialled(loopback.port), sent)).code == "unauthenticated"
        assert time.perf_counter() - began < 3
