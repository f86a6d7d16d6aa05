"""The table of tools: what `tools/list` shows of it, and how large that is."""

import json

import pytest

from amux.core.text import to_json
from amux.journal.call import tools
from amux.journal.call.tool import Field, schema, shown
from amux.journal.ground.agent import AGENTS

KIB = 1024


def size(names: tuple[str, ...]) -> int:
    return len(to_json(tools.listing(names)))


@pytest.mark.requirement("J70", "JA44")
def test_the_lists_are_as_small_as_promised() -> None:
    assert len(tools.DEFAULT) == 12
    assert size(tools.DEFAULT) <= 9 * KIB
    assert len(tools.EVERY) == 17
    assert size(tools.EVERY) <= 14 * KIB
    assert all(len(to_json(shown(tool))) <= 1.5 * KIB for tool in tools.TOOLS.values())


@pytest.mark.requirement("J70", "T72")
def test_the_lists_are_the_ones_of_the_contract() -> None:
    assert set(tools.DEFAULT) == {
        "memory_status", "memory_summary_query", "memory_session_query", "memory_session_write",
        "memory_summary_append", "memory_task_resolve", "memory_task_admit_v2",
        "memory_cp_confirm", "memory_task_operation", "memory_task_write_owner",
        "memory_task_terminal_v1", "memory_artifact_mutation_reconcile_v1",
    }  # fmt: skip
    assert set(tools.EVERY) - set(tools.DEFAULT) == {
        "memory_context_plan", "memory_session_allocate", "memory_decision_append",
        "memory_ingress_register", "memory_child_plan",
    }  # fmt: skip


@pytest.mark.requirement("J70", "JA44")
def test_a_child_has_no_writer_but_the_one_that_hands_in_evidence() -> None:
    writers = [name for name in tools.CHILD if not tools.TOOLS[name].is_read]
    assert writers == ["memory_child_submit"]
    assert "memory_context_plan" in tools.CHILD


@pytest.mark.requirement("J70", "JA44")
@pytest.mark.parametrize("name", tools.EVERY)
def test_a_definition_is_one_sentence_and_closed_schemas(name: str) -> None:
    found = shown(tools.TOOLS[name])
    about = str(found["description"])
    assert len(about) <= 100
    assert about.endswith(".")
    assert about.count(". ") == 0
    assert "outputSchema" not in found
    reads = {"readOnlyHint": True}
    writes = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
    assert found["annotations"] == (reads if tools.TOOLS[name].is_read else writes)
    for inner in _objects(found["inputSchema"]):
        assert inner["additionalProperties"] is False or "properties" not in inner


@pytest.mark.requirement("J70")
def test_the_shared_arguments_are_those_of_the_contract() -> None:
    shared = {"agent", "project", "scope"}
    for tool in tools.TOOLS.values():
        names = {field.name for field in tool.fields}
        if not tool.is_task:
            assert shared <= names
        assert "project" in names
    bound = {name for name in tools.EVERY if tools.TOOLS[name].field("contextBinding")}
    assert bound == set(tools.SOURCES)
    resolve = {field.name for field in tools.TOOLS["memory_task_resolve"].fields}
    assert {"project", "scope"} <= resolve


def test_agents_are_the_same_ones_everywhere() -> None:
    assert set(tools.AGENTS) == set(AGENTS)


@pytest.mark.requirement("J72")
def test_a_flag_is_the_arguments_name_in_kebab_case() -> None:
    assert Field("contextBinding", "word").flag == "context-binding"
    assert Field("artifactSha256", "hex").flag == "artifact-sha256"
    assert len({tool.verb for tool in tools.TOOLS.values()}) == len(tools.TOOLS)


def test_every_schema_is_json_and_names_what_is_required() -> None:
    for tool in tools.TOOLS.values():
        found = json.loads(json.dumps(schema(tool)))
        required = [field.name for field in tool.fields if field.is_required]
        assert found.get("required", []) == required


def _objects(value: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    if isinstance(value, dict):
        found += [value] if value.get("type") == "object" else []
        for one in value.values():
            found += _objects(one)
    return [one for one in found if "properties" in one]
