"""What a Hub listens on: never in the clear to other machines, and never by accident."""

import json
import socket
import ssl
import stat
from pathlib import Path

import pytest

from tests.support.authority import Authority
from tests.support.hub import RunningHub
from tests.support.network import (
    GET,
    Reply,
    configure,
    dialled,
    knocked,
    network_hub,
    person,
    port_of,
    request,
)


def refusal_of(home: Path, **table: object) -> dict[str, object]:
    """Start a Hub that must refuse to, and give the refusal."""
    configure(home, **table)
    done = RunningHub(home).cli("hub", "serve")
    assert done.returncode != 0
    error: dict[str, object] = json.loads(done.stderr.splitlines()[-1])["error"]
    assert not (home / "run" / "hub.sock").exists()
    return error


@pytest.mark.slow
@pytest.mark.requirement("M45")
@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0"])
def test_without_tls_no_address_of_other_machines_is_served(folder: Path, address: str) -> None:
    error = refusal_of(folder / "a", listen=["127.0.0.1:0", address])
    assert error["code"] == "invalid_argument"
    assert error["details"]["argument"] == "hub.listen"
    assert "hub.tls_cert" in str(error["hint"])


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_a_background_start_is_refused_the_same_way(folder: Path) -> None:
    configure(folder / "a", listen="0.0.0.0:0")
    done = RunningHub(folder / "a").cli("hub", "start")
    assert json.loads(done.stderr.splitlines()[-1])["error"]["code"] == "invalid_argument"


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_a_port_that_is_taken_stops_the_start(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        error = refusal_of(folder / "a", listen=address)
    assert error["details"] == {"argument": "hub.listen", "cause": "OSError"}


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_a_certificate_that_cannot_be_used_stops_the_start(folder: Path) -> None:
    cert, key = Authority(folder).issue("localhost")
    _, other = Authority(folder).issue("localhost", file="other")
    empty = folder / "empty"
    empty.touch()
    for pair in ((empty, key), (cert, empty), (cert, other), (cert, folder / "gone"), (key, cert)):
        error = refusal_of(
            folder / "a", listen="127.0.0.1:0", tls_cert=str(pair[0]), tls_key=str(pair[1])
        )
        assert error["code"] == "invalid_argument"
        assert error["details"]["argument"] == "hub.tls_cert"


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_an_unknown_key_stops_the_start(folder: Path) -> None:
    assert refusal_of(folder / "a", listen_on="x")["details"] == {
        "file": "config.toml",
        "argument": "hub.listen_on",
    }


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_tls_is_of_this_decade_and_the_port_speaks_nothing_else(folder: Path) -> None:
    authority = Authority(folder)
    cert, key = authority.issue("localhost", "127.0.0.1")
    table = {"listen": "0.0.0.0:0", "tls_cert": str(cert), "tls_key": str(key)}
    with network_hub(folder / "a", **table) as hub:
        port, bearer = port_of(hub), f"Bearer {person(hub)}"
        context = ssl.create_default_context(cafile=str(authority.ca_file))
        sent = request("POST", GET, b'{"path":"a.md"}', Authorization=bearer)
        with dialled(port, context) as line:
            assert line.version() == "TLSv1.3"
            assert Reply(knocked(line, sent)).code == "ok"
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with dialled(port, context) as line:
            assert line.version() == "TLSv1.2"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            dialled(port, old)
        # A token in the clear gets no answer, and the Hub goes on.
        assert b"200" not in knocked(dialled(port), sent)
        assert (
            Reply(
                knocked(
                    dialled(port, ssl.create_default_context(cafile=str(authority.ca_file))), sent
                )
            ).code
            == "ok"
        )


@pytest.mark.slow
@pytest.mark.requirement("M45", "M1")
def test_several_addresses_are_served_and_told(folder: Path) -> None:
    with network_hub(folder / "a", listen=["127.0.0.1:0", "[::1]:0", "localhost:0"]) as hub:
        listen = hub.ask("status")["listen"]
        assert isinstance(listen, list)
        assert {str(row).rpartition(":")[0] for row in listen} == {
            "127.0.0.1",
            "[::1]",
            "localhost",
        }
        bearer = f"Bearer {person(hub)}"
        for row in listen:
            host, _, port = str(row).rpartition(":")
            family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
            line = socket.socket(family)
            try:
                line.connect((host.strip("[]"), int(port)))
            except ConnectionRefusedError:
                line.close()  # `localhost` has two addresses here, each with its own port
                continue
            sent = request("POST", GET, b'{"path":"a.md"}', str(row), Authorization=bearer)
            assert Reply(knocked(line, sent)).code == "ok"


@pytest.mark.slow
@pytest.mark.requirement("M45")
def test_the_owners_socket_stays_private_whatever_else_is_served(folder: Path) -> None:
    with network_hub(folder / "a", listen="127.0.0.1:0") as hub:
        assert stat.S_IMODE((hub.home / "run" / "hub.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE(hub.home.stat().st_mode) == 0o700
