"""The verbs on who is who and who did what: with a Hub, without one, and for nobody else."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.surface.cli import render
from tests.support.hub import RunningHub

TOKEN = re.compile(r"amux_[0-9a-f]{12}_[A-Za-z0-9_-]{43}_[0-9a-f]{8}")


class Home(RunningHub):
    def answer(self, *words: str, **environment: str) -> dict[str, object]:
        done = self.cli(*words, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def code(self, *words: str, **environment: str) -> tuple[str, int]:
        done = self.cli(*words, **environment)
        assert done.stdout == b""
        return json.loads(done.stderr.splitlines()[-1])["error"]["code"], done.returncode


@pytest.fixture(params=["with a Hub", "without a Hub"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    if request.param == "with a Hub":
        found.enable().start()
    yield found
    found.kill()


@pytest.mark.slow
@pytest.mark.requirement("M47", "M64", "M63", "M75")
def test_principals_and_tokens_are_kept_with_and_without_a_hub(home: Home) -> None:
    assert home.answer("principal", "add", "bob") == {"principal": "bob", "enabled": True}
    assert home.answer("principal", "alias", "bob", "unix:1001")["alias"] == "unix:1001"
    assert home.code("principal", "alias", "bob", "unix:0") == ("invalid_argument", 2)
    assert home.code("principal", "alias", "eve", "unix:7") == ("not_found", 3)
    assert home.code("principal", "alias", "bob") == ("invalid_argument", 2)
    both = ("principal", "alias", "bob", "unix:1001", "--remove", "unix:1001")
    assert home.code(*both) == ("invalid_argument", 2)
    rows = home.answer("principal", "list")["principals"]
    assert [(row["principal"], row["aliases"]) for row in rows] == [
        ("bob", ["unix:1001"]),
        ("local", [f"unix:{os.getuid()}"]),
    ]
    assert home.answer("principal", "alias", "bob", "--remove", "unix:1001")["removed"] is True
    bare = home.cli("token", "create", "--kind", "person", "--principal", "bob", "--bare")
    assert TOKEN.fullmatch(bare.stdout.decode().removesuffix("\n"))
    words = ("--kind", "service", "--principal", "ci", "--acts-for", "bob", "--days", "9")
    assert home.code("token", "create", *words) == ("not_found", 3)
    home.answer("principal", "add", "ci")
    made = home.answer("token", "create", *words, "--label", "nightly")
    assert TOKEN.fullmatch(str(made["token"]))
    listed = home.answer("token", "list")["tokens"]
    assert [(row["kind"], row["label"], row["live"]) for row in listed] == [
        ("service", "nightly", True),
        ("person", "", True),
    ]
    assert "token" not in listed[0]
    home.answer("token", "revoke", str(made["id"]))
    assert home.answer("token", "list")["tokens"][0]["live"] is False
    assert home.answer("principal", "disable", "bob")["enabled"] is False
    assert home.code("principal", "disable", "local") == ("invalid_argument", 2)
    told = [json.loads(line) for line in home.cli("audit").stdout.splitlines()]
    subjects = [(line["verb"], line.get("subject"), line["outcome"]) for line in told]
    assert ("principal_alias", "principal=bob alias=unix:1001", "ok") in subjects
    assert ("token_create", "principal=ci kind=service acts_for=bob", "ok") in subjects
    assert f"token:{made['id']}" in [line.get("made") for line in told]


@pytest.mark.slow
@pytest.mark.requirement("M64", "M73", "M63")
def test_who_is_not_the_administrator_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").enable()
    home.start()
    home.answer("principal", "add", "bob")
    file = tmp_path / "token"
    file.touch(mode=0o600)
    words = ("token", "create", "--kind", "person", "--principal", "bob", "--bare")
    file.write_bytes(home.cli(*words).stdout)
    bob = {"AMUX_CREDENTIAL_FILE": str(file)}
    verbs = (
        ("principal", "list"), ("principal", "add", "eve"), ("principal", "disable", "bob"),
        ("principal", "alias", "bob", "unix:7"), ("token", "list"), ("token", "revoke", "0" * 12),
        ("token", "create", "--kind", "person"), ("audit",), ("audit", "--principal", "bob"),
        ("system", "config", "set", "memory.enabled", "false"), ("system", "status"),
    )  # fmt: skip
    try:
        for verb in verbs:
            assert home.code(*verb, **bob) == ("permission_denied", 4), verb
        assert home.answer("memory", "list", **bob)["documents"] == []
        assert [row["principal"] for row in home.answer("principal", "list")["principals"]] == [
            "bob",
            "local",
        ]
        # A credential does not become the owner of the root by there being no Hub to ask.
        home.stop()
        for verb in verbs:
            assert home.code(*verb, **bob) == ("unavailable", 5), verb
    finally:
        home.kill()


@pytest.mark.requirement("M73")
def test_a_person_sees_of_each_write_how_it_ended_and_not_that_it_began() -> None:
    line = {
        "n": 1, "time": "2026-01-31T12:00:00.000001+00:00", "actor": "token:abc",
        "principal": "bob", "session": "s-1", "verb": "upsert", "path": "a.md",
        "before": "a" * 64, "after": "b" * 64,
    }  # fmt: skip
    for state in ("closed", "running"):
        assert render.audit(line | {"event": "intent", "state": state}) == ""
    lost = render.audit(line | {"event": "intent", "state": "no outcome"})
    assert "no outcome" in lost
    done = render.audit(line | {"event": "outcome", "of": 1, "outcome": "ok", "audit_gap": 3})
    for word in ("2026-01-31T12:00:00", "session s-1", "upsert", "a.md", f"{'a' * 12} -> b", "ok"):
        assert word in done
    assert "3 lines" in done
    assert render.audit({"outcome": "unauthenticated", "verb": "authenticate"})
