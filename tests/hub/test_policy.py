"""The policy switched and back on a real Hub: nothing is copied, nothing becomes public."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.client import Client
from amux.core.address import Address, Connection
from amux.errors import AmuxError
from tests.support.hub import RunningHub

pytestmark = pytest.mark.slow


class Switched:
    """One root whose Hub is started anew under each policy."""

    def __init__(self, home: Path) -> None:
        self.hub = RunningHub(home).enable().start()
        self.hub.ask("principal_add", principal="bob")
        self.bob = str(self.hub.ask("token_create", kind="person", principal="bob")["token"])

    def to(self, policy: str) -> None:
        for name, value in (("isolation.policy", policy), ("memory.enabled", "true")):
            assert self.hub.cli("system", "config", "set", name, value).returncode == 0
        self.restart()

    def restart(self) -> None:
        self.hub.stop()
        self.hub.start()

    def ask(
        self, call: str, token: str = "", binding: str = "", **given: object
    ) -> dict[str, object]:
        address = Address.local(self.hub.config.socket_path)
        return Client(Connection(address, token=token, binding=binding)).ask(call, given).value()

    def code(self, call: str, token: str = "", binding: str = "", **given: object) -> str:
        try:
            self.ask(call, token, binding, **given)
        except AmuxError as refusal:
            return str(refusal.code)
        return "ok"

    def texts(self, token: str = "") -> dict[str, str]:
        listed = self.ask("list", token)["documents"]
        return {row["path"]: self.ask("get", token, path=row["path"])["content"] for row in listed}

    def files(self) -> dict[str, str]:
        memory = self.hub.home / "memory"
        return {
            str(file.relative_to(memory)): file.read_text()
            for file in sorted(memory.rglob("*"))
            if file.is_file()
        }


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Switched]:
    found = Switched(tmp_path / "home")
    yield found
    found.hub.kill()


def bound(both: Switched, session: str, token: str = "") -> tuple[str, str]:
    given = both.ask("bind", token, session=session, agent="codex", delegate=True)
    return str(given["credential"]), str(given["binding"])


@pytest.mark.requirement("M70", "M65", "M69", "M71")
def test_switched_and_back_nothing_is_copied_and_nothing_is_public(both: Switched) -> None:
    write = {"content": "shared", "expected_revision": "absent"}
    both.ask("upsert", path="a.md", **write)
    assert both.texts(both.bob) == {"a.md": "shared"}
    old = bound(both, "s-old", both.bob)
    shared_files = both.files()
    both.to("per_principal")
    assert both.texts() == both.texts(both.bob) == {}
    assert both.files() == shared_files
    assert both.code("get", *old, path="a.md") == "binding_mismatch"
    sha = hashlib.sha256(b"bob").hexdigest()
    hub_id = both.ask("status")["hub_id"]
    assert both.code("get", old[0], f"amux1:{hub_id}:{sha}", path="a.md") == "binding_mismatch"
    new = bound(both, "s-new", both.bob)
    assert new[1] == f"amux1:{hub_id}:{sha}"
    both.ask("upsert", *new, path="own.md", content="bob's", expected_revision="absent")
    assert both.texts() == {}
    assert both.files() == shared_files | {f"users/{sha}/own.md": "bob's"}
    both.to("shared")
    assert both.texts() == both.texts(both.bob) == {"a.md": "shared"}
    assert both.code("get", *new, path="own.md") == "binding_mismatch"
    assert both.code("get", *old, path="a.md") == "ok"
    assert both.files() == shared_files | {f"users/{sha}/own.md": "bob's"}
    both.to("per_principal")
    assert both.texts(both.bob) == {"own.md": "bob's"}
    assert both.code("get", *new, path="own.md") == "ok"


@pytest.mark.requirement("M7", "M67")
def test_a_session_keeps_its_binding_while_memory_is_off(both: Switched) -> None:
    token, binding = bound(both, "s-1", both.bob)
    write = {"path": "a.md", "content": "x", "expected_revision": "absent"}
    both.ask("upsert", token, binding, **write)
    before = both.files()
    assert both.hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
    both.restart()
    for call, given in (
        ("get", {"path": "a.md"}), ("search", {"query": "x"}), ("upsert", write), ("list", {}),
        ("forget", {"path": "a.md", "expected_revision": "absent"}), ("check", {}),
        ("discard", {"path": "a.md"}),
    ):  # fmt: skip
        assert both.code(call, token, binding, **given) == "memory_disabled", call
    assert both.code("bind", both.bob, session="s-2", agent="codex") == "memory_disabled"
    renewed = both.ask("renew", both.bob, session="s-1")
    assert (renewed["binding"], renewed["credential"]) == (binding, None)
    resumed = both.ask("renew", both.bob, session="s-1", resume=True)
    assert resumed["binding"] == binding
    assert both.files() == before
    assert both.hub.cli("system", "config", "set", "memory.enabled", "true").returncode == 0
    both.restart()
    assert both.code("get", str(resumed["credential"]), binding, path="a.md") == "ok"
    assert both.code("get", token, binding, path="a.md") == "unauthenticated"


@pytest.mark.requirement("M72", "M64", "M65", "M68")
@pytest.mark.parametrize("policy", ["shared", "per_principal"])
def test_who_is_not_known_any_more_is_refused_and_never_global(both: Switched, policy: str) -> None:
    both.to(policy)
    both.ask("upsert", path="a.md", content="x", expected_revision="absent")
    token, binding = bound(both, "s-1", both.bob)
    get = {"path": "a.md"}
    # A parent, a principal or a scope named in a request is no argument of any call.
    for name in ("parent", "parent_id", "principal", "scope"):
        given = {"session": "s-2", "agent": "codex", name: "local"}
        assert both.code("bind", both.bob, **given) == "invalid_argument"
    both.ask("principal_add", principal="ci")
    service = str(both.ask("token_create", kind="service", principal="ci")["token"])
    given = {"session": "s-3", "agent": "codex", "delegate": True, "uid": os.getuid()}
    assert both.code("bind", service, **given) == "permission_denied"
    for call in ("renew", "end"):
        assert both.code(call, service, session="s-1") == "permission_denied"
        assert both.code(call, service, session="s-none") == "permission_denied"
    both.ask("principal_disable", principal="bob")
    assert both.code("get", both.bob, **get) == "permission_denied"
    assert both.code("get", token, binding, **get) == "permission_denied"
    for other in ("", both.bob[5:17], service[:-1], token[:-1]):
        assert both.code("get", other or "amux", **get) == "unauthenticated"
    both.ask("principal_add", principal="bob")
    both.ask("token_revoke", id=both.bob[5:17])
    assert both.code("get", both.bob, **get) == "unauthenticated"
    assert both.code("get", token, binding, **get) == "unauthenticated"


@pytest.mark.requirement("M72")
def test_no_list_of_sessions_shows_a_text_or_a_token(both: Switched) -> None:
    both.ask("upsert", path="a.md", content="markertext", expected_revision="absent")
    token, _ = bound(both, "s-1", both.bob)
    shown = json.dumps(both.ask("session_list")) + json.dumps(both.ask("token_list"))
    assert "s-1" in shown
    assert "markertext" not in shown
    assert token[18:61] not in shown
    assert "a.md" not in shown
    assert both.code("session_list", both.bob) == "permission_denied"
