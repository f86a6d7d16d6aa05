"""Who may at `/mcp`: each wrong credential and each wrong binding gets its code."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.hub import RunningHub
from tests.support.mcp_http import Remote
from tests.support.network import bound, network_hub, person, port_of

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
# A Hub two days later, by the clock that `app` hands on.
LATER = """
import sys, time
now = time.time
time.time = lambda: now() + 2 * 24 * 60 * 60
from amux.app import main
sys.exit(main())
"""


def code_of(remote: Remote) -> tuple[int, str]:
    """Tell how every kind of request ends; they must all end in the same way."""
    replies = [
        remote.rpc("initialize", dict(INITIALIZE)),
        remote.rpc("tools/list"),
        remote.newest("server/discover", {}),
        remote.reply("memory_get", path="MEMORY.md"),
        remote.reply("result_continue", continuation="x.1"),
        remote.post(b"not JSON"),
    ]
    (found,) = {(reply.status, reply.code) for reply in replies}
    for reply in replies:
        assert reply.headers.get("www-authenticate") == ("Bearer" if found[0] == 401 else None)
    return found


@pytest.mark.requirement("M63", "row-10", "M55")
def test_without_a_token_nothing_is_answered_over_tcp(port: int) -> None:
    assert code_of(Remote(port)) == (401, "unauthenticated")


@pytest.mark.requirement("M63", "row-10")
@pytest.mark.parametrize(
    "wrong", ["x", "amux_aaaa_bbbb_cccc", "amux_" + "a" * 60], ids=["word", "parts", "long"]
)
def test_a_wrong_token_is_answered_like_none(port: int, wrong: str) -> None:
    assert Remote(port, wrong).rpc("tools/list").code == "unauthenticated"


@pytest.mark.requirement("M63", "row-10")
def test_a_revoked_token_ends_with_its_next_request(hub: RunningHub, port: int) -> None:
    made = hub.ask("token_create", kind="person")
    remote = Remote(port, str(made["token"]))
    assert remote.code("memory_get", path="MEMORY.md") == "ok"
    hub.ask("token_revoke", id=made["id"])
    assert code_of(remote) == (401, "unauthenticated")


@pytest.mark.slow
@pytest.mark.requirement("M63", "M67", "row-10")
def test_an_expired_token_is_no_token(folder: Path) -> None:
    with network_hub(folder, listen="127.0.0.1:0") as hub:
        short = str(hub.ask("token_create", kind="person", days=1)["token"])
        credential, binding = bound(hub, "s-1")
        lasting = person(hub)
        before = port_of(hub)
        assert Remote(before, short).code("memory_get", path="a.md") == "ok"
        assert Remote(before, credential, binding).code("memory_get", path="a.md") == "ok"
        hub.stop()
        hub.start(launcher=[sys.executable, "-c", LATER, "hub", "serve"])
        port = port_of(hub)
        assert code_of(Remote(port, short)) == (401, "unauthenticated")
        assert code_of(Remote(port, credential, binding)) == (401, "unauthenticated")
        assert Remote(port, lasting).code("memory_get", path="a.md") == "ok"


@pytest.mark.requirement("M69", "row-10")
def test_a_delegated_credential_needs_its_binding_for_every_call(
    hub: RunningHub, port: int
) -> None:
    credential, binding = bound(hub, "s-bound")
    for tool, arguments in (
        ("memory_get", {"path": "MEMORY.md"}),
        ("memory_search", {"query": "x"}),
        ("memory_upsert", {"path": "a.md", "content": "", "expected_revision": "absent"}),
        ("memory_forget", {"path": "a.md", "expected_revision": "absent"}),
        ("result_continue", {"continuation": "x.1"}),
    ):
        assert Remote(port, credential).code(tool, **arguments) == "binding_required"
        forged = binding.replace(binding[6], "0" if binding[6] != "0" else "1", 1)
        assert forged != binding
        for wrong in (forged, binding + "0", "x", binding.replace("global", "a" * 64)):
            assert Remote(port, credential, wrong).code(tool, **arguments) == "binding_mismatch"
    assert Remote(port, credential, binding).code("memory_get", path="MEMORY.md") == "ok"


@pytest.mark.requirement("M69")
def test_another_caller_may_omit_the_binding_but_not_send_a_wrong_one(
    hub: RunningHub, port: int
) -> None:
    _, binding = bound(hub, "s-other")
    token = person(hub)
    assert Remote(port, token).code("memory_get", path="a.md") == "ok"
    assert Remote(port, token, binding).code("memory_get", path="a.md") == "ok"
    assert Remote(port, token, "x").code("memory_get", path="a.md") == "binding_mismatch"


@pytest.mark.requirement("M75")
def test_a_credential_that_may_only_read_is_refused_each_write(hub: RunningHub, port: int) -> None:
    credential, binding = bound(hub, "s-reads", verbs="read")
    remote = Remote(port, credential, binding)
    assert remote.code("memory_search", query="x") == "ok"
    write = {"path": "read-only.md", "content": "x", "expected_revision": "absent"}
    assert remote.code("memory_upsert", **write) == "permission_denied"
    assert (
        remote.code("memory_forget", path="read-only.md", expected_revision="absent")
        == "permission_denied"
    )
    assert hub.ask("get", path="read-only.md")["exists"] is False


@pytest.mark.requirement("M67")
def test_a_credential_whose_session_has_ended_is_refused(hub: RunningHub, port: int) -> None:
    remote = Remote(port, *bound(hub, "s-ends"))
    assert remote.code("memory_search", query="x") == "ok"
    hub.ask("end", session="s-ends")
    assert code_of(remote) == (401, "unauthenticated")


@pytest.mark.slow
@pytest.mark.requirement("M5", "row-20")
def test_what_one_hub_gave_is_worth_nothing_at_another(folder: Path, hub: RunningHub) -> None:
    credential, binding = bound(hub, "s-abroad")
    with network_hub(folder, listen="127.0.0.1:0") as other:
        there = port_of(other)
        assert code_of(Remote(there, credential, binding)) == (401, "unauthenticated")
        own, _ = bound(other, "s-abroad")
        assert Remote(there, own, binding).code("memory_get", path="a.md") == "binding_mismatch"


@pytest.mark.slow
@pytest.mark.requirement("M7", "M4")
def test_with_memory_off_tools_are_listed_and_every_call_is_refused(folder: Path) -> None:
    with network_hub(folder, listen="127.0.0.1:0") as hub:
        credential, binding = bound(hub, "s-off")
        token = person(hub)
        assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
        hub.stop()
        hub.start()
        port = port_of(hub)
        for remote in (Remote(port, token), Remote(port, credential, binding)):
            assert remote.rpc("tools/list").status == 200
            assert remote.code("memory_get", path="MEMORY.md") == "memory_disabled"
            assert remote.code("result_continue", continuation="x.1") == "memory_disabled"


@pytest.mark.requirement("M76")
@pytest.mark.parametrize(
    ("host", "origin"),
    [("evil.example", ""), ("localhost:1", ""), ("localhost", "https://evil.example")],
    ids=["rebinding", "port", "origin"],
)
def test_another_host_or_page_is_refused_before_the_credential(
    port: int, host: str, origin: str
) -> None:
    more = {"Origin": origin} if origin else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    reply = Remote(port).post(body, host=host, **more)
    assert (reply.status, reply.code) == (403, "permission_denied")


@pytest.mark.requirement("M63", "M73")
def test_the_owner_needs_no_token_at_its_own_socket_and_the_trail_names_the_face(
    hub: RunningHub,
) -> None:
    local = Remote(0, socket_path=hub.config.socket_path)
    write = {"path": "local.md", "content": "x", "expected_revision": "absent"}
    assert local.code("memory_upsert", **write) == "ok"
    lines = hub.ask("audit", path="local.md")["lines"]
    assert isinstance(lines, list)
    assert {line["surface"] for line in lines} == {"mcp"}
    assert Remote(0, "x", socket_path=hub.config.socket_path).rpc("tools/list").status == 401
