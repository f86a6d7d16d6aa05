"""Tokens: 256 random bits, a form that scanners know, shown once, kept as a digest."""

import base64
import json
import os
import re
import time
import zlib

import pytest

from amux.errors import InvalidArgument, LimitExceeded, NotFound, PermissionDenied, Unauthenticated
from amux.hub import credentials, tokens
from tests.support.rooms import BOB, EVE, OWNER, Rooms

FORM = re.compile(r"amux_[0-9a-f]{12}_[A-Za-z0-9_-]{43}_[0-9a-f]{8}")


@pytest.mark.requirement("M63", "M75")
def test_a_token_is_256_random_bits_in_a_form_that_checks_itself() -> None:
    seen = set()
    for _ in range(200):
        name, text = tokens.mint(os.urandom)
        assert FORM.fullmatch(text)
        assert tokens.id_in(text) == name
        secret, _, check = text.removeprefix(f"amux_{name}_").rpartition("_")
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32
        assert int(check, 16) == zlib.crc32(secret.encode())
        seen.add(secret)
    assert len(seen) == 200


@pytest.mark.requirement("M63", "M75")
def test_a_token_is_shown_once_and_kept_nowhere(hub: Rooms) -> None:
    made = hub.people.create_token(kind="person", principal="", acts_for="", label="me", days=0)
    text = str(made["token"])
    secret = text[18:61]
    assert secret not in json.dumps(hub.people.tokens())
    assert "digest" not in hub.people.tokens()[0]
    for file in (hub.home / "hub").iterdir():
        assert secret.encode() not in file.read_bytes(), file


@pytest.mark.requirement("M63")
def test_what_is_not_exactly_the_token_is_unauthenticated_and_tells_nothing(hub: Rooms) -> None:
    good, other = hub.token(), hub.token("person", "bob")
    revoked = hub.token()
    hub.people.revoke_token(revoked[5:17])
    expiring = hub.token(days=1)
    hub.later(days=1)
    assert hub.actor(None, good).principal == "local"
    wrong = [
        revoked, expiring, "", "amux", "x" * 100_000, good[:-1], good + "0", good.upper(),
        good[5:], " " + good, good.replace("amux_", "AMUX_"), "amux_" + "0" * 12 + good[17:],
        good[:17] + other[17:], other[:17] + good[17:], good[:18] + other[18:61] + good[61:],
        good[:61] + "_00000000", good[:40] + "\xe9" + good[41:], good + "\n", good + "\0",
        good[:18] + "A" * 43 + good[61:],
    ]  # fmt: skip
    told = set()
    for text in wrong:
        with pytest.raises(Unauthenticated) as refused:
            hub.actor(None, text)
        told.add(json.dumps(refused.value.body()))
    assert len(told) == 1


@pytest.mark.requirement("M63", "M71")
@pytest.mark.slow
def test_the_time_of_a_refusal_does_not_tell_which_part_was_wrong(hub: Rooms) -> None:
    good = hub.token()
    for _ in range(300):
        hub.token("person", "bob", label="x" * 50)
    wrong = {
        "unknown": "amux_" + "0" * 12 + good[17:],
        "first": good[:18] + ("B" if good[18] == "A" else "A") + good[19:],
        "last": good[:-1] + ("0" if good[-1] != "0" else "1"),
    }

    def seconds(text: str) -> float:
        started = time.perf_counter()
        for _ in range(200):
            with pytest.raises(Unauthenticated):
                hub.identity.value.authenticate(text, hub.now)
        return time.perf_counter() - started

    best = {name: min(seconds(text) for _ in range(7)) for name, text in wrong.items()}
    assert max(best.values()) < 1.3 * min(best.values()), best


@pytest.mark.requirement("M63", "M75")
def test_a_leaked_digest_opens_nothing(hub: Rooms) -> None:
    hub.token()
    (token,) = hub.identity.value.tokens.values()
    with pytest.raises(Unauthenticated):
        hub.actor(None, token.digest)


# --- principals, aliases, kinds ---


@pytest.mark.requirement("M64")
def test_an_alias_belongs_to_one_principal(hub: Rooms) -> None:
    hub.people.add("carol")
    with pytest.raises(InvalidArgument):
        hub.people.alias("carol", f"unix:{BOB}")
    hub.people.alias("bob", f"unix:{BOB}")  # what it is already
    hub.people.alias("bob", "feishu:ou_1")
    with pytest.raises(NotFound):
        hub.people.unalias(f"unix:{BOB}", "carol")
    hub.people.unalias(f"unix:{BOB}", "bob")
    hub.people.alias("carol", f"unix:{BOB}")
    assert hub.actor(BOB).principal == "carol"


@pytest.mark.requirement("M64")
@pytest.mark.parametrize(
    "alias",
    [
        "", "bob", "unix:", "unix:-1", "unix:+1", "unix:01", "unix:0", "unix:65534", "unix:1 ",
        "unix:99999999999", "unix:١", "feishu:", "feishu:a b", "feishu:" + "x" * 129,
        "token:abcdefabcdef", "UNIX:1001", "unix:1001\n", f"unix:{OWNER}",
    ],
)  # fmt: skip
def test_what_is_no_alias_of_somebody_else_is_refused(hub: Rooms, alias: str) -> None:
    before = hub.identity.value
    with pytest.raises(InvalidArgument):
        hub.people.alias("bob", alias)
    assert hub.identity.value == before


@pytest.mark.requirement("M64")
@pytest.mark.parametrize("name", ["", "Bob", "-b", ".b", "b/c", "b c", "x" * 65, "bob\n", "böb"])
def test_what_is_no_name_of_a_principal_is_refused(hub: Rooms, name: str) -> None:
    with pytest.raises(InvalidArgument):
        hub.people.add(name)


@pytest.mark.requirement("M64")
def test_nobody_is_made_known_by_naming_them(hub: Rooms) -> None:
    for call in (
        lambda: hub.people.alias("mallory", "unix:77"),
        lambda: hub.people.disable("mallory"),
        lambda: hub.token("person", "mallory"),
        lambda: hub.token("service", "bob", acts_for="mallory"),
        lambda: hub.people.unalias("unix:77", ""),
        lambda: hub.people.revoke_token("0" * 12),
    ):
        with pytest.raises(NotFound):
            call()
    assert set(hub.identity.value.principals) == {"local", "bob"}


@pytest.mark.requirement("M64")
def test_the_administrator_is_the_owner_and_cannot_be_disabled(hub: Rooms) -> None:
    with pytest.raises(InvalidArgument):
        hub.people.disable("local")
    assert hub.actor().is_owner
    assert not hub.actor(BOB).is_owner
    assert hub.actor(None, hub.token()).is_owner
    assert not hub.actor(None, hub.token("person", "bob")).is_owner
    (local,) = (row for row in hub.people.principals() if row["principal"] == "local")
    assert local["aliases"] == [f"unix:{OWNER}"]


@pytest.mark.requirement("M65", "M64")
@pytest.mark.parametrize("policy", ["shared", "per_principal"])
def test_a_disabled_principal_is_refused_and_never_global(hub: Rooms, policy: str) -> None:
    hub = hub.again(policy=policy)
    held = [hub.token("person", "bob"), hub.token("service", "bobs-ci", acts_for="bob")] if (
        hub.people.add("bobs-ci")
    ) else []  # fmt: skip
    delegated = hub.bind(hub.actor(BOB))
    hub.people.disable("bob")
    with pytest.raises(PermissionDenied):
        hub.actor(BOB)
    for token in [*held, str(delegated["credential"])]:
        with pytest.raises(PermissionDenied):
            hub.actor(BOB, token, binding=str(delegated["binding"]))
    hub.people.add("bob")
    assert hub.grant(hub.actor(BOB)).principal == "bob"
    assert hub.grant(hub.actor(None, held[0])).principal == "bob"
    hub.close()


@pytest.mark.requirement("M64", "M65")
@pytest.mark.parametrize("policy", ["shared", "per_principal"])
def test_a_removed_alias_is_refused_with_all_that_it_delegated(hub: Rooms, policy: str) -> None:
    hub = hub.again(policy=policy)
    given = hub.bind(hub.actor(BOB))
    token, binding = str(given["credential"]), str(given["binding"])
    assert hub.grant(hub.actor(BOB, token, binding=binding)).principal == "bob"
    hub.people.unalias(f"unix:{BOB}", "bob")
    for sent in (None, token):
        with pytest.raises(PermissionDenied):
            hub.actor(BOB, sent, binding=binding)
    hub.people.add("carol")
    hub.people.alias("carol", f"unix:{BOB}")
    with pytest.raises(PermissionDenied):
        hub.actor(BOB, token, binding=binding)
    hub.close()


@pytest.mark.requirement("M68")
@pytest.mark.parametrize("kind", ["service", "runtime"])
def test_a_service_acts_for_another_only_by_registration(hub: Rooms, kind: str) -> None:
    hub.people.add("ci")
    own = hub.actor(None, hub.token(kind, "ci"))
    assert hub.grant(own).scope.name == "principal:ci"
    registered = hub.actor(None, hub.token(kind, "ci", acts_for="bob"))
    assert hub.grant(registered).scope.name == "principal:bob"
    assert not registered.is_owner
    assert not hub.actor(None, hub.token(kind, "ci", acts_for="local")).is_owner
    # A person's principal is nobody's service, and nobody acts for nobody.
    hub.token("person", "bob")
    hub.people.add("eve")
    hub.people.alias("eve", "feishu:ou_2")
    for principal, acts_for in (("local", ""), ("bob", ""), ("eve", "ci"), ("", "bob")):
        with pytest.raises(InvalidArgument):
            hub.token(kind, principal, acts_for=acts_for)
    with pytest.raises(InvalidArgument):
        hub.token("person", "bob", acts_for="local")


@pytest.mark.requirement("M68")
def test_a_service_that_names_another_uid_is_refused(hub: Rooms) -> None:
    hub.people.add("ci")
    service = hub.actor(None, hub.token("service", "ci"))
    for uid in (OWNER, BOB, EVE, 0):
        with pytest.raises(PermissionDenied):
            hub.bind(service, uid=uid)
    assert not hub.bindings.value.records


@pytest.mark.requirement("M75")
@pytest.mark.parametrize(
    "wrong",
    [{"kind": "agent"}, {"kind": ""}, {"kind": "owner"}, {"days": -1}, {"days": 3651}],
    ids=repr,
)
def test_a_token_of_no_kind_or_life_is_refused(hub: Rooms, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        hub.token(**({"kind": "person"} | wrong))


@pytest.mark.requirement("M63")
def test_dead_tokens_make_room_and_live_ones_never_do(
    hub: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "MAX_TOKENS", 5)
    held = [hub.token() for _ in range(5)]
    with pytest.raises(LimitExceeded):
        hub.token()
    hub.people.revoke_token(held[2][5:17])
    more = hub.token()
    assert len(hub.identity.value.tokens) == 5
    for text in [*held[:2], *held[3:], more]:
        assert hub.actor(None, text)


@pytest.mark.requirement("M63")
def test_a_dead_token_is_listed_for_a_month_and_then_forgotten(hub: Rooms) -> None:
    name = hub.token()[5:17]
    hub.people.revoke_token(name)
    hub.people.revoke_token(name)
    hub.later(days=29)
    hub.token()
    assert name in hub.identity.value.tokens
    hub.later(days=2)
    hub.token()
    assert name not in hub.identity.value.tokens
