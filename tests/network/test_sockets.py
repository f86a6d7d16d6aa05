"""Two Hubs, and other users of this machine: who reaches what, by the kernel's word."""

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hub import RunningHub
from tests.support.network import (
    GET,
    UPSERT,
    Reply,
    as_uid,
    bound,
    configure,
    dialled,
    knocked,
    network_hub,
    person,
    port_of,
    request,
)

KNOWN, UNKNOWN = 12345, 12346  # nobody's on this machine; the kernel does not mind
as_root = pytest.mark.usefixtures("as_root")


def get(path: str = "a.md", **headers: str) -> bytes:
    return request("POST", GET, json.dumps({"path": path}).encode(), **headers)


def upsert(path: str, **headers: str) -> bytes:
    arguments = {"path": path, "content": "of another", "expected_revision": "absent"}
    return request("POST", UPSERT, json.dumps(arguments).encode(), **headers)


def door(folder: Path) -> Path:
    """Make a folder for a shared socket, as whoever names one does."""
    made = folder / "door"
    made.mkdir(mode=0o755)
    return made


# --- the shared socket ---


class Shared:
    """A Hub that keeps principals apart, with a shared socket and one other user."""

    def __init__(self, hub: RunningHub, path: str) -> None:
        self.hub = hub
        self.path = path
        hub.ask("principal_add", principal="guest")
        hub.ask("principal_alias", principal="guest", alias=f"unix:{KNOWN}")
        hub.ask("upsert", path="owners.md", content="marker", expected_revision="absent")


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    folder = Path(tempfile.mkdtemp(prefix="amux-net-"))
    folder.chmod(0o755)
    path = str(door(folder) / "hub.sock")
    configure(folder / "a", shared_socket=path)
    hub = RunningHub(folder / "a")
    assert hub.cli("system", "config", "set", "isolation.policy", "per_principal").returncode == 0
    try:
        yield Shared(hub.enable().start(), path)
    finally:
        hub.kill()
        shutil.rmtree(folder)


@pytest.mark.requirement("M46")
def test_the_shared_socket_is_for_all_in_a_folder_of_the_hub(shared: Shared) -> None:
    found, folder = os.stat(shared.path), os.stat(os.path.dirname(shared.path))
    assert stat.S_IMODE(found.st_mode) == 0o666
    assert (stat.S_IMODE(folder.st_mode), folder.st_uid) == (0o755, os.geteuid())
    assert shared.hub.ask("status")["shared_socket"] == {"path": shared.path, "open": True}


@as_root
@pytest.mark.requirement("row-21", "M45", "M1")
def test_another_uid_does_not_even_reach_the_owners_socket(shared: Shared) -> None:
    for uid in (KNOWN, UNKNOWN):
        assert as_uid(uid, shared.hub.config.socket_path, get()) == "PermissionError"


@as_root
@pytest.mark.requirement("row-21", "M46", "M65")
def test_an_unregistered_uid_is_refused_and_learns_nothing(shared: Shared) -> None:
    for sent in (
        get("owners.md"),
        get("none.md"),
        upsert("x.md"),
        request("POST", "/v1/admin/status", b"{}"),
    ):
        reply = as_uid(UNKNOWN, shared.path, sent)
        assert isinstance(reply, Reply)
        assert (reply.status, reply.code) == (403, "permission_denied")
        assert b"marker" not in reply.body


@as_root
@pytest.mark.requirement("row-21", "M46", "M65")
def test_a_registered_uid_works_in_its_own_scope(shared: Shared) -> None:
    reply = as_uid(KNOWN, shared.path, get("owners.md"))
    assert isinstance(reply, Reply)
    assert (reply.code, reply.value["exists"]) == ("ok", False)
    made = as_uid(KNOWN, shared.path, upsert("guests.md"))
    assert isinstance(made, Reply)
    assert made.value["changed"] is True
    assert shared.hub.ask("get", path="guests.md")["exists"] is False
    again = as_uid(KNOWN, shared.path, get("guests.md"))
    assert isinstance(again, Reply)
    assert again.value["content"] == "of another"
    for target in ("/v1/admin/status", "/v1/admin/token_list", "/v1/admin/audit"):
        denied = as_uid(KNOWN, shared.path, request("POST", target, b"{}"))
        assert isinstance(denied, Reply)
        assert denied.code == "permission_denied"


@as_root
@pytest.mark.requirement("row-21", "M46", "M69")
def test_a_delegated_token_is_of_use_to_its_own_uid_only(shared: Shared) -> None:
    credential, binding = bound(shared.hub, "s-guest", uid=KNOWN)
    headers = {"Authorization": f"Bearer {credential}", "Amux-Memory-Binding": binding}
    stolen = as_uid(UNKNOWN, shared.path, get(**headers))
    assert isinstance(stolen, Reply)
    assert (stolen.status, stolen.code) == (403, "permission_denied")
    own = as_uid(KNOWN, shared.path, get(**headers))
    assert isinstance(own, Reply)
    assert own.code == "ok"
    unbound = as_uid(KNOWN, shared.path, get(Authorization=f"Bearer {credential}"))
    assert isinstance(unbound, Reply)
    assert unbound.code == "binding_required"
    forged = as_uid(
        KNOWN, shared.path, get(**headers | {"Amux-Memory-Binding": binding[:-1] + "0"})
    )
    assert isinstance(forged, Reply)
    assert forged.code in {"binding_mismatch", "ok"}
    assert forged.code == "binding_mismatch" or binding.endswith("0")


@as_root
@pytest.mark.requirement("row-21", "M46")
def test_the_owners_delegated_token_is_worth_nothing_to_another_uid(shared: Shared) -> None:
    credential, binding = bound(shared.hub, "s-owner")
    headers = {"Authorization": f"Bearer {credential}", "Amux-Memory-Binding": binding}
    for uid in (KNOWN, UNKNOWN):
        reply = as_uid(uid, shared.path, get("owners.md", **headers))
        assert isinstance(reply, Reply)
        assert reply.code == "permission_denied"
        assert b"marker" not in reply.body


@pytest.mark.slow
@pytest.mark.requirement("M46")
def test_a_shared_socket_that_cannot_be_made_is_told_and_stops_nothing(folder: Path) -> None:
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (folder / "link").symlink_to(folder)
    for path in (
        open_to_all / "hub.sock",  # anybody could put a socket of his own there
        folder / "none" / "hub.sock",
        folder / "link" / "hub.sock",
        folder / ("x" * 120),
    ):
        with network_hub(folder / "a", shared_socket=str(path)) as hub:
            found = hub.ask("status")["shared_socket"]
            assert isinstance(found, dict)
            assert (found["path"], found["open"]) == (str(path), False)
            assert found["reason"]
            assert hub.ask("get", path="a.md")["revision"] == "absent"
        done = hub.cli("hub", "start")
        assert b"shared socket" in done.stderr
        assert json.loads(done.stdout)["shared_socket"]["open"] is False
        hub.cli("hub", "stop")


@pytest.mark.slow
@pytest.mark.requirement("M46")
def test_a_second_hub_does_not_take_the_socket_of_the_first(folder: Path) -> None:
    path = str(door(folder) / "hub.sock")
    with network_hub(folder / "a", shared_socket=path) as first:
        with network_hub(folder / "b", shared_socket=path) as second:
            found = second.ask("status")["shared_socket"]
            assert isinstance(found, dict)
            assert found["open"] is False
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(path)  # the first one's is still there
        first.kill()
        with network_hub(folder / "b", shared_socket=path) as second:
            found = second.ask("status")["shared_socket"]
            assert isinstance(found, dict)
            assert found["open"] is True
            assert second.stop() == 0
            assert not os.path.exists(path)


@pytest.mark.slow
@as_root
@pytest.mark.requirement("M46")
def test_under_per_principal_it_is_opened_by_itself_and_under_shared_it_is_not(
    folder: Path,
) -> None:
    hub = RunningHub(folder / "a")
    try:
        assert hub.enable().start().ask("status")["shared_socket"] is None
        hub.stop()
        hub.cli("system", "config", "set", "isolation.policy", "per_principal")
        status = hub.start().ask("status")
        path = f"/run/amux/{status['hub_id']}.sock"
        assert status["shared_socket"] == {"path": path, "open": True}
        reply = as_uid(UNKNOWN, path, get())
        assert isinstance(reply, Reply)
        assert reply.code == "permission_denied"
        hub.stop()
        assert not os.path.exists(path)
        # What a crash leaves is known to whoever uninstalls.
        crashed = hub.start().process
        assert crashed is not None
        crashed.kill()
        crashed.wait()
        listed = json.loads(hub.cli("uninstall", "--dry-run").stdout)["remove"]
        assert path in listed
        assert hub.cli("uninstall", "--yes").returncode == 0
        assert not os.path.exists(path)
        assert ("/run/amux" in listed) != os.path.exists("/run/amux")
    finally:
        hub.kill()


# --- two Hubs ---


@pytest.mark.slow
@pytest.mark.requirement("row-20", "M5", "M69")
def test_what_one_hub_gave_is_worth_nothing_at_another(folder: Path) -> None:
    with (
        network_hub(folder / "a", listen="127.0.0.1:0") as first,
        network_hub(folder / "b", listen="127.0.0.1:0") as second,
    ):
        for hub, text in ((first, "of the first"), (second, "of the second")):
            hub.ask("upsert", path="same.md", content=text, expected_revision="absent")
        (credential, binding), (other, other_binding) = (
            bound(first, "one"),
            bound(second, "one"),
        )
        assert binding != other_binding
        cases = (
            # whose token, whose binding -> at the second Hub
            (credential, binding, "unauthenticated"),
            (credential, other_binding, "unauthenticated"),
            (person(first), other_binding, "unauthenticated"),
            (other, binding, "binding_mismatch"),
            (person(second), binding, "binding_mismatch"),
            (other, other_binding, "ok"),
        )
        for token, promised, code in cases:
            headers = {"Authorization": f"Bearer {token}", "Amux-Memory-Binding": promised}
            for target in (get("same.md", **headers), upsert("new.md", **headers)):
                reply = Reply(knocked(dialled(port_of(second)), target))
                assert reply.code == code, (reply.body, code)
                assert b"of the first" not in reply.body
        # Over the owner's own socket a foreign binding is refused as well: he is who he says,
        # but this is not the Hub that he means.
        reply = Reply(second.raw(get("same.md", Amux_Memory_Binding=binding)))
        assert reply.code == "binding_mismatch"
        assert (first.memory_dir / "same.md").read_text() == "of the first"
        assert not (first.memory_dir / "new.md").exists()
