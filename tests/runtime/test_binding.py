"""Binding within its time, and credentials that live with their run."""

import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from amux import config
from amux.client import Client
from amux.core.address import Address, Connection
from amux.errors import AmuxError, Code
from amux.runtime import binding
from amux.runtime.binding import HasFailed, IsBound, IsOff, Outcome
from tests.support.hub import RunningHub, running_hub


class Surroundings:
    """What a launch knows of its surroundings; the wall clock is the test's."""

    def __init__(self, hub: RunningHub, **environment: str) -> None:
        self.config = config.load(hub.environment | environment)
        self.clock = time.monotonic
        self.now = time.time()

    def wall(self) -> float:
        return self.now

    def late(self, name: str) -> ModuleType:
        return import_module(f"amux.{name}")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    with running_hub(tmp_path_factory.mktemp("hub") / "root") as started:
        yield started


def resolve(ctx: Surroundings, session: str, verbs: str = "") -> Outcome:
    return binding.resolve(
        ctx, session=session, agent_id="codex", isolation="none", protocol_version=1,
        verbs=verbs, tell=lambda _: None,
    )  # fmt: skip


def read(hub: RunningHub, found: IsBound) -> str:
    """Tell what the Hub answers the holder of a credential."""
    connection = Connection(
        Address.local(hub.config.socket_path), token=found.credential, binding=found.binding
    )
    try:
        Client(connection).ask("get", {"path": "MEMORY.md"})
    except AmuxError as refusal:
        return str(refusal.code)
    return "ok"


@pytest.mark.requirement("R3", "R5", "M66", "M67")
def test_a_bound_session_has_a_credential_until_it_is_ended(hub: RunningHub) -> None:
    ctx = Surroundings(hub)
    found = resolve(ctx, "s-1")
    assert isinstance(found, IsBound)
    assert found.principal == "local"
    assert found.hub == hub.config.socket_path
    assert read(hub, found) == "ok"
    binding.end(ctx, "s-1")
    assert read(hub, found) == str(Code.UNAUTHENTICATED)


@pytest.mark.requirement("R7", "M67")
def test_a_resumed_session_gets_another_credential_and_the_old_one_dies(hub: RunningHub) -> None:
    ctx = Surroundings(hub)
    found = resolve(ctx, "s-2")
    assert isinstance(found, IsBound)
    again = binding.renew(ctx, "s-2", lambda _: None)
    assert again != found.credential
    assert read(hub, found) == str(Code.UNAUTHENTICATED)


@pytest.mark.requirement("R5")
def test_what_the_hub_refuses_is_an_outcome_with_its_code(hub: RunningHub) -> None:
    ctx = Surroundings(hub)
    assert isinstance(resolve(ctx, "s-3"), IsBound)
    refused = resolve(ctx, "s-3")
    assert isinstance(refused, HasFailed)
    assert (refused.cause, refused.may_be_bound) == ("invalid_argument", False)


@pytest.mark.requirement("R5")
@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        ({"AMUX_HUB": "/no/such.sock"}, "unavailable"),
        ({"AMUX_HUB": "no address"}, "invalid_argument"),
        ({"AMUX_HUB": "https://127.0.0.1:1"}, "unavailable"),
        ({"AMUX_MEMORY_BINDING": "amux1:x:global"}, "unauthenticated"),
        ({"AMUX_CREDENTIAL_FILE": "/no/such/file"}, "unauthenticated"),
    ],
    ids=str,
)
def test_no_way_to_a_hub_is_a_failed_outcome(
    environment: dict[str, str], cause: str, hub: RunningHub
) -> None:
    found = resolve(Surroundings(hub, **environment), "s-x")
    assert isinstance(found, HasFailed)
    assert found.cause == cause


@pytest.mark.requirement("R5")
@pytest.mark.slow
def test_memory_that_is_off_is_an_outcome_and_renewing_works(tmp_path: Path) -> None:
    with running_hub(tmp_path / "root") as hub:
        ctx = Surroundings(hub)
        found = resolve(ctx, "s-1")
        assert isinstance(found, IsBound)
        assert hub.cli("system", "config", "set", "memory.enabled", "false").returncode == 0
        hub.stop()
        hub.start()
        off = resolve(ctx, "s-2")
        assert isinstance(off, IsOff)
        assert off.cause == str(Code.MEMORY_DISABLED)
        assert binding.renew(ctx, "s-1", lambda _: None)


@pytest.mark.requirement("R3", "R5", "M53")
@pytest.mark.slow
def test_a_hub_is_started_for_a_binding_and_that_is_told(tmp_path: Path) -> None:
    hub = RunningHub(tmp_path / "root").enable()
    ctx = Surroundings(hub, AMUX_NO_AUTOSTART="0")
    told: list[str] = []
    began = time.monotonic()
    found = binding.resolve(
        ctx, session="s-1", agent_id="pi", isolation="none", protocol_version=1, verbs="read",
        tell=told.append,
    )  # fmt: skip
    assert time.monotonic() - began < binding.SECONDS + 0.5
    try:
        assert isinstance(found, IsBound)
        assert len(told) == 1
    finally:
        hub.cli("hub", "stop")


@pytest.mark.requirement("M67")
def test_a_credential_is_renewed_by_the_wall_clock(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "LOOK_SECONDS", 0.01)
    ctx = Surroundings(hub)
    assert isinstance(resolve(ctx, "s-4"), IsBound)
    warned: list[AmuxError] = []

    def renewed() -> object:
        listed = hub.ask("session_list")["sessions"]
        assert isinstance(listed, list)
        return next(one["renewed"] for one in listed if one["session"] == "s-4")

    assert renewed() is None
    with binding.kept_alive(ctx, "s-4", None, warned.append):
        ctx.now += binding.RENEW_SECONDS + 1  # the machine slept
        deadline = time.monotonic() + 5
        while renewed() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not warned
    assert threading.active_count() < 20


@pytest.mark.requirement("M67")
def test_a_renewal_that_fails_is_told_and_tried_again(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "LOOK_SECONDS", 0.01)
    ctx = Surroundings(hub)
    warned: list[AmuxError] = []
    with binding.kept_alive(ctx, "s-nobody", None, warned.append):
        for count in (1, 2):
            ctx.now += binding.RENEW_SECONDS + 1
            deadline = time.monotonic() + 5
            while len(warned) < count:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    assert {refusal.code for refusal in warned} == {Code.NOT_FOUND}
