"""A client of a Hub elsewhere: it proves who answers, sends its token nowhere else."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux import client, tls
from amux.core.address import Address, Connection
from amux.errors import AmuxError, OutcomeUnknown, PermissionDenied, Unauthenticated, Unavailable
from tests.support.authority import Authority
from tests.support.hub import RunningHub
from tests.support.mcp_lines import McpProcess
from tests.support.network import bound, configure, network_hub, person, port_of, token_file


class Remote:
    """A Hub behind TLS, and a home of a client that was told where it is."""

    def __init__(self, folder: Path, hub: RunningHub, authority: Authority) -> None:
        self.folder = folder
        self.hub = hub
        self.authority = authority
        self.port = port_of(hub)
        self.url = f"https://localhost:{self.port}"
        self.token = token_file(folder, person(hub))
        self.home = folder / "client"
        self.settings = {
            "url": self.url,
            "token_file": str(self.token),
            "ca_file": str(authority.ca_file),
        }
        configure(self.home, **self.settings)

    def cli(
        self, *words: str, stdin: bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        here = RunningHub(self.home)
        del here.environment["AMUX_NO_AUTOSTART"]
        return here.cli(*words, stdin=stdin, **environment)

    def client(self, url: str = "", ca_file: str = "", **more: str) -> client.Client:
        token = self.token.read_text().strip()
        where = Connection(
            Address.parse(url or self.url, "url"),
            token=token,
            ca_file=ca_file or str(self.authority.ca_file),
            may_start=False,
            **more,
        )
        return client.Client(where, tls)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("r")
    authority = Authority(folder)
    cert, key = authority.issue("localhost", "127.0.0.1")
    table = {"listen": "127.0.0.1:0", "tls_cert": str(cert), "tls_key": str(key)}
    with network_hub(folder / "hub", **table) as hub:
        yield Remote(folder, hub, authority)


def refusal(done: subprocess.CompletedProcess[bytes]) -> dict[str, object]:
    assert done.returncode != 0
    error: dict[str, object] = json.loads(done.stderr.splitlines()[-1])["error"]
    return error


def is_untouched(home: Path) -> bool:
    """Tell that no Hub was ever started, or made its folders, in a home."""
    return {path.name for path in home.iterdir()} <= {"config.toml", "token"}


@pytest.mark.slow
@pytest.mark.requirement("M54")
def test_every_verb_works_on_a_hub_elsewhere(remote: Remote) -> None:
    made = remote.cli(
        "memory", "upsert", "far/away.md", "--expected-revision=absent", stdin=b"# Far\naway\n"
    )
    assert made.returncode == 0, made.stderr
    revision = json.loads(made.stdout)["revision"]
    assert (remote.hub.memory_dir / "far" / "away.md").read_bytes() == b"# Far\naway\n"
    found = json.loads(remote.cli("memory", "search", "away").stdout)
    assert [hit["path"] for hit in found["hits"]] == ["far/away.md"]
    assert remote.cli("memory", "export", "far/away.md").stdout == b"# Far\naway\n"
    listed = json.loads(remote.cli("memory", "list").stdout)
    assert "far/away.md" in {row["path"] for row in listed["documents"]}
    stale = remote.cli("memory", "forget", "far/away.md", "--expected-revision", "0" * 64)
    assert refusal(stale)["code"] == "revision_conflict"
    gone = remote.cli("memory", "forget", "far/away.md", "--expected-revision", revision)
    assert json.loads(gone.stdout)["already_absent"] is False
    status = json.loads(remote.cli("hub", "status").stdout)
    assert (status["running"], status["root"]) == (True, str(remote.hub.home))
    assert is_untouched(remote.home)


@pytest.mark.slow
@pytest.mark.requirement("M54", "M53")
def test_with_a_hub_elsewhere_none_is_ever_started_here(remote: Remote) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    home = remote.folder / "lonely"
    configure(home, **remote.settings | {"url": f"https://localhost:{port}"})
    here = RunningHub(home)
    del here.environment["AMUX_NO_AUTOSTART"]
    for words in (
        ("memory", "show", "a.md"),
        ("memory", "upsert", "a.md", "--expected-revision=absent"),
        ("hub", "start"),
        ("hub", "restart"),
        ("hub", "status"),
        ("system", "status"),
        ("system", "config", "set", "memory.enabled", "true"),
        ("principal", "list"),
        ("token", "list"),
        ("audit",),
    ):
        assert refusal(here.cli(*words))["code"] == "unavailable", words
    with McpProcess(home, AMUX_NO_AUTOSTART="0") as mcp:
        mcp.initialize()
        assert len(mcp.tools()) == 5
        number = mcp.ask("tools/call", {"name": "memory_get", "arguments": {"path": "a.md"}})
        text = mcp.answer(number)["result"]["content"][0]["text"]
        assert json.loads(text)["error"]["code"] == "unavailable"
    assert is_untouched(home)
    # The environment says the same as the file.
    bare = RunningHub(remote.folder / "bare", AMUX_HUB=f"https://localhost:{port}")
    del bare.environment["AMUX_NO_AUTOSTART"]
    assert refusal(bare.cli("memory", "show", "a.md"))["code"] == "unavailable"
    other = bare.cli("memory", "show", "a.md", AMUX_HUB=str(remote.folder / "no.sock"))
    assert refusal(other)["code"] == "unavailable"
    assert not bare.home.exists()


@pytest.mark.slow
@pytest.mark.requirement("M54")
def test_stopping_and_uninstalling_are_of_this_machine(remote: Remote) -> None:
    assert remote.cli("hub", "stop").returncode == 0
    assert remote.cli("uninstall", "--yes").returncode == 0
    assert remote.hub.ask("get", path="a.md")["revision"] == "absent"
    assert (remote.home / "config.toml").exists()


@pytest.mark.requirement("M54")
def test_who_cannot_prove_to_be_the_hub_is_sent_nothing(remote: Remote, folder: Path) -> None:
    stranger = Authority(folder, "a stranger")
    for url, ca_file in (
        (remote.url, str(stranger.ca_file)),  # signed by nobody we know
        (remote.url, "/etc/ssl/certs/ca-certificates.crt"),
        (f"https://[::1]:{remote.port}", ""),  # nobody listens there
        (f"https://127.0.0.2:{remote.port}", ""),  # nor there
    ):
        with pytest.raises(AmuxError) as refused:
            remote.client(url, ca_file).ask("get", {"path": "a.md"})
        assert refused.value.code in {"unavailable", "invalid_argument"}
    assert remote.client(f"https://127.0.0.1:{remote.port}").ask("get", {"path": "a.md"})


@pytest.mark.slow
@pytest.mark.requirement("M54")
@pytest.mark.parametrize(
    ("names", "days"), [(("other.example",), 10), (("localhost",), -10), (("*.localhost",), 10)]
)
def test_a_certificate_of_another_name_or_time_is_refused(
    folder: Path, names: tuple[str, ...], days: int
) -> None:
    authority = Authority(folder)
    cert, key = authority.issue(*names, days=days)
    table = {"listen": "127.0.0.1:0", "tls_cert": str(cert), "tls_key": str(key)}
    with network_hub(folder / "a", **table) as hub:
        address = Address.parse(f"https://localhost:{port_of(hub)}", "url")
        where = Connection(address, token=person(hub), ca_file=str(authority.ca_file))
        with pytest.raises(Unavailable) as refused:
            client.Client(where, tls).ask("get", {"path": "a.md"})
        assert refused.value.details["reason"]
        assert b"refused" not in hub.log  # nothing reached the application


@pytest.mark.requirement("M54")
def test_a_ca_file_that_cannot_be_read_is_refused_and_never_skipped(
    remote: Remote, folder: Path
) -> None:
    (folder / "empty.pem").touch()
    for name in ("gone.pem", "empty.pem"):
        with pytest.raises(AmuxError) as refused:
            remote.client(ca_file=str(folder / name)).ask("get", {"path": "a.md"})
        assert refused.value.code == "invalid_argument"


@pytest.mark.slow
@pytest.mark.requirement("M54")
@pytest.mark.parametrize(
    "extra",
    [
        {"PYTHONHTTPSVERIFY": "0"},
        {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"},
        {"AMUX_VERIFY": "0", "AMUX_INSECURE": "1"},
    ],
)
def test_nothing_in_the_environment_switches_verification_off(
    remote: Remote, folder: Path, extra: dict[str, str]
) -> None:
    stranger = Authority(folder, "a stranger")
    home = folder / "c"
    configure(home, **remote.settings | {"ca_file": str(stranger.ca_file)})
    done = RunningHub(home).cli("memory", "show", "a.md", **extra)
    assert refusal(done)["code"] == "unavailable"
    assert remote.cli("memory", "show", "a.md", **extra).returncode == 0


@pytest.mark.slow
@pytest.mark.requirement("M63", "M69", "M54")
def test_a_bound_session_sends_its_credential_and_its_binding(remote: Remote) -> None:
    credential, binding = bound(remote.hub, "far", verbs="read")
    run = {
        "AMUX_HUB": remote.url,
        "AMUX_CA_FILE": str(remote.authority.ca_file),
        "AMUX_CREDENTIAL_FILE": str(token_file(remote.folder, credential, "run")),
        "AMUX_MEMORY_BINDING": binding,
    }
    assert remote.cli("memory", "show", "a.md", **run).returncode == 0
    write = remote.cli("memory", "upsert", "a.md", "--expected-revision=absent", **run)
    assert refusal(write)["code"] == "permission_denied"
    wrong = remote.cli("memory", "show", "a.md", **run | {"AMUX_MEMORY_BINDING": "amux1:x:global"})
    assert refusal(wrong)["code"] == "binding_mismatch"
    unbound = remote.cli("memory", "show", "a.md", **run | {"AMUX_MEMORY_BINDING": ""})
    assert refusal(unbound)["code"] == "binding_required"
    # On the Hub's own machine as well: the uid would do, but a bound client is its session.
    here = {name: run[name] for name in ("AMUX_CREDENTIAL_FILE", "AMUX_MEMORY_BINDING")}
    assert remote.hub.cli("memory", "show", "a.md", **here).returncode == 0
    write = remote.hub.cli("memory", "upsert", "a.md", "--expected-revision=absent", **here)
    assert refusal(write)["code"] == "permission_denied"
    lost = remote.hub.cli("memory", "show", "a.md", AMUX_MEMORY_BINDING=binding)
    assert refusal(lost)["code"] == "unauthenticated"
    with McpProcess(remote.home, **run) as mcp:
        mcp.initialize()
        assert len(mcp.tools()) == 5
        number = mcp.ask("tools/call", {"name": "memory_get", "arguments": {"path": "a.md"}})
        text = mcp.answer(number)["result"]["content"][0]["text"]
        assert json.loads(text)["revision"] == "absent"


@pytest.mark.slow
@pytest.mark.requirement("M63")
def test_a_revoked_or_wrong_token_is_unauthenticated(remote: Remote, folder: Path) -> None:
    made = remote.hub.ask("token_create", kind="person", principal="local")
    file = token_file(folder, str(made["token"]))
    here = {"AMUX_HUB": remote.url, "AMUX_CA_FILE": str(remote.authority.ca_file)}
    here |= {"AMUX_CREDENTIAL_FILE": str(file)}
    assert remote.cli("memory", "show", "a.md", **here).returncode == 0
    remote.hub.ask("token_revoke", id=made["id"])
    assert refusal(remote.cli("memory", "show", "a.md", **here))["code"] == "unauthenticated"
    assert (
        refusal(remote.cli("memory", "show", "a.md", **here | {"AMUX_CREDENTIAL_FILE": ""}))["code"]
        == "unauthenticated"
    )


# --- what a bad network does ---


class Fake:
    """A listener that answers a connection as it is told; no TLS, on loopback."""

    def __init__(self, *answers: bytes, waits: float = 0.0) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen = b""
        self._done = threading.Event()
        threading.Thread(target=self._serve, args=(answers, waits), daemon=True).start()

    def _serve(self, answers: tuple[bytes, ...], waits: float) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # closed before anybody came
            return
        with connection:
            self.seen = connection.recv(65536)
            for piece in answers:
                try:
                    connection.sendall(piece)
                except OSError:
                    return
                self._done.wait(waits)

    def close(self) -> None:
        self._done.set()
        self._listener.close()

    def client(self, wait_seconds: float = 5.0) -> client.Client:
        where = Connection(Address.parse(self.url, "url"), token="amux_t", may_start=False)
        return client.Client(where, wait_seconds=wait_seconds)


@pytest.mark.requirement("M54", "M28")
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\0",
        b"HTTP/1.1\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_leaves_a_write_unknown_and_a_read_unavailable(
    answer: bytes,
) -> None:
    for name, kind in (("forget", OutcomeUnknown), ("get", Unavailable)):
        fake = Fake(answer)
        with pytest.raises(kind):
            fake.client().ask(name, {"path": "a.md"})
        fake.close()


@pytest.mark.requirement("M54")
def test_no_redirection_is_followed() -> None:
    other = Fake(b"")
    fake = Fake(f"HTTP/1.1 307 -\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode())
    with pytest.raises(AmuxError) as refused:
        fake.client().ask("get", {"path": "a.md"})
    assert refused.value.code == "internal"
    assert b"Bearer amux_t" in fake.seen
    assert other.seen == b""
    fake.close()
    other.close()


@pytest.mark.requirement("M28")
def test_an_answer_that_drips_ends_with_the_call() -> None:
    fake = Fake(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", *[b"x"] * 90, waits=0.05)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        fake.client(wait_seconds=0.2).ask("get", {"path": "a.md"})
    assert time.monotonic() - began < 2
    fake.close()


@pytest.mark.slow
@pytest.mark.requirement("M53", "M54")
def test_a_hub_of_another_release_is_told(folder: Path) -> None:
    body = b'{"path":"a.md","revision":"absent","content":"","exists":false}'
    head = b"HTTP/1.1 200 OK\r\nAmux-Version: 99.0\r\nContent-Length: %d\r\n\r\n" % len(body)
    fake = Fake(head + body)
    done = RunningHub(folder, AMUX_HUB=fake.url).cli("memory", "show", "a.md", "--json")
    assert done.returncode == 0, done.stderr
    assert b"99.0" in done.stderr
    assert b"amux hub restart" not in done.stderr  # it is not ours to restart
    fake.close()


@pytest.mark.requirement("M63")
def test_a_refusal_over_the_network_is_the_refusal(remote: Remote) -> None:
    where = Connection(
        Address.parse(remote.url, "url"), token="x", ca_file=str(remote.authority.ca_file)
    )
    with pytest.raises(Unauthenticated):
        client.Client(where, tls).ask("get", {"path": "a.md"})
    remote.hub.ask("principal_add", principal="guest")
    token = person(remote.hub, "guest")
    where = Connection(
        Address.parse(remote.url, "url"), token=token, ca_file=str(remote.authority.ca_file)
    )
    with pytest.raises(PermissionDenied):
        client.Client(where, tls).ask("status")
