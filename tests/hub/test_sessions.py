"""Sessions: bound once, renewed while they live, ended with their run, resumed by their own."""

import json

import pytest

from amux.disk import atomic
from amux.errors import (
    AmuxError,
    BindingMismatch,
    InvalidArgument,
    NotFound,
    NotSaved,
    PermissionDenied,
    Unauthenticated,
)
from amux.hub import bindings
from tests.support.rooms import BOB, EVE, OWNER, Rooms


def works(hub: Rooms, uid: int, given: dict[str, object]) -> bool:
    """Tell whether a credential opens its scope now."""
    try:
        hub.grant(hub.actor(uid, str(given["credential"]), binding=str(given["binding"])))
    except Unauthenticated:
        return False
    return True


@pytest.mark.requirement("M66")
def test_a_session_is_bound_once_and_its_record_says_what_it_was_given(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB), isolation="private-home", protocol_version=3)
    assert given["binding"] == hub.access.binding("bob")
    assert str(given["binding"]).startswith("amux1:" + "a" * 16 + ":")
    assert "bob" not in str(given["binding"])
    (record,) = hub.sessions.known()
    assert record["session"] == "s1"
    assert record["agent"] == "codex"
    assert (record["principal"], record["isolation"]) == ("bob", "private-home")
    assert (record["protocol_version"], record["ended"]) == (3, None)
    assert str(given["credential"]) not in json.dumps(record)
    with pytest.raises(InvalidArgument):
        hub.bind(hub.actor(BOB))
    assert len(hub.identity.value.tokens) == 1


@pytest.mark.requirement("M66")
@pytest.mark.parametrize(
    "wrong",
    [
        {"session": ""}, {"session": "../x"}, {"session": "a b"}, {"session": "x" * 65},
        {"session": "s\n"}, {"agent": ""}, {"agent": "Codex"}, {"agent": "a/b"},
        {"isolation": "vm"}, {"verbs": "mint"}, {"verbs": "read,mint"},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_session_agent_isolation_or_verb_is_refused_and_nothing_kept(
    hub: Rooms, wrong: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument):
        hub.bind(hub.actor(BOB), **({"session": "s1"} | wrong))
    assert not hub.bindings.value.records
    assert not hub.identity.value.tokens


@pytest.mark.requirement("M66")
def test_a_session_may_be_bound_without_a_credential(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB), is_delegated=False)
    assert given["credential"] is None
    assert not hub.identity.value.tokens
    assert hub.grant(hub.actor(BOB, binding=str(given["binding"]))).principal == "bob"
    renewed = hub.sessions.renew(hub.actor(BOB), "s1", is_resumed=True)
    assert (renewed["credential"], renewed["binding"]) == (None, given["binding"])


@pytest.mark.requirement("M67")
def test_a_credential_lives_twelve_hours_and_is_renewed_also_while_memory_is_off(
    hub: Rooms,
) -> None:
    given = hub.bind(hub.actor(BOB))
    hub.later(hours=11, minutes=59)
    assert works(hub, BOB, given)
    off = hub.again(policy="per_principal", is_on=False)
    renewed = off.sessions.renew(off.actor(BOB), "s1", is_resumed=False)
    assert (renewed["credential"], renewed["binding"]) == (None, given["binding"])
    on = off.again(policy="per_principal")
    on.later(hours=11, minutes=59)
    assert works(on, BOB, given)
    on.later(minutes=1)
    assert not works(on, BOB, given)
    on.sessions.renew(on.actor(BOB), "s1", is_resumed=False)  # the launcher was asleep
    assert works(on, BOB, given)
    off.close()
    on.close()


@pytest.mark.requirement("M67")
def test_a_renewal_changes_neither_binding_nor_verbs(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB), verbs="read")
    changed = hub.again(policy="shared")
    for is_resumed in (False, True):
        renewed = changed.sessions.renew(changed.actor(BOB), "s1", is_resumed=is_resumed)
        assert renewed["binding"] == given["binding"]
        token = str(renewed["credential"] or given["credential"])
        with pytest.raises(BindingMismatch):
            changed.grant(changed.actor(BOB, token, binding=str(given["binding"])))
    back = changed.again(policy="per_principal")
    actor = back.actor(BOB, str(renewed["credential"]), binding=str(given["binding"]))
    assert back.access.data(actor, "read")
    with pytest.raises(PermissionDenied):
        back.access.data(actor, "write")
    changed.close()
    back.close()


@pytest.mark.requirement("M67")
def test_an_ended_session_is_revoked_and_not_renewed_but_resumed(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB))
    hub.sessions.end(hub.actor(BOB), "s1")
    hub.sessions.end(hub.actor(BOB), "s1")
    assert not works(hub, BOB, given)
    before = hub.bindings.value
    with pytest.raises(NotFound):
        hub.sessions.renew(hub.actor(BOB), "s1", is_resumed=False)
    assert hub.bindings.value == before
    resumed = hub.sessions.renew(hub.actor(BOB), "s1", is_resumed=True)
    assert resumed["binding"] == given["binding"]
    assert works(hub, BOB, resumed)
    assert not works(hub, BOB, given)
    # Resumed after a crash: what the dead run was given works no more.
    again = hub.sessions.renew(hub.actor(BOB), "s1", is_resumed=True)
    assert works(hub, BOB, again)
    assert not works(hub, BOB, resumed)


@pytest.mark.requirement("M67")
def test_a_session_is_resumed_though_its_credential_is_long_forgotten(hub: Rooms) -> None:
    given = hub.bind(hub.actor(BOB), verbs="read")
    hub.later(days=40)
    hub.token()
    assert len(hub.identity.value.tokens) == 1
    resumed = hub.sessions.renew(hub.actor(BOB), "s1", is_resumed=True)
    assert resumed["binding"] == given["binding"]
    assert works(hub, BOB, resumed)
    assert hub.identity.value.authenticate(str(resumed["credential"]), hub.now).verbs == ("read",)


@pytest.mark.requirement("M72", "M71")
def test_somebody_elses_session_is_refused_like_one_that_never_was(hub: Rooms) -> None:
    hub.known("eve", EVE)
    hub.bind(hub.actor(BOB), "s-bob")
    told = set()
    for session in ("s-bob", "s-none"):
        for call in (
            lambda name: hub.sessions.renew(hub.actor(EVE), name, is_resumed=True),
            lambda name: hub.sessions.renew(hub.actor(EVE), name, is_resumed=False),
            lambda name: hub.sessions.end(hub.actor(EVE), name),
        ):
            with pytest.raises(PermissionDenied) as refused:
                call(session)
            told.add(json.dumps(refused.value.body()))
    assert len(told) == 1
    # Nor does a name that others use stand in the way, or become theirs.
    hub.bind(hub.actor(EVE), "s-bob")
    hub.sessions.end(hub.actor(EVE), "s-bob")
    assert [row["principal"] for row in hub.sessions.known() if row["ended"] is None] == ["bob"]


@pytest.mark.requirement("M66", "M67")
def test_the_administrator_binds_for_another_uid_and_only_for_its_own_principal(
    hub: Rooms,
) -> None:
    given = hub.bind(hub.actor(OWNER), uid=BOB)
    assert given["binding"] == hub.access.binding("bob")
    actor = hub.actor(BOB, str(given["credential"]), binding=str(given["binding"]))
    assert hub.grant(actor).scope.name == "principal:bob"
    for uid in (EVE, 0, 65534):
        with pytest.raises(PermissionDenied):
            hub.bind(hub.actor(OWNER), f"s{uid}", uid=uid)
    with pytest.raises(PermissionDenied):
        hub.bind(hub.actor(BOB), "s9", uid=OWNER)
    # Its launcher, and the principal itself, may go on with it.
    for uid in (OWNER, BOB):
        assert works(hub, BOB, hub.sessions.renew(hub.actor(uid), "s1", is_resumed=True))
    hub.sessions.end(hub.actor(OWNER), "s1")


@pytest.mark.requirement("M66", "row-21")
def test_a_delegated_token_in_another_uids_hands_is_of_no_use(hub: Rooms) -> None:
    hub.known("eve", EVE)
    given = hub.bind(hub.actor(BOB))
    for uid in (EVE, OWNER, 0, 77):
        with pytest.raises(PermissionDenied):
            hub.actor(uid, str(given["credential"]), binding=str(given["binding"]))


@pytest.mark.requirement("M75")
def test_a_credential_gives_no_more_than_its_minter_has(hub: Rooms) -> None:
    hub.people.add("ci")
    service = hub.token("service", "ci", acts_for="bob")
    given = hub.bind(hub.actor(None, service), verbs="read")
    assert given["binding"] == hub.access.binding("bob")
    actor = hub.actor(None, str(given["credential"]), binding=str(given["binding"]))
    assert hub.grant(actor).principal == "bob"
    # It dies with the registration that it came from.
    hub.people.disable("ci")
    with pytest.raises(PermissionDenied):
        hub.actor(None, str(given["credential"]), binding=str(given["binding"]))
    hub.people.add("ci")
    hub.people.revoke_token(service[5:17])
    with pytest.raises(Unauthenticated):
        hub.actor(None, str(given["credential"]), binding=str(given["binding"]))


@pytest.mark.requirement("M66")
@pytest.mark.parametrize("parent", ["token:" + "0" * 12, "token:", "token:agent", "token:itself"])
def test_a_forged_parent_is_no_parent(hub: Rooms, parent: str) -> None:
    """In the Hub's own file, too: one that was forgotten, an agent's, or the token itself."""
    given, other = hub.bind(hub.actor(BOB)), hub.bind(hub.actor(BOB), "s2")
    mine, agents = str(given["credential"])[5:17], str(other["credential"])[5:17]
    parent = parent.replace("agent", agents).replace("itself", mine)
    file = hub.home / "hub/identity.json"
    rows = json.loads(file.read_text())
    for row in rows["tokens"]:
        if row["id"] == mine:
            row["parent"] = parent
    file.write_text(json.dumps(rows))
    again = hub.again(policy="per_principal")
    assert not works(again, BOB, given)
    assert works(again, BOB, other)
    again.close()


@pytest.mark.requirement("M66")
@pytest.mark.parametrize("failing", [1, 2])
def test_a_binding_that_could_not_be_saved_leaves_neither_record_nor_credential(
    hub: Rooms, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = atomic.rename, []

    def rename(*given: object) -> None:
        calls.append(given)
        if len(calls) == failing:
            raise OSError(28, "injected")
        real(*given)

    monkeypatch.setattr(atomic, "rename", rename)
    with pytest.raises(NotSaved):
        hub.bind(hub.actor(BOB))
    assert not hub.bindings.value.records
    assert not [one for one in hub.identity.value.tokens.values() if one.is_live(hub.now)]
    assert works(hub, BOB, hub.bind(hub.actor(BOB)))


@pytest.mark.requirement("M66")
def test_old_sessions_are_forgotten_and_nobody_makes_the_hub_forget_those_of_others(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "MAX_RECORDS", 6)
    hub.known("eve", EVE)
    hub.bind(hub.actor(BOB), "keep")
    for number in range(12):
        hub.later(minutes=1)
        hub.bind(hub.actor(EVE), f"flood{number}")
    assert len(hub.sessions.known()) == 6
    assert hub.sessions.renew(hub.actor(BOB), "keep", is_resumed=False)
    with pytest.raises(AmuxError):
        hub.sessions.renew(hub.actor(EVE), "flood0", is_resumed=False)
    hub.later(days=91)
    hub.bind(hub.actor(BOB), "new")
    assert [row["session"] for row in hub.sessions.known()] == ["new"]
