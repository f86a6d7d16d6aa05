"""The description of the RPC: of the tables, sound by JSON Schema, and true of real answers."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from amux.errors import TABLE
from amux.wire import openapi
from amux.wire.tools import CALLS, TARGETS
from tests.network.conftest import Loopback
from tests.support.network import Reply, dialled, knocked, local, request

Plain = dict[str, object]


def asked(loopback: Loopback, **headers: str) -> Reply:
    return Reply(knocked(dialled(loopback.port), request("GET", "/v1/openapi.json", **headers)))


def found_at(document: Plain, reference: str) -> Plain:
    value: object = document
    for name in reference.removeprefix("#/").split("/"):
        assert isinstance(value, dict)
        value = value[name]
    assert isinstance(value, dict)
    return value


def test_it_is_served_to_whoever_is_known(loopback: Loopback) -> None:
    reply = asked(loopback, Authorization=loopback.bearer)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.value == json.loads(json.dumps(openapi.document()))
    path = loopback.hub.config.socket_path
    assert Reply(knocked(local(path), request("GET", "/v1/openapi.json"))).status == 200


@pytest.mark.requirement("M45", "M63")
def test_it_is_no_way_around_a_credential(loopback: Loopback) -> None:
    assert asked(loopback).code == "unauthenticated"
    assert asked(loopback, Authorization="Bearer nonsense").code == "unauthenticated"
    more = {"Authorization": loopback.bearer, "Origin": "http://evil.example"}
    assert asked(loopback, **more).code == "permission_denied"


@pytest.mark.requirement("M45")
def test_it_names_every_call_with_its_arguments_and_every_refusal() -> None:
    document = openapi.document()
    paths = document["paths"]
    assert isinstance(paths, dict)
    assert set(paths) == set(TARGETS.values())
    for name, call in CALLS.items():
        operation = paths[TARGETS[name]]["post"]
        given = operation["requestBody"]["content"]["application/json"]["schema"]
        assert set(given["properties"]) == {argument.name for argument in call.arguments}
        assert given["additionalProperties"] is False
        assert set(given.get("required", [])) == {
            argument.name for argument in call.arguments if argument.is_required
        }
        statuses = {str(row.http) for row in TABLE.values() if row.http}
        assert set(operation["responses"]) == statuses | {"200"}
    codes = found_at(document, "#/components/schemas/Refusal")
    assert all(str(code) in json.dumps(codes) for code in TABLE)


@pytest.mark.requirement("M45")
def test_it_is_sound_openapi() -> None:
    document = openapi.document()
    assert document["openapi"] == "3.1.0"
    assert document.keys() >= {"info", "paths", "components"}
    assert document["info"].keys() >= {"title", "version"}
    text = json.dumps(document)
    for reference in re.findall(r'"\$ref": "([^"]+)"', text):
        found_at(document, reference)
    operations = [row["post"] for row in document["paths"].values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        Draft202012Validator.check_schema(
            one["requestBody"]["content"]["application/json"]["schema"]
        )
        for response in one["responses"].values():
            found = found_at(document, response["$ref"]) if "$ref" in response else response
            assert found["description"]
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    assert set(document["components"]["securitySchemes"]) == {"token"}


@pytest.mark.requirement("M45")
def test_real_answers_and_refusals_are_as_described(loopback: Loopback) -> None:
    hub = loopback.hub
    made = hub.ask("upsert", path="described.md", content="# a b\nc", expected_revision="absent")
    (hub.memory_dir / "broken.md").write_bytes(b"\xff")
    answers = {
        "upsert": made,
        "get": hub.ask("get", path="described.md"),
        "search": hub.ask("search", query="a c"),
        "list": hub.ask("list"),
        "check": hub.ask("check"),
        "discard": hub.ask("discard", path="broken.md"),
        "forget": hub.ask("forget", path="described.md", expected_revision=made["revision"]),
    }
    assert answers.keys() == openapi.ANSWERS.keys()
    assert answers["search"]["hits"]
    assert answers["check"]["broken"]
    for name, answer in answers.items():
        Draft202012Validator(openapi.ANSWERS[name]).validate(answer)
    refusal = found_at(openapi.document(), "#/components/schemas/Refusal")
    for target, body in (
        ("/v1/memory/get", b"{}"),
        ("/v1/nowhere", b"{}"),
        ("/v1/memory/get", b""),
    ):
        reply = Reply(hub.raw(request("POST", target, body)))
        Draft202012Validator(refusal).validate(reply.value)
