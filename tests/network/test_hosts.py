"""Whom a request is for: looked at on every transport, before who asks and what is asked."""

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.core.hosts import Hosts
from amux.errors import PermissionDenied
from tests.network.conftest import Loopback
from tests.support.network import GET, UPSERT, Reply, dialled, knocked, local, request

PORT = 8484
OWN = ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "hub.example", "Hub.EXAMPLE"]
OWN_WITH_PORT = [f"{name}:{{port}}" for name in OWN] + ["proxied.example:8443"]
FOREIGN = [
    "evil.example",  # DNS rebinding: its name leads here, with our port
    "evil.example:{port}",
    "localhost.evil.example:{port}",
    "hub.example.evil.example",
    "evil.example#localhost",
    "localhost@evil.example",
    "user@localhost:{port}",
    "localhost:{port}@evil.example",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.2:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f000001",
    "0.0.0.0:{port}",
    "[::]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "::1",
    "localhost:1",
    "localhost:{port}0",
    "localhost:0",
    "localhost:",
    "localhost.",
    "localhost, evil.example",
    "localhost evil.example",
    "http://localhost",
    "proxied.example",  # was given with a port, and only with it
    "proxied.example:{port}",
    "xn--localhost-evil",
    "ｌocalhost",
    "",
]
OWN_ORIGINS = [
    "http://localhost:{port}",
    "http://127.0.0.1:{port}",
    "http://[::1]:{port}",
    "HTTP://Hub.Example:{port}",
    "https://proxied.example:8443",
    "https://hub.example",
]
FOREIGN_ORIGINS = [
    "null",
    "http://evil.example",
    "http://evil.example:{port}",
    "https://localhost:{port}",  # the Hub of these tests has no TLS: that page is not its own
    "http://localhost",
    "http://localhost:1",
    "http://localhost:{port}.evil.example",
    "http://localhost:{port}/",
    "http://user@localhost:{port}",
    "file://",
    "ftp://localhost:{port}",
    "chrome-extension://abcdef",
    "localhost:{port}",
    "http://localhost:{port} http://evil.example",
    "",
]


def hosts() -> Hosts:
    names = ["Hub.Example", "proxied.example:8443"]
    return Hosts(listen=[("127.0.0.1", PORT)], names=names, is_tls=False)


@pytest.mark.requirement("M76")
@pytest.mark.parametrize("text", OWN + OWN_WITH_PORT)
def test_the_hubs_own_names_are_its_hosts(text: str) -> None:
    assert hosts().is_host(text.format(port=PORT))


@pytest.mark.requirement("M76")
@pytest.mark.parametrize("text", FOREIGN)
def test_nothing_else_is(text: str) -> None:
    assert not hosts().is_host(text.format(port=PORT))


@pytest.mark.requirement("M45")
@pytest.mark.parametrize("text", OWN_ORIGINS)
def test_the_hubs_own_pages_are_its_origins(text: str) -> None:
    assert hosts().is_origin(text.format(port=PORT))


@pytest.mark.requirement("M45")
@pytest.mark.parametrize("text", FOREIGN_ORIGINS)
def test_no_other_page_is(text: str) -> None:
    assert not hosts().is_origin(text.format(port=PORT))


@pytest.mark.requirement("M76")
@given(st.text(max_size=40))
def test_any_text_is_a_known_name_or_no_host(text: str) -> None:
    if hosts().is_host(text):
        assert text.lower() in {own.format(port=PORT).lower() for own in OWN + OWN_WITH_PORT}


@pytest.mark.requirement("M76")
def test_an_address_for_all_networks_is_a_name_of_nothing() -> None:
    found = Hosts(listen=[("0.0.0.0", PORT), ("[::]", PORT)], names=["a.example"], is_tls=True)
    assert found.is_host(f"a.example:{PORT}")
    assert not found.is_host("0.0.0.0")
    assert not found.is_host(f"[::]:{PORT}")
    assert found.is_origin(f"https://a.example:{PORT}")
    assert not found.is_origin(f"http://a.example:{PORT}")


@pytest.mark.requirement("M76")
@pytest.mark.parametrize(("count", "origins"), [(0, 0), (2, 0), (1, 2)])
def test_there_is_one_host_and_at_most_one_origin(count: int, origins: int) -> None:
    with pytest.raises(PermissionDenied):
        hosts().require([b"localhost"] * count, [b"http://localhost:%d" % PORT] * origins)


# --- through a real Hub ---


@pytest.mark.requirement("M76", "M45")
@pytest.mark.parametrize("text", FOREIGN[:3] + FOREIGN[-4:-1])
@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_a_foreign_host_is_refused_before_credential_and_body(
    loopback: Loopback, text: str, transport: str
) -> None:
    host = text.format(port=loopback.port)
    arguments = {"path": "rebound.md", "content": "x", "expected_revision": "absent"}
    body = json.dumps(arguments).encode()
    for data, headers in (
        (body, {"Authorization": loopback.bearer}),
        (body, {"Authorization": "Bearer nonsense"}),
        (b"{ not json", {"Origin": f"http://{host}"}),
    ):
        sent = request("POST", UPSERT, data, host=host, **headers)
        path = loopback.hub.config.socket_path
        line = dialled(loopback.port) if transport == "tcp" else local(path)
        reply = Reply(knocked(line, sent))
        assert (reply.status, reply.code) == (403, "permission_denied")
    assert not (loopback.hub.memory_dir / "rebound.md").exists()


@pytest.mark.requirement("M76", "M45")
@pytest.mark.parametrize("text", FOREIGN_ORIGINS)
def test_a_page_of_another_site_is_refused(loopback: Loopback, text: str) -> None:
    origin = text.format(port=loopback.port)
    sent = request("POST", GET, b'{"path":"a.md"}', Authorization=loopback.bearer, Origin=origin)
    assert Reply(knocked(dialled(loopback.port), sent)).code == "permission_denied"


@pytest.mark.requirement("M76", "M45")
def test_the_hubs_own_names_and_pages_are_served(loopback: Loopback) -> None:
    for text in OWN + OWN_WITH_PORT:
        host = text.format(port=loopback.port)
        sent = request("POST", GET, b'{"path":"a.md"}', host=host, Authorization=loopback.bearer)
        assert Reply(knocked(dialled(loopback.port), sent)).code == "ok", host
    for text in OWN_ORIGINS:
        more = {"Authorization": loopback.bearer, "Origin": text.format(port=loopback.port)}
        sent = request("POST", GET, b'{"path":"a.md"}', **more)
        assert Reply(knocked(dialled(loopback.port), sent)).code == "ok", text


@pytest.mark.requirement("M76")
def test_a_request_without_a_host_or_with_two_is_refused(loopback: Loopback) -> None:
    sent = request("POST", GET, b'{"path":"a.md"}', Authorization=loopback.bearer)
    for host in (b"", b"Host: localhost\r\nHost: localhost\r\n"):
        changed = sent.replace(b"Host: localhost\r\n", host)
        assert Reply(knocked(dialled(loopback.port), changed)).code == "permission_denied"
    old = sent.replace(b"Host: localhost\r\n", b"").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert Reply(knocked(dialled(loopback.port), old)).code == "permission_denied"


@pytest.mark.requirement("M76")
def test_no_preflight_of_a_browser_is_answered_with_a_permission(loopback: Loopback) -> None:
    more = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    reply = Reply(knocked(dialled(loopback.port), request("OPTIONS", UPSERT, **more)))
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.slow
@pytest.mark.requirement("M63", "M45")
def test_over_tcp_nobody_is_known_by_where_he_comes_from(loopback: Loopback) -> None:
    sent = request("POST", GET, b'{"path":"a.md"}')
    reply = Reply(knocked(dialled(loopback.port), sent))
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"] == "Bearer"
    for value in ("Basic YTpi", "Bearer", "Bearer ", "bearer x", loopback.token, "Bearer a b"):
        sent = request("POST", GET, b'{"path":"a.md"}', Authorization=value)
        assert Reply(knocked(dialled(loopback.port), sent)).code == "unauthenticated", value


@pytest.mark.requirement("M63")
@pytest.mark.parametrize("name", ["Authorization", "Amux-Memory-Binding"])
def test_a_header_that_says_who_asks_stands_once(loopback: Loopback, name: str) -> None:
    sent = request("POST", GET, b'{"path":"a.md"}', Authorization=loopback.bearer)
    twice = f"{name}: {loopback.bearer}\r\n{name}: {loopback.bearer}\r\n".encode()
    sent = sent.replace(f"Authorization: {loopback.bearer}\r\n".encode(), twice)
    assert Reply(knocked(dialled(loopback.port), sent)).code in {
        "invalid_argument",
        "unauthenticated",
    }


@pytest.mark.requirement("M45")
def test_a_loopback_port_is_reached_from_loopback_only(loopback: Loopback) -> None:
    others = {row[4][0] for row in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if address.startswith("127."):
            continue
        with pytest.raises((ConnectionRefusedError, TimeoutError)):
            socket.create_connection((address, loopback.port), timeout=2).close()
