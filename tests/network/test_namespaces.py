"""Three machines in one: a Hub behind TLS in one network namespace, clients in two others."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.hub import RunningHub
from tests.support.machines import AMUX, PORT, Far, Machines, ip
from tests.support.network import configure

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_root")]


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
    ip("-n", other.namespace, "link", "set", "lo", "down")
    ip("-n", other.namespace, "route", "add", "blackhole", "10.209.1.1/32")
    assert other.code("memory", "show", "a.md") == "unavailable"
    ip("-n", other.namespace, "route", "delete", "blackhole", "10.209.1.1/32")
    ip("-n", other.namespace, "link", "set", "lo", "up")


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
