"""The RPC described as OpenAPI 3.1, made from the table of calls and the table of errors.

Rule 1: calls, arguments, refusals and statuses are those of the tables; nothing is said twice.
Rule 2: what is written here are the answers about documents, which no table has; a test holds
        real answers against them.
Rule 3: it is constant for a release: nothing in it is of a Hub, a caller or a document.
"""

from functools import lru_cache

from amux import __version__
from amux.errors import TABLE
from amux.wire.tools import BINDING_HEADER, CALLS, TARGETS, VERSION_HEADER, Call, schema

Plain = dict[str, object]
_TEXT: Plain = {"type": "string"}
_COUNT: Plain = {"type": "integer", "minimum": 0}
_FLAG: Plain = {"type": "boolean"}
_REVISION: Plain = {"type": "string", "pattern": "^([0-9a-f]{64}|absent)$"}
_MAYBE_TEXT: Plain = {"type": ["string", "null"]}


def _object(**properties: Plain) -> Plain:
    """Describe a closed object all of whose fields are always there."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Plain) -> Plain:
    return {"type": "array", "items": items}


_HIT = _object(
    path=_TEXT,
    revision=_REVISION,
    line=_COUNT,
    snippet_line=_COUNT,
    snippet=_TEXT,
    truncated=_FLAG,
    matched_terms=_list(_COUNT),
)
ANSWERS: dict[str, Plain] = {
    "search": _object(
        hits=_list(_HIT),
        terms=_list(_object(term=_TEXT, documents=_COUNT)),
        scanned_files=_COUNT,
        skipped_files=_COUNT,
        incomplete=_FLAG,
        truncated=_FLAG,
        relaxed=_FLAG,
    ),
    "get": _object(
        path=_TEXT,
        exists=_FLAG,
        revision=_REVISION,
        content=_TEXT,
        start_line=_COUNT,
        end_line=_COUNT,
        total_lines=_COUNT,
        total_bytes=_COUNT,
        truncated=_FLAG,
        next_offset={"type": ["integer", "null"]},
    ),
    "upsert": _object(path=_TEXT, revision=_REVISION, changed=_FLAG),
    "forget": _object(path=_TEXT, already_absent=_FLAG, revision=_REVISION, kept=_TEXT),
    "list": _object(
        documents=_list(_object(path=_TEXT, bytes=_COUNT, revision=_REVISION, modified=_TEXT)),
        next_cursor=_MAYBE_TEXT,
    ),
    "check": _object(broken=_list(_object(path=_TEXT, reason=_TEXT)), truncated=_FLAG),
    "discard": _object(path=_TEXT, removed=_FLAG),
}
_REFUSAL: Plain = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"enum": [str(code) for code in TABLE]},
                "message": _TEXT,
                "hint": _TEXT,
                "details": {"type": "object"},
            },
            "required": ["code", "message"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


@lru_cache(maxsize=1)
def document() -> Plain:
    """Give the whole description."""
    refusals = _refusals()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "amux Hub",
            "version": __version__,
            "description": "Shared memory for coding agents. /v1 stays compatible within a major "
            "release: fields may be added to answers, none is taken away.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": {TARGETS[name]: {"post": _operation(call, refusals)} for name, call in _rows()},
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `amux token create`. On a Unix socket it may be "
                    "absent: the kernel names the caller.",
                }
            },
            "parameters": {
                "Binding": {
                    "name": BINDING_HEADER,
                    "in": "header",
                    "required": False,
                    "schema": _TEXT,
                    "description": "The binding of a session (AMUX_MEMORY_BINDING). A delegated "
                    "credential must send it; whoever sends it is refused if it does not match.",
                }
            },
            "schemas": {"Refusal": _REFUSAL} | {_title(name): ANSWERS[name] for name in ANSWERS},
            "responses": refusals,
        },
    }


def _rows() -> list[tuple[str, Call]]:
    return list(CALLS.items())


def _operation(call: Call, refusals: dict[str, Plain]) -> Plain:
    answer: Plain = {"type": "object"}
    if call.name in ANSWERS:
        answer = {"$ref": f"#/components/schemas/{_title(call.name)}"}
    version: Plain = {VERSION_HEADER: {"schema": _TEXT, "description": "release of the Hub"}}
    found: Plain = {
        "operationId": call.name,
        "tags": [TARGETS[call.name].split("/")[2]],
        "parameters": [{"$ref": "#/components/parameters/Binding"}],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema(call)}},
        },
        "responses": {
            "200": {
                "description": "the answer",
                "headers": version,
                "content": {"application/json": {"schema": answer}},
            }
        }
        | {
            name.removeprefix("Refused"): {"$ref": f"#/components/responses/{name}"}
            for name in refusals
        },
    }
    return found | ({"description": call.about} if call.about else {})


def _refusals() -> dict[str, Plain]:
    """Describe what each status of the error table means."""
    found: dict[str, Plain] = {}
    for status in sorted({row.http for row in TABLE.values() if row.http}):
        lines = [f"`{code}`: {row.when}" for code, row in TABLE.items() if row.http == status]
        found[f"Refused{status}"] = {
            "description": "; ".join(lines),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
        }
    return found


def _title(name: str) -> str:
    return f"{name.title()}Answer"
