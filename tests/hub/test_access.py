"""Who may: the kernel's word or a token, then the scope, then the binding, then the verb."""

import pytest

from amux.core.identity import GLOBAL
from amux.errors import (
    AmuxError,
    BindingMismatch,
    BindingRequired,
    MemoryDisabled,
    PermissionDenied,
    Unauthenticated,
)
from amux.hub.access import scope_of
from tests.support.rooms import BOB, EVE, OWNER, Rooms


@pytest.mark.requirement("M63", "M64", "M65")
@pytest.mark.parametrize("policy", ["shared", "per_principal"])
def test_whoever_the_kernel_names_is_known_or_refused_under_every_policy(
    hub: Rooms, policy: str
) -> None:
    hub = hub.again(policy=policy)
    for uid in (EVE, 65534, 1):
        with pytest.raises(PermissionDenied):
            hub.actor(uid)
    owner, bob = hub.grant(hub.actor(OWNER)), hub.grant(hub.actor(BOB))
    if policy == "shared":
        assert owner.scope == bob.scope == GLOBAL
    else:
        assert (owner.scope.name, bob.scope.name) == ("principal:local", "principal:bob")
    hub.close()


@pytest.mark.requirement("M64")
def test_uid_0_runs_the_hub_and_is_nobodys_principal(hub: Rooms) -> None:
    root = hub.actor(0)
    assert hub.access.operator(root) is root
    for refused in (hub.grant, hub.access.administrator, hub.access.binder, hub.bind):
        with pytest.raises(PermissionDenied):
            refused(root)


@pytest.mark.requirement("M63")
def test_a_token_decides_alone_and_can_only_narrow(hub: Rooms) -> None:
    bobs = hub.token("person", "bob")
    assert hub.grant(hub.actor(OWNER, bobs)).principal == "bob"
    assert not hub.actor(OWNER, bobs).is_owner
    # The owner's own uid does not help whoever sends a token that is none.
    for token in ("", "wrong", bobs[:-1]):
        with pytest.raises(Unauthenticated):
            hub.actor(OWNER, token)
    with pytest.raises(Unauthenticated):
        hub.actor(None)


@pytest.mark.requirement("M7")
def test_while_memory_is_off_data_and_new_bindings_are_refused_and_administration_is_not(
    hub: Rooms,
) -> None:
    off = hub.again(policy="per_principal", is_on=False)
    for refused in (off.grant, off.bind):
        with pytest.raises(MemoryDisabled) as why:
            refused(off.actor())
        assert "amux system config set memory.enabled true" in why.value.hint
    assert off.access.administrator(off.actor())
    off.close()


@pytest.mark.requirement("M69")
def test_a_delegated_credential_says_its_binding_or_is_refused(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB))
    token, binding = str(given["credential"]), str(given["binding"])
    assert hub.grant(hub.actor(BOB, token, binding=binding)).principal == "bob"
    with pytest.raises(BindingRequired):
        hub.grant(hub.actor(BOB, token))
    forged = [
        "", "x", binding[:-1], binding + "0", binding.upper(), f"amux1:{'a' * 16}:global",
        binding.replace("a" * 16, "b" * 16), hub.access.binding("local"), binding + "\n",
    ]  # fmt: skip
    for said in forged:
        with pytest.raises(BindingMismatch):
            hub.grant(hub.actor(BOB, token, binding=said))


@pytest.mark.requirement("M69")
def test_others_may_omit_a_binding_and_what_they_send_must_match(hub: Rooms) -> None:
    owner, binding = hub.actor(), hub.access.binding("local")
    assert hub.grant(owner) == hub.grant(owner)
    assert hub.grant(hub.actor(binding=binding)).principal == "local"
    for caller in ({"binding": hub.access.binding("bob")}, {"binding": ""}):
        with pytest.raises(BindingMismatch):
            hub.grant(hub.actor(**caller))
        with pytest.raises(BindingMismatch):
            hub.grant(hub.actor(None, hub.token(), **caller))


@pytest.mark.requirement("M70")
@pytest.mark.parametrize("switched", [("shared", "per_principal"), ("per_principal", "shared")])
def test_a_changed_policy_refuses_old_sessions_whatever_they_say(
    hub: Rooms, switched: tuple[str, str]
) -> None:
    """A binding is no secret: whoever can compute the new one still has the old credential."""
    before = hub.again(policy=switched[0])
    given = before.bind(before.actor(BOB))
    after = before.again(policy=switched[1])
    for said in (str(given["binding"]), after.access.binding("bob"), after.access.binding("local")):
        with pytest.raises(BindingMismatch):
            after.grant(after.actor(BOB, str(given["credential"]), binding=said))
    new = after.bind(after.actor(BOB), "s2")
    assert new["binding"] != given["binding"]
    assert after.grant(after.actor(BOB, str(new["credential"]), binding=str(new["binding"])))
    back = after.again(policy=switched[0])
    said = str(given["binding"])
    assert back.grant(back.actor(BOB, str(given["credential"]), binding=said)).principal == "bob"
    for one in (before, after, back):
        one.close()


@pytest.mark.requirement("M5")
def test_a_binding_of_another_hub_is_refused_whatever_the_scope(
    hub: Rooms, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for policy in ("shared", "per_principal"):
        other = Rooms(tmp_path_factory.mktemp("other"), policy=policy, hub_id="c" * 16)
        for principal in ("local", "bob"):
            with pytest.raises(BindingMismatch):
                hub.grant(hub.actor(binding=other.access.binding(principal)))
        other.close()


@pytest.mark.requirement("M75", "M66")
def test_a_delegated_credential_administers_binds_and_mints_nothing(hub: Rooms) -> None:
    given = hub.bind(hub.actor())  # even one of the administrator's
    agent = hub.actor(OWNER, str(given["credential"]), binding=str(given["binding"]))
    assert not agent.is_owner
    for refused in (
        hub.access.administrator,
        hub.access.operator,
        hub.access.binder,
        hub.access.new_binding,
        lambda actor: hub.bind(actor, "s2"),
        lambda actor: hub.sessions.renew(actor, "s1", is_resumed=False),
        lambda actor: hub.sessions.end(actor, "s1"),
    ):
        with pytest.raises(PermissionDenied):
            refused(agent)


@pytest.mark.requirement("M75")
def test_a_credential_does_only_what_its_verbs_say(hub: Rooms) -> None:
    reader = hub.bind(hub.actor(BOB), verbs="read")
    writer = hub.bind(hub.actor(BOB), "s2", verbs="write")
    for given, may, may_not in ((reader, "read", "write"), (writer, "write", "read")):
        actor = hub.actor(BOB, str(given["credential"]), binding=str(given["binding"]))
        assert hub.access.data(actor, may)
        with pytest.raises(PermissionDenied):
            hub.access.data(actor, may_not)


@pytest.mark.requirement("M65")
def test_the_scope_follows_policy_and_principal_alone() -> None:
    assert scope_of("shared", "local") == scope_of("shared", "bob") == GLOBAL
    assert scope_of("per_principal", "local").name == "principal:local"


@pytest.mark.requirement("M71")
def test_no_refusal_names_a_principal(hub: Rooms) -> None:
    hub.known("carol-secret", EVE)
    given = hub.bind(hub.actor(EVE), "s-of-carol")
    tries = [
        lambda: hub.actor(77),
        lambda: hub.actor(BOB, str(given["credential"])),
        lambda: hub.grant(hub.actor(BOB, binding=hub.access.binding("carol-secret"))),
        lambda: hub.bind(hub.actor(BOB), uid=EVE),
        lambda: hub.sessions.end(hub.actor(BOB), "s-of-carol"),
        lambda: hub.access.administrator(hub.actor(BOB)),
    ]
    for attempt in tries:
        with pytest.raises(AmuxError) as refused:
            attempt()
        assert "carol" not in str(refused.value.body())
