"""Three machines in one: a Hub behind TLS in one network namespace, clients in two others."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.authority import Authority
from tests.support.hub import RunningHub
from tests.support.network import configure, person, token_file
from tests.support.rights import cannot

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_root")]
PORT = 8484
AMUX = [sys.executable, "-m", "amux"]


class Machines:
    """A Hub at 10.209.0.1 and two clients, each in a namespace of its own; the links end there."""

    def __init__(self) -> None:
        tag = f"amux{os.getpid()}"
        self.hub, self.clients = f"{tag}h", (f"{tag}a", f"{tag}b")
        self._links = f"v{os.getpid()}"

    def __enter__(self) -> "Machines":
        for name in (self.hub, *self.clients):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        for number, name in enumerate(self.clients):
            # Each link is made inside the namespaces: this machine itself gets no address.
            one, other = f"{self._links}{number}", f"{self._links}{number}p"
            _ip("-n", self.hub, "link", "add", one, "type", "veth", "peer", other, "netns", name)
            for side, link, host in ((self.hub, one, 1), (name, other, 2)):
                _ip("-n", side, "address", "add", f"10.209.{number}.{host}/24", "dev", link)
                _ip("-n", side, "link", "set", link, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.hub, *self.clients):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", name)


class Client:
    """The command line of one machine."""

    def __init__(self, namespace: str, home: Path) -> None:
        self.namespace = namespace
        self.here = RunningHub(home)
        del self.here.environment["AMUX_NO_AUTOSTART"]

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["ip", "netns", "exec", self.namespace, *AMUX, *words],
            input=stdin,
            capture_output=True,
            env=self.here.environment,
            timeout=60,
            check=False,
        )

    def answer(self, *words: str, stdin: bytes = b"") -> dict[str, object]:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def code(self, *words: str, stdin: bytes = b"") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return str(json.loads(done.stderr.splitlines()[-1])["error"]["code"])


class Far:
    """The Hub and its two clients."""

    def __init__(self, hub: RunningHub, clients: tuple[Client, Client]) -> None:
        self.hub = hub
        self.clients = clients


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    made = Machines()
    try:
        with made:
            yield made
    except (subprocess.CalledProcessError, FileNotFoundError):
        made.__exit__()
        cannot("network namespaces cannot be made here")


@pytest.fixture
def far(machines: Machines, folder: Path) -> Iterator[Far]:
    authority = Authority(folder)
    cert, key = authority.issue("hub.example", "10.209.0.1", "10.209.1.1")
    configure(
        folder / "hub",
        listen=f"0.0.0.0:{PORT}",
        tls_cert=str(cert),
        tls_key=str(key),
        names=["10.209.0.1", "10.209.1.1"],
    )
    hub = RunningHub(folder / "hub").enable()
    try:
        hub.start(launcher=["ip", "netns", "exec", machines.hub, *AMUX, "hub", "serve"])
        clients = []
        for number, namespace in enumerate(machines.clients):
            home = folder / f"client{number}"
            token = token_file(folder, person(hub), f"token{number}")
            configure(
                home,
                url=f"https://10.209.{number}.1:{PORT}",
                token_file=str(token),
                ca_file=str(authority.ca_file),
            )
            clients.append(Client(namespace, home))
        yield Far(hub, (clients[0], clients[1]))
    finally:
        hub.kill()


@pytest.mark.requirement("M45", "M54")
def test_two_machines_share_the_documents_of_a_third(far: Far) -> None:
    one, other = far.clients
    text = "# Deploy\n先看 staging 的日志, then 生产。\n".encode()
    made = one.answer("memory", "upsert", "ops/deploy.md", "--expected-revision=absent", stdin=text)
    found = other.answer("memory", "search", "生产")
    assert [hit["path"] for hit in found["hits"]] == ["ops/deploy.md"]
    shown = other.answer("memory", "show", "ops/deploy.md")
    assert (shown["content"], shown["revision"]) == (text.decode(), made["revision"])
    assert other.run("memory", "export", "ops/deploy.md").stdout == text
    changed = other.answer(
        "memory", "upsert", "ops/deploy.md", f"--expected-revision={made['revision']}", stdin=b"new"
    )
    assert (
        one.code("memory", "forget", "ops/deploy.md", f"--expected-revision={made['revision']}")
        == "revision_conflict"
    )
    listed = one.answer("memory", "list")
    assert [row["revision"] for row in listed["documents"]] == [changed["revision"]]
    one.answer("memory", "forget", "ops/deploy.md", f"--expected-revision={changed['revision']}")
    assert other.answer("memory", "show", "ops/deploy.md")["exists"] is False
    assert list(far.hub.memory_dir.rglob("*.md")) == []
    for client in far.clients:
        assert [path.name for path in client.here.home.iterdir()] == ["config.toml"]


@pytest.mark.requirement("M45", "M26", "row-2")
def test_of_two_machines_that_write_at_once_one_wins(far: Far) -> None:
    command = [*AMUX, "memory", "upsert", "race.md", "--expected-revision=absent"]
    for number in range(5):
        running = [
            subprocess.Popen(
                ["ip", "netns", "exec", client.namespace, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=client.here.environment,
            )
            for client in far.clients
        ]
        ended = [
            (*child.communicate(f"{number} {index}".encode(), 60), child.returncode)
            for index, child in enumerate(running)
        ]
        assert sorted(status for _, _, status in ended) == [0, 3], ended
        (won,) = (json.loads(out)["revision"] for out, _, status in ended if status == 0)
        (lost,) = (json.loads(err.splitlines()[-1]) for _, err, status in ended if status == 3)
        assert lost["error"]["details"]["observed"] == won
        far.hub.ask("forget", path="race.md", expected_revision=won)


@pytest.mark.requirement("M45", "M17")
def test_the_largest_document_crosses_whole_and_the_next_larger_does_not(far: Far) -> None:
    one, other = far.clients
    whole = ('\t"' * 32 * 1024).encode()
    one.answer("memory", "upsert", "large.md", "--expected-revision=absent", stdin=whole)
    assert other.run("memory", "export", "large.md").stdout == whole
    over = one.code("memory", "upsert", "over.md", "--expected-revision=absent", stdin=whole + b"x")
    assert over == "limit_exceeded"
    over = one.code(
        "memory", "upsert", "over.md", "--expected-revision=absent", stdin=b"\1" * 10**6
    )
    assert over == "limit_exceeded"


@pytest.mark.requirement("M63", "M54")
def test_a_machine_without_a_token_or_without_the_authority_is_refused(far: Far) -> None:
    one, _ = far.clients
    file = one.here.home / "config.toml"
    settings = file.read_text()
    file.write_text(settings.replace("token_file", "#token_file"))
    assert one.code("memory", "show", "a.md") == "unauthenticated"
    file.write_text(settings.replace("ca_file", "#ca_file"))
    assert one.code("memory", "show", "a.md") == "unavailable"


@pytest.mark.requirement("M54", "M53")
def test_when_the_hub_is_down_or_gone_its_clients_say_so_and_start_none(far: Far) -> None:
    one, other = far.clients
    assert one.answer("memory", "show", "a.md")["exists"] is False
    far.hub.kill()
    for client in far.clients:
        assert client.code("memory", "show", "a.md") == "unavailable"
        assert client.code("hub", "start") == "unavailable"
        assert [path.name for path in client.here.home.iterdir()] == ["config.toml"]
    # A cable that is pulled answers nothing at all: the call ends by its own time.
    _ip("-n", other.namespace, "link", "set", "lo", "down")
    _ip("-n", other.namespace, "route", "add", "blackhole", "10.209.1.1/32")
    assert other.code("memory", "show", "a.md") == "unavailable"
    _ip("-n", other.namespace, "route", "delete", "blackhole", "10.209.1.1/32")
    _ip("-n", other.namespace, "link", "set", "lo", "up")


@pytest.mark.requirement("M45")
def test_without_tls_a_hub_does_not_start_on_an_address_of_its_network(
    machines: Machines, folder: Path
) -> None:
    for address in ("0.0.0.0", "10.209.0.1"):
        configure(folder / "hub", listen=f"{address}:{PORT}")
        done = subprocess.run(
            ["ip", "netns", "exec", machines.hub, *AMUX, "hub", "serve"],
            capture_output=True,
            env=RunningHub(folder / "hub").environment,
            timeout=60,
            check=False,
        )
        error = json.loads(done.stderr.splitlines()[-1])["error"]
        assert error["code"] == "invalid_argument"
        assert error["details"]["argument"] == "hub.listen"
