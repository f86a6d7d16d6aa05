"""The table of calls as agents see it."""

import jsonschema
import pytest

from amux.core.text import to_json
from amux.wire import tools


@pytest.mark.requirement("M60")
def test_the_five_tools_together_stay_under_2400_bytes() -> None:
    assert len(to_json(tools.listing())) < 2400
    assert len(to_json({"tools": tools.listing()})) < 2400


@pytest.mark.requirement("M60")
def test_the_instructions_are_one_short_line() -> None:
    assert "\n" not in tools.INSTRUCTIONS
    assert len(tools.INSTRUCTIONS) < 120


@pytest.mark.requirement("M55")
def test_the_tools_have_the_names_and_annotations_that_agents_rely_on() -> None:
    annotations = {tool["name"]: tool["annotations"] for tool in tools.listing()}
    assert list(annotations) == [
        "memory_search",
        "memory_get",
        "memory_upsert",
        "memory_forget",
        "result_continue",
    ]
    for name in ("memory_search", "memory_get", "result_continue"):
        assert annotations[name]["readOnlyHint"] is True
    assert annotations["memory_upsert"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert annotations["memory_forget"]["destructiveHint"] is True
    assert annotations["memory_forget"]["readOnlyHint"] is False


@pytest.mark.requirement("M48", "M55")
@pytest.mark.parametrize("tool", tools.listing(), ids=lambda tool: tool["name"])
def test_a_schema_is_a_valid_closed_object(tool: dict[str, dict[str, object]]) -> None:
    schema = tool["inputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False


@pytest.mark.requirement("M55")
def test_no_tool_promises_structured_content() -> None:
    assert not any("outputSchema" in tool for tool in tools.listing())
